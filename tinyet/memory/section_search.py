# SPDX-License-Identifier: Apache-2.0
"""Exact search for the offsets of buffers that never overlap while alive together.

It places buffers in the order of their offsets, each as low as the placed ones allow. Every placement can be
pushed down into one of that form, so the search is complete. It gives up after a fixed number of steps, never after a
time, so the result depends on the input alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyet.memory.buffers import Buffer, align_up, sections


@dataclass(slots=True)
class _Frame:
    """A node of the search: the decisions, and the buffers to try next."""

    unplaced: int  # bit i: buffer i has no offset yet
    floors: list[int]  # per section: everything unplaced there goes at or above this
    left: list[int]  # per section: bytes (padded) still to place
    choices: list[tuple[int, int]]  # (buffer, offset), best last
    key: tuple[int, ...]
    chosen: tuple[int, int] = (-1, -1)


class SectionSearch:
    """Depth-first search over placements in the order of offsets.

    Three things keep it small. A section (a maximal set of buffers alive together) whose floor plus its unplaced
    bytes exceeds the capacity ends the branch. A buffer is not tried above a place where another one, still unplaced,
    would fit beneath it: moving that one down loses nothing. And a state (unplaced set, floors) that failed is not
    entered again, at this capacity or a smaller one.
    """

    def __init__(self, group: Sequence[Buffer]) -> None:
        self.group = group
        cliques = sections(group)
        self.low = [len(cliques)] * len(group)
        self.high = [0] * len(group)
        for s, section in enumerate(cliques):
            for i in section:
                self.low[i] = min(self.low[i], s)
                self.high[i] = max(self.high[i], s)
        # All offsets are multiples of the smallest alignment, so sizes count in that unit; only the topmost
        # buffer of a section does not fill its last unit, and it wins back what it has to `spare`.
        unit = min(b.align for b in group)
        self.padded = [align_up(b.bytes, unit) for b in group]
        self.spare = [p - b.bytes for p, b in zip(self.padded, group, strict=True)]
        self.totals = [sum(self.padded[i] for i in section) for section in cliques]
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
            # All later buffers stand at this offset or higher.
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
        spare = [0] * len(floors)  # per section: bytes that its topmost buffer may win back
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
