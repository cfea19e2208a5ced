# SPDX-License-Identifier: Apache-2.0
"""Layers computed row by row, one with another, so that the values between them are never there as a whole.

A stream runs some calls that follow each other in a loop: whenever a layer has the rows that its next rows need, it
computes these, the last layer first, so that no row waits longer than it must. Values between its layers live in
windows: rows that lie one after another, the oldest at the start; what nobody needs any more is dropped from the start
and the rest moved there. So each layer finds its rows where it found the last ones, without gaps, and any kernel can
compute a strip: it is a layer of few rows. Nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tinyet.ir import Graph, Node, Tensor
from tinyet.opset import RowRule

Bytes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Drop:
    """The oldest `rows` rows of a window are not needed any more; `kept` rows move to its start."""

    tensor: Tensor
    rows: int
    kept: int


@dataclass(frozen=True)
class Fill:
    """Rows that stand for what is above or below the image are set to one value: `rows` from slot `slot` on."""

    tensor: Tensor
    slot: int
    rows: int
    value: int


@dataclass(frozen=True)
class Take:
    """The next row of the stream's first value comes from the caller, into a slot."""

    tensor: Tensor
    slot: int


@dataclass(frozen=True)
class Run:
    """A layer computes its next strip.

    reads: of each input that is read by rows, by number, the slot of the first of its rows; writes: the same of the
    output; slots of tensors that are whole are their rows, counted from the first that there is room for.
    drops: what is not needed any more then.
    """

    node: Node
    reads: tuple[tuple[int, int], ...]
    writes: int
    drops: tuple[Drop, ...]


Action = Run | Fill | Take


@dataclass(frozen=True)
class Rows:
    """How a tensor of a stream is there: as a window of `slots` rows, or whole, with room for `above` rows before its
    first and `below` behind its last.

    first, behind: of every action, the slots that hold a row or get one in it: `first` to `behind`, `behind` not
    included.
    """

    tensor: Tensor
    slots: int
    above: int
    below: int
    window: bool
    first: Bytes
    behind: Bytes

    @property
    def row_bytes(self) -> int:
        return row_bytes(self.tensor)

    @property
    def bytes(self) -> int:
        """Of all of its slots."""
        return self.slots * self.row_bytes


@dataclass(frozen=True, eq=False)
class Stream:
    """nodes: the calls, in order. rules: how each is computed by rows. actions: all that is done, in order.
    rows: of every tensor that is read or written by rows. taken: the stream's first value comes from the caller row by
    row.
    """

    nodes: tuple[Node, ...]
    rules: Mapping[Node, RowRule]
    actions: tuple[Action, ...]
    rows: Mapping[Tensor, Rows]
    taken: bool

    @property
    def windows(self) -> tuple[Rows, ...]:
        return tuple(rows for rows in self.rows.values() if rows.window)

    def runs(self, node: Node) -> int:
        """How often a layer is called."""
        return node.outputs[0].shape[1] // self.rules[node].out

    @property
    def moved_bytes(self) -> int:
        """That move to the start of their window, over all actions."""
        drops = (drop for action in self.actions if isinstance(action, Run) for drop in action.drops)
        return sum(drop.kept * row_bytes(drop.tensor) for drop in drops)


def row_bytes(tensor: Tensor) -> int:
    return tensor.type.bytes // tensor.shape[1]


def stream(
    graph: Graph,
    nodes: Sequence[Node],
    rules: Mapping[Node, RowRule],
    *,
    align: int,
    take: bool = False,
) -> Stream | None:
    """The stream of calls that follow each other; None where they cannot be one.

    rules: of each of the calls. take: the graph's input that they read comes from the caller, row by row.
    """
    found = _Simulation(graph, nodes, rules, take)
    if not found.possible() or not found.run():
        return None
    result = found.result()
    return result if _aligned(result, align) else None


def _aligned(found: Stream, align: int) -> bool:
    """Do all strips begin where tensors may begin?"""
    for action in found.actions:
        if not isinstance(action, Run):
            continue
        slots = [(action.node.input(index), slot) for index, slot in action.reads]
        for tensor, slot in (*slots, (action.node.outputs[0], action.writes)):
            if slot * row_bytes(tensor) % max(align, tensor.dtype.bytes):
                return False
    return True


@dataclass(eq=False)
class _State:
    """Of a tensor while the rows go by; rows are counted from the tensor's first, those above it are negative.

    top, end: the rows that are wanted at all. oldest, next: those that are there. whole: it has its place, no window.
    """

    tensor: Tensor
    top: int
    end: int
    whole: bool
    fill: int | None
    oldest: int
    next: int
    slots: int = 0
    held: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def height(self) -> int:
        return self.tensor.shape[1]

    def slot(self, row: int) -> int:
        return row - (self.top if self.whole else self.oldest)

    def note(self, moment: int) -> None:
        """What is there at this action."""
        if self.next > self.oldest:
            self.slots = max(self.slots, self.slot(self.next))
            self.held.append((moment, self.slot(self.oldest), self.slot(self.next)))


class _Simulation:
    def __init__(
        self, graph: Graph, nodes: Sequence[Node], rules: Mapping[Node, RowRule], take: bool
    ) -> None:
        self.graph, self.nodes, self.rules = graph, tuple(nodes), rules
        self.take = take
        self.inside = set(nodes)
        self.done = dict.fromkeys(nodes, 0)
        self.actions: list[Action] = []
        self.readers: dict[Tensor, list[tuple[Node, RowRule]]] = {}
        for node in nodes:
            for index in dict.fromkeys(rules[node].inputs):
                self.readers.setdefault(node.input(index), []).append((node, rules[node]))
        self.made = {node.outputs[0] for node in nodes}
        self.states: dict[Tensor, _State] = {}

    def possible(self) -> bool:
        """Whether every layer divides into strips, what is whole is there, and what surrounds an image is one value."""
        for node in self.nodes:
            rule = self.rules[node]
            whole = [
                t
                for i, t in enumerate(node.inputs)
                if t is not None and not t.is_constant and i not in rule.inputs
            ]
            if node.outputs[0].shape[1] % rule.out or any(t in self.made for t in whole):
                return False
            if any(t in self.readers for t in whole):
                return False
        for tensor in dict.fromkeys((*self.readers, *self.made)):
            state = self.state(tensor)
            if state is None:
                return False
            self.states[tensor] = state
        taken = [s for s in self.states.values() if self.is_taken(s.tensor)]
        return len(taken) == 1 if self.take else not taken

    def is_taken(self, tensor: Tensor) -> bool:
        return self.take and tensor in self.graph.inputs

    def state(self, tensor: Tensor) -> _State | None:
        """Before the first action; None where its surroundings differ for two readers, or cannot be there."""
        top, end, fills = 0, tensor.shape[1], set[int | None]()
        for node, rule in self.readers.get(tensor, ()):
            last = (node.outputs[0].shape[1] // rule.out - 1) * rule.stride - rule.before + rule.window
            if rule.before > 0 or last > tensor.shape[1]:
                fills.add(rule.fill)
            top, end = min(top, -rule.before), max(end, last)
        if len(fills) > 1 or None in fills:
            return None
        users = {*self.graph.consumers(tensor)}
        kept = tensor in self.graph.outputs or not users <= self.inside
        whole = kept if tensor in self.made else not self.is_taken(tensor)
        if self.is_taken(tensor) and kept:
            return None
        next_ = tensor.shape[1] if whole and tensor not in self.made else top
        return _State(tensor, top, end, whole, next(iter(fills), None), top, next_)

    def run(self) -> bool:
        """Until everything is computed; False where it comes to a halt."""
        for tensor, state in self.states.items():
            if state.whole and tensor not in self.made and state.top < 0:
                self.fill(state, state.top, -state.top)
        while any(self.done[node] < self.count(node) for node in self.nodes):
            ready = next((node for node in reversed(self.nodes) if self.ready(node)), None)
            if ready is not None:
                self.step(ready)
            elif not self.take_row():
                return False
        return True

    def count(self, node: Node) -> int:
        return node.outputs[0].shape[1] // self.rules[node].out

    def needs(self, node: Node, rule: RowRule) -> tuple[int, int]:
        """The rows of its inputs that the next strip reads."""
        start = self.done[node] * rule.stride - rule.before
        return start, start + rule.window

    def ready(self, node: Node) -> bool:
        if self.done[node] == self.count(node):
            return False
        rule = self.rules[node]
        _, stop = self.needs(node, rule)
        states = [self.states[node.input(index)] for index in rule.inputs]
        return all(min(stop, s.height) <= s.next for s in states)

    def step(self, node: Node) -> None:
        rule = self.rules[node]
        start, stop = self.needs(node, rule)
        inputs = [self.states[node.input(index)] for index in rule.inputs]
        for state in dict.fromkeys(inputs):
            if state.next < stop:
                self.fill(state, state.next, stop - state.next)
        output = self.states[node.outputs[0]]
        self.begin(output)
        reads = tuple((i, s.slot(start)) for i, s in zip(rule.inputs, inputs, strict=True))
        writes = output.slot(output.next)
        output.next += rule.out
        self.note()
        self.done[node] += 1
        drops = [drop for state in dict.fromkeys(inputs) if (drop := self.drop(state)) is not None]
        if not self.readers.get(output.tensor) and not output.whole:
            output.oldest = output.next
        self.actions.append(Run(node, reads, writes, tuple(drops)))

    def begin(self, state: _State) -> None:
        """Before its first row: the rows above it."""
        if state.next == state.top < 0:
            self.fill(state, state.top, -state.top)

    def take_row(self) -> bool:
        """A row from the caller; False where none is left, or none is taken."""
        state = next((s for s in self.states.values() if self.is_taken(s.tensor)), None)
        if state is None or state.next >= state.height:
            return False
        self.begin(state)
        slot = state.slot(state.next)
        state.next += 1
        self.note()
        self.actions.append(Take(state.tensor, slot))
        # A row that nobody reads, at the bottom of an image that strides do not reach.
        self.drop(state)
        return True

    def fill(self, state: _State, row: int, rows: int) -> None:
        assert state.fill is not None
        slot = state.slot(row)
        state.next = max(state.next, row + rows)
        self.note()
        self.actions.append(Fill(state.tensor, slot, rows, state.fill))

    def drop(self, state: _State) -> Drop | None:
        """Forget the rows that no reader needs any more, where nobody outside does either."""
        readers = self.readers[state.tensor]
        needed = min(
            self.needs(node, rule)[0] if self.done[node] < self.count(node) else state.end
            for node, rule in readers
        )
        rows = min(needed, state.next) - state.oldest
        kept_whole = state.whole and (
            state.tensor in self.made or not {*self.graph.consumers(state.tensor)} <= self.inside
        )
        if rows <= 0 or kept_whole:
            return None
        state.oldest += rows
        kept = state.next - state.oldest
        return None if state.whole or kept == 0 else Drop(state.tensor, rows, kept)

    def note(self) -> None:
        for state in self.states.values():
            state.note(len(self.actions))

    def result(self) -> Stream:
        return Stream(
            self.nodes,
            dict(self.rules),
            tuple(self.actions),
            {tensor: self.rows(state) for tensor, state in self.states.items()},
            self.take,
        )

    def rows(self, state: _State) -> Rows:
        first, behind = (np.zeros(len(self.actions), np.int64) for _ in range(2))
        moments = np.array([moment for moment, _, _ in state.held], np.int64)
        first[moments] = [low for _, low, _ in state.held]
        behind[moments] = [high for _, _, high in state.held]
        above = -state.top
        below = max(state.slots - above - state.height, 0) if state.whole else 0
        slots = above + state.height + below if state.whole else state.slots
        return Rows(state.tensor, slots, above if state.whole else 0, below, not state.whole, first, behind)
