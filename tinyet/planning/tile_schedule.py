# SPDX-License-Identifier: Apache-2.0
"""The order in which fused layers compute their rows, and until when each row is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tinyet.ir import Graph, Node, Tensor
from tinyet.opset.tiles import Fill, TileMap, in_pieces, row_axis


class Tile(NamedTuple):
    """A layer computes rows from `writes` on, of rows of its inputs: (number of the input, first of them); one that
    reduces has no rows. needed: of its inputs, and of an output that nobody reads, the first row that is read, or
    computed, again."""

    node: Node
    reads: tuple[tuple[int, int], ...]
    writes: int
    needed: tuple[tuple[Tensor, int], ...]


@dataclass(frozen=True)
class Padding:
    """`rows` rows from `row` on, above or below the image, become `value`."""

    tensor: Tensor
    row: int
    rows: int
    value: int


@dataclass(frozen=True)
class EdgePadding:
    """`rows` rows from `row` on, above or below the image, become copies of the row next to them, which is there."""

    tensor: Tensor
    row: int
    rows: int


@dataclass(frozen=True)
class InputRow:
    """A row comes from the caller. needed: as for a Tile."""

    tensor: Tensor
    row: int
    needed: int


Event = Tile | Padding | EdgePadding | InputRow


@dataclass(eq=False)
class State:
    """A tensor's rows during the schedule; they are counted from the tensor's first, rows above it are negative.

    axis: that is its rows. top, end: the rows that are wanted at all. next: the first that is not there yet. whole: it
    is no window. lasting: it is needed beyond the fusion group. fill: the value of its padding, or that it is the row
    at the edge.
    """

    tensor: Tensor
    top: int
    end: int
    next: int
    whole: bool
    lasting: bool
    fill: Fill
    axis: int

    @property
    def height(self) -> int:
        return self.tensor.shape[self.axis]


class TileSchedule:
    """The last layer that can go on does; where none can, the next row comes from the caller."""

    def __init__(
        self, graph: Graph, nodes: Sequence[Node], rules: Mapping[Node, TileMap], take: Tensor | None
    ) -> None:
        self.graph, self.nodes, self.rules = graph, tuple(nodes), rules
        self.take = take
        self.events: list[Event] = []
        self.done = dict.fromkeys(nodes, 0)
        self._reads = {n: [rules[n].first_read(n, i) for i in range(rules[n].tiles(n))] for n in nodes}
        self._writes = {n: [rules[n].first_written(n, i) for i in range(rules[n].tiles(n))] for n in nodes}
        self.made = {node.outputs[0]: node for node in nodes}
        self.reduced = {node.outputs[0] for node in nodes if rules[node].reduces}
        self.readers: dict[Tensor, list[tuple[Node, TileMap]]] = {}
        for node in nodes:
            for index in dict.fromkeys(rules[node].inputs):
                self.readers.setdefault(node.input(index), []).append((node, rules[node]))
        self.states: dict[Tensor, State] = {}
        # Of each layer: the states of its inputs, each with its height; they are asked at every tile.
        self._inputs: dict[Node, list[tuple[State, int]]] = {}
        # Of each tensor: its readers, each with the first row that each of its tiles reads.
        self._readings: dict[Tensor, list[tuple[Node, list[int]]]] = {}

    # ------------------------------------------------------------ queries

    def possible(self) -> bool:
        """Whether every layer divides into tiles, whole tensors are there, and padding has one value."""
        if self._waits_for_itself():
            return False
        for node in self.nodes:
            rule = self.rules[node]
            whole = [t for i, t in enumerate(node.inputs) if t is not None and i not in rule.inputs]
            if any(t in self.made or t in self.readers for t in whole):
                return False
        if not self.reduced.isdisjoint(self.readers):
            return False
        for tensor in dict.fromkeys((*self.readers, *(t for t in self.made if t not in self.reduced))):
            state = self._state(tensor)
            if state is None:
                return False
            self.states[tensor] = state
        for node in self.nodes:
            found = dict.fromkeys(self.states[node.input(index)] for index in self.rules[node].inputs)
            self._inputs[node] = [(state, state.height) for state in found]
        self._readings = {t: [(n, self._reads[n]) for n, _ in self.readers.get(t, ())] for t in self.states}
        return self.take is None or self.take in self.states

    def _waits_for_itself(self) -> bool:
        """Whether the layers read a value that nodes outside of the fusion group compute from the layers'
        results."""
        outside: dict[Tensor, None] = {}
        queue = list(self.made)
        while queue:
            for reader in self.graph.consumers(queue.pop()):
                if reader not in self.rules:
                    new = [t for t in reader.outputs if t not in outside]
                    outside.update(dict.fromkeys(new))
                    queue += new
        return any(t in outside for node in self.nodes for t in node.inputs)

    def is_taken(self, tensor: Tensor) -> bool:
        """Whether its rows come from the caller."""
        return tensor is self.take

    def _state(self, tensor: Tensor) -> State | None:
        """Before the first event; None where the surroundings, or the rows' axes, differ for two readers, or cannot be
        there."""
        axes = {rule.read for _, rule in self.readers.get(tensor, ())}
        axes |= {self.rules[node].axis for node in self.nodes if node.outputs[0] is tensor}
        if len(axes) > 1:
            return None
        axis = axes.pop()
        height = tensor.shape[axis]
        top, end, fills = 0, height, set[Fill]()
        for node, rule in self.readers.get(tensor, ()):
            last = self._reads[node][-1] + rule.window
            if rule.before > 0 or last > height:
                fills.add(rule.fill)
            top, end = min(top, -rule.before), max(end, last)
        if len(fills) > 1 or None in fills:
            return None
        lasting = tensor in self.graph.outputs or not {*self.graph.consumers(tensor)} <= self.rules.keys()
        taken = self.is_taken(tensor)
        if taken and (lasting or axis != row_axis(tensor)):
            return None
        whole = lasting if tensor in self.made else not taken
        if whole and in_pieces(tensor, axis):
            return None
        first = height if whole and tensor not in self.made else top
        return State(tensor, top, end, first, whole, lasting, next(iter(fills), None), axis)

    def count(self, node: Node) -> int:
        """Tiles of a layer."""
        return len(self._reads[node])

    # ------------------------------------------------------------ actions

    def run(self) -> bool:
        """Until everything is computed; False where it comes to a halt."""
        for tensor, state in self.states.items():
            if state.whole and tensor not in self.made and state.top < 0:
                self._around(state, state.top, -state.top)
        left, last_first = sum(map(self.count, self.nodes)), self.nodes[::-1]
        while left:
            ready = next(filter(self._ready, last_first), None)
            if ready is not None:
                self._tile(ready)
                left -= 1
            elif not self._given():
                return False
        while self._given():
            pass  # the caller has a whole image, also where no layer reads its last rows
        return True

    def _needs(self, node: Node) -> tuple[int, int]:
        """The rows of its inputs that a layer's next tile reads."""
        rule = self.rules[node]
        start = self._reads[node][self.done[node]]
        return start, start + rule.window

    def _ready(self, node: Node) -> bool:
        reads, done = self._reads[node], self.done[node]
        if done == len(reads):
            return False
        stop = reads[done] + self.rules[node].window
        # A loop: this is asked most often of all, and a generator takes twice as long.
        for state, height in self._inputs[node]:
            if state.next < stop and state.next < height:
                break
        else:
            return True
        return False

    def _tile(self, node: Node) -> None:
        rule = self.rules[node]
        start, stop = self._needs(node)
        changed = [state for state, _ in self._inputs[node]]
        for state in changed:
            if state.next < stop:
                self._around(state, state.next, stop - state.next)
        reads = tuple([(i, start) for i in rule.inputs])
        row = self._writes[node][self.done[node]]
        self.done[node] += 1
        if rule.reduces:
            self.events.append(Tile(node, reads, 0, self._all_needed(changed)))
            return
        output = self.states[node.outputs[0]]
        self._begin(output)
        output.next = row + rule.out
        if output.tensor not in self.readers:
            changed.insert(0, output)
        self.events.append(Tile(node, reads, row, self._all_needed(changed)))
        self._begun(output, row)

    def _all_needed(self, states: Sequence[State]) -> tuple[tuple[Tensor, int], ...]:
        return tuple([(state.tensor, self._needed(state)) for state in states])

    def _needed(self, state: State) -> int:
        """The first row of a tensor that is read again, also to copy it, or computed again."""
        first = state.end
        for node, reads in self._readings[state.tensor]:
            done = self.done[node]
            if done < len(reads) and reads[done] < first:
                first = reads[done]
        maker = self.made.get(state.tensor)
        if maker is not None and self.done[maker] < self.count(maker):
            # The last tile may begin before the rows that are there.
            first = min(first, self._writes[maker][-1])
        return min(first, state.height - 1) if state.fill == "edge" and state.next < state.end else first

    def _begin(self, state: State) -> None:
        """Before a tensor's first row: the rows above it, or room for them."""
        if state.next == state.top < 0:
            if state.fill == "edge":
                state.next = 0
            else:
                self._around(state, state.top, -state.top)

    def _begun(self, state: State, row: int) -> None:
        """Behind a tensor's first row: what is a copy of it."""
        if row == 0 and state.top < 0 and state.fill == "edge":
            self._around(state, state.top, -state.top)

    def _given(self) -> bool:
        """A row from the caller; False where none is left, or none is taken."""
        state = next((s for s in self.states.values() if self.is_taken(s.tensor)), None)
        if state is None or state.next >= state.height:
            return False
        self._begin(state)
        state.next += 1
        self.events.append(InputRow(state.tensor, state.next - 1, self._needed(state)))
        self._begun(state, state.next - 1)
        return True

    def _around(self, state: State, row: int, rows: int) -> None:
        assert state.fill is not None
        if state.fill == "edge":
            rows = rows if row < 0 else state.end - row
            self.events.append(EdgePadding(state.tensor, row, rows))
        else:
            self.events.append(Padding(state.tensor, row, rows, state.fill))
        state.next = max(state.next, row + rows)
