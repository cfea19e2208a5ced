# SPDX-License-Identifier: Apache-2.0
"""What takes elements from places, writes to places, copies views or orders elements, is what torch makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tinyet
from tests.importers.test_importer import arrays, check_same
from tests.ops import drawing
from tests.torch_helpers import Lambda
from tinyet.compiler import float_layers
from tinyet.errors import UnsupportedOp
from tinyet.fx.capture import capture
from tinyet.fx.known_indices import arranged
from tinyet.importers.torch.importer import import_program
from tinyet.reference import run_graph

aten = torch.ops.aten
SEED = torch.Generator().manual_seed(11)


def tensor(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=SEED)


HANDLERS, CUBE, SQUARE, PART = tensor(2, 8), tensor(2, 3, 4), tensor(4, 4), tensor(2, 3)
PLACES = torch.tensor([[4, 0, 7], [1, 1, 5]])
TWO = torch.tensor([1, -3])
THREE = torch.tensor([1, 4, 6])
TURNED = torch.tensor([5, 2, 7, 0, 3, 6, 1, 4, 4, 0, 2])


def same(function: Any, *inputs: torch.Tensor) -> list[str]:
    """The operators of the graph, whose outputs are torch's own, to the bit."""
    graph = import_program(capture(Lambda(function), inputs), name="m")
    wanted = function(*inputs)
    results = run_graph(graph, arrays(inputs))
    for number, (result, want) in enumerate(zip(results, wanted, strict=True)):
        np.testing.assert_array_equal(result, want.numpy(), err_msg=str(number), strict=False)
        assert result.shape == tuple(want.shape), number
    return [node.op for node in graph.nodes]


def test_copies_of_views() -> None:
    def copies(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            aten.view_copy(y, [2, 12]),
            aten.permute_copy(y, [2, 0, 1]),
            aten.slice_copy(y, 1, 0, 3, 2),
            aten.squeeze_copy(y.unsqueeze(0)),
            aten.squeeze_copy(y.unsqueeze(0), 0),
            aten.squeeze_copy(y.unsqueeze(0), [0]),
            aten.unsqueeze_copy(y, 1),
            aten.select_copy(y, 1, -1),
            aten.expand_copy(y.unsqueeze(1), [2, 5, 3, 4]),
            aten.transpose_copy(y, 1, 2),
            *aten.split_copy(y, 2, 1),
            *aten.split_with_sizes_copy(y, [1, 2], 1),
            *aten.unbind_copy(y, 1),
            aten.diagonal_copy(y, 1, 1, 2),
            aten.alias_copy(y),
            aten.detach_copy(y),
            aten.t_copy(x),
            aten.as_strided_copy(x, [2, 4], [8, 2], 1),
            aten.unfold_copy(x, 1, 3, 2),
            aten.narrow_copy(x, 1, 2, 3),
            aten._reshape_alias_copy(x, [4, 4], [4, 1]),
            aten.lift_fresh_copy(x),
        )

    same(lambda x, y: tuple(each * 2 for each in copies(x, y)), HANDLERS, CUBE)


def put(x: torch.Tensor, part: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, places] = part
    return y


def test_constant_places() -> None:
    operators = same(
        lambda x, y, part: (
            x.gather(1, torch.tensor([[0, 2], [1, 3]])),
            x.gather(1, torch.tensor([[5, 2, 7], [5, 2, 7]])),
            x[torch.tensor([0, 1]), torch.tensor([2, -1])],
            x[:, torch.tensor([[2, 0], [1, -1]])],
            x.t().as_strided((3, 2), (1, 8), 2) * 2,
            torch.diagonal(y, 1, 1, 2),
            torch.trace(x[:, :2]),
            put(x, part, THREE),
            x.index_put((torch.tensor([0, 1]), torch.tensor([2, 3])), torch.tensor(5.0)),
            x.index_put(
                (torch.tensor([0, 1, 0]), torch.tensor([2, 3, 2])), part[:, 0].sum(), accumulate=True
            ),
            x.index_copy(1, torch.tensor([4, 2, 0]), part),
            x.index_add(1, torch.tensor([4, 2, 4]), part),
            x.index_fill(1, torch.tensor([4, 2]), 3.0),
            x.scatter(1, PLACES[:, :2], part),
            x.scatter(1, PLACES, 2.0),
            x.scatter_add(1, PLACES, part),
            torch.diagonal_scatter(x, part[:, 0]),
            x.slice_scatter(part, 1, 0, 6, 2),
        ),
        HANDLERS,
        CUBE,
        PART,
    )
    assert operators.count("gather") <= 3  # most are few runs of neighbours


def test_many_runs_are_one_look_up() -> None:
    """Of the rows, which are the same in each part: a table of 11 places, not of 2 * 11 * 4."""
    x = tensor(2, 8, 4)
    graph = check_same(Lambda(lambda x: (x[:, TURNED], x.index_select(1, TURNED), x[..., TURNED % 4])), x)
    tables = [node.input(1).array for node in graph.nodes if node.op == "gather"]
    assert [table.tolist() for table in tables] == [TURNED.tolist()] * 2 + [(TURNED % 4).tolist()]


def test_computed_places() -> None:
    places, few = PLACES, torch.tensor([1, 0, 1])
    same(
        lambda x, y, i, j, two, part: (
            x.gather(1, i),
            x.gather(1, i[:1]),
            y.gather(2, i.unsqueeze(1) % 4),
            torch.take_along_dim(x, i, 1),
            x[0].gather(0, i[0]),
            x[:, i[0]],
            x[j],
            x[:, two],
            x[j, i[0]],
            y[:, j, j],
            x.index_select(1, i[1]),
            x.index_put((j[:1],), part[0, 0]),
            put(x, part[:, :2], two),
            x.scatter(1, i[:, :1], part),
            x.scatter(1, i, 7.0),
            x.scatter_add(1, i, part),
        ),
        HANDLERS,
        CUBE,
        places,
        few,
        TWO,
        PART,
    )


def test_whole_numbers_at_places() -> None:
    numbers = torch.randint(-9, 9, (2, 8), generator=SEED)
    same(
        lambda x, i: (
            x.gather(1, i),
            x[:, TWO],
            put(x, i, THREE),
            x.max(1)[0],
            x.min(1, keepdim=True)[0],
            x.topk(3)[0],
        ),
        numbers,
        PLACES,
    )


def test_orders() -> None:
    operators = same(
        lambda x, y: (
            *x.topk(3),
            *y.topk(2, 1, largest=False),
            x.topk(1).values,
            y.topk(2, 2).indices,
            *x.sort(),
            *torch.sort(y, dim=1, descending=True, stable=True),
            x.argsort(1),
            torch.msort(x),
            *x.median(1),
            y.median(),
            *x.kthvalue(3, 1, keepdim=True),
        ),
        HANDLERS,
        CUBE,
    )
    assert set(operators) <= {"argsort", "gather", "slice", "reshape"}


def test_statistics_and_products() -> None:
    check_same(
        Lambda(
            lambda x: (
                *torch.std_mean(x, 1),
                *torch.var_mean(x, (1, 2), correction=0, keepdim=True),
                *torch.var_mean(x),
                torch.std_mean(x, 1, correction=2)[1],
                torch.var_mean(x, 2)[0],
                x.prod(1),
                x.prod(-1, keepdim=True),
                x[0, 0].prod(),
                torch.trunc(4 * x),
                torch.frac(4 * x),
            )
        ),
        CUBE,
    )


def test_in_integers() -> None:
    """Elements that are moved keep their parameters; of an order, the places are those of the integers."""

    class Head(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            with torch.random.fork_rng():
                torch.manual_seed(0)
                self.stem, self.head = torch.nn.Linear(8, 6), torch.nn.Linear(3, 4)

        def forward(self, x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
            y = self.stem(x)
            values, places = y.topk(3)
            z = y.scatter(1, i[:, :1], 0.5).index_copy(1, torch.tensor([4, 2, 0]), y[:, 3:])
            return self.head(values), places, self.head(y.gather(1, i)), z, y[:, i[0]].amax(1)

    model, data = (
        Head().eval(),
        [(tensor(2, 8), torch.randint(0, 6, (2, 3), generator=SEED)) for _ in range(16)],
    )
    program = tinyet.compile(model, data[0], calibration=data)
    assert float_layers(program.graph) == []
    for x, i in data:
        got: Any = program.run(x.numpy(), i.int().numpy())
        wanted = [v.detach().numpy() for v in model(x, i)]
        for number in (0, 2, 3, 4):
            np.testing.assert_allclose(got[number], wanted[number], atol=0.05, err_msg=str(number))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x, i: torch.cat([x, x], 1).scatter(1, i.repeat(1, 3), 7.0), "scatter"),
        (lambda x, i: x.scatter_add(1, i[:1], x[:1]), "scatter_add"),
        (lambda x, i: x.index_put((i[:, 0] % 2, i[:, 1]), torch.zeros(2)), "index_put"),
    ],
)
def test_more_computed_places_are_refused(function: Any, name: str) -> None:
    with pytest.raises(UnsupportedOp, match=f"aten.{name}"):
        import_program(capture(Lambda(function), (HANDLERS, PLACES)), name="m")


@drawing.quick
@given(st.data())
def test_arranged(data: st.DataObject) -> None:
    """Rows of blocks, the same in each outer part, are the places again, whatever these are."""
    outer, block = data.draw(st.sampled_from((1, 2, 3))), data.draw(st.sampled_from((1, 2, 4)))
    own = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=2))
    taken = data.draw(st.lists(st.integers(0, sum(own) - 1), min_size=1, max_size=8))
    sizes = [outer * rows * block for rows in own]
    numbers = np.split(np.arange(sum(sizes), dtype=np.int64), np.cumsum(sizes)[:-1])
    pool = np.concatenate([n.reshape(outer, -1, block) for n in numbers], 1)
    places = pool[:, taken].ravel()
    found_outer, found_block, rows = arranged(sizes, places)
    assert found_outer >= outer
    assert len(rows) * found_outer * found_block == len(places)
    pool = np.concatenate([n.reshape(found_outer, -1, found_block) for n in numbers], 1)
    np.testing.assert_array_equal(pool[:, rows].ravel(), places)
