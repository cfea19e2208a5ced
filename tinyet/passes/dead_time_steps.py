# SPDX-License-Identifier: Apache-2.0
"""Unread results of recurrent layers: the states of all steps if only the last one counts, and steps."""

from __future__ import annotations

import math
from dataclasses import replace

from tinyet.ir import Attrs, Graph, Node, Tensor, TensorType
from tinyet.ops import op_of
from tinyet.ops.requantize import Requantize
from tinyet.ops.reshape import Reshape
from tinyet.ops.shared.recurrent import Recurrent
from tinyet.ops.slice import Slice
from tinyet.opset import described, moves
from tinyet.passes.dead_code import eliminate_dead_code
from tinyet.passes.edit import Edit, settle
from tinyet.passes.rewrite import Names, only_consumer

_TIME = 1
"""The axis of the steps in a recurrent layer's input and output."""


def _moves(node: Node) -> bool:
    """Whether a node may stand between a layer and a slice of its output, because it treats each step alone."""
    if isinstance(node.attrs, Slice):
        return False
    return isinstance(node.attrs, Requantize) or moves(op_of(node), node)


def last_steps(graph: Graph) -> Graph:
    """A slice of a recurrent layer's output is taken before the output is moved or concatenated; a slice of the last
    step is the last state. A layer computes no steps behind the last one read, and, if only the last state is read,
    gives no others."""
    if not any(isinstance(node.attrs, Recurrent) for node in graph.nodes):
        return graph
    edit, names = Edit(graph), Names(graph)

    def take_first(edit: Edit, node: Node) -> bool:
        return _take_first(edit, node, names)

    def shorten(edit: Edit, node: Node) -> bool:
        return _shorten(edit, node, names)

    settle(edit, (_last_state, take_first, shorten), through=_moves)
    graph = eliminate_dead_code(edit.graph())
    return graph.replace(nodes=[_without_sequence(graph, node) for node in graph.nodes])


def _last_state(edit: Edit, node: Node) -> bool:
    """A slice of the last step is the last state."""
    above = edit.producer(node.input(0)) if isinstance(node.attrs, Slice) else None
    if above is None or not isinstance(node.attrs, Slice) or not _is_sequence(above, node.input(0)):
        return False
    assert isinstance(above.attrs, Recurrent)
    last = 0 if above.attrs.reverse else node.input(0).shape[_TIME] - 1
    if node.attrs.axis != _TIME or (node.attrs.start, node.output.shape[_TIME]) != (last, 1):
        return False
    edit.replace({node: (node.replace(attrs=Reshape(node.output.shape), inputs=(above.outputs[1],)),)})
    return True


def _take_first(edit: Edit, node: Node, names: Names) -> bool:
    """Slice(move(y)) → move(Slice(y)), if the moved value has no other reader."""
    above = edit.producer(node.input(0)) if isinstance(node.attrs, Slice) else None
    if above is None or not isinstance(node.attrs, Slice) or not _moves(above):
        return False
    axis, attrs = _axis_above(above, node.attrs.axis), _of_steps(above, node)
    if axis is None or attrs is None or not _is_of_recurrent(edit, node.input(0)):
        return False
    slices, parts = [], []
    for index in range(len(above.inputs)):
        x = above.input(index)
        shape = (*x.shape[:axis], node.output.shape[node.attrs.axis], *x.shape[axis + 1 :])
        parts.append(Tensor(names.fresh(f"{x.name}_part"), replace(x.type, shape=shape)))
        slices.append(Node(replace(node.attrs, axis=axis), (x,), (parts[-1],), node.origins))
    edit.replace({node: (*slices, above.replace(attrs=attrs, inputs=parts, outputs=node.outputs)), above: ()})
    return True


def _is_sequence(node: Node, tensor: Tensor) -> bool:
    """Whether a value is the states behind all steps of a layer."""
    return isinstance(node.attrs, Recurrent) and node.attrs.sequence and tensor is node.outputs[0]


def _is_of_recurrent(edit: Edit, tensor: Tensor) -> bool:
    """Whether a value is the output of recurrent layers, moved and concatenated, without other readers on the way."""
    node = edit.producer(tensor)
    if node is None or _is_sequence(node, tensor):
        return node is not None
    if not _moves(node) or only_consumer(edit, tensor) is None:
        return False
    return all(_is_of_recurrent(edit, t) for t in node.inputs if t is not None)


def _axis_above(node: Node, axis: int) -> int | None:
    """The axis of a mover's inputs that corresponds to an axis of its output; None if there is none."""
    if op_of(node).view:
        return _same_axis(node.output.shape, axis, node.input(0).shape)
    space = described(op_of(node), node)
    if space is None:
        return None
    written = space.outputs[0].axes[axis]
    found = set[int | None]()
    for read, tensor in zip(space.inputs, node.inputs, strict=True):
        if read is not None and tensor is not None:
            sizes = zip(read.axes, tensor.shape, strict=True)
            alike = (
                a for a, (r, size) in enumerate(sizes) if r == written and size == node.output.shape[axis]
            )
            found.add(next(alike, None))
    (same, *others) = found
    return None if others else same


def _same_axis(shape: tuple[int, ...], axis: int, other: tuple[int, ...]) -> int | None:
    """The axis of another shape of the same elements that counts the same as this one."""
    before = math.prod(shape[:axis])
    fits = [i for i in range(len(other)) if other[i] == shape[axis] and math.prod(other[:i]) == before]
    return fits[0] if fits else None


def _of_steps(node: Node, part: Node) -> Attrs | None:
    """A mover's attributes for the steps that a slice of its output takes."""
    assert isinstance(part.attrs, Slice)
    attrs = op_of(node).part(node, part.attrs.axis, part.output.shape[part.attrs.axis])
    return None if isinstance(attrs, str) else attrs


def _shorten(edit: Edit, node: Node, names: Names) -> bool:
    """A layer computes no steps behind the slices that are read of it."""
    attrs = node.attrs
    if not isinstance(attrs, Recurrent) or not attrs.sequence:
        return False
    y, *states = node.outputs
    readers = edit.consumers(y)
    if not readers or any(edit.consumers(state) or state in edit.outputs for state in states):
        return False
    if y in edit.outputs or not all(
        isinstance(reader.attrs, Slice) and reader.attrs.axis == _TIME for reader in readers
    ):
        return False
    parts = [reader.attrs for reader in readers if isinstance(reader.attrs, Slice)]
    size = y.shape[_TIME]
    first = min(part.start for part in parts) if attrs.reverse else 0
    end = size if attrs.reverse else max(part.stop for part in parts)
    if (first, end) == (0, size):
        return False

    def cut(tensor: Tensor) -> Tensor:
        shape = (tensor.shape[0], end - first, *tensor.shape[2:])
        return Tensor(names.fresh(f"{tensor.name}_steps"), TensorType(shape, tensor.dtype, tensor.type.quant))

    x = node.input(0)
    read, given = cut(x), cut(y)
    taken = Node(Slice(_TIME, first, end), (x,), (read,), node.origins)
    shorter = node.replace(inputs=(read, *node.inputs[1:]), outputs=(given, *states))
    edit.replace({node: (taken, shorter)})
    for reader, part in zip(edit.consumers(y), parts, strict=True):
        moved = replace(part, start=part.start - first, stop=part.stop - first)
        edit.replace({reader: (reader.replace(attrs=moved, inputs=(given,)),)})
    return True


def _without_sequence(graph: Graph, node: Node) -> Node:
    attrs = node.attrs
    if not isinstance(attrs, Recurrent) or not attrs.sequence:
        return node
    if graph.consumers(node.outputs[0]) or node.outputs[0] in graph.outputs:
        return node
    return node.replace(attrs=replace(attrs, sequence=False), outputs=node.outputs[1:])
