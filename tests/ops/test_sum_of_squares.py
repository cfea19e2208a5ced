# SPDX-License-Identifier: Apache-2.0
"""Sums of squares: the C, products that are summed, the pass that joins them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, expected, tensor
from tests.ops.signalling import case, numbers
from tinyet.ir import Attrs, DType, Graph, Node, Tensor, constant
from tinyet.ops.biquads import Biquads
from tinyet.ops.mul import Mul
from tinyet.ops.sum import Sum
from tinyet.ops.sum_of_squares import SumOfSquares
from tinyet.ops.unary import Unary
from tinyet.passes.sum_of_squares import sum_of_squares
from tinyet.reference.evaluate import run_graph


@st.composite
def sum_of_squares_nodes(draw: st.DrawFn) -> Case:
    shape = (*draw(st.lists(st.integers(1, 4), max_size=3)), draw(st.sampled_from((1, 2, 2, 3, 9))))
    return case(SumOfSquares(), [numbers(drawing.random(draw), shape, DType.FLOAT32)], [DType.FLOAT32])


test_host = bodies.host(sum_of_squares_nodes())


def _summed(x: Tensor, squares: Attrs, axes: tuple[int, ...], keepdims: bool = False) -> Graph:
    """x squared and summed."""
    square = Tensor("square", x.type)
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape) if keepdims or axis not in axes)
    y = tensor("y", shape, DType.FLOAT32)
    first = Node(squares, (x, x) if isinstance(squares, Mul) else (x,), (square,))
    return Graph("g", (x,), (y,), (first, Node(Sum(axes, keepdims), (square,), (y,))))


@drawing.quick
@given(sum_of_squares_nodes(), st.booleans())
def test_as_products_that_are_summed(drawn: Case, product: bool) -> None:
    (found,) = expected(drawn.node, drawn.inputs)
    x = drawn.node.input(0)
    graph = _summed(x, Mul() if product else Unary("square"), (len(x.shape) - 1,))
    (wanted,) = run_graph(graph, drawn.inputs)
    np.testing.assert_array_equal(found, wanted)
    (joined,) = sum_of_squares(graph).nodes
    assert joined.op == "sum_of_squares"


def test_what_stays() -> None:
    x = tensor("x", (3, 2), DType.FLOAT32)
    for graph in (
        _summed(x, Mul(), (0,)),
        _summed(x, Mul(), (1,), keepdims=True),
        _summed(x, Unary("abs"), (1,)),
        _summed(x, Mul((0.0, 3.0)), (1,)),
    ):
        assert sum_of_squares(graph).nodes == graph.nodes
    graph = _summed(x, Mul(), (1,))
    read_twice = graph.replace(outputs=(*graph.outputs, graph.nodes[0].output))
    assert sum_of_squares(read_twice).nodes == graph.nodes


def test_beside_an_operator_of_two_results() -> None:
    graph = _summed(tensor("x", (3, 2), DType.FLOAT32), Mul(), (1,))
    other = tensor("other", (3, 2), DType.FLOAT32)
    state = tensor("state", (3, 1, 2), DType.FLOAT32)
    sections = constant("sections", np.ones((1, 5), np.float32))
    results = (tensor("filtered", other.shape, DType.FLOAT32), tensor("left", state.shape, DType.FLOAT32))
    filters = Node(Biquads(), (other, state, sections), results)
    both = Graph("g", (*graph.inputs, other, state), (*graph.outputs, *results), (*graph.nodes, filters))
    assert [node.op for node in sum_of_squares(both).nodes] == ["sum_of_squares", "biquads"]
