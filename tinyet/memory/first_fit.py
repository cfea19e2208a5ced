# SPDX-License-Identifier: Apache-2.0
"""Placing buffers one after another, each as low as possible: the order decides the quality."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tinyet.memory.buffers import Buffer, Neighbor, align_up, peak_of, sections


def greedy(
    group: Sequence[Buffer], interference: Sequence[Sequence[Neighbor]], given: Sequence[int], goal: int
) -> list[int]:
    """Offsets: the best of several orders, then of repairs that put the highest buffers first. A peak of `goal` or
    less is as good as any. given: the place of each buffer in the caller's order."""
    indices = range(len(group))
    pressure = [0] * len(group)
    for section in sections(group):
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
        lambda i: (-sum(group[r.other].bytes for r in interference[i]), -group[i].bytes),
        lambda i: (group[i].first, -group[i].bytes),
        lambda i: (-group[i].last, -group[i].bytes),
        # By size, else as given: like the greedy planner of TensorFlow Lite Micro.
        lambda i: (-group[i].bytes, given[i]),
    )
    arrays = _arrays(interference)
    best: list[int] = []
    best_order: list[int] = []
    best_peak = -1
    for key in keys:
        order = sorted(indices, key=lambda i: (*key(i), i))
        offsets = first_fit(group, interference, order, arrays)
        peak = peak_of(group, offsets)
        if best_peak < 0 or peak < best_peak:
            best, best_order, best_peak = offsets, order, peak
        if best_peak <= goal:
            return best
    order, offsets, seen = best_order, best, {tuple(best_order)}
    for _ in range(_REPAIRS):
        height = peak_of(group, offsets)
        culprits = {i for i in indices if offsets[i] + group[i].bytes == height}
        order = [i for i in order if i in culprits] + [i for i in order if i not in culprits]
        if tuple(order) in seen:
            break
        seen.add(tuple(order))
        offsets = first_fit(group, interference, order, arrays)
        peak = peak_of(group, offsets)
        if peak < best_peak:
            best, best_peak = offsets, peak
        if best_peak <= goal:
            break
    return best


_REPAIRS = 32
"""Rounds of repair in `greedy`; each costs one first-fit pass, and gains stop after a few."""


_Ints = npt.NDArray[np.int64]
_Arrays = Mapping[int, tuple[_Ints, _Ints, _Ints]]
_MANY = 64
"""Neighbors from which on numpy is the faster one."""


def _arrays(interference: Sequence[Sequence[Neighbor]]) -> _Arrays:
    """Of each buffer that has many neighbors: these, with what is above and below."""
    return {
        i: (others, above, below)
        for i, near in enumerate(interference)
        if len(near) >= _MANY
        for others, above, below in (np.array(near, np.int64).T.copy(),)
    }


def first_fit(
    group: Sequence[Buffer],
    interference: Sequence[Sequence[Neighbor]],
    order: Sequence[int],
    arrays: _Arrays,
) -> list[int]:
    """Place in `order`, each buffer at the lowest offset that those which interfere leave.

    An interfering buffer at r forbids the offsets strictly between r less the gap from this buffer to it, and r plus
    the gap from it to this buffer.
    """
    offsets = dict[int, int]()
    # The same by index; -1 before a buffer is placed.
    placed = np.full(len(group), -1, np.int64)
    for i in order:
        if i in arrays:
            at = _lowest_of_many(*arrays[i], placed, group[i].align)
        else:
            at = lowest_offset(interference[i], offsets, group[i].align)
        offsets[i] = placed[i] = at
    return [offsets[i] for i in range(len(group))]


def _lowest_of_many(others: _Ints, above: _Ints, below: _Ints, placed: _Ints, align: int) -> int:
    """As `lowest_offset`."""
    at = placed[others]
    there = np.flatnonzero(at >= 0)
    if not len(there):
        return 0
    at = at[there]
    starts = at - above[there]
    order = starts.argsort()
    ends = (at + below[there])[order]
    ends += align - 1
    ends &= -align
    # What the neighbors up to each leave free above them; what lies below the start of the next is the lowest.
    free = np.maximum(np.maximum.accumulate(ends), 0)
    starts = starts[order]
    if starts[0] >= 0:
        return 0
    reached = np.flatnonzero(starts[1:] >= free[:-1])
    return int(free[reached[0]] if len(reached) else free[-1])


def lowest_offset(neighbors: Sequence[Neighbor], offsets: Mapping[int, int], align: int) -> int:
    """Of a buffer beside these neighbors, of which those in `offsets` have been placed."""
    taken = [
        (offsets[other] - above, offsets[other] + below)
        for other, above, below in neighbors
        if other in offsets
    ]
    taken.sort()
    lowest = 0
    for start, end in taken:
        if start >= lowest:
            break
        if end > lowest:
            lowest = align_up(end, align)
    return lowest
