# SPDX-License-Identifier: Apache-2.0
"""Line buffers: the places of the rows between fused layers, each buffer in a place of its own or stacked,
and the moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tinyet.ir import Node, Tensor
from tinyet.memory.tile_records import (
    Action,
    Close,
    Fill,
    LineBuffer,
    Move,
    Place,
    Repeat,
    Run,
    Shift,
    Take,
    row_bytes,
)
from tinyet.opset.access_order import Bytes
from tinyet.planning.stack import Stack, dropped, written
from tinyet.planning.tile_schedule import EdgePadding, InputRow, Padding, State, Tile, TileSchedule


@dataclass(eq=False)
class _LineBuffer:
    """The rows of one tensor, from `oldest` up to `next`. number: of its window, where that is stacked. held: (first
    slot, behind the last, first byte of the window), all 0 without rows, from the action of this number on, until the
    next one's."""

    state: State
    number: int | None
    oldest: int
    next: int
    held: list[tuple[int, tuple[int, int, int]]] = field(default_factory=list)
    row_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.row_bytes = row_bytes(self.state.tensor, self.state.axis)

    def slot(self, row: int) -> int:
        return row - (self.state.top if self.state.whole else self.oldest)

    def note(self, moment: int, start: int) -> None:
        """Note the blocks that are alive from an action on."""
        empty = self.next <= self.oldest
        self.held.append(
            (moment, (0, 0, 0) if empty else (self.slot(self.oldest), self.slot(self.next), start))
        )

    def rows(self, moments: int) -> LineBuffer:
        """moments: number of actions, at whose first something has been noted."""
        at = np.array([moment for moment, _ in self.held] + [moments])
        changes = np.array([blocks for _, blocks in self.held], np.int64).reshape(-1, 3)
        first, behind, start = np.repeat(changes, np.diff(at), axis=0).T.copy()
        state = self.state
        slots, above, below = int(behind.max(initial=0)), 0, 0
        if state.whole:
            above, below = -state.top, max(self.next - state.height, 0)
            slots = above + state.height + below
        window = not state.whole
        return LineBuffer(
            state.tensor, slots, window, self.number, above, below, first, behind, start, state.axis
        )


class LineBuffers:
    """The actions of a schedule, with a place for each row.

    stacked: buffers whose rows are whole words are stacked. Otherwise each has a place of its own, of its largest size.
    base: a whole tensor that lies beneath the stacked buffers: its rows that are not there yet leave their room to the
    buffers. scratch: bytes of the layers' scratch memory, at least.
    """

    def __init__(
        self, schedule: TileSchedule, stacked: bool, base: Tensor | None, scratch: Mapping[Node, int]
    ) -> None:
        self.schedule = schedule
        self.actions: list[Action] = []
        self.stacked_bytes: list[int] = []
        made = [node.outputs[0] for node in schedule.nodes]
        # What the caller gives comes first.
        order = sorted(schedule.states, key=lambda t: made.index(t) if t in made else -1)
        in_stack = [
            t
            for t in order
            if stacked
            and (not schedule.states[t].whole or t is base)
            and row_bytes(t, schedule.states[t].axis) % 4 == 0
        ]
        self.stack = Stack(schedule, in_stack, base if base in in_stack else None, scratch)
        self.stacked_buffers = sorted(in_stack, key=lambda t: self.stack.numbers[t])
        self.buffers: dict[Tensor, _LineBuffer] = {}
        # Those whose blocks differ from what has been noted of them.
        self._changed: set[_LineBuffer] = set()
        for tensor, state in schedule.states.items():
            # The rows of a whole tensor are there before the first action, those around it are not.
            there = state.whole and tensor not in schedule.made
            number = self.stack.numbers.get(tensor)
            self.buffers[tensor] = _LineBuffer(state, number, state.top, state.height if there else state.top)
        self._changed.update(self.buffers.values())
        self._in_stack = [self.buffers[tensor] for tensor in self.stacked_buffers]
        # The rows of windows are at the same places again and again: each of these is made once.
        self._places: dict[tuple[int, int], Place] = {}
        self._reads: dict[Node, tuple[tuple[int, Place], ...]] = {}

    def place(self) -> None:
        for number, event in enumerate(self.schedule.events):
            new = written(self.schedule, event)
            self._make_room(new, number)
            match event:
                case Tile(node, reads, row):
                    place = Place(0) if new is None else self._at(node.outputs[0], row)
                    read = tuple([(i, self._at(node.input(i), first)) for i, first in reads])
                    if read == self._reads.get(node):
                        read = self._reads[node]
                    self._reads[node] = read
                    top = height = 0
                    if self.stacked_buffers:
                        top = self.stack.top_for(node, number)
                        height = self.stack.end[top]
                    self._act(Run(node, read, place, self._again(node, row), top), height)
                case Padding(tensor, row, rows, value):
                    self._act(Fill(tensor, self._at(tensor, row), rows, value))
                case EdgePadding(tensor, row, rows):
                    self._act(Repeat(tensor, self._at(tensor, row), rows, above=row < 0))
                case InputRow(tensor, row):
                    self._act(Take(tensor, self._at(tensor, row)))
            for tensor, needed in dropped(event):
                self._forget(tensor, needed)

    def _again(self, node: Node, row: int) -> int:
        """How many rows of a tile the next one computes again."""
        rule = self.schedule.rules[node]
        rows = 0 if rule.reduces else rule.height(node)
        return 0 if row + rule.out >= rows else max(row + 2 * rule.out - rows, 0)

    def _at(self, tensor: Tensor, row: int) -> Place:
        buffer = self.buffers[tensor]
        at = buffer.slot(row), self._start(buffer)
        found = self._places.get(at)
        if found is None:
            found = self._places[at] = Place(*at)
        return found

    def _start(self, buffer: _LineBuffer) -> int:
        """The first byte of a stacked buffer."""
        return 0 if buffer.number is None else self.stack.start[buffer.number]

    def _make_room(self, new: tuple[Tensor, int, int] | None, number: int) -> None:
        """For what event number `number` writes: rows of a tensor, from one on, and scratch memory."""
        before = 0
        if self.stacked_buffers:
            before = self.stack.top
            for shift in self.stack.lower(number):
                self._shifted(shift, before)
        if new is None:
            return
        tensor, row, rows = new
        buffer = self.buffers[tensor]
        more = row + rows - buffer.next
        if buffer.number is not None and more > 0:
            for shift in self.stack.make_room(tensor, more * buffer.row_bytes, number):
                self._shifted(shift, before)
            opened = self.stack.open(tensor, more * buffer.row_bytes, number)
            buffer.next += more
            self._changed.add(buffer)
            self._act(opened)
        if row + rows > buffer.next:
            buffer.next = row + rows
            self._changed.add(buffer)

    def _forget(self, tensor: Tensor, needed: int) -> None:
        """The rows before `needed` are not needed any more."""
        buffer = self.buffers[tensor]
        gone = min(needed, buffer.next) - buffer.oldest
        if buffer.state.lasting or gone <= 0:
            return
        kept = buffer.next - buffer.oldest - gone
        if buffer.number is not None:
            self._act(Close(tensor, gone * buffer.row_bytes))
            self.stack.close(tensor, gone * buffer.row_bytes)
        elif kept and not buffer.state.whole:
            self._act(Move(tensor, gone, kept))
        buffer.oldest += gone
        self._changed.add(buffer)

    def _shifted(self, shift: Shift, height: int) -> None:
        """Windows of the stack have moved."""
        self._changed.update(self._in_stack)
        self._act(shift, height)

    def _act(self, action: Action, height: int = 0) -> None:
        """height: bytes of the stacked buffers that are still needed, beside those after the action."""
        moment = len(self.actions)
        self.actions.append(action)
        self.stacked_bytes.append(max(self.stack.top, height) if self.stacked_buffers else height)
        if self._changed:
            for buffer in self._changed:
                buffer.note(moment, self._start(buffer))
            self._changed.clear()

    def rows(self) -> dict[Tensor, LineBuffer]:
        return {tensor: buffer.rows(len(self.actions)) for tensor, buffer in self.buffers.items()}

    def heights(self) -> Bytes:
        """Bytes of the stacked buffers at each action."""
        return np.array(self.stacked_bytes, np.int64)
