# SPDX-License-Identifier: Apache-2.0
"""The graph for another value of a size: the same nodes in the same order, each with the shapes, and the attributes,
that follow from those of its inputs.

An operator's own rule (`infer`) says what it makes of shorter inputs. Attributes that are sizes or places themselves
(a shape, the ends of a slice) follow from the axis that the size has come to; which reading of them is meant is
decided here, and who makes a model of a module compares the results with the module's, at many sizes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from tinyet.errors import ModelError, UnsupportedShape, bullet_list
from tinyet.ir import Attrs, Graph, Node, Shape, Size, Tensor, constant
from tinyet.ops import infer, op_of
from tinyet.ops.expand import Expand
from tinyet.ops.reshape import Reshape
from tinyet.ops.resize import Resize
from tinyet.ops.slice import Slice
from tinyet.opset.iteration import Kind
from tinyet.opset.rule import complaints


class _RefusedError(Exception):
    """Why a node has no form for another size."""


def resized_inputs(graph: Graph, size: Size, value: int) -> dict[Tensor, Tensor]:
    """The inputs of a graph as they are for a value; states are the same."""
    found = {state.value: state.value for state in graph.states}
    for tensor, axis in zip(graph.user_inputs, size.axes, strict=True):
        shape = tensor.shape if axis is None else (*tensor.shape[:axis], value, *tensor.shape[axis + 1 :])
        found[tensor] = _shaped(tensor, shape)
    return found


def resize(graph: Graph, size: Size, value: int) -> Graph:
    """The graph for inputs of which the axes of `size` have `value` elements; tensors keep their names.

    Raises ModelError, listing them with the user's lines, for nodes that are for one size alone.
    """
    if value == size.most:
        return graph
    new = resized_inputs(graph, size, value)
    refused: list[str] = []
    nodes: list[Node] = []
    for node in graph.nodes:
        if any(t is not None and not t.is_constant and t not in new for t in node.inputs):
            continue  # behind one that has been refused
        try:
            made = _node(node, new)
        except (_RefusedError, UnsupportedShape) as error:
            why = error.what if isinstance(error, UnsupportedShape) else str(error)
            refused.append(f"{node.op} {node.where or node.outputs[0].name}: {why}")
            continue
        nodes.append(made)
        new.update(zip(node.outputs, made.outputs, strict=True))
    refused += [
        f"the state {state.name} has the size of an input"
        for state in graph.states
        if state.next in new and new[state.next].shape != state.value.shape
    ]
    if refused:
        raise ModelError(
            f"at {size.name} = {value} there is no form of:\n{bullet_list(refused)}",
            hint="leave such layers away, declare a smaller range, or let the size be fixed",
        )
    inputs = [new[t] for t in graph.inputs]
    return graph.replace(inputs=inputs, outputs=[new.get(t, t) for t in graph.outputs], nodes=nodes)


def _shaped(tensor: Tensor, shape: Shape) -> Tensor:
    if shape == tensor.shape:
        return tensor
    return Tensor(tensor.name, dataclasses.replace(tensor.type, shape=shape))


def _node(node: Node, new: Mapping[Tensor, Tensor]) -> Node:
    inputs = [t if t is None or t.is_constant else new[t] for t in node.inputs]
    if all(now is was for now, was in zip(inputs, node.inputs, strict=True)):
        return node
    moved = node.replace(inputs=_constants(node, inputs))
    moved = moved.replace(attrs=_attrs(node, moved))
    outputs = [_shaped(t, shape) for t, shape in zip(node.outputs, infer(moved), strict=True)]
    made = moved.replace(outputs=outputs)
    wrong = complaints(op_of(made), made)
    if wrong:
        raise _RefusedError("; ".join(wrong))
    return made


def _axes(node: Node, inputs: list[Tensor | None]) -> dict[int, dict[int, int]]:
    """Of each input that has changed: the axes that have, each with its elements now."""
    return {
        index: {axis: b for axis, (a, b) in enumerate(zip(was.shape, now.shape, strict=True)) if a != b}
        for index, (was, now) in enumerate(zip(node.inputs, inputs, strict=True))
        if was is not None and now is not None and was.shape != now.shape
    }


def _only(moved: dict[int, dict[int, int]]) -> tuple[int, int]:
    """The axis of the first input that has changed, and its elements now."""
    axes = moved.get(0, {})
    if len(axes) != 1:
        raise _RefusedError(f"{len(axes)} axes of its input have the size, where one can be followed")
    return next(iter(axes.items()))


def _constants(node: Node, inputs: list[Tensor | None]) -> list[Tensor | None]:
    """The inputs, constants along the same axis cut to as many elements: those of a bias for each step, say."""
    space = op_of(node).iteration(node)
    moving = _axes(node, inputs)
    if isinstance(space, str) or not any(t is not None and t.is_constant for t in inputs):
        return inputs
    dims: dict[int, int] = {}
    for index, axes in moving.items():
        operand = space.inputs[index]
        for axis, now in axes.items():
            if operand is not None and (dim := getattr(operand.axes[axis], "dim", None)) is not None:
                dims[dim] = now
    found = list(inputs)
    for index, tensor in enumerate(inputs):
        operand = space.inputs[index] if index < len(space.inputs) else None
        if tensor is None or operand is None or not tensor.is_constant:
            continue
        for axis, read in enumerate(operand.axes):
            dim = getattr(read, "dim", None)
            if dim not in dims or tensor.shape[axis] == 1 or tensor.shape[axis] == dims[dim]:
                continue
            if space.kind(dim) is not Kind.PARALLEL:
                raise _RefusedError(f"its constant {tensor.name} is for {tensor.shape[axis]} elements of it")
            cut = np.take(tensor.array, np.arange(dims[dim]), axis)
            found[index] = constant(tensor.name, cut, tensor.type.quant, tensor.dtype)
    return found


def _attrs(node: Node, moved: Node) -> Attrs:
    """The attributes for the new inputs."""
    attrs = node.attrs
    moving = _axes(node, list(moved.inputs))
    if isinstance(attrs, Reshape):
        return Reshape(_reshaped(node.input(0).shape, moved.input(0).shape, attrs.shape, *_only(moving)))
    if isinstance(attrs, Expand):
        axis, now = _only(moving)
        place = len(attrs.shape) - len(node.input(0).shape) + axis
        return Expand((*attrs.shape[:place], now, *attrs.shape[place + 1 :]))
    if isinstance(attrs, Slice) and attrs.axis in moving.get(0, {}):
        was, now = node.input(0).shape[attrs.axis], moving[0][attrs.axis]
        # A place in the second half is counted from the end, as in x[-1:] and x[:-1]; so is the end itself.
        start, stop = (
            place - was + now if 2 * place > was or place == was else place
            for place in (attrs.start, attrs.stop)
        )
        if not 0 <= start < stop <= now:
            raise _RefusedError(f"elements {attrs.start} to {attrs.stop} of {was} are not there of {now}")
        return dataclasses.replace(attrs, start=start, stop=stop)
    if isinstance(attrs, Resize):
        return _resampled(node, attrs, *_only(moving))
    return attrs


def _reshaped(was: Shape, now: Shape, shape: Shape, axis: int, count: int) -> Shape:
    """The shape with the axis changed that the elements of the changed axis lie along."""
    before, behind = math.prod(was[:axis]), math.prod(was[axis + 1 :])
    for place, size in enumerate(shape):
        ahead, rest = math.prod(shape[:place]), math.prod(shape[place + 1 :])
        whole = not before % ahead and not behind % rest
        if whole and size == was[axis] * (before // ahead) * (behind // rest):
            found = count * (before // ahead) * (behind // rest)
            return (*shape[:place], found, *shape[place + 1 :])
    raise _RefusedError(f"{was} becomes {shape}, where no axis is that of the size ({now})")


def _resampled(node: Node, attrs: Resize, axis: int, now: int) -> Resize:
    """An image axis with as many elements for each as before."""
    was = node.input(0).shape[axis]
    name = {1: "out_h", 2: "out_w"}.get(axis)
    if name is None:
        return attrs
    out = getattr(attrs, name)
    if out % was:
        raise _RefusedError(f"{was} elements become {out}, which is no multiple")
    return dataclasses.replace(attrs, **{name: out // was * now})
