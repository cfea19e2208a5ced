# SPDX-License-Identifier: Apache-2.0
"""Where one axis of an operator's tensors is time: the steps of its inputs that a step of its output needs.

It follows from the operator's iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinyet.ir import Attrs, Node
from tinyet.opset.blocks import Blocks, blocks, shared_dims
from tinyet.opset.iteration import AxisMap, Index, Iteration, Kind
from tinyet.opset.op import Op

TimeAxes = tuple[int | None, ...]
"""For each input of a node the axis that is time, None for an input without one."""


@dataclass(frozen=True)
class TimeRule:
    """Step `i` of the output is made of the steps from `i * stride + first` on, `extent` of them, of each input in
    `inputs`; all other inputs are the same at all times.

    inputs: those that are read step by step.
    axis:   the output's time axis; None where its steps are no longer steps of time: it is made of `extent` steps as a
            whole.
    attrs:  of the operator that makes so many steps of output of no more steps of input than these need: without
            padding in time. None where these are the steps of input as they are.
    fill:   the value of steps before the first, as it is stored; None where there are none, or none that a tensor
            could hold.
    tail:   of an operator that picks steps: it counts them from the end.
    carried: pairs of an input and an output, for an operator that goes from step to step: what the output is behind the
            last step of some, the input is before the first of the next.
    """

    inputs: tuple[int, ...]
    axis: int | None
    attrs: Callable[[int], Attrs | None]
    stride: int = 1
    first: int = 0
    extent: int = 1
    fill: float | None = None
    tail: bool = False
    carried: tuple[tuple[int, int], ...] = ()


def time_rule(op: Op, node: Node, axes: TimeAxes) -> TimeRule | str:
    """A node's rule for inputs of which at least one has a time axis; a text says why there is none."""
    space = op.iteration(node)
    moving = {index: axis for index, axis in enumerate(axes) if axis is not None}
    if isinstance(space, str):
        return space
    for index in moving:
        if index in space.whole:
            return f"{node.op} {space.whole[index]}"
    read = {index: _map_of(space, index, axis) for index, axis in moving.items()}
    if any(space.kind(dim) is Kind.SEQUENTIAL for each in read.values() for dim in each.dims):
        return _in_sequence(op, node, space, read)
    if op.carried or len(node.outputs) > 1:
        return f"{node.op} keeps a state of its own from run to run"
    why = ""
    for place in range(len(node.outputs[0].shape)):
        if any(_shares(node, space, place, each) for each in read.values()):
            found = _step_by_step(op, node, space, moving, place)
            if not isinstance(found, str):
                return found
            why = why or found if _keeps_steps(node, space, moving, place) else why
    return _at_once(node, space, moving, read, why)


def _map_of(space: Iteration, index: int, axis: int) -> AxisMap:
    operand = space.inputs[index]
    assert operand is not None
    return operand.axes[axis]


def _shares(node: Node, space: Iteration, place: int, read: AxisMap) -> bool:
    """Whether an axis of the output has to do with an input's time."""
    dims = shared_dims(space, space.outputs[0].axes[place], node.outputs[0].shape[place])
    return not dims.isdisjoint(read.dims)


def _step_by_step(op: Op, node: Node, space: Iteration, moving: dict[int, int], place: int) -> TimeRule | str:
    constants = [index for index, tensor in enumerate(node.inputs) if tensor and tensor.is_constant]
    picks = op.part(node, place, 1) is None
    found = blocks(node, space, place, but=constants if picks else ())
    if isinstance(found, str):
        return found
    part = op.part(node, place, found.size)
    if isinstance(part, str):
        return part
    for index, axis in found.read.items():
        if index not in moving:
            return f"{node.op} has another value of {node.input(index).name} for each step of the window"
        if index in moving and moving[index] != axis:
            return f"{node.op} puts the time of its inputs along different axes"
    if found.read.keys() != moving.keys():
        return f"{node.op} puts the time of its inputs along different axes"
    if found.size > 1 and node.outputs[0].shape[place] > 1:
        return f"{node.op} makes {found.size} steps of each"
    return _rule(op, node, found, place)


def _rule(op: Op, node: Node, found: Blocks, place: int) -> TimeRule:
    def attrs(steps: int) -> Attrs | None:
        part = op.part(node, place, steps)
        assert not isinstance(part, str)
        return part

    index, axis = next(iter(found.read.items()))
    outside = found.outside[index]
    last = node.input(index).shape[axis] - 1
    newest = found.first + (node.outputs[0].shape[place] - 1) * found.stride
    return TimeRule(
        tuple(found.read),
        place,
        attrs,
        found.stride,
        found.first,
        found.extent,
        None if isinstance(outside, str) else outside,
        tail=found.first > 0 and newest == last,
    )


def _keeps_steps(node: Node, space: Iteration, moving: dict[int, int], place: int) -> bool:
    """Whether an axis of the output counts steps, no fewer than there were, and nothing else of the same input."""
    dims = shared_dims(space, space.outputs[0].axes[place], node.outputs[0].shape[place])
    for index, axis in moving.items():
        time = set(_map_of(space, index, axis).dims)
        others = {
            dim
            for other in range(len(node.input(index).shape))
            if other != axis
            for dim in _map_of(space, index, other).dims
        }
        if dims & others - time or node.outputs[0].shape[place] < node.input(index).shape[axis]:
            return False
    return True


def _at_once(
    node: Node, space: Iteration, moving: dict[int, int], read: dict[int, AxisMap], why: str
) -> TimeRule | str:
    """Of an operator that reads all steps of time for an output of no steps. why: why its steps are none of time."""
    if why:
        return why
    (index, _), *more = moving.items()
    if more and len({(each, node.input(i).shape[moving[i]]) for i, each in read.items()}) > 1:
        return f"{node.op} puts the time of its inputs along different axes"
    shape, out = node.input(index).shape, node.outputs[0].shape
    elsewhere = {
        dim
        for i, operand in enumerate(space.inputs)
        if operand is not None and i not in moving
        for each in operand.axes
        for dim in each.dims
    }
    if out == shape and elsewhere.isdisjoint(read[index].dims):
        return f"{node.op} works along time"
    return _whole(node, moving)


def _whole(node: Node, moving: dict[int, int]) -> TimeRule:
    index, axis = next(iter(moving.items()))
    return TimeRule(tuple(moving), None, lambda _steps: node.attrs, extent=node.input(index).shape[axis])


def _in_sequence(op: Op, node: Node, space: Iteration, read: dict[int, AxisMap]) -> TimeRule | str:
    """Step after step, from what the steps before have left in a state."""
    (index, each), *more = read.items()
    if more or not isinstance(each, Index) or len(each.terms) != 1:
        return f"{node.op} has parameters that change over time"
    ((dim, factor),) = each.terms
    if factor != 1 or each.offset:
        return f"{node.op} goes from the last step to the first"
    places = {
        number: [axis for axis, written in enumerate(operand.axes) if dim in written.dims]
        for number, operand in enumerate(space.outputs)
    }
    states = range(len(node.outputs) - len(op.carried), len(node.outputs))
    carried = tuple(
        (past, number)
        for past, number in zip(op.carried, states, strict=True)
        if number in places and not places[number]
    )
    if not carried:
        return f"{node.op} goes on from step to step, and has no state that could be kept"
    axis = places[0][0] if places[0] else None
    return TimeRule((index,), axis, lambda _steps: node.attrs, carried=carried)
