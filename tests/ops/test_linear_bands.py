# SPDX-License-Identifier: Apache-2.0
"""Products with matrices of runs: the C, the whole matrix, the pass that finds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, expected, tensor
from tests.ops.signalling import case, numbers
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Graph, Node, constant
from tinyet.ops.linear import Linear
from tinyet.ops.linear_bands import LinearBands
from tinyet.passes.linear_bands import linear_bands
from tinyet.reference.evaluate import run_graph


@st.composite
def linear_bands_nodes(draw: st.DrawFn) -> Case:
    columns, count = draw(st.integers(1, 20)), draw(st.integers(1, 6))
    rng = drawing.random(draw)
    firsts = rng.integers(0, columns, count).astype(np.int32)
    counts = np.minimum(rng.integers(0, columns + 1, count), columns - firsts).astype(np.int32)
    if not counts.any():
        counts[0] = 1
    weights = rng.standard_normal(int(counts.sum())).astype(np.float32)
    shape = (*draw(st.sampled_from(((), (2,), (1, 3)))), columns)
    return case(
        LinearBands(), [numbers(rng, shape, DType.FLOAT32)], [DType.FLOAT32], [weights, firsts, counts]
    )


test_host = bodies.host(linear_bands_nodes())


def _matrix(node: Node) -> np.ndarray:
    weights, firsts, counts = (node.input(index).array for index in (1, 2, 3))
    matrix = np.zeros((len(firsts), node.input(0).shape[-1]), np.float32)
    for row, first, run in zip(matrix, firsts, np.split(weights, np.cumsum(counts)[:-1]), strict=True):
        row[first : first + len(run)] = run
    return matrix


@drawing.quick
@given(linear_bands_nodes())
def test_as_the_whole_matrix(drawn: Case) -> None:
    """Bit for bit, and the pass makes the one of the other where it is worth it."""
    node, weights = drawn.node, constant("weights", _matrix(drawn.node))
    whole = Node(Linear(), (node.input(0), weights, None), node.outputs)
    (found,), (wanted,) = expected(node, drawn.inputs), expected(whole, drawn.inputs)
    np.testing.assert_array_equal(found, wanted)
    graph = linear_bands(Graph("g", (node.input(0),), node.outputs, (whole,)))
    (made,) = graph.nodes
    if made.op == "linear_bands":
        assert made.input(1).type.count * 2 <= weights.type.count
        (found,) = expected(made, drawn.inputs)
        np.testing.assert_array_equal(found, wanted)
    else:
        assert made is whole


def test_a_filter_bank_is_runs() -> None:
    x, y = tensor("x", (3, 9), DType.FLOAT32), tensor("y", (3, 4), DType.FLOAT32)
    bank = np.zeros((4, 9), np.float32)
    bank[0, 1:3], bank[1, 2:5], bank[3, 8] = 1, (1, 0, 2), 3
    node = Node(Linear(), (x, constant("bank", bank), None), (y,))
    (made,) = linear_bands(Graph("g", (x,), (y,), (node,))).nodes
    tables = [made.input(index).array.tolist() for index in (1, 2, 3)]
    assert tables == [[1, 1, 1, 0, 2, 3], [1, 2, 0, 8], [2, 3, 0, 1]]
    for weights, bias in ((np.ones((4, 9), np.float32), None), (bank, np.ones(4, np.float32))):
        held = None if bias is None else constant("bias", bias)
        node = Node(Linear(), (x, constant("whole", weights), held), (y,))
        assert linear_bands(Graph("g", (x,), (y,), (node,))).nodes == (node,)


def test_a_clamp_stays() -> None:
    """An amplitude in decibels, say, has a floor."""
    x, y = tensor("x", (2, 8), DType.FLOAT32), tensor("y", (2, 2), DType.FLOAT32)
    bank = np.eye(2, 8, dtype=np.float32)
    whole = Graph("g", (x,), (y,), (Node(Linear((0.5, 2.0)), (x, constant("bank", bank), None), (y,)),))
    runs = linear_bands(whole)
    assert [node.op for node in runs.nodes] == ["linear_bands", "clamp"]
    values = [np.linspace(-1, 3, 16, dtype=np.float32).reshape(2, 8)]
    np.testing.assert_array_equal(run_graph(runs, values)[0], run_graph(whole, values)[0])


def test_what_is_refused() -> None:
    x, weights = tensor("x", (9,), DType.FLOAT32), constant("w", np.ones(3, np.float32))

    def node(firsts: list[int], counts: list[int]) -> Node:
        tables = [constant(name, np.array(v, np.int32)) for name, v in (("f", firsts), ("c", counts))]
        return Node(LinearBands(), (x, weights, *tables), (tensor("y", (len(firsts),), DType.FLOAT32),))

    check = ops.op_of(node([0], [3])).check
    assert check(node([6], [3])) is None
    assert "outside" in str(check(node([7], [3])))
    assert "outside" in str(check(node([-1], [3])))
    assert "outside" in str(check(node([0, 0], [4, -1])))
    assert "4 weights, not 3" in str(check(node([0, 1], [2, 2])))
    with pytest.raises(UnsupportedShape, match="linear_bands: x"):
        ops.infer(node([0, 1], [3]))
