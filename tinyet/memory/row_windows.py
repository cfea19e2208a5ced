# SPDX-License-Identifier: Apache-2.0
"""Where the rows of a stream lie: the slots of windows, and what moves between them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from tinyet.ir import Tensor
from tinyet.memory.row_records import Action, Area, Fill, Move, Place, Rows, Run, Take
from tinyet.memory.row_schedule import Around, Event, Given, Schedule, State, Strip


@dataclass(eq=False)
class _Used:
    """Slots in use: (number of the action, first, behind the last)."""

    held: list[tuple[int, int, int]] = field(default_factory=list)

    def note(self, moment: int, first: int, behind: int) -> None:
        if behind > first:
            self.held.append((moment, first, behind))

    def area(self, moments: int, slots: int = 0) -> Area:
        first, behind = (np.zeros(moments, np.int64) for _ in range(2))
        for moment, low, high in self.held:
            used = behind[moment] > first[moment]
            first[moment] = min(low, first[moment]) if used else low
            behind[moment] = max(high, behind[moment])
        return Area(max(slots, int(behind.max(initial=0))), first, behind)


class _Window:
    """The rows of one tensor, from `oldest` up to `next`. Those before `fresh` are together, at work or waiting; from
    `fresh` on they are at work."""

    def __init__(self, state: State, waits: bool) -> None:
        self.state = state
        self.waits = waits
        self.oldest = self.next = self.fresh = state.top
        self.waiting = waits
        self.work, self.wait = _Used(), _Used()

    def place(self, row: int) -> Place:
        """Where a row is."""
        if self.state.whole:
            return Place(row - self.state.top)
        return Place(row - self.oldest, self.waiting and row < self.fresh)

    def write(self, row: int, rows: int, read_next: bool) -> Place:
        """Make room for rows. read_next: they are read before more are written."""
        together = self.fresh == self.next
        self.next = max(self.next, row + rows)
        if not self.waiting or (together and not read_next):
            self.fresh = self.next
        return self.place(row)

    def gather(self, row: int, rows: int) -> list[Move]:
        """What has to move for the rows to lie one after another."""
        if not self.waiting or row >= self.fresh or row + rows <= self.fresh:
            return []
        count = self.fresh - self.oldest
        self.waiting, self.fresh = False, self.next
        return [Move(self.state.tensor, Place(0, True), Place(0), count, True)]

    def forget(self, needed: int) -> list[Move]:
        """What moves when the rows before `needed` are not needed any more."""
        oldest, tensor = self.oldest, self.state.tensor
        if self.state.lasting or min(needed, self.next) <= oldest:
            return []
        self.oldest = min(needed, self.next)
        if self.state.whole:
            return []
        gone, kept = self.oldest - oldest, self.next - self.oldest
        together = max(self.fresh - self.oldest, 0)  # of those that are kept
        moves = []
        if self.waiting:
            if together:
                moves.append(Move(tensor, Place(gone, True), Place(0, True), together, False))
            if kept > together:
                source = Place(gone + together)
                moves.append(Move(tensor, source, Place(together, True), kept - together, False))
        elif kept:
            moves.append(Move(tensor, Place(gone), Place(0, self.waits), kept, False))
        self.waiting, self.fresh = self.waits, self.next
        return moves

    def note(self, moment: int) -> None:
        """What there is at an action."""
        if self.state.whole:
            self.work.note(moment, self.oldest - self.state.top, self.next - self.state.top)
            return
        behind = self.fresh if self.waiting else self.oldest
        self.work.note(moment, behind - self.oldest, self.next - self.oldest)
        if self.waiting:
            self.wait.note(moment, 0, self.fresh - self.oldest)

    def note_move(self, moment: int, move: Move) -> None:
        """What a move reads and writes, beside what there is."""
        for place in (move.source, move.target):
            used = self.wait if place.waiting else self.work
            used.note(moment, place.slot, place.slot + move.rows)

    def rows(self, moments: int) -> Rows:
        state = self.state
        if not state.whole:
            waiting = self.wait.area(moments) if self.wait.held else None
            return Rows(state.tensor, self.work.area(moments), True, waiting=waiting)
        above, below = -state.top, max(self.next - state.height, 0)
        return Rows(state.tensor, self.work.area(moments, above + state.height), False, above, below)


class Placed:
    """The actions of a schedule, with a place for each row."""

    def __init__(self, schedule: Schedule, waiting: Collection[Tensor]) -> None:
        self.schedule = schedule
        self.actions: list[Action] = []
        self.windows = {
            tensor: _Window(state, tensor in waiting and not state.whole)
            for tensor, state in schedule.states.items()
        }
        for tensor, window in self.windows.items():
            # The rows of a whole tensor are there before the first action, those around it are not.
            window.next = window.fresh = (
                tensor.shape[1] if window.state.whole and tensor not in schedule.made else window.state.top
            )

    def place(self) -> None:
        touched: dict[Tensor, list[tuple[int, bool]]] = {}
        for number, event in enumerate(self.schedule.events):
            for tensor, read in _touched(event):
                touched.setdefault(tensor, []).append((number, read))
        following = {t: iter(found) for t, found in touched.items()}
        upcoming = {t: next(found, None) for t, found in following.items()}

        def read_next(tensor: Tensor, number: int) -> bool:
            while (first := upcoming[tensor]) is not None and first[0] <= number:
                upcoming[tensor] = next(following[tensor], None)
            return first is not None and first[1]

        for number, event in enumerate(self.schedule.events):
            match event:
                case Around(tensor, row, rows, value):
                    place = self.windows[tensor].write(row, rows, read_next(tensor, number))
                    self._act(Fill(tensor, place, rows, value))
                case Given(tensor, row, needed):
                    place = self.windows[tensor].write(row, 1, read_next(tensor, number))
                    self._act(Take(tensor, place))
                    self._move(tensor, self.windows[tensor].forget(needed))
                case Strip():
                    self._strip(event, read_next(event.node.outputs[0], number))

    def _strip(self, event: Strip, read_next: bool) -> None:
        rule, output = self.schedule.rules[event.node], event.node.outputs[0]
        for index, row in event.reads:
            tensor = event.node.input(index)
            before = self.windows[tensor]
            if before.waiting and row < before.fresh < row + rule.window:
                self._gather(before, row, rule.window)
        reads = tuple((i, self.windows[event.node.input(i)].place(row)) for i, row in event.reads)
        place = self.windows[output].write(event.writes, rule.out, read_next)
        self._act(Run(event.node, reads, place))
        if output not in self.schedule.readers and not self.windows[output].state.whole:
            self.windows[output].forget(self.windows[output].next)
        for tensor, needed in event.needed:
            self._move(tensor, self.windows[tensor].forget(needed))

    def _gather(self, window: _Window, row: int, rows: int) -> None:
        for move in window.gather(row, rows):
            self._act(move)

    def _move(self, tensor: Tensor, moves: list[Move]) -> None:
        for move in moves:
            self._act(move)

    def _act(self, action: Action) -> None:
        moment = len(self.actions)
        self.actions.append(action)
        for window in self.windows.values():
            window.note(moment)
        if isinstance(action, Move):
            self.windows[action.tensor].note_move(moment, action)

    def rows(self) -> dict[Tensor, Rows]:
        return {tensor: window.rows(len(self.actions)) for tensor, window in self.windows.items()}


def _touched(event: Event) -> list[tuple[Tensor, bool]]:
    """The tensors that an event reads (True) and writes."""
    match event:
        case Strip(node, reads, _, _):
            return [*((node.input(index), True) for index, _ in reads), (node.outputs[0], False)]
        case Around(tensor) | Given(tensor):
            return [(tensor, False)]
