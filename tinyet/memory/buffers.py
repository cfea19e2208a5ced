# SPDX-License-Identifier: Apache-2.0
"""Buffers, which of them conflict and by how much, and a lower bound of their memory.

Two buffers alive at the same step are kept apart by a *gap*: either b starts at `gap(a, b)` bytes above the start of a
or higher, or a starts at `gap(b, a)` above the start of b or higher. Whole buffers that exclude each other have gaps
of `a.bytes` and `b.bytes`. A smaller one lets b lie partly over a; one of 0 or less lets b start at a or lower. Where
`gap(a, b) + gap(b, a)` is 0 or less, every two offsets fulfil one or the other: the two do not conflict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

Gaps = Mapping[tuple[str, str], int]
"""(name of a, name of b) → bytes from the start of a to the lowest start of b above it; by default a.bytes."""
NO_GAPS: Gaps = MappingProxyType({})


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


class Neighbor(NamedTuple):
    """A buffer that another one, i, must be kept apart from.

    other: its index. above: bytes from the start of i to the lowest start of the other above it; below: bytes from the
    start of the other to the lowest start of i above that.
    """

    other: int
    above: int
    below: int


def align_up(value: int, align: int) -> int:
    """The smallest multiple of `align` (a power of two) that is not below `value`."""
    return (value + align - 1) & -align


def sections(buffers: Sequence[Buffer]) -> list[list[int]]:
    """The maximal sets of buffers alive together, in order of time, as indices; without empty ones."""
    order = sorted((i for i, b in enumerate(buffers) if b.bytes), key=lambda i: buffers[i].first)
    found: list[list[int]] = []
    alive: list[int] = []
    for position, i in enumerate(order):
        alive = [j for j in alive if buffers[j].last >= buffers[i].first]
        alive.append(i)
        # The set is maximal when something in it ends before the next buffer starts.
        following = order[position + 1] if position + 1 < len(order) else None
        if following is None or any(buffers[j].last < buffers[following].first for j in alive):
            found.append(list(alive))
    return found


def interference(buffers: Sequence[Buffer], gaps: Gaps) -> list[list[Neighbor]]:
    """For each buffer, the buffers alive together with it from which it must be kept apart."""
    found: list[list[Neighbor]] = [[] for _ in buffers]
    alive: list[int] = []
    for i in sorted(range(len(buffers)), key=lambda i: buffers[i].first):
        alive = [j for j in alive if buffers[j].last >= buffers[i].first]
        for j in alive:
            above, below = _gap(buffers[i], buffers[j], gaps), _gap(buffers[j], buffers[i], gaps)
            if above + below > 0:
                found[i].append(Neighbor(j, above, below))
                found[j].append(Neighbor(i, below, above))
        alive.append(i)
    return found


def narrowed(buffers: Sequence[Buffer], gaps: Gaps) -> dict[tuple[int, int], int]:
    """The gaps that are smaller than their buffer, by indices of the two, where these are alive together."""
    if not gaps:
        return {}
    number = {b.name: i for i, b in enumerate(buffers)}
    found: dict[tuple[int, int], int] = {}
    for (a, b), gap in gaps.items():
        if a in number and b in number:
            one, two = buffers[number[a]], buffers[number[b]]
            if gap < one.bytes and one.first <= two.last and two.first <= one.last:
                found[number[a], number[b]] = gap
    return found


def lower_bound(buffers: Sequence[Buffer], gaps: Gaps = NO_GAPS) -> int:
    """Bytes without which no placement can be.

    Without gaps that is the largest number of bytes that must be held at one step, alignment counted. At each step,
    and for each alignment `a` in use: buffers aligned to `a` or more start at distinct multiples of `a`, so each but
    the highest fills whole multiples of `a`.

    With gaps: of any buffers alive together, each two are one above the other by a gap. As in every tournament there
    is a path through all of them, from one to the next above it, so that the last one starts at the sum of the gaps
    along the path, or higher. The cheapest such path of all is the bound. It falls apart into paths of buffers that
    have smaller gaps among themselves, because all others are a whole buffer apart.
    """
    bound = max((b.bytes for b in buffers), default=0)
    smaller = narrowed(buffers, gaps)
    near: dict[int, list[int]] = {}
    above: dict[int, list[tuple[int, int]]] = {}
    for (i, j), gap in smaller.items():
        near.setdefault(i, []).append(j)
        near.setdefault(j, []).append(i)
        above.setdefault(i, []).append((j, gap))
    paths: dict[tuple[frozenset[int], int], int] = {}
    for section in sections(buffers):
        alive = [buffers[i] for i in section]
        for align in {b.align for b in alive}:
            chosen = [i for i in section if buffers[i].align >= align]
            padded = {i: align_up(buffers[i].bytes, align) for i in chosen}
            total = 0
            for part in _parts(chosen, near):
                if len(part) == 1:
                    total += padded[part[0]]
                    continue
                key = (frozenset(part), align)
                if key not in paths:
                    number = {i: k for k, i in enumerate(part)}
                    sizes = [padded[i] for i in part]
                    between = [[size] * len(part) for size in sizes]
                    for row, i in zip(between, part, strict=True):
                        for j, gap in above.get(i, ()):
                            if j in number:
                                row[number[j]] = align_up(gap, align)
                    paths[key] = _cheapest_path(sizes, between)
                total += paths[key]
            bound = max(bound, total - max(padded[i] - buffers[i].bytes for i in chosen))
    return bound


def _gap(a: Buffer, b: Buffer, gaps: Gaps) -> int:
    return gaps.get((a.name, b.name), a.bytes)


def _parts(chosen: Sequence[int], near: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Buffers that have smaller gaps among themselves, directly or by way of others, together.

    near: for each buffer that has any, the others of a smaller gap to or from it.
    """
    left, parts = set(chosen), []
    for i in chosen:
        if i not in left:
            continue
        left.remove(i)
        part = [i]
        for member in part:
            for j in near.get(member, ()):
                if j in left:
                    left.remove(j)
                    part.append(j)
        parts.append(sorted(part))
    return parts


_FAR = 1 << 62
_EXACT_PATH = 8
"""Members up to which the cheapest path is found exactly, in time that doubles with each."""


def _cheapest_path(sizes: Sequence[int], gaps: Sequence[Sequence[int]]) -> int:
    """Bytes that buffers alive together take at least, from the lowest start to the end of a path through them.

    Negative gaps can make a path through fewer of them the dearer one, and it is a bound as well.
    """
    members = range(len(sizes))
    if len(sizes) > _EXACT_PATH:
        best, size, left = 0, np.array(sizes, np.int64), np.ones(len(sizes), bool)
        # Of those that are left; no gap is as large as `_FAR`.
        apart = np.array(gaps, np.int64)
        np.fill_diagonal(apart, _FAR)
        for _ in range(len(sizes) - 1):
            nearest = apart.min(1)
            # Each but the last is followed by one that is as near as any.
            best = max(best, int(nearest[left].sum() + (size - nearest)[left].min()))
            gone = int(np.where(left, nearest, _FAR).argmin())
            left[gone] = False
            apart[:, gone] = _FAR
        return max(best, int(size[left][0]))
    # cheapest[chosen][first]: of the paths through a set of them (bit i: member i) that begin with `first`.
    best = 0
    cheapest: list[dict[int, int]] = [{}]
    for chosen in range(1, 1 << len(sizes)):
        found: dict[int, int] = {}
        for first in members:
            if chosen >> first & 1:
                rest = cheapest[chosen & ~(1 << first)]
                found[first] = min((gaps[first][j] + cost for j, cost in rest.items()), default=sizes[first])
        cheapest.append(found)
        best = max(best, min(found.values()))
    return best


def peak_of(group: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """The end of the highest buffer."""
    return max(offset + b.bytes for b, offset in zip(group, offsets, strict=True))
