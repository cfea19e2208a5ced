# SPDX-License-Identifier: Apache-2.0
"""Networks over a window of time made into networks that take its newest frames only, with the same answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tinyet.errors import ModelError, UsageError, bullet_list
from tinyet.ir import Graph
from tinyet.ops import check_whole, state_problems
from tinyet.over_time.build import Builder
from tinyet.over_time.demand import Edge, Head, demand, heads_of
from tinyet.over_time.schedule import Schedule, least_hop, new_steps
from tinyet.over_time.trace import Trace, trace

Edges = Literal["exact", "continue"]

__all__ = ["Edges", "Streaming", "stream"]


@dataclass(frozen=True)
class Streaming:
    """graph: takes `hop` frames a run, and gives the answer of the window that ends `lag` frames before the newest.

    frames: of the window, as it was given. warm_up: frames from a reset to the first answer that is made of frames
    alone; None where each answer is that of all frames since the reset.
    """

    graph: Graph
    hop: int
    lag: int
    frames: int
    warm_up: int | None


def stream(
    graph: Graph, axes: Sequence[int | None], *, hop: int | None = None, edges: Edges = "exact"
) -> Streaming:
    """The graph over time. axes: of each input the axis that is time, or None; hop: frames a run takes, else the fewest
    that give each layer a whole number of steps.

    edges: "exact" refuses networks whose answers are made of padding that a stream has not; with "continue" there are
    frames in its place: the answers are those of the network without padding in time, over a longer window.

    Raises UsageError for axes and hops that there are not, ModelError that lists all layers in the way.
    """
    frames = _frames(graph, axes)
    found = trace(graph, axes)
    if graph.initial:
        raise ModelError("the network has states: it takes frames one after the other already", graph.name)
    if found.refusals:
        lines = [f"{node.where or node.outputs[0].name}: {why}" for node, why in found.refusals]
        raise ModelError(
            f"not a network that takes frames as they come:\n{bullet_list(lines)}",
            hint="give the whole window to these layers, or end with a mean, a maximum or the last step before them",
        )
    least = least_hop(found)
    taken = least if hop is None else hop
    if taken < 1 or taken % least or taken > frames:
        raise UsageError(
            f"{taken} frames at a time", hint=f"a multiple of {least}, the strides on the way, up to {frames}"
        )
    heads = list(heads_of(found, new_steps(found, taken)))
    return _Edges(found, heads, frames, taken).streaming(edges)


def _frames(graph: Graph, axes: Sequence[int | None]) -> int:
    """Of the window."""
    if len(axes) != len(graph.inputs):
        raise UsageError(f"{len(axes)} axes for {len(graph.inputs)} inputs", hint="one for each, or None")
    for tensor, axis in zip(graph.inputs, axes, strict=True):
        if axis is not None and not 0 <= axis < len(tensor.shape):
            raise UsageError(f"input {tensor.name} has no axis {axis}", hint=f"it is {tensor.type}")
    counts = {t.shape[axis] for t, axis in zip(graph.inputs, axes, strict=True) if axis is not None}
    if len(counts) != 1 or counts == {1}:
        listed = " and ".join(str(count) for count in sorted(counts)) or "no"
        raise UsageError(
            f"{listed} frames in the window", hint="an axis of several frames, as many in each input"
        )
    return counts.pop()


class _Edges:
    """What the answers have of padding, and what follows from it."""

    def __init__(self, found: Trace, heads: list[Head], frames: int, hop: int) -> None:
        self.trace, self.heads, self.frames, self.hop = found, heads, frames, hop
        self.inputs = [t for t in found.graph.inputs if t in found.axis]
        self.edges = [edge for head in heads for edge in demand(found, head, clipped=True)[1]]

    def streaming(self, edges: Edges) -> Streaming:
        lag, padded = 0, set()
        problems = self._problems(Schedule(self.trace, self.hop, self.frames, 0))
        if edges == "exact":
            if problems:
                lines = [f"{e.node.where or e.node.outputs[0].name}: {why}" for e, why in problems]
                raise ModelError(
                    f"answers that are made of padding, where a stream has frames:\n{bullet_list(lines)}",
                    hint='pad the past alone and end with the last step, or leave padding away; edges="continue" '
                    "(--edges continue) has frames in the place of padding: answers then are those of the network "
                    "without padding in time, over a longer window",
                )
            padded = {(edge.node, edge.tensor) for edge in self.edges}
        else:
            lag = max((max(span[1] for span in self._frames_read()), self.frames - 1)) - self.frames + 1
        schedule = Schedule(self.trace, self.hop, self.frames, lag)
        graph = Builder(schedule, list(schedule.reads(self.heads, padded))).run()
        check_whole(graph, "invalid graph after streaming")
        assert not state_problems(graph)
        first = min(span[0] for span in self._frames_read())
        warm_up = None if padded else self._calls(self.frames + lag - first) * self.hop
        return Streaming(graph, self.hop, lag, self.frames, warm_up)

    def _frames_read(self) -> list[tuple[int, int]]:
        """First and last frame that each answer is made of."""
        found = []
        for head in self.heads:
            spans, _ = demand(self.trace, head, clipped=False)
            found += [spans[tensor] for tensor in self.inputs if tensor in spans]
        return found

    def _calls(self, frames: int) -> int:
        return -(-frames // self.hop)

    def _problems(self, schedule: Schedule) -> list[tuple[Edge, str]]:
        """The padding that states cannot stand for."""
        found = []
        for edge in self.edges:
            name, rule = edge.head.name, self.trace.rules[edge.node]
            if edge.after:
                found.append((edge, f"{edge.after} steps of padding behind the window are read for {name}"))
            elif not edge.head.tail:
                found.append(
                    (
                        edge,
                        f"{edge.before} steps of padding before the window are read for {name}, which has all of it",
                    )
                )
            elif schedule.first(edge.tensor) < 0:
                found.append(
                    (edge, f"padding before the window, behind layers that are late, is read for {name}")
                )
            elif rule.fill is None and rule.attrs(1) is not None:
                found.append((edge, f"padding that has no value is read for {name}"))
        return found
