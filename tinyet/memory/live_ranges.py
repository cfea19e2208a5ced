# SPDX-License-Identifier: Apache-2.0
"""The live bytes of a buffer, in moments finer than calls, so that buffers may lie partly over each other.

A buffer that is written and read in order is alive from a first byte to a last that both move. Two buffers need not be
apart by the whole size of the lower one, only by as much as, at any moment, the living bytes of one reach behind the
beginning of those of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.memory.buffers import align_up
from tinyet.opset.access_order import Bytes


@dataclass(frozen=True, eq=False)
class LiveRange:
    """The living bytes of a buffer, from moment `at[k]` up to, not including, `at[k + 1]`: those from `low[k]` up to
    `high[k]`, counted from the buffer's first; none where `low[k]` is not below `high[k]`.

    at: int64, (n + 1,), strictly ascending. low, high: int64, (n,). bytes: the buffer's size. align: of its offset.
    """

    name: str
    at: Bytes
    low: Bytes
    high: Bytes
    bytes: int
    align: int = 1

    @property
    def steady(self) -> bool:
        """Whether all of it is alive whenever any of it is."""
        return len(self.low) == 1 and self.low[0] == 0 and self.high[0] == self.bytes

    def whole(self) -> tuple[int, int] | None:
        """The longest time in which all of its bytes are alive, as the first moment and the one behind the last; None
        where there is none, or bytes beside it are alive at any time."""
        full = (self.low == 0) & (self.high == self.bytes)
        if not self.bytes or not full.any() or int(self.low.min()) < 0 or int(self.high.max()) > self.bytes:
            return None
        length = np.where(full, np.diff(self.at), 0)
        longest = int(length.argmax())
        return int(self.at[longest]), int(self.at[longest + 1])


def live_range(name: str, at: Bytes, low: Bytes, high: Bytes, size: int, align: int = 1) -> LiveRange:
    """An Extent with equal neighbours as one."""
    low, high = np.where(low < high, low, 0), np.where(low < high, high, 0)
    new = np.ones(len(low) + 1, bool)  # The end, too.
    new[1:-1] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    return LiveRange(name, at[new], low[new[:-1]], high[new[:-1]], size, align)


def gap(a: LiveRange, b: LiveRange) -> int | None:
    """The least distance in bytes of `b`'s beginning behind `a`'s, if `b` is to lie behind `a`; may be negative. None
    where the two are never alive together."""
    return _gaps_of(a, b)[0]


def _gaps_of(a: LiveRange, b: LiveRange) -> tuple[int | None, int | None]:
    """`gap(a, b)` and `gap(b, a)`."""
    first, end = max(a.at[0], b.at[0]), min(a.at[-1], b.at[-1])
    # All moments at which either changes, while both are there: in no order, and some twice.
    moments = np.concatenate(
        [each.at[each.at.searchsorted(first) : each.at.searchsorted(end)] for each in (a, b)]
    )
    i, j = (each.at.searchsorted(moments, "right") - 1 for each in (a, b))
    a_low, a_high, b_low, b_high = a.low[i], a.high[i], b.low[j], b.high[j]
    together = (a_low < a_high) & (b_low < b_high)
    if not together.any():
        return None, None
    return int((a_high - b_low)[together].max()), int((b_high - a_low)[together].max())


def _span(a: LiveRange, first: int, end: int) -> tuple[int, int] | None:
    """For the moments from `first` up to, not including, `end`, some of which `a` has: its first and its last living
    byte, the latter not included. None if no byte is alive."""
    some = slice(max(a.at.searchsorted(first, "right") - 1, 0), a.at.searchsorted(end))
    low, high = a.low[some], a.high[some]
    alive = low < high
    return (int(low[alive].min()), int(high[alive].max())) if alive.any() else None


def gaps(live_ranges: Sequence[LiveRange]) -> dict[tuple[str, str], int]:
    """For pairs (a, b) by name, `gap`, if it is not the size of a. Buffers that are never alive together have gaps
    that any two offsets keep in an arena that holds all buffers side by side."""
    anywhere = -sum(align_up(each.bytes, each.align) for each in live_ranges)
    found: dict[tuple[str, str], int] = {}
    first, end = (np.array([each.at[k] for each in live_ranges]) for k in (0, -1))
    steady = [each.steady for each in live_ranges]
    whole = [each.whole() for each in live_ranges]
    for number, a in enumerate(live_ranges):
        if steady[number]:
            continue
        mine = whole[number]
        # Most neighbours are alive all the time: asked once.
        spans: dict[tuple[int, int], tuple[int, int] | None] = {}
        for other in np.flatnonzero((first < a.at[-1]) & (end > a.at[0])).tolist():
            b = live_ranges[other]
            # Of two that both change, the first handles the pair.
            if b is a or (not steady[other] and other < number):
                continue
            theirs = whole[other]
            if mine is not None and theirs is not None and mine[0] < theirs[1] and theirs[0] < mine[1]:
                continue  # at some moment all of both is alive: they are as far apart as their sizes
            between: tuple[int | None, int | None]
            if steady[other] and b.bytes:
                times = max(int(a.at[0]), int(b.at[0])), min(int(a.at[-1]), int(b.at[-1]))
                if times not in spans:
                    spans[times] = _span(a, *times)
                span = spans[times]
                between = (None, None) if span is None else (span[1], b.bytes - span[0])
            else:
                between = _gaps_of(a, b)
            for (x, y), least in zip(((a, b), (b, a)), between, strict=True):
                if least != x.bytes:
                    found[x.name, y.name] = anywhere if least is None else least
    return found


def most_alive(live_ranges: Sequence[LiveRange]) -> int:
    """The largest number of bytes that are alive at one moment, alignment counted: no arena that keeps buffers alive
    together apart, from the first living byte of each to its last, is smaller.

    For each alignment in use: of buffers aligned to it or more, the living bytes from the first aligned one on begin at
    multiples of it, so all but the highest fill whole multiples.
    """
    return max(
        (_most_aligned(live_ranges, align) for align in {each.align for each in live_ranges}), default=0
    )


def alive_between(live_ranges: Sequence[LiveRange], moments: Bytes) -> list[int]:
    """The most bytes alive at one moment, from each of these moments up to the next of them."""
    # All at once: there are hundreds of ranges, most of one or two stretches; or none.
    none = moments[:0]
    start, end = (
        np.concatenate([none, *(each.at[some] for each in live_ranges)])
        for some in (slice(-1), slice(1, None))
    )
    size = np.maximum(np.concatenate([none, *(each.high - each.low for each in live_ranges)]), 0)
    grid, place = np.unique(np.concatenate([moments, start, end]), return_inverse=True)
    change = np.zeros(len(grid), np.int64)
    np.add.at(change, place[len(moments) :], np.concatenate([size, -size]))
    return [int(n) for n in np.maximum.reduceat(np.cumsum(change), place[: len(moments)])[:-1]]


def _most_aligned(live_ranges: Sequence[LiveRange], align: int) -> int:
    alike = [each for each in live_ranges if each.align >= align]
    start = np.concatenate([each.at[:-1] for each in alike])
    end = np.concatenate([each.at[1:] for each in alike])
    low, high = (np.concatenate([getattr(each, k) for each in alike]) for k in ("low", "high"))
    padded = (high + align - 1) // align * align
    size = np.where(low < high, np.maximum(padded - (low + align - 1) // align * align, 0), 0)
    start, end, size, spare = (each[size > 0] for each in (start, end, size, padded - high))
    moments, place = np.unique(np.concatenate([start, end]), return_inverse=True)

    def sums(of: Bytes) -> Bytes:
        """At each moment, the sum of live bytes."""
        return np.cumsum(np.bincount(place, np.concatenate([of, -of]), len(moments))).astype(np.int64)

    if not len(moments):
        return 0
    topmost = np.zeros(len(moments), np.int64)
    for value in np.unique(spare):
        topmost[sums((spare == value).astype(np.int64)) > 0] = value
    return int((sums(size) - topmost).max())
