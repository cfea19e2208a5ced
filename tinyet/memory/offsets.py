# SPDX-License-Identifier: Apache-2.0
"""Offsets of buffers with known lifetimes inside one arena: heuristics first, then an exact search.

The problem is dynamic storage allocation: buffers are rectangles, as wide as their lifetime and as tall as
their bytes, that may move only up and down; their total height is the arena. It is NP-hard in general and
small in practice: a network that fits a microcontroller has some tens of tensors and few alive at once.

Buffers may also lie partly over each other, by gaps (`tinyet/memory/buffers.py`).

Searches give up after a fixed number of steps, never after a time, so the result depends on the input alone.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

from tinyet.errors import InternalError
from tinyet.memory.beam import improve
from tinyet.memory.buffers import (
    NO_GAPS,
    Buffer,
    Gaps,
    align_up,
    interference,
    lower_bound,
    narrowed,
    peak_of,
)
from tinyet.memory.first_fit import greedy
from tinyet.memory.gap_search import GapSearch
from tinyet.memory.section_search import SectionSearch

__all__ = ["DEFAULT_BUDGET", "Buffer", "Placement", "align_up", "lower_bound", "place"]

DEFAULT_BUDGET = 450_000
"""Steps of the search (one step looks at one buffer). About a second of Python."""
_REMEMBERED = 512
"""Placements that are kept, those asked for last: of some kilobytes each."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of each buffer.

    `offsets` maps buffer name to byte offset. `peak` is the end of the highest buffer in bytes.
    `lower_bound` is the largest sum of bytes alive together (less if gaps allow), or the caller's proved bound if
    that is more; no placement can be smaller. `optimal` says that no placement has a smaller peak, either because the
    bound is met or because the search tried everything. kept_bytes: of its start that states have for themselves
    (`memory/apart.py`).
    """

    offsets: dict[str, int]
    peak: int
    lower_bound: int
    optimal: bool
    kept_bytes: int = 0


def place(
    buffers: Sequence[Buffer], *, gaps: Gaps = NO_GAPS, floor: int = 0, budget: int = DEFAULT_BUDGET
) -> Placement:
    """Give each buffer an offset so that those alive at the same step are kept apart, with a small peak.

    For a and b alive at the same step, either `offset[b] >= offset[a] + gap(a, b)` or
    `offset[a] >= offset[b] + gap(b, a)`; buffers of no bytes have no say in this.

    Args:
        buffers: any number, names distinct.
        gaps: (name of a, name of b) → gap(a, b), at most a.bytes, the default, so that without gaps none overlap.
            Less lets b, if it is the upper of the two, lie partly over a; 0 or less lets it start at a's offset or so
            much lower. Where gap(a, b) + gap(b, a) <= 0 the two do not conflict. Gaps of buffers that are never alive
            together say nothing.
        floor: bytes that the caller has proved every placement to need; 0 without such a proof.
        budget: how many steps the searches may take, 0 for first fit only: a placement in each of several
            orders, among them that of the greedy planner of TensorFlow Lite Micro (by size).

    Raises:
        InternalError: a negative size, an empty lifetime, an alignment that is no power of two, a name
            twice; a gap that is larger than its buffer or names none; a floor that is above the peak found.
    """
    found = _placed(tuple(buffers), tuple(gaps.items()), floor, budget)
    return replace(found, offsets=dict(found.offsets))


@functools.lru_cache(maxsize=_REMEMBERED)
def _placed(
    buffers: tuple[Buffer, ...], given: tuple[tuple[tuple[str, str], int], ...], floor: int, budget: int
) -> Placement:
    """`place`, with hashable arguments. The search for a plan, and who plans a network again for another objective or
    core, asks for the same placement several times."""
    offsets = {b.name: 0 for b in buffers}
    bound, started = _started(buffers, given, floor)
    groups = [copy(group) for group in started]
    goal, optimal = bound, True
    for number, group in enumerate(groups):
        above = sum(other.peak > goal for other in groups[number:])
        if above and budget:
            budget -= group.improve(goal, budget // above)
        # A group above the goal and not proved to need it leaves the whole unproved; a later, proved group that needs
        # as much would prove it again.
        if group.peak > goal:
            optimal = group.proved
            goal = group.peak
        elif group.peak == goal and group.proved:
            optimal = True
        offsets.update(group.offsets)
    peak = max((offsets[b.name] + b.bytes for b in buffers), default=0)
    if peak < floor:
        raise InternalError(
            f"a placement of {peak} bytes was found where {floor} were said to be needed",
            "memory planner",
            "`floor` must be proved",
        )
    return Placement(offsets, goal, bound, optimal)


@functools.lru_cache(maxsize=8)
def _started(
    buffers: tuple[Buffer, ...], given: tuple[tuple[tuple[str, str], int], ...], floor: int
) -> tuple[int, tuple[_Group, ...]]:
    """The lower bound and the groups, placed by first fit, of which callers take copies. Plans that are worth it are
    searched behind that, of the same buffers."""
    gaps = dict(given)
    _validate(buffers, gaps)
    bound = max(lower_bound(buffers, gaps), floor)
    # Groups of buffers that share no step do not see each other. The arena is as large as the worst group, so the
    # others need only fit below it; the likely worst come first.
    position = {b.name: number for number, b in enumerate(buffers)}
    groups = [_Group(members, gaps, position, bound) for members in _independent(buffers)]
    return bound, tuple(sorted(groups, key=lambda group: -group.peak))


def _validate(buffers: Sequence[Buffer], gaps: Gaps) -> None:
    names: dict[str, int] = {}
    for b in buffers:
        if b.bytes < 0 or b.first > b.last or b.align < 1 or b.align & (b.align - 1) or b.name in names:
            raise InternalError(
                f"buffer {b.name!r} cannot be placed: {b.bytes} bytes, steps {b.first} to {b.last}, "
                f"alignment {b.align}, name {'repeated' if b.name in names else 'new'}",
                "memory planner",
                "sizes are not negative, lifetimes not empty, alignments powers of two, names distinct",
            )
        names[b.name] = b.bytes
    for (a, other), gap in gaps.items():
        if a not in names or other not in names or a == other or gap > names[a]:
            raise InternalError(
                f"buffers {a!r} and {other!r} cannot have a gap of {gap} bytes",
                "memory planner",
                "a gap is between two of the buffers, and no larger than the first of them",
            )


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


_SMALL = 64
"""Number of buffers up to which the exact search often finishes sooner than a beam."""


class _Group:
    """Buffers that share steps with each other only, and the best placement of them so far."""

    def __init__(self, members: Sequence[Buffer], gaps: Gaps, position: Mapping[str, int], goal: int) -> None:
        """Place them by first fit; a peak of `goal` or less is as good as any. position: of names in the caller's
        order."""
        self._members = members
        self._gapped = bool(narrowed(members, gaps))
        self._interference = interference(members, gaps)
        self._least = lower_bound(members, gaps)  # the smallest peak that is not excluded
        self._best = greedy(members, self._interference, [position[b.name] for b in members], goal)

    @property
    def peak(self) -> int:
        return peak_of(self._members, self._best)

    @property
    def proved(self) -> bool:
        """No placement has a smaller peak."""
        return self.peak <= self._least

    @property
    def offsets(self) -> dict[str, int]:
        return {b.name: offset for b, offset in zip(self._members, self._best, strict=True)}

    def improve(self, goal: int, budget: int) -> int:
        """Search for a better placement; returns the steps taken."""
        left = budget
        if len(self._members) <= _SMALL:
            left -= self._settle(goal, budget // 30)
        floor = max(self._least, goal)
        if self.peak > floor:
            self._best, steps = improve(self._members, self._interference, self._best, floor, 2 * budget // 3)
            left -= steps
        return budget - left + self._settle(goal, left)

    @cached_property
    def _search(self) -> GapSearch | SectionSearch:
        if self._gapped:
            return GapSearch(self._members, self._interference)
        return SectionSearch(self._members)

    def _settle(self, goal: int, budget: int) -> int:
        """Bisect between the best peak and the smallest one not yet tried."""
        left = budget
        floor = target = max(self._least, goal)
        while self.peak > floor and left > 0:
            found, complete, steps = self._search.fit(target, max(left // 2, min(left, 1000)))
            left -= steps
            if found is not None:
                self._best = found
            else:
                floor = target + 1
                # Excluding `target` excludes all below it.
                if complete:
                    self._least = max(self._least, floor)
            target = (floor + self.peak - 1) // 2
        return budget - left
