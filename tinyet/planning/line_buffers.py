# SPDX-License-Identifier: Apache-2.0
"""Line buffers: the places of the rows between fused layers, each buffer in a place of its own or stacked,
and the moves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tinyet.ir import Tensor
from tinyet.memory.tile_records import (
    Action,
    Fill,
    Move,
    Place,
    Repeat,
    RowBuffer,
    Run,
    Shift,
    Take,
    row_bytes,
)
from tinyet.opset.access_order import Bytes
from tinyet.planning.tile_schedule import EdgePadding, Padding, State, TakenRow, Tile, TileSchedule


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
        return (self.next - self.oldest) * row_bytes(self.state.tensor)

    def slot(self, row: int) -> int:
        return row - (self.state.top if self.state.whole else self.oldest)

    def note(self, moment: int) -> None:
        """Note the blocks that are alive at an action."""
        if self.next > self.oldest:
            self.held.append((moment, self.slot(self.oldest), self.slot(self.next)))

    def rows(self, moments: int) -> RowBuffer:
        first, behind = (np.zeros(moments, np.int64) for _ in range(2))
        for moment, low, high in self.held:
            first[moment], behind[moment] = low, high
        state = self.state
        slots, above, below = int(behind.max(initial=0)), 0, 0
        if state.whole:
            above, below = -state.top, max(self.next - state.height, 0)
            slots = above + state.height + below
        return RowBuffer(state.tensor, slots, not state.whole, self.stacked, above, below, first, behind)


class LineBuffers:
    """The actions of a schedule, with a place for each row.

    stacked: windows whose rows are whole words are stacked, the last layer's lowest; a window that changes
    moves all above it. Otherwise each has a place of its own, of its largest size. base: a whole tensor that
    lies beneath the stacked buffers: its rows that are not there yet leave their room to the windows.
    """

    def __init__(self, schedule: TileSchedule, stacked: bool, base: Tensor | None) -> None:
        self.schedule = schedule
        self.actions: list[Action] = []
        self.piled_bytes: list[int] = []
        self.windows: dict[Tensor, _LineBuffer] = {}
        for tensor, state in schedule.states.items():
            # The rows of a whole tensor are there before the first action, those around it are not.
            there = state.whole and tensor not in schedule.made
            in_pile = stacked and (not state.whole or tensor is base) and row_bytes(tensor) % 4 == 0
            self.windows[tensor] = _LineBuffer(
                state, in_pile, state.top, state.height if there else state.top
            )
        order = {node.outputs[0]: number for number, node in enumerate(schedule.nodes)}
        found = [w for w in self.windows.values() if w.stacked]
        self.stacked_buffers = sorted(
            found, key=lambda w: (w.state.tensor is not base, -order.get(w.state.tensor, -1))
        )

    def place(self) -> None:
        for event in self.schedule.events:
            match event:
                case Padding(tensor, row, rows, value):
                    self._act(Fill(tensor, self._write(tensor, row, rows), rows, value))
                case EdgePadding(tensor, row, rows):
                    self._act(Repeat(tensor, self._write(tensor, row, rows), rows, above=row < 0))
                case TakenRow(tensor, row, needed):
                    self._act(Take(tensor, self._write(tensor, row, 1)))
                    self._forget(tensor, needed)
                case Tile(node, reads, row, needed):
                    output, rule = node.outputs[0], self.schedule.rules[node]
                    place = Place(0) if rule.reduces else self._write(output, row, rule.out)
                    read = tuple((i, self._at(node.input(i), first)) for i, first in reads)
                    self._act(Run(node, read, place))
                    if output not in self.schedule.readers and not rule.reduces:
                        self._forget(output, self.windows[output].next)
                    for tensor, first_needed in needed:
                        self._forget(tensor, first_needed)

    def _at(self, tensor: Tensor, row: int) -> Place:
        window = self.windows[tensor]
        return Place(window.slot(row), self._start(window) if window.stacked else 0)

    def _start(self, window: _LineBuffer) -> int:
        """The first byte of a stacked window."""
        return sum(each.bytes for each in self.stacked_buffers[: self.stacked_buffers.index(window)])

    def _write(self, tensor: Tensor, row: int, rows: int) -> Place:
        """Make room for rows."""
        window = self.windows[tensor]
        more = max(row + rows - window.next, 0)
        if window.stacked and more:
            start = self._start(window) + window.bytes
            above = self._top() - start
            window.next += more
            self._act(Shift(tensor, start, above, more * row_bytes(tensor)))
        else:
            window.next += more
        return self._at(tensor, row)

    def _forget(self, tensor: Tensor, needed: int) -> None:
        """The rows before `needed` are not needed any more."""
        window = self.windows[tensor]
        gone = min(needed, window.next) - window.oldest
        if window.state.lasting or gone <= 0:
            return
        kept = window.next - window.oldest - gone
        if window.stacked:
            size = row_bytes(tensor)
            start = self._start(window) + gone * size
            self._act(Shift(tensor, start, self._top() - start, -gone * size))
        elif kept and not window.state.whole:
            self._act(Move(tensor, gone, kept))
        window.oldest += gone

    def _top(self) -> int:
        """Bytes of the stacked buffers."""
        return sum(window.bytes for window in self.stacked_buffers)

    def _act(self, action: Action) -> None:
        moment = len(self.actions)
        self.actions.append(action)
        self.piled_bytes.append(self._top())
        for window in self.windows.values():
            window.note(moment)

    def rows(self) -> dict[Tensor, RowBuffer]:
        return {tensor: window.rows(len(self.actions)) for tensor, window in self.windows.items()}

    def heights(self) -> Bytes:
        """Bytes of the stacked buffers at each action."""
        return np.array(self.piled_bytes, np.int64)
