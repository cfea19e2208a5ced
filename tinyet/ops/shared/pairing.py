# SPDX-License-Identifier: Apache-2.0
"""Which two channels a tile takes, where their taps are in runs that end where either channel's has no room for one
more: those whose runs end alike have the fewest.

The fewest of all would be a matching of least weight; this one is greedy, and then two pairs change partners as long as
that is a gain: within a percent of the least in DS-CNN's layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyet.numerics import Int64

_TOGETHER = 256
"""Of so many channels, neighbours by their own numbers of runs, each is compared with each."""


def ends_of_runs(reaches: Sequence[tuple[Int64, int]], longest: int) -> Int64:
    """Behind which tap a run ends at the latest that begins at a tap, (channels, taps). reaches: what taps add at most,
    (channels, taps), not negative, and what those of a run may add up to."""
    channels, taps = reaches[0][0].shape
    found = np.broadcast_to(np.minimum(np.arange(taps) + longest, taps), (channels, taps))
    for reach, room in reaches:
        total = np.concatenate([np.zeros((channels, 1), np.int64), np.cumsum(reach, axis=1)], axis=1)
        # All channels are searched at once: so far apart, none is searched in another's sums.
        total += np.arange(channels)[:, None] * (int(total[:, -1].max()) + room + 1)
        ends = np.searchsorted(total.ravel(), (total[:, :-1] + room).ravel(), side="right") - 1
        found = np.minimum(found, ends.reshape(channels, taps) - np.arange(channels)[:, None] * (taps + 1))
    return np.asarray(found, np.int64)


def runs(ends: Int64) -> list[tuple[int, int]]:
    """First tap and the one behind the last of each run of what is taken together. ends: (channels, taps)."""
    last, found, at = ends.min(axis=0).tolist(), [], 0
    while at < len(last):
        found.append((at, last[at]))
        at = last[at]
    return found


def counts(ends: Int64) -> Int64:
    """Runs of each two channels, (channels, channels); of a channel with itself, its own."""
    channels, taps = ends.shape
    # One tap more, from which nothing goes on.
    following = np.pad(ends, ((0, 0), (0, 1)), constant_values=taps).astype(np.int32).ravel()
    first, second = np.triu_indices(channels)
    of_first, of_second = first * (taps + 1), second * (taps + 1)
    at, found = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    while np.any(going := at < taps):
        found += going
        at = np.minimum(following[of_first + at], following[of_second + at])
    table = np.empty((channels, channels), np.int64)
    table[first, second] = table[second, first] = found
    return table


def _matched(cost: Int64) -> Int64:
    """(channels / 2, 2). cost: (channels, channels), of an even number."""
    channels = len(cost)
    first, second = np.triu_indices(channels, 1)
    alone = cost.diagonal()
    waste = 2 * cost[first, second] - alone[first] - alone[second]
    free, pairs = np.ones(channels, np.bool_), []
    for k in np.argsort(waste, kind="stable"):
        if free[first[k]] and free[second[k]]:
            free[[first[k], second[k]]] = False
            pairs.append((first[k], second[k]))
    found = np.array(pairs, np.int64).reshape(-1, 2)
    while True:
        a, b = found.T
        now = cost[a, b]
        ways = np.stack([cost[a][:, a] + cost[b][:, b], cost[a][:, b] + cost[b][:, a]])
        gain = now[:, None] + now - ways
        gain[:, np.arange(len(a)), np.arange(len(a))] = 0
        crossed, one, other = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[crossed, one, other] <= 0:
            return found
        (p, q), (r, s) = found[one], found[other]
        found[one], found[other] = ((p, s), (q, r)) if crossed else ((p, r), (q, s))


def pairs(ends: Int64) -> Int64:
    """(channels / 2, 2), the first channel of each below the second, in the order of the first. ends: (channels, taps),
    of an even number of channels."""
    order = np.argsort(counts_alone(ends), kind="stable")
    found = [
        some[_matched(counts(ends[some]))]
        for some in np.split(order, range(_TOGETHER, len(order), _TOGETHER))
    ]
    ordered = np.sort(np.concatenate(found), axis=1)
    return np.asarray(ordered[np.argsort(ordered[:, 0])], np.int64)


def counts_alone(ends: Int64) -> Int64:
    """Runs of each channel by itself, (channels,)."""
    channels, taps = ends.shape
    following = np.pad(ends, ((0, 0), (0, 1)), constant_values=taps)
    at, found = np.zeros(channels, np.int64), np.zeros(channels, np.int64)
    while np.any(going := at < taps):
        found += going
        at = following[np.arange(channels), at]
    return found
