# SPDX-License-Identifier: Apache-2.0
"""An operator's rule where one axis of its tensors is time: the steps of its inputs that a step of its output needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tinyet.ir import Attrs, Node

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


OverTime = Callable[[Node, TimeAxes], TimeRule | str]
"""A node's rule for inputs of which at least one has a time axis; a text says why there is none."""


def mixes(node: Node, _axes: TimeAxes) -> TimeRule | str:
    """Of operators that nobody has said more of."""
    return f"{node.op} is not computed step by step"


def whole(node: Node, inputs: Iterable[int], steps: int) -> TimeRule:
    """Of an operator that reads all steps of time at once."""
    return TimeRule(tuple(inputs), None, lambda _steps: node.attrs, extent=steps)


def each_step(node: Node, axes: TimeAxes) -> TimeRule | str:
    """Of operators that make an element of the output of the same element of their inputs, which broadcast."""
    rank = len(node.outputs[0].shape)
    places = {
        axis + rank - len(node.input(index).shape) for index, axis in enumerate(axes) if axis is not None
    }
    if len(places) != 1:
        return f"{node.op} puts the time of its inputs along different axes"
    (place,) = places
    for index, tensor in enumerate(node.inputs):
        if tensor is None or axes[index] is not None:
            continue
        own = place - rank + len(tensor.shape)
        if own >= 0 and tensor.shape[own] != 1:
            return f"{node.op} has another value of {tensor.name} for each step of the window"
    by_steps = tuple(index for index, axis in enumerate(axes) if axis is not None)
    return TimeRule(by_steps, place, lambda _steps: node.attrs)


def along(fixed: Callable[[Node], Iterable[int]]) -> OverTime:
    """Of operators of one input of which only some axes, `fixed`, are not computed element by element; its other
    inputs are parameters."""

    def rule(node: Node, axes: TimeAxes) -> TimeRule | str:
        axis = axes[0]
        if axis is None or any(other is not None for other in axes[1:]):
            return f"{node.op} has parameters that change over time"
        if axis in fixed(node):
            return f"{node.op} works along time"
        return TimeRule((0,), axis, lambda _steps: node.attrs)

    return rule
