# SPDX-License-Identifier: Apache-2.0
"""Line buffers: the places of the rows between fused layers, each buffer in a place of its own or stacked,
and the moves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tinyet.ir import Node, Tensor
from tinyet.memory.tile_records import (
    Action,
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
from tinyet.planning.tile_schedule import EdgePadding, InputRow, Padding, State, Tile, TileSchedule


@dataclass(eq=False)
class _LineBuffer:
    """The rows of one tensor, from `oldest` up to `next`. held: (number of the action, first slot, behind the last)."""

    state: State
    stacked: bool
    oldest: int
    next: int
    held: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Bytes in the stacked buffers."""
        return (self.next - self.oldest) * self.row_bytes

    @property
    def row_bytes(self) -> int:
        return row_bytes(self.state.tensor, self.state.axis)

    def slot(self, row: int) -> int:
        return row - (self.state.top if self.state.whole else self.oldest)

    def note(self, moment: int) -> None:
        """Note the blocks that are alive at an action."""
        if self.next > self.oldest:
            self.held.append((moment, self.slot(self.oldest), self.slot(self.next)))

    def rows(self, moments: int) -> LineBuffer:
        first, behind = (np.zeros(moments, np.int64) for _ in range(2))
        for moment, low, high in self.held:
            first[moment], behind[moment] = low, high
        state = self.state
        slots, above, below = int(behind.max(initial=0)), 0, 0
        if state.whole:
            above, below = -state.top, max(self.next - state.height, 0)
            slots = above + state.height + below
        return LineBuffer(
            state.tensor, slots, not state.whole, self.stacked, above, below, first, behind, state.axis
        )


class LineBuffers:
    """The actions of a schedule, with a place for each row.

    stacked: buffers whose rows are whole words are stacked, the last layer's lowest; one that changes moves
    all above it. Otherwise each has a place of its own, of its largest size. base: a whole tensor that
    lies beneath the stacked buffers: its rows that are not there yet leave their room to the buffers.
    """

    def __init__(self, schedule: TileSchedule, stacked: bool, base: Tensor | None) -> None:
        self.schedule = schedule
        self.actions: list[Action] = []
        self.stacked_bytes: list[int] = []
        self.buffers: dict[Tensor, _LineBuffer] = {}
        for tensor, state in schedule.states.items():
            # The rows of a whole tensor are there before the first action, those around it are not.
            there = state.whole and tensor not in schedule.made
            whole_words = row_bytes(tensor, state.axis) % 4 == 0
            is_stacked = stacked and (not state.whole or tensor is base) and whole_words
            self.buffers[tensor] = _LineBuffer(
                state, is_stacked, state.top, state.height if there else state.top
            )
        order = {node.outputs[0]: number for number, node in enumerate(schedule.nodes)}
        found = [b for b in self.buffers.values() if b.stacked]
        self.stacked_buffers = sorted(
            found, key=lambda b: (b.state.tensor is not base, -order.get(b.state.tensor, -1))
        )

    def place(self) -> None:
        for event in self.schedule.events:
            match event:
                case Padding(tensor, row, rows, value):
                    self._act(Fill(tensor, self._write(tensor, row, rows), rows, value))
                case EdgePadding(tensor, row, rows):
                    self._act(Repeat(tensor, self._write(tensor, row, rows), rows, above=row < 0))
                case InputRow(tensor, row, needed):
                    self._act(Take(tensor, self._write(tensor, row, 1)))
                    self._forget(tensor, needed)
                case Tile(node, reads, row, needed):
                    output, rule = node.outputs[0], self.schedule.rules[node]
                    place = Place(0) if rule.reduces else self._write(output, row, rule.out)
                    read = tuple((i, self._at(node.input(i), first)) for i, first in reads)
                    self._act(Run(node, read, place, self._again(node, row)))
                    for tensor, first_needed in needed:
                        self._forget(tensor, first_needed)

    def _again(self, node: Node, row: int) -> int:
        """How many rows of a tile the next one computes again."""
        rule = self.schedule.rules[node]
        rows = 0 if rule.reduces else rule.height(node)
        return 0 if row + rule.out >= rows else max(row + 2 * rule.out - rows, 0)

    def _at(self, tensor: Tensor, row: int) -> Place:
        buffer = self.buffers[tensor]
        return Place(buffer.slot(row), self._start(buffer) if buffer.stacked else 0)

    def _start(self, buffer: _LineBuffer) -> int:
        """The first byte of a stacked buffer."""
        return sum(each.bytes for each in self.stacked_buffers[: self.stacked_buffers.index(buffer)])

    def _write(self, tensor: Tensor, row: int, rows: int) -> Place:
        """Make room for rows."""
        buffer = self.buffers[tensor]
        more = max(row + rows - buffer.next, 0)
        if buffer.stacked and more:
            start = self._start(buffer) + buffer.bytes
            above = self._top() - start
            buffer.next += more
            self._act(Shift(tensor, start, above, more * buffer.row_bytes))
        else:
            buffer.next += more
        return self._at(tensor, row)

    def _forget(self, tensor: Tensor, needed: int) -> None:
        """The rows before `needed` are not needed any more."""
        buffer = self.buffers[tensor]
        gone = min(needed, buffer.next) - buffer.oldest
        if buffer.state.lasting or gone <= 0:
            return
        kept = buffer.next - buffer.oldest - gone
        if buffer.stacked:
            size = buffer.row_bytes
            start = self._start(buffer) + gone * size
            self._act(Shift(tensor, start, self._top() - start, -gone * size))
        elif kept and not buffer.state.whole:
            self._act(Move(tensor, gone, kept))
        buffer.oldest += gone

    def _top(self) -> int:
        """Bytes of the stacked buffers."""
        return sum(buffer.bytes for buffer in self.stacked_buffers)

    def _act(self, action: Action) -> None:
        moment = len(self.actions)
        self.actions.append(action)
        self.stacked_bytes.append(self._top())
        for buffer in self.buffers.values():
            buffer.note(moment)

    def rows(self) -> dict[Tensor, LineBuffer]:
        return {tensor: buffer.rows(len(self.actions)) for tensor, buffer in self.buffers.items()}

    def heights(self) -> Bytes:
        """Bytes of the stacked buffers at each action."""
        return np.array(self.stacked_bytes, np.int64)
