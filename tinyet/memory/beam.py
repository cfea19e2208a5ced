# SPDX-License-Identifier: Apache-2.0
"""Offsets of many buffers, by a beam: some tens of half-done placements that grow side by side.

Like the exact search of sections it places the buffers from the bottom up, each as low as the placed ones allow, but
it never goes back: of all ways to place one buffer more it keeps the most promising. Waste counts: in each section,
the lowest offset that an unplaced buffer can still have there, and the bytes that are still to be placed above it.
The fuller a section gets, the more it counts. With gaps a buffer counts as its smallest one: a buffer that keeps its
gaps from all placed before it is kept apart from them.

All placements are rows of arrays, so that a step of the beam is a few operations of numpy on whole arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.memory.buffers import Buffer, Neighbor, align_up, peak_of, sections

_Ints = npt.NDArray[np.int64]
_FAR = 1 << 44
"""More bytes than any arena has; times a number of buffers it is an int64."""
_SHARE = 20
"""Bits of a share of the aim."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the beam.

    width: the most placements kept. branches: buffers tried next in each of them, with the lowest offsets. squarings:
    a section that is full to a share x of the aim counts x, squared so many times. by: the order between buffers of
    equal offset, strongest first: "pressure" (most bytes alive together with it), "span", "area". monotone: later
    buffers are assumed to stand higher in all sections.
    """

    width: int
    branches: int
    squarings: int
    by: tuple[str, ...]
    monotone: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the beam.

    offsets: None where it ended before all buffers were placed. placed: steps taken, each for one buffer more.
    widest: the most placements that were kept at once.
    """

    offsets: list[int] | None
    placed: int
    widest: int


class Beam:
    """The arrays of a group; n: its buffers, s: its sections."""

    def __init__(self, group: Sequence[Buffer], interference: Sequence[Sequence[Neighbor]]) -> None:
        self.count = len(group)
        self.sections = sections(group)
        self.size = np.array([b.bytes for b in group], np.int64)
        self.align = np.array([b.align for b in group], np.int64)[:, None]
        unit = min(b.align for b in group)
        # From column to row: the gap, and what aligns a sum with it that is rounded down.
        self.raised = np.full((self.count, self.count), -_FAR, np.int64)
        for i, found in enumerate(interference):
            self.raised[[r.other for r in found], i] = [r.above for r in found]
        self.raised += self.align - 1
        self.inside = np.zeros((len(self.sections), self.count), bool)  # section s, buffer i: alive there
        for s, section in enumerate(self.sections):
            self.inside[s, section] = True
        alone = [
            min((r.above for r in found), default=b.bytes)
            for b, found in zip(group, interference, strict=True)
        ]
        self.padded = np.array([align_up(max(gap, 0), unit) for gap in alone], np.int64)
        self.totals = (self.inside * self.padded).sum(1)
        # Sections in which a buffer is alive are two runs, maybe overlapping, of a power of two each. `runs`: such
        # runs in order of (power, first section), `of`: the buffers that have them, and the start of each run's.
        first = self.inside.argmax(0)
        powers = [int(n).bit_length() - 1 for n in self.inside.sum(0)]
        last = first + self.inside.sum(0) - 1
        self.powers = max(powers) + 1
        entries = sorted(
            (power * len(self.sections) + at, i)
            for i, power in enumerate(powers)
            for at in (int(first[i]), int(last[i]) + 1 - (1 << power))
        )
        self.of = np.array([i for _, i in entries])
        self.runs, self.starts = np.unique([run for run, _ in entries], return_index=True)
        span = np.array([b.last - b.first + 1 for b in group], np.int64)
        self.keys = {
            "pressure": np.array([self.totals[inside].max() for inside in self.inside.T]),
            "span": span,
            "area": span * self.size,
        }
        # Placements of the same buffers are told apart by sums of these, as if they were sets.
        self.marks = np.random.RandomState(0).randint(0, 1 << 62, self.count, np.int64)

    def run(self, variant: Variant, width: int, aim: int, capacity: int) -> Run:
        """Place the buffers with a peak of `capacity` or less. width: placements that are kept. aim: the peak that
        would be good."""
        order = np.lexsort([-self.keys[key] for key in reversed(variant.by)])
        rank = np.empty(self.count, np.int64)
        rank[order] = np.arange(self.count)
        rank = rank[:, None]
        # A column for each placement, so that an operation on a row changes all placements at once.
        # What is placed allows no lower offset; _FAR of what is placed itself.
        lowest = np.zeros((self.count, 1), np.int64)
        floor = np.zeros((len(self.sections), 1), np.int64)
        left = self.totals[:, None].copy()
        peak = np.zeros(1, np.int64)
        mark = np.zeros(1, np.int64)
        widest = 1
        # At each step and of each placement: its column before, the buffer, its offset.
        placed: list[tuple[_Ints, _Ints, _Ints]] = []
        for step in range(self.count):
            branches = min(variant.branches, self.count - step)
            key = lowest * self.count + rank
            nearest = np.sort(np.partition(key, branches - 1, axis=0)[:branches], axis=0)
            # Above a place where another one would fit beneath, nothing is gained (as in the exact search).
            ceiling = (lowest + self.size[:, None]).min(0)
            # Equals stay in the order of their placements, best first, then in that of their keys.
            column, branch = np.nonzero((nearest // self.count < ceiling).T)
            key = nearest[branch, column]
            buffer, at = order[key % self.count], key // self.count
            end = at + self.size[buffer]
            inside = self.inside[:, buffer]
            floors = np.where(inside, at + self.padded[buffer], floor[:, column])
            lefts = left[:, column] - inside * self.padded[buffer]
            ends = floors + lefts
            if variant.monotone:
                ends = np.where(lefts > 0, np.maximum(floors, at) + lefts, ends)
            fits = np.flatnonzero((ends.max(0) <= capacity) & (end <= capacity))
            # In integers, so that the sum is the same on every machine.
            share = (np.minimum(ends[:, fits], aim + aim // 4) << _SHARE) // aim
            for _ in range(variant.squarings):
                share *= share
                share >>= _SHARE
            kept = fits[self._kept(share.sum(0), (mark[column] + self.marks[buffer])[fits], width)]
            widest = max(widest, len(kept))
            if not len(kept):
                return Run(None, step + 1, widest)
            floor, left = floors[:, kept], lefts[:, kept]
            column, buffer, at = column[kept], buffer[kept], at[kept]
            placed.append((column, buffer, at))
            peak, mark = np.maximum(peak[column], end[kept]), mark[column] + self.marks[buffer]
            above = self.raised[:, buffer]
            above += at
            above &= -self.align
            lowest = np.maximum(lowest[:, column], above, out=above)
            lowest[buffer, np.arange(len(kept))] = _FAR
            reach = self._least(lowest)
            floor = np.where(reach < _FAR, np.maximum(floor, reach), floor)
        best = int(peak.argmin())
        return Run(self._traced(placed, best), self.count, widest)

    def _traced(self, placed: Sequence[tuple[_Ints, _Ints, _Ints]], column: int) -> list[int]:
        """The offsets of the placement that is a column of the last step."""
        offsets = [0] * self.count
        for before, buffer, at in reversed(placed):
            offsets[int(buffer[column])] = int(at[column])
            column = int(before[column])
        return offsets

    def _least(self, values: _Ints) -> _Ints:
        """For each section the least of the values of buffers alive there; (n, placements) → (s, placements)."""
        count = len(self.sections)
        least = np.full((self.powers * count, values.shape[1]), _FAR, np.int64)
        least[self.runs] = np.minimum.reduceat(values[self.of], self.starts, axis=0)
        levels = least.reshape(self.powers, count, values.shape[1])
        for power in range(self.powers - 1, 0, -1):
            # A run is two runs of half the length.
            above, below, half = levels[power], levels[power - 1], 1 << (power - 1)
            np.minimum(below, above, out=below)
            np.minimum(below[half:], above[:-half], out=below[half:])
        return least[:count]

    @staticmethod
    def _kept(score: _Ints, marks: _Ints, width: int) -> list[int]:
        """The `width` best, of those equal in buffers and score one."""
        order = np.argsort(score, kind="stable")
        names, scores = marks[order].tolist()[::-1], score[order].tolist()[::-1]
        # From the back, so that the first of equal ones is the last to be put there.
        first = dict(zip(zip(names, scores, strict=True), range(len(order) - 1, -1, -1), strict=True))
        return [int(number) for number in order[sorted(first.values())[:width]].tolist()]


def improve(
    group: Sequence[Buffer],
    interference: Sequence[Sequence[Neighbor]],
    offsets: list[int],
    goal: int,
    budget: int,
) -> tuple[list[int], int]:
    """Offsets with a peak that is no higher than that of `offsets`, and the steps taken, of `budget` at most.

    A peak of `goal` or less is as good as any. Each run aims at some peak from there to just below the best so far.
    Groups so small that all ways to run the beam are tried get wider beams.
    """
    left = budget
    best, peak = offsets, peak_of(group, offsets)
    moments = len(sections(group))
    if _affordable(len(group), moments, budget) < _LEAST_WIDTH:
        return best, 0
    beam = Beam(group, interference)
    # A run that never had more placements than it may keep ends in the same way when it may keep more.
    ended: dict[tuple[Variant, int, int], Run] = {}
    for wider in itertools.count():
        for variant, share in itertools.product(_VARIANTS, _AIMS):
            width = min(variant.width << wider, _affordable(len(group), moments, left))
            if peak <= goal or width < _LEAST_WIDTH:
                return best, budget - left
            aim = goal + int((peak - 1 - goal) * share)
            run = ended.get((variant, aim, peak - 1))
            if run is None or run.widest >= width:
                run = beam.run(variant, width, aim, peak - 1)
                if run.widest < width:
                    ended[variant, aim, peak - 1] = run
            left -= _steps(len(group), moments, width, run.placed)
            if run.offsets is not None:
                best, peak = run.offsets, peak_of(group, run.offsets)
    raise AssertionError("an endless loop has ended")


def _steps(count: int, moments: int, width: int, placed: int) -> int:
    """The cost of placing that many of `count` buffers in a beam, in steps of the exact search."""
    return placed * (_OVERHEAD + width * (count + moments + _CALLS)) // _CELLS + 1


def _affordable(count: int, moments: int, steps: int) -> int:
    """The largest width of a run that takes so many steps, or less than 1."""
    return ((steps - 1) * _CELLS // count - _OVERHEAD) // (count + moments + _CALLS)


_CELLS = 46
"""Buffers and sections, one placement each, that take as long as one step of the exact search."""
_CALLS = 50
"""Other cost of a placement, in such cells."""
_OVERHEAD = 2500
"""The cost of a further buffer, however many the placements, in such cells."""
_LEAST_WIDTH = 4
_VARIANTS = (
    Variant(32, 4, 6, ("pressure", "span", "area")),
    Variant(32, 4, 6, ("pressure", "area", "span")),
    Variant(32, 4, 6, ("span", "area")),
    Variant(32, 4, 5, ("area",)),
    Variant(32, 4, 6, ("pressure", "span", "area"), monotone=True),
    Variant(32, 3, 5, ("pressure", "area", "span")),
    Variant(32, 6, 5, ("span", "area")),
)
_AIMS = (1.0, 0.1, 0.4)
"""Shares of the way from the goal to the best peak so far."""
