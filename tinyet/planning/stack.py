# SPDX-License-Identifier: Apache-2.0
"""Stacked line buffers: one above the other in one piece of memory, with gaps where rows have been dropped.

A window that drops its oldest row leaves a gap, into which the window below it grows: that of the next layer, as the
last layer's is lowest. So all windows creep upwards, and move only if one has no room to grow: those between it and a
gap, or all, back to the start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tinyet.ir import Node, Tensor
from tinyet.memory.tile_records import Close, Open, Shift, row_bytes
from tinyet.planning.tile_schedule import EdgePadding, Event, InputRow, Padding, Tile, TileSchedule

_ALIGN = 8
"""Of scratch memory on top of all windows."""


def written(schedule: TileSchedule, event: Event) -> tuple[Tensor, int, int] | None:
    """The tensor whose rows an event writes, the first of them, and how many; None for a layer without rows."""
    match event:
        case Tile(node, _, row):
            rule = schedule.rules[node]
            return None if rule.reduces else (node.outputs[0], row, rule.out)
        case Padding(tensor, row, rows) | EdgePadding(tensor, row, rows):
            return tensor, row, rows
        case InputRow(tensor, row):
            return tensor, row, 1


def dropped(event: Event) -> tuple[tuple[Tensor, int], ...]:
    """Tensors, and the first row of each that is needed after an event."""
    match event:
        case Tile():
            return event.needed
        case InputRow(tensor, _, needed):
            return ((tensor, needed),)
        case _:
            return ()


@dataclass(frozen=True)
class Held:
    """What is there at each event of a schedule, after it has written and before it drops rows.

    alive: the tensors that hold rows; bytes: of all these rows, with scratch memory on top. growing: tensors that get
    rows while they hold some, and not only at the end, where a last tile begins among the rows that are there.
    """

    alive: tuple[frozenset[Tensor], ...]
    bytes: tuple[int, ...]
    growing: frozenset[Tensor]


def held(schedule: TileSchedule, tensors: Sequence[Tensor], scratch: Mapping[Node, int]) -> Held:
    """Of some tensors, none of which holds rows before the first event."""
    if not tensors:
        return Held((), (), frozenset())
    oldest = {tensor: schedule.states[tensor].top for tensor in tensors}
    behind = dict(oldest)
    sizes = {tensor: row_bytes(tensor, schedule.states[tensor].axis) for tensor in tensors}
    alive: list[frozenset[Tensor]] = []
    counts: list[int] = []
    grown = Counter[Tensor]()
    for event in schedule.events:
        new = written(schedule, event)
        if new is not None and new[0] in oldest:
            tensor, row, rows = new
            if behind[tensor] > oldest[tensor] and row + rows > behind[tensor]:
                grown[tensor] += 1
            behind[tensor] = max(behind[tensor], row + rows)
        count = sum((behind[t] - oldest[t]) * sizes[t] for t in tensors)
        alive.append(frozenset(t for t in tensors if behind[t] > oldest[t]))
        counts.append(_with_scratch(count, _scratch_of(schedule, event, scratch)))
        for tensor, needed in dropped(event):
            if tensor in oldest and not schedule.states[tensor].lasting:
                oldest[tensor] = max(oldest[tensor], min(needed, behind[tensor]))
    return Held(tuple(alive), tuple(counts), frozenset(t for t, times in grown.items() if times > 1))


def _scratch_of(schedule: TileSchedule, event: Event, scratch: Mapping[Node, int]) -> int:
    """Scratch memory of an event that lies on the stack: none where it lasts."""
    if not isinstance(event, Tile) or schedule.rules[event.node].reduces:
        return 0
    return scratch.get(event.node, 0)


def _with_scratch(top: int, scratch: int) -> int:
    return -(-top // _ALIGN) * _ALIGN + scratch if scratch else top


def numbered(found: Held, tensors: Sequence[Tensor], base: Tensor | None) -> dict[Tensor, int]:
    """The number of each tensor's window, from the lowest: the base; those that grow, the last layer's lowest; on top
    those that hold the rows of one step only, as no other moves when they come and go. Such windows share a number
    if they are never there at once.

    tensors: in the order in which they are computed.
    """
    lasting = [t for t in reversed(tensors) if t in found.growing and t is not base]
    numbers = {t: number for number, t in enumerate(([] if base is None else [base]) + lasting)}
    first, sharing = len(numbers), list[list[Tensor]]()
    for tensor in tensors:
        if tensor in numbers:
            continue
        beside = set[Tensor]().union(*(alive for alive in found.alive if tensor in alive))
        free = next((each for each in sharing if beside.isdisjoint(each)), None)
        if free is None:
            sharing.append([tensor])
        else:
            free.append(tensor)
    return numbers | {t: first + k for k, each in enumerate(sharing) for t in each}


class Stack:
    """The windows, by number, each from its `start` up to its `end`; one that is empty stays where it was.

    fixed: so many of the lowest never move. numbers: of the tensors; most: bytes of all windows, with scratch memory
    on top, at most, at each event.
    """

    def __init__(
        self,
        schedule: TileSchedule,
        tensors: Sequence[Tensor],
        base: Tensor | None,
        scratch: Mapping[Node, int],
    ) -> None:
        found = held(schedule, tensors, scratch)
        self.schedule, self.scratch = schedule, scratch
        self.numbers = numbered(found, tensors, base)
        self.fixed = int(base is not None)
        self.most = _highest_yet(found.bytes)
        self.start = [0] * len({*self.numbers.values()})
        self.end = list(self.start)
        self._behind: dict[Tensor, int] = {}
        self._top_of: dict[Node, int] = {}
        self._top: int | None = None  # as long as no window changes

    @property
    def top(self) -> int:
        """Bytes up to the end of the highest window that holds rows."""
        if self._top is None:
            ends = [end for start, end in zip(self.start, self.end, strict=True) if end > start]
            self._top = max(ends) if ends else min(self.end, default=0)
        return self._top

    def _occupied(self) -> list[int]:
        return [k for k, (start, end) in enumerate(zip(self.start, self.end, strict=True)) if end > start]

    def make_room(self, tensor: Tensor, count: int, number: int) -> Iterator[Shift]:
        """What has to move so that the window of a tensor can grow by `count` bytes at event number `number`."""
        return self._make_room(self.numbers[tensor], count, self._most_rows(number))

    def open(self, tensor: Tensor, count: int, number: int) -> Open:
        """The window of a tensor grows at its end, where there is room at event number `number`."""
        window, behind = self.numbers[tensor], None
        at = self.end[window]
        if at == self.start[window]:
            behind, at = self._beginning(tensor, count, self._most_rows(number))
            self._behind[tensor] = behind
            self.start[window] = at
        self.end[window] = at + count
        self._top = None
        return Open(tensor, count, behind)

    def _most_rows(self, number: int) -> int:
        """Bytes of the windows at an event: scratch memory begins at a multiple of eight bytes."""
        scratch = _scratch_of(self.schedule, self.schedule.events[number], self.scratch)
        return (self.most[number] - scratch) // _ALIGN * _ALIGN if scratch else self.most[number]

    def lower(self, number: int) -> Iterator[Shift]:
        """Room for the scratch memory of an event."""
        excess = self.top - self._most_rows(number)
        if excess <= 0:
            return
        occupied = self._occupied()
        ways = [way for way in self._downs(occupied) if way[0] is not None and way[1] >= excess]
        if not ways:
            yield from self._compacted()
            return
        at, room, _ = min(ways, key=lambda way: way[2])
        assert at is not None
        yield self._shift(at, occupied[-1], -room)

    def close(self, tensor: Tensor, count: int) -> Close:
        """Its oldest rows are not needed any more."""
        self.start[self.numbers[tensor]] += count
        self._top = None
        return Close(tensor, count)

    def top_for(self, node: Node, number: int) -> int:
        """The number of the window on whose end a layer's scratch memory lies; no window ends above it. That of the
        layer's last tile where that still holds, so that its steps are the same."""
        last = self._top_of.get(node)
        if last is None or not self.top <= self.end[last] <= self._most_rows(number):
            last = self._top_of[node] = self.end.index(self.top)
        return last

    def _beginning(self, tensor: Tensor, count: int, most: int) -> tuple[int, int]:
        """Where an empty window begins: the number of the window at whose end it does, -1 for the start of the stack;
        and the byte."""
        window, occupied = self.numbers[tensor], self._occupied()
        below = max((k for k in occupied if k < window), default=-1)
        lowest = self.end[below] if below >= 0 else 0
        highest = next((self.start[k] for k in occupied if k > window), most) - count
        # Where it began last time, so that the step is the same, also if that is empty now.
        last = self._behind.get(tensor, -1)
        if last >= 0 and lowest <= self.end[last] <= highest:
            below, lowest = last, self.end[last]
        return below, lowest

    def _gap(self, above: int | None, below: int | None, most: int) -> int:
        """Bytes between a window and the next one that holds rows."""
        high = most if above is None else self.start[above]
        return high - (0 if below is None else self.end[below])

    def _make_room(self, window: int, count: int, most: int) -> Iterator[Shift]:
        """What has to move so that a window can grow by `count` bytes."""
        lower = [k for k in self._occupied() if k <= window]
        upper = [k for k in self._occupied() if k > window]
        missing = count - self._gap(next(iter(upper), None), lower[-1] if lower else None, most)
        if missing <= 0:
            return
        downs, ups = self._downs(lower), self._ups(upper, most)
        # The fewest bytes; of equal ones those that give most room.
        ways = [
            (up_bytes + down_bytes, -down - up, down_at, up_at)
            for (down_at, down, down_bytes), (up_at, up, up_bytes) in product(downs, ups)
            if down + up >= missing
        ]
        if not ways:
            yield from self._compacted()
            yield from self._make_room(window, count, most)
            return
        _, _, down_at, up_at = min(ways, key=lambda way: way[:2])
        if down_at is not None:
            # By as much as there is: it costs no more, and the next move comes later.
            room = next(down for at, down, _ in downs if at == down_at)
            yield self._shift(down_at, lower[-1], -room)
            missing -= room
        if up_at is not None and missing > 0:
            yield self._shift(upper[0], up_at, missing)

    def _downs(self, lower: Sequence[int]) -> list[tuple[int | None, int, int]]:
        """(the lowest window that moves, by how much at most, bytes): those from it up to the highest of `lower`."""
        found: list[tuple[int | None, int, int]] = [(None, 0, 0)]
        for position, k in enumerate(lower):
            room = self._gap(k, lower[position - 1] if position else None, 0)
            if k >= self.fixed and room > 0:
                found.append((k, room, self.end[lower[-1]] - self.start[k]))
        return found

    def _ups(self, upper: Sequence[int], most: int) -> list[tuple[int | None, int, int]]:
        """(the highest window that moves, by how much at most, bytes): those from the lowest of `upper` up to it."""
        found: list[tuple[int | None, int, int]] = [(None, 0, 0)]
        for position, k in enumerate(upper):
            room = self._gap(upper[position + 1] if position + 1 < len(upper) else None, k, most)
            if room > 0:
                found.append((k, room, self.end[k] - self.start[upper[0]]))
        return found

    def _compacted(self) -> Iterator[Shift]:
        """No gap is left."""
        below: int | None = None
        occupied = self._occupied()
        for k in occupied:
            room = self._gap(k, below, 0)
            if room > 0 and k >= self.fixed:
                yield self._shift(k, occupied[-1], -room)
            below = k

    def _shift(self, first: int, last: int, by: int) -> Shift:
        start, count = self.start[first], self.end[last] - self.start[first]
        self._top = None
        for k in self._occupied():
            if first <= k <= last:
                self.start[k] += by
                self.end[k] += by
        return Shift(first, last, start, count, by)


def _highest_yet(counts: Sequence[int]) -> tuple[int, ...]:
    found: list[int] = []
    for count in counts:
        found.append(max(count, found[-1] if found else 0))
    return tuple(found)
