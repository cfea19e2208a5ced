# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, assert_exact, expected, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.boards.cpus import HOST
from tinyet.deployment import deploy
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Graph, Node, TensorType, constant
from tinyet.ops.concat import OP, Concat, access_order, parts_of


@st.composite
def concat_nodes(draw: st.DrawFn, dtypes: tuple[DType, ...] = drawn.MOVABLE) -> Case:
    shape = draw(drawn.shapes(1, 4))
    axis = draw(st.integers(0, len(shape) - 1))
    type_ = draw(drawn.types(shape, dtypes))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    inputs = [TensorType((*shape[:axis], n, *shape[axis + 1 :]), type_.dtype, type_.quant) for n in sizes]
    return drawn.case_of(Concat(axis), inputs, type_, draw(drawn.seeds))


test_host = bodies.batches(st.lists(concat_nodes(), min_size=10, max_size=20), 5)


def test_same_tensor_twice() -> None:
    x, y = tensor("x", (2, 3), scale=1.0), tensor("y", (2, 6), scale=1.0)
    assert_exact([Case(Node(Concat(1), (x, x), (y,)), (np.arange(6, dtype=np.int8).reshape(2, 3),))])


def channels(*widths: int) -> Node:
    """Of images of 64x64."""
    inputs = [tensor(f"x{i}", (1, 64, 64, width), scale=1.0) for i, width in enumerate(widths)]
    return Node(Concat(3), tuple(inputs), (tensor("y", (1, 64, 64, sum(widths)), scale=1.0),))


@pytest.mark.parametrize(
    ("widths", "first", "distance"),
    [
        ((8, 8), 0, 64 * 64 * 8),
        ((8, 24), 1, 64 * 64 * 8 + 24),  # the last row is copied to where nothing of the input lies
        ((24, 8), 0, 64 * 64 * 8 + 16),
        ((8, 16, 16), 1, 64 * 64 * 24),
    ],
)
def test_access_order_through_the_largest_input(widths: tuple[int, ...], first: int, distance: int) -> None:
    node = channels(*widths)
    said = [access_order(node, index) for index in range(len(widths))]
    assert parts_of(node)[0].index == first
    assert [index for index, each in enumerate(said) if each is not None] == [first]
    assert [each.dependence_distance for each in said if each is not None] == [distance]


def test_nothing_is_said_of_one_input_and_of_constants() -> None:
    alone = channels(8)
    assert access_order(alone, 0) is None
    node = channels(24, 8)
    x, y = node.inputs
    assert x is not None
    fixed = Node(Concat(3), (constant("c", np.zeros(x.shape, np.int8), x.type.quant), y), node.outputs)
    assert access_order(fixed, 0) is None
    assert access_order(fixed, 1) is not None


@pytest.mark.parametrize(("widths", "over"), [((8, 8), (0,)), ((8, 24), (1,)), ((8, 16, 16), (1,))])
def test_arena_holds_output_and_the_other_inputs(widths: tuple[int, ...], over: tuple[int, ...]) -> None:
    node = channels(*widths)
    inputs = tuple(t for t in node.inputs if t is not None)
    plan = deploy(Graph("joined", inputs, node.outputs, (node,)), HOST).plan
    beside = sum(x.type.bytes for index, x in enumerate(inputs) if index not in over)
    assert plan.overlaps == {node: over}
    assert 0 <= plan.arena_bytes - node.output.type.bytes - beside <= 24


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@settings(max_examples=60, deadline=None)
@given(concat_nodes((DType.INT8, DType.INT16)))
def test_litert(case: Case) -> None:
    assert isinstance(case.node.attrs, Concat)
    out = case.node.output
    quant = out.type.scale, out.type.zero_point
    specs = [litert.TensorSpec(a.shape, a.dtype, *quant, data=a) for a in case.inputs]
    (want,) = litert.run(
        "CONCATENATION",
        specs,
        [litert.TensorSpec(out.shape, out.dtype.numpy, *quant)],
        axis=case.node.attrs.axis,
    )
    assert np.array_equal(expected(case.node, case.inputs)[0], want)


def test_refusals() -> None:
    a, b, y = tensor("a", (2, 3), scale=1.0), tensor("b", (2, 4), scale=1.0), tensor("y", (4, 3), scale=1.0)
    with pytest.raises(UnsupportedShape, match="differ in more than axis 0"):
        ops.infer(Node(Concat(0), (a, b), (y,)))
    with pytest.raises(UnsupportedShape, match="no axis 2"):
        ops.infer(Node(Concat(2), (a, b), (y,)))
    with pytest.raises(UnsupportedShape, match="an input is missing"):
        ops.infer(Node(Concat(0), (), (y,)))
    other = tensor("c", (2, 3), scale=2.0)
    assert "c and the output must be quantized alike" in str(OP.check(Node(Concat(0), (a, other), (y,))))
