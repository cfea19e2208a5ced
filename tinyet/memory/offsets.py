# SPDX-License-Identifier: Apache-2.0
"""Offsets of buffers with known lifetimes inside one arena: heuristics first, then an exact search.

The problem is dynamic storage allocation: buffers are rectangles, as wide as their lifetime and as tall as
their bytes, that may move only up and down; the height of the pile is the arena. It is NP-hard in general and
small in practice: a network that fits a microcontroller has some tens of tensors and few alive at once.

The search places buffers in the order of their offsets, each as low as what is already placed allows. Every
placement can be pushed down into one of that form, so the search is complete. It gives up after a fixed
number of steps, never after a time, so the result depends on the input alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinyet.errors import InternalError

DEFAULT_BUDGET = 150_000
"""Steps of the search (one step looks at one unplaced buffer). About half a second of Python."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A block of memory to place.

    `bytes` may be 0. It is alive during the steps `first` to `last`, both included. Its offset will be a
    multiple of `align` (a power of two, in bytes).
    """

    name: str
    bytes: int
    first: int
    last: int
    align: int = 1


@dataclass(frozen=True, slots=True)
class Placement:
    """Where each buffer stands.

    `offsets` maps buffer name to byte offset. `peak` is the end of the highest buffer in bytes.
    `lower_bound` is the largest sum of bytes alive together; no placement can be smaller. `optimal` says
    that no placement has a smaller peak, either because the bound is met or because the search tried
    everything.
    """

    offsets: dict[str, int]
    peak: int
    lower_bound: int
    optimal: bool


def align_up(value: int, align: int) -> int:
    """The smallest multiple of `align` (a power of two) that is not below `value`."""
    return (value + align - 1) & -align


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """Largest number of bytes that must be held at one step, alignment counted.

    At each step, and for each alignment `a` in use: buffers aligned to `a` or more start at distinct
    multiples of `a`, so each but the highest fills whole multiples of `a`.
    """
    bound = 0
    for section in _sections(buffers):
        alive = [buffers[i] for i in section]
        for align in {b.align for b in alive}:
            sizes = [b.bytes for b in alive if b.align >= align]
            padded = [align_up(size, align) for size in sizes]
            bound = max(bound, sum(padded) - max(p - s for p, s in zip(padded, sizes, strict=True)))
    return bound


def place(buffers: Sequence[Buffer], *, budget: int = DEFAULT_BUDGET) -> Placement:
    """Give each buffer an offset so that no two alive at the same step overlap, with a small peak.

    Args:
        buffers: any number, names distinct.
        budget: how many steps the exact search may take, 0 for heuristics only.

    Raises:
        InternalError: a negative size, an empty lifetime, an alignment that is no power of two, or a name
            twice.
    """
    _validate(buffers)
    offsets = {b.name: 0 for b in buffers}
    bound = lower_bound(buffers)
    # Groups of buffers that share no step do not see each other. The arena is as large as the worst group,
    # so the others need only fit below it.
    groups = sorted(_independent(buffers), key=lambda g: -lower_bound(g))
    goal, optimal = bound, True
    for group in groups:
        placed = _place_group(group, goal, budget)
        offsets.update(placed.offsets)
        budget = max(0, budget - placed.steps)
        # A group above the goal and not proved to need it leaves the whole unproved; a later, proved group
        # that needs as much would settle the question again.
        if placed.peak > goal:
            optimal = placed.proved
            goal = placed.peak
        elif placed.peak == goal and placed.proved:
            optimal = True
    return Placement(offsets, goal, bound, optimal)


def _validate(buffers: Sequence[Buffer]) -> None:
    names: set[str] = set()
    for b in buffers:
        if b.bytes < 0 or b.first > b.last or b.align < 1 or b.align & (b.align - 1) or b.name in names:
            raise InternalError(
                f"buffer {b.name!r} cannot be placed: {b.bytes} bytes, steps {b.first} to {b.last}, "
                f"alignment {b.align}, name {'repeated' if b.name in names else 'new'}",
                "memory planner",
                "sizes are not negative, lifetimes not empty, alignments powers of two, names distinct",
            )
        names.add(b.name)


def _sections(buffers: Sequence[Buffer]) -> list[list[int]]:
    """The maximal sets of buffers alive together, in order of time, as indices; without empty ones."""
    order = sorted((i for i, b in enumerate(buffers) if b.bytes), key=lambda i: buffers[i].first)
    sections: list[list[int]] = []
    alive: list[int] = []
    for position, i in enumerate(order):
        alive = [j for j in alive if buffers[j].last >= buffers[i].first]
        alive.append(i)
        # The set is maximal when something in it ends before the next buffer starts.
        following = order[position + 1] if position + 1 < len(order) else None
        if following is None or any(buffers[j].last < buffers[following].first for j in alive):
            sections.append(list(alive))
    return sections


def _independent(buffers: Sequence[Buffer]) -> list[list[Buffer]]:
    """Split where no buffer reaches across; buffers of no bytes need no place and are left out."""
    groups: list[list[Buffer]] = []
    end = -1
    for b in sorted((b for b in buffers if b.bytes), key=lambda b: (b.first, b.last, b.name)):
        if not groups or b.first > end:
            groups.append([])
            end = b.last
        groups[-1].append(b)
        end = max(end, b.last)
    return groups


@dataclass(frozen=True, slots=True)
class _Placed:
    offsets: dict[str, int]
    peak: int
    proved: bool  # no placement of this group has a smaller peak
    steps: int


def _place_group(group: list[Buffer], goal: int, budget: int) -> _Placed:
    """Place one independent group; a peak of `goal` or less is as good as any."""
    bound = lower_bound(group)
    best = _greedy(group, goal)
    peak = _peak(group, best)
    search = _Search(group)
    left = budget
    # `proved` is the smallest peak not excluded by a complete search, `floor` the smallest not yet tried.
    proved = bound
    floor = target = max(bound, goal)
    while peak > floor and left > 0:
        found, complete, steps = search.fit(target, max(left // 2, min(left, 1000)))
        left -= steps
        if found is not None:
            best = found
            peak = _peak(group, best)
        else:
            floor = target + 1
            # Excluding `target` excludes all below it.
            if complete:
                proved = max(proved, floor)
        target = (floor + peak - 1) // 2
    named = {b.name: offset for b, offset in zip(group, best, strict=True)}
    return _Placed(named, peak, peak <= proved, budget - left)


def _peak(group: Sequence[Buffer], offsets: Sequence[int]) -> int:
    return max(offset + b.bytes for b, offset in zip(group, offsets, strict=True))


def _greedy(group: list[Buffer], goal: int) -> list[int]:
    """The best of several first-fit placements, then of repairs that put the highest buffers first."""
    indices = range(len(group))
    conflicts = _conflicts(group)
    pressure = [0] * len(group)
    for section in _sections(group):
        total = sum(group[i].bytes for i in section)
        for i in section:
            pressure[i] = max(pressure[i], total)

    def span(i: int) -> int:
        return group[i].last - group[i].first + 1

    keys: tuple[Callable[[int], tuple[int, ...]], ...] = (
        lambda i: (-group[i].bytes, -span(i)),
        lambda i: (-group[i].bytes * span(i), -group[i].bytes),
        lambda i: (-span(i), -group[i].bytes),
        lambda i: (-pressure[i], -group[i].bytes),
        lambda i: (-pressure[i], -span(i), -group[i].bytes),
        lambda i: (-sum(group[j].bytes for j in conflicts[i]), -group[i].bytes),
        lambda i: (group[i].first, -group[i].bytes),
        lambda i: (-group[i].last, -group[i].bytes),
    )
    best: list[int] = []
    best_order: list[int] = []
    best_peak = -1
    for key in keys:
        order = sorted(indices, key=lambda i: (*key(i), i))
        offsets = _first_fit(group, conflicts, order)
        peak = _peak(group, offsets)
        if best_peak < 0 or peak < best_peak:
            best, best_order, best_peak = offsets, order, peak
        if best_peak <= goal:
            return best
    order, offsets, seen = best_order, best, {tuple(best_order)}
    for _ in range(_REPAIRS):
        height = _peak(group, offsets)
        culprits = {i for i in indices if offsets[i] + group[i].bytes == height}
        order = [i for i in order if i in culprits] + [i for i in order if i not in culprits]
        if tuple(order) in seen:
            break
        seen.add(tuple(order))
        offsets = _first_fit(group, conflicts, order)
        peak = _peak(group, offsets)
        if peak < best_peak:
            best, best_peak = offsets, peak
        if best_peak <= goal:
            break
    return best


def _conflicts(group: Sequence[Buffer]) -> list[list[int]]:
    """For each buffer, the others that are alive together with it."""
    found: list[list[int]] = [[] for _ in group]
    alive: list[int] = []
    for i in sorted(range(len(group)), key=lambda i: group[i].first):
        alive = [j for j in alive if group[j].last >= group[i].first]
        for j in alive:
            found[i].append(j)
            found[j].append(i)
        alive.append(i)
    return found


_REPAIRS = 32
"""Rounds of repair in `_greedy`; each costs one first-fit pass, and gains stop after a few."""


def _first_fit(
    group: Sequence[Buffer], conflicts: Sequence[Sequence[int]], order: Sequence[int]
) -> list[int]:
    """Place in `order`, each buffer in the lowest gap that holds it."""
    offsets = [-1] * len(group)
    for i in order:
        taken = sorted((offsets[j], offsets[j] + group[j].bytes) for j in conflicts[i] if offsets[j] >= 0)
        at = 0
        for start, end in taken:
            if start >= at + group[i].bytes:
                break
            at = max(at, align_up(end, group[i].align))
        offsets[i] = at
    return offsets


@dataclass(slots=True)
class _Frame:
    """A node of the search: what has been decided, and which buffers to try next."""

    unplaced: int  # bit i: buffer i has no offset yet
    floors: list[int]  # per section: everything unplaced there goes at or above this
    left: list[int]  # per section: bytes (padded) still to place
    choices: list[tuple[int, int]]  # (buffer, offset), best last
    key: tuple[int, ...]
    chosen: tuple[int, int] = (-1, -1)


class _Search:
    """Depth-first search over placements in the order of offsets.

    Three things keep it small. A section (a maximal set of buffers alive together) whose floor plus what it
    still has to hold exceeds the capacity ends the branch. A buffer is not tried above a place where another
    one, still unplaced, would fit beneath it: moving that one down loses nothing. And a state (unplaced set,
    floors) that failed is not entered again, at this capacity or a smaller one.
    """

    def __init__(self, group: Sequence[Buffer]) -> None:
        self.group = group
        sections = _sections(group)
        self.low = [len(sections)] * len(group)
        self.high = [0] * len(group)
        for s, section in enumerate(sections):
            for i in section:
                self.low[i] = min(self.low[i], s)
                self.high[i] = max(self.high[i], s)
        # All offsets are multiples of the smallest alignment, so sizes count in that unit; only the topmost
        # buffer of a section does not fill its last unit, and it wins back what it has to `spare`.
        unit = min(b.align for b in group)
        self.padded = [align_up(b.bytes, unit) for b in group]
        self.spare = [p - b.bytes for p, b in zip(self.padded, group, strict=True)]
        self.totals = [sum(self.padded[i] for i in section) for section in sections]
        self.failed: dict[tuple[int, ...], int] = {}

    def fit(self, capacity: int, budget: int) -> tuple[list[int] | None, bool, int]:
        """Look for a placement with a peak of `capacity` or less.

        Returns the offsets or None, whether the answer is certain, and the steps taken.
        """
        steps = 0
        stack: list[_Frame] = []
        everything = (1 << len(self.group)) - 1
        frame, cost = self._open(everything, [0] * len(self.totals), list(self.totals), capacity)
        steps += cost
        if frame is None:
            return None, True, steps
        stack.append(frame)
        while stack:
            top = stack[-1]
            if not top.choices:
                # Larger capacities that failed say more than smaller ones.
                self.failed[top.key] = max(capacity, self.failed.get(top.key, 0))
                stack.pop()
                continue
            if steps >= budget:
                return None, False, steps
            i, offset = top.choices.pop()
            top.chosen = (i, offset)
            unplaced = top.unplaced & ~(1 << i)
            if not unplaced:
                offsets = [0] * len(self.group)
                for f in stack:
                    offsets[f.chosen[0]] = f.chosen[1]
                return offsets, True, steps
            # Whatever comes later stands at this offset or higher.
            floors = [max(f, offset) for f in top.floors]
            left = list(top.left)
            for s in range(self.low[i], self.high[i] + 1):
                floors[s] = offset + self.group[i].bytes
                left[s] -= self.padded[i]
            frame, cost = self._open(unplaced, floors, left, capacity)
            steps += cost
            if frame is not None:
                stack.append(frame)
        return None, True, steps

    def _open(
        self, unplaced: int, floors: list[int], left: list[int], capacity: int
    ) -> tuple[_Frame | None, int]:
        """The node for a state, or None when it cannot succeed; and its cost in steps."""
        # Sections with nothing left to hold do not tell states apart.
        key = (unplaced, *(f if rest else 0 for f, rest in zip(floors, left, strict=True)))
        if self.failed.get(key, -1) >= capacity:
            return None, 1
        reach = [-1] * len(floors)  # per section: the lowest offset that any unplaced buffer there can have
        spare = [0] * len(floors)  # per section: what its topmost buffer may win back
        ready: list[tuple[int, int]] = []
        ceiling = capacity
        rest, i = unplaced, 0
        steps = 1
        while rest:
            skip = (rest & -rest).bit_length() - 1
            i += skip
            rest >>= skip + 1
            steps += 1
            b = self.group[i]
            low, high = self.low[i], self.high[i]
            offset = align_up(max(floors[low : high + 1]), b.align)
            if offset + b.bytes > capacity:
                return None, steps
            ceiling = min(ceiling, offset + b.bytes)
            ready.append((i, offset))
            for s in range(low, high + 1):
                if reach[s] < 0 or offset < reach[s]:
                    reach[s] = offset
                if self.spare[i] > spare[s]:
                    spare[s] = self.spare[i]
            i += 1
        tight = [capacity] * len(floors)  # per section: bytes that may still be wasted
        for s, rest_bytes in enumerate(left):
            if rest_bytes:
                tight[s] = capacity + spare[s] - reach[s] - rest_bytes
                if tight[s] < 0:
                    return None, steps
        scored = [
            ((-offset, -min(tight[self.low[i] : self.high[i] + 1]), self.group[i].bytes, -i), i, offset)
            for i, offset in ready
            if offset < ceiling
        ]
        scored.sort()
        return _Frame(unplaced, floors, left, [(i, offset) for _, i, offset in scored], key), steps
