# SPDX-License-Identifier: Apache-2.0
"""Pairs of channels whose runs end alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tinyet.numerics import Int64
from tinyet.ops.shared import pairing


def number(ends: Int64, pairs: Int64) -> int:
    return sum(len(pairing.runs(ends[pair])) for pair in pairs)


def drawn(channels: int, taps: int, seed: int) -> Int64:
    rng = np.random.default_rng(seed)
    weights = np.abs(rng.normal(0, 1, (channels, taps)) * rng.uniform(5, 60, (channels, 1))).astype(np.int64)
    return pairing.ends_of_runs([(weights, 255), (weights[:, ::-1].copy(), 400)], 12)


def test_ends_are_where_one_tap_more_is_too_much() -> None:
    rng = np.random.default_rng(1)
    reaches = [(rng.integers(0, 90, (3, 40)), 255), (rng.integers(0, 90, (3, 40)), 256)]
    ends = pairing.ends_of_runs(reaches, 8)
    for channel, tap in itertools.product(range(3), range(40)):
        end = ends[channel, tap]
        assert tap < end <= min(tap + 8, 40)
        assert all(reach[channel, tap:end].sum() <= room for reach, room in reaches)
        more = any(reach[channel, tap : end + 1].sum() > room for reach, room in reaches)
        assert more or end in {tap + 8, 40}


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_the_runs(seed: int) -> None:
    ends = drawn(9, 50, seed)
    table = pairing.counts(ends)
    for one, other in itertools.product(range(9), repeat=2):
        assert table[one, other] == len(pairing.runs(ends[[one, other]]))


@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_near_the_best(seed: int) -> None:
    """Of all 105 ways to pair eight channels: what neighbours lose is made good but for a fifth."""
    ends = drawn(8, 200, seed)
    pairs = pairing.pairs(ends)
    assert sorted(pairs.ravel()) == list(range(8))

    def ways(left: tuple[int, ...]) -> list[list[tuple[int, int]]]:
        if not left:
            return [[]]
        return [
            [(left[0], other), *rest]
            for other in left[1:]
            for rest in ways(tuple(x for x in left[1:] if x != other))
        ]

    least = min(number(ends, np.array(way)) for way in ways(tuple(range(8))))
    neighbours = number(ends, np.arange(8).reshape(4, 2))
    assert number(ends, pairs) <= least + 0.2 * (neighbours - least)


def test_many_channels_are_paired_in_parts() -> None:
    """Each once, and in fewer runs than neighbours."""
    ends = drawn(600, 30, 7)
    pairs = pairing.pairs(ends)
    assert sorted(pairs.ravel()) == list(range(600))
    assert number(ends, pairs) < number(ends, np.arange(600).reshape(300, 2))
