# SPDX-License-Identifier: Apache-2.0
"""Exact search for the offsets of buffers with gaps: which of two interfering buffers is above the other, pair by pair.

A decision "b is above a" says `offset[b] >= offset[a] + gap(a, b)`. The least offsets that fulfil all decisions are
the longest paths in the graph of decisions, rounded up to alignments; they are found by raising offsets until nothing
changes. In the same way the greatest offsets within a capacity are found by lowering them from the top. A decision
that leaves a buffer no offset between the two is taken back, and one whose opposite would is taken at once.

The search is complete for gaps of any sign: a placement has, for each interfering pair, one of the two decisions
true. A node of the search whose least offsets keep all pairs apart is a placement. Any other node has a pair that
they do not keep apart, and one of its two decisions holds in each placement that the node stands for; the node
branches into these two. So no placement is lost, each branch decides one pair more, and the search ends. (An order of
offsets, each buffer as low as those before it allow, would not do: with a gap below 0 a buffer may rest on one that
starts higher.)
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tinyet.memory.buffers import Buffer, Neighbor, align_up


class _Pair(NamedTuple):
    """Two interfering buffers: b is `above` bytes or more from the start of a, or a `below` bytes or more from that
    of b."""

    a: int
    b: int
    above: int
    below: int


@dataclass(slots=True)
class _Node:
    """least, greatest: offsets that each buffer can have under the decisions. decided: for each pair 1 where b is
    above, -1 where a is, 0 where neither has been said. unsure: the pairs that may narrow the offsets, ascending."""

    least: list[int]
    greatest: list[int]
    decided: list[int]
    unsure: list[int]


_PAIRS = 3
"""Pairs that are looked at in the time of one step."""


class GapSearch:
    """Depth-first search over which of two interfering buffers is above the other; the pair with least room is
    decided first."""

    def __init__(self, group: Sequence[Buffer], interference: Sequence[Sequence[Neighbor]]) -> None:
        self.group = group
        self.pairs = [
            _Pair(i, r.other, r.above, r.below)
            for i, found in enumerate(interference)
            for r in found
            if i < r.other
        ]
        self._align = [b.align for b in group]
        self._pairs_of: list[list[int]] = [[] for _ in group]
        for number, pair in enumerate(self.pairs):
            self._pairs_of[pair.a].append(number)
            self._pairs_of[pair.b].append(number)
        self.round = len(self.pairs) // _PAIRS + 1

    def fit(self, capacity: int, budget: int) -> tuple[list[int] | None, bool, int]:
        """Look for a placement with a peak of `capacity` or less.

        Returns the offsets or None, whether the answer is certain, and the steps taken.
        """
        greatest = [(capacity - b.bytes) & -b.align for b in self.group]
        if min(greatest) < 0:
            return None, True, 1
        stack = [_Node([0] * len(self.group), greatest, [0] * len(self.pairs), list(range(len(self.pairs))))]
        steps = 0
        while stack:
            node = stack.pop()
            possible, cost = self._propagate(node, budget - steps)
            steps += cost
            if steps >= budget:
                return None, False, steps
            if not possible:
                continue
            pair = self._tightest(node)
            steps += self.round
            if pair is None:
                return node.least, True, steps
            p = self.pairs[pair]
            room_above = node.greatest[p.b] - node.least[p.a] - p.above
            room_below = node.greatest[p.a] - node.least[p.b] - p.below
            # The one with more room is tried first, so it is pushed last.
            likely = 1 if room_above >= room_below else -1
            for decision in (-likely, likely):
                decided = list(node.decided)
                decided[pair] = decision
                stack.append(_Node(list(node.least), list(node.greatest), decided, [pair]))
        return None, True, steps

    def _propagate(self, node: _Node, budget: int) -> tuple[bool, int]:
        """Narrow the offsets until nothing changes; returns whether any are left, and the steps taken: as if all pairs
        were looked at again and again in their order, though it is only those of buffers whose offsets have changed."""
        least, greatest, align = node.least, node.greatest, self._align
        steps, waiting = 0, node.unsure
        changed = True
        while changed and steps < budget:
            changed = False
            steps += self.round
            queued, later = set(waiting), set[int]()
            while waiting:
                number = heapq.heappop(waiting)
                (a, b, up, down), decision = self.pairs[number], node.decided[number]
                queued.remove(number)
                above = decision >= 0 and least[a] + up <= greatest[b]
                if decision <= 0 and least[b] + down <= greatest[a]:
                    if above:
                        continue
                    low, high, gap = b, a, down
                elif above:
                    low, high, gap = a, b, up
                else:
                    return False, steps
                moved = []
                if least[low] + gap > least[high]:
                    least[high] = align_up(least[low] + gap, align[high])
                    moved.append(high)
                if greatest[high] - gap < greatest[low]:
                    greatest[low] = (greatest[high] - gap) & -align[low]
                    moved.append(low)
                if least[low] > greatest[low] or least[high] > greatest[high]:
                    return False, steps
                for buffer in moved:
                    changed = True
                    for other in self._pairs_of[buffer]:
                        if other <= number:
                            later.add(other)
                        elif other not in queued:
                            queued.add(other)
                            heapq.heappush(waiting, other)
            waiting = sorted(later)
        return True, steps

    def _tightest(self, node: _Node) -> int | None:
        """Of the pairs that the least offsets do not keep apart, the one with a decision that leaves least room."""
        best: int | None = None
        least_room = 0
        least, greatest = node.least, node.greatest
        for number, (i, j, above, below) in enumerate(self.pairs):
            a, b = least[i], least[j]
            if a - below < b < a + above:
                room = min(greatest[j] - a - above, greatest[i] - b - below)
                if best is None or room < least_room:
                    best, least_room = number, room
        return best
