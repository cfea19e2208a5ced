# SPDX-License-Identifier: Apache-2.0
"""Networks over a window of time made into networks that take its newest frames only, with the same answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyet.errors import ModelError, UsageError, bullet_list
from tinyet.errors.arguments import OverTime
from tinyet.ir import Graph, Node, Note, Tensor
from tinyet.ops import check_whole
from tinyet.over_time.build import Builder
from tinyet.over_time.demand import ALWAYS, Edge, demand, heads_of
from tinyet.over_time.schedule import Schedule, least_hop, new_steps
from tinyet.over_time.trace import Trace, trace

__all__ = ["Streaming", "axes_of", "stream"]


def axes_of(
    asked: OverTime, inputs: Sequence[Tensor], *, channels_last: bool = False
) -> tuple[int | None, ...]:
    """For each input of a program the axis that is time, none of them negative. channels_last: the axes are those of
    images whose channels come before height and width, and the inputs have them last. Raises UsageError."""
    given = (asked.axis,) * len(inputs) if not isinstance(asked.axis, tuple) else asked.axis
    if len(given) != len(inputs):
        raise UsageError(
            f"{len(given)} axes for {len(inputs)} input(s)", hint="one for each, or None where it has none"
        )
    found: list[int | None] = []
    for tensor, axis in zip(inputs, given, strict=True):
        rank = len(tensor.shape)
        if axis is not None and not -rank <= axis < rank:
            raise UsageError(f"input {tensor.name} has no axis {axis}", hint=f"it is {tensor.type}")
        place = None if axis is None else axis % rank
        found.append((0, 3, 1, 2)[place] if channels_last and rank == 4 and place is not None else place)
    return tuple(found)


@dataclass(frozen=True)
class Streaming:
    """graph: takes `hop` frames a run, and gives the answer of the window that ends `lag` frames before the newest.

    frames: of the window, as it was given. warm_up: frames from a reset to the first answer that depends on frames
    alone; None if each answer is that of all frames since the reset. whole_from: frames from a reset to the first
    such answer. notes: all of this, and the differences from the network over the window.
    """

    graph: Graph
    hop: int
    lag: int
    frames: int
    warm_up: int | None
    whole_from: int
    notes: tuple[Note, ...]


def stream(
    graph: Graph, axes: Sequence[int | None], *, hop: int | None = None, edges: str = "exact"
) -> Streaming:
    """The graph over time. axes: of each input the axis that is time, or None; hop: frames a run takes, else the fewest
    that give each layer a whole number of steps.

    edges: "exact" refuses networks whose answers depend on padding that a stream does not have; with "continue" there
    are frames in its place: the answers are those of the network without padding in time, over a longer window.

    Raises UsageError for a window of no frames and for a hop that does not fit, ModelError that lists all layers in
    the way.
    """
    if graph.initial:
        raise ModelError("the network has states: it takes frames one after the other already", graph.name)
    frames = _frames(graph, axes)
    found = trace(graph, axes)
    if found.refusals:
        lines = [f"{_place(node)}: {why}" for node, why in found.refusals]
        raise ModelError(
            f"{len(lines)} layer(s) cannot take frames as they come:\n{bullet_list(lines)}",
            hint="leave them away, or let a mean, a maximum or the last step over time come before them",
        )
    if not found.heads and not any(tensor in found.axis for tensor in graph.outputs):
        raise ModelError("no output is made of what has a time axis", graph.name, "name another axis")
    least = least_hop(found)
    taken = least if hop is None else hop
    if taken < 1 or taken % least or taken > frames:
        raise UsageError(
            f"{taken} frames a run", hint=f"a multiple of {least}, the strides on the way, up to {frames}"
        )
    return _Answers(found, frames, taken).streaming(continued=edges == "continue")


def _place(node: Node) -> str:
    return node.where or node.outputs[0].name


def _frames(graph: Graph, axes: Sequence[int | None]) -> int:
    """Of the window."""
    counts = {t.shape[axis] for t, axis in zip(graph.inputs, axes, strict=True) if axis is not None}
    if len(counts) != 1 or counts == {1}:
        listed = " and ".join(str(count) for count in sorted(counts)) or "no"
        raise UsageError(
            f"{listed} frames in the window", hint="an axis of several frames, as many in each input"
        )
    return counts.pop()


class _Answers:
    """The sources of a network's answers, padding included or not."""

    def __init__(self, found: Trace, frames: int, hop: int) -> None:
        self.trace, self.frames, self.hop = found, frames, hop
        self.heads = list(heads_of(found, new_steps(found, hop)))
        self.edges = self._edges(0)

    def streaming(self, *, continued: bool) -> Streaming:
        first, last = self._frames_read()
        lag = max(last - self.frames + 1, 0) if continued else 0
        schedule = Schedule(self.trace, self.hop, self.frames, lag)
        problems = [(edge, why) for edge in self.edges if (why := self._problem(edge, schedule))]
        if problems and not continued:
            lines = list(dict.fromkeys(f"{_place(edge.node)}: {why}" for edge, why in problems))
            raise ModelError(
                f"answers are made of padding where a stream has frames:\n{bullet_list(lines)}",
                hint="pad before the first step only and end with the last one, or do not pad in time; "
                'or edges="continue" (--edges continue): frames in the place of padding, so that answers are those '
                "of the network without padding in time, over a longer window",
            )
        padding = bool(self.edges) and not problems
        remembers = padding or first < ALWAYS // 2
        warm_up = None if remembers else -(-(self.frames + lag - first) // self.hop) * self.hop
        if padding:
            whole_from, padded = self._since_the_reset(schedule)
        else:
            whole_from, padded = warm_up or self.hop, set()
        graph = Builder(schedule, list(schedule.reads(self.heads, padded))).run()
        check_whole(graph, "invalid graph after streaming")
        notes = [Note(self._summary(lag, warm_up, whole_from))]
        notes += [Note(f"frames in the place of padding: {why}", edge.node.origin) for edge, why in problems]
        return Streaming(graph, self.hop, lag, self.frames, warm_up, whole_from, tuple(dict.fromkeys(notes)))

    def _edges(self, begin: int) -> list[Edge]:
        """Of the network over the window's frames from `begin` on."""
        return [
            edge for head in self.heads for edge in demand(self.trace, head, clipped=True, begin=begin)[1]
        ]

    def _since_the_reset(self, schedule: Schedule) -> tuple[int, set[tuple[Node, Tensor]]]:
        """Number of frames after a reset until each answer equals that of all frames; and the padding in such
        answers.

        The network over fewer frames than the window may read padding where that over the window has steps. Then a
        state must stand for it, too; if none can, the answer is not yet whole.
        """
        padded: set[tuple[Node, Tensor]] = set()
        for count in range(self.frames, 0, -self.hop):
            begin = self.frames - count
            edges = self._edges(begin)
            if self._unmade(begin) or any(self._problem(edge, schedule) for edge in edges):
                return count + self.hop, padded
            padded.update((edge.node, edge.tensor) for edge in edges)
        return self.hop, padded

    def _unmade(self, begin: int) -> bool:
        """Whether a run gives steps that the network over the window's frames from `begin` on has not."""
        given = [span for head in self.heads if head.node is None for span in head.spans.items()]
        return any(first < begin // self.trace.stride[tensor] for tensor, (first, _) in given)

    def _summary(self, lag: int, warm_up: int | None, whole_from: int) -> str:
        runs = f"takes {self.hop} new frame(s) a run, not all {self.frames} of the window"
        late = f"; an answer is about the frames up to {lag} before the newest" if lag else ""
        if warm_up is None:
            since = f", from frame {whole_from} on" if whole_from > self.hop else ""
            return f"{runs}{late}; an answer is made of all frames since the reset{since}"
        return f"{runs}{late}; the first whole answer after a reset comes with frame {warm_up}"

    def _frames_read(self) -> tuple[int, int]:
        """First and last frame that an answer is made of, where padding stands for frames."""
        spans = [demand(self.trace, head, clipped=False)[0] for head in self.heads]
        read = [found[tensor] for found in spans for tensor in self.trace.graph.inputs if tensor in found]
        return min(first for first, _ in read), max(last for _, last in read)

    def _problem(self, edge: Edge, schedule: Schedule) -> str | None:
        """Why states cannot replace the values read outside of the window, if they cannot."""
        rule, name = self.trace.rules[edge.node], edge.head.name
        sides = [f"{edge.before} before the first"] if edge.before else []
        sides += [f"{edge.after} behind the last"] if edge.after else []
        what = "the state before the first" if rule.carried else f"padding, {' and '.join(sides)}"
        read = f"{name} is made of {what} step of the window"
        if edge.after:
            return read
        if not edge.head.tail:
            return f"{read}, and of the whole window"
        first = schedule.first(edge.tensor)
        if self.frames % self.hop:
            return f"{read}, and {self.frames} frames are no whole number of runs of {self.hop}"
        if first < 0 or (rule.carried and first > 0):
            return f"{read}, which is not where the steps of layers above begin"
        if rule.fill is None and not rule.carried:
            return f"{read}, which has no value of its own"
        return None
