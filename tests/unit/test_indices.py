# SPDX-License-Identifier: Apache-2.0
"""Indices into tables: the limit of each element of an input is that of the tables that read it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tinyet.data import refuse_indices
from tinyet.errors import DataError
from tinyet.ir import Array, Attrs, DType, Graph, Node, Tensor, TensorType, constant
from tinyet.ops import check_whole, infer
from tinyet.ops.concat import Concat
from tinyet.ops.embedding import Embedding
from tinyet.ops.pad import Pad
from tinyet.ops.permute import Permute
from tinyet.ops.reshape import Reshape
from tinyet.ops.slice import Slice
from tinyet.ops.where import Where


class Net:
    """A graph, node by node."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.outputs: list[Tensor] = []

    def node(self, attrs: Attrs, *inputs: Tensor, dtype: DType = DType.INT32) -> Tensor:
        name = f"t{len(self.nodes)}"
        draft = Node(attrs, inputs, (Tensor(name, TensorType((1,), dtype)),))
        made = Tensor(name, TensorType(tuple(infer(draft)[0]), dtype))
        self.nodes.append(Node(attrs, inputs, (made,)))
        return made

    def look_up(self, rows: int, indices: Tensor) -> None:
        table = constant(f"table_{len(self.outputs)}", np.zeros((rows, 2), np.float32))
        self.outputs.append(self.node(Embedding(), indices, table, dtype=DType.FLOAT32))

    def graph(self, *inputs: Tensor) -> Graph:
        graph = Graph("net", inputs, tuple(self.outputs), tuple(self.nodes))
        return check_whole(graph, "the test's graph is wrong")


def limits(graph: Graph, of: int = 0) -> Array:
    """For each element of an input the least value that is refused; 99 for any."""
    found = np.full(graph.inputs[of].shape, 99)
    zeros = [np.zeros(t.shape, t.dtype.numpy) for t in graph.inputs]
    for at in np.ndindex(found.shape):
        for value in range(30, 0, -1):
            arrays = [array.copy() for array in zeros]
            arrays[of][at] = value
            try:
                refuse_indices(graph, arrays)
            except DataError:
                found[at] = value
    return found


def whole(name: str, *shape: int) -> Tensor:
    return Tensor(name, TensorType(shape, DType.INT32))


def expect(graph: Graph, wanted: Sequence[object], of: int = 0) -> None:
    np.testing.assert_array_equal(limits(graph, of), wanted)


def test_columns_of_one_tensor() -> None:
    net, x = Net(), whole("x", 2, 3)
    net.look_up(5, net.node(Slice(1, 0, 1), x))
    turned = net.node(Permute((1, 0)), net.node(Slice(1, 1, 3), x))
    net.look_up(9, net.node(Reshape((4,)), turned))
    net.look_up(7, net.node(Slice(0, 1, 2), turned))
    graph = net.graph(x)
    expect(graph, [[5, 9, 7], [5, 9, 7]])
    stacked = np.array([[[4, 8, 6]] * 2] * 3)
    refuse_indices(graph, [stacked])
    stacked[2, 0, 0] = 8
    with pytest.raises(
        DataError, match=r"input x holds 1 .* outside 0 … 4, the first is 8: .*table_0 has 5 rows"
    ):
        refuse_indices(graph, [stacked])


def test_two_inputs_side_by_side_and_what_surrounds_them() -> None:
    net, x, y = Net(), whole("x", 2), whole("y", 3)
    both = net.node(Concat(0), x, net.node(Slice(0, 1, 3), y))
    net.look_up(4, net.node(Pad(((1, 1),), value=3.0), both))
    graph = net.graph(x, y)
    expect(graph, [4, 4])
    expect(graph, [99, 4, 4], of=1)


def test_either_of_two() -> None:
    net, x, y, chosen = Net(), whole("x", 2), whole("y", 2), whole("c", 2)
    net.look_up(6, net.node(Where(), chosen, x, y))
    graph = net.graph(x, y, chosen)
    expect(graph, [6, 6])
    expect(graph, [6, 6], of=1)
    expect(graph, [99, 99], of=2)
