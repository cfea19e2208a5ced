# SPDX-License-Identifier: Apache-2.0
"""Three pixels in two products, two channels at a time: what its stream says. Words and parts are in
test_paired_threes.py, the kernel itself there and on boards in tests/emulated/test_operators.py."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import test_paired_threes as threes
from tests.ops.cases import assert_exact
from tinyet.delegates import Delegate
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import packed_words, paired_threes, paired_twos
from tinyet.ops.shared.conv2d_words import KERNELS
from tinyet.ops.shared.two_products import Rescaling

SYMBOL = "tinyet_conv2d_s8_paired_threes_6x2"
ALONE = Delegate("alone", {Conv2d: tuple(k for k in KERNELS if k.symbol == SYMBOL)})
OF_SUMS = 0.2
"""Of layers of which all channels have outputs by two products."""


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("shape", threes.SHAPES)
def test_the_stream_has_all_taps_and_channels(shape: tuple[int, int], relu: bool) -> None:
    weights = threes.weights_of(*shape, 127, sum(shape))
    node = threes.pointwise(weights, (1, 1), relu, 1, OF_SUMS).node
    sums, (stream, packed) = packed_words.rescaling(node), paired_twos.constants(node)
    assert isinstance(sums, Rescaling)
    words, rounding = stream.data.astype(np.int64).tolist(), sums.words(0, shape[0])
    bias = node.input(2).array.astype(np.int64) - 3 * weights.sum(axis=1)
    at, seen = 0, list[int]()
    for tile in packed.data:
        parts, start, more = 0, 0, True
        while more:
            left_out, taps, kind = words[at : at + 3]
            assert (left_out + taps) % (4 * paired_twos.TURN) == 0
            assert 0 <= left_out < 4 * paired_twos.TURN
            assert bool(kind & 1) == (parts > 0)
            more, start, parts, at = bool(kind & 2), start + taps // 4, parts + 1, at + 3
        assert start == shape[1] == len(tile)
        for k in range(paired_twos.CHANNELS):
            added, channel, *said = words[at : at + 2 + rounding.shape[1]]
            assert said == rounding[channel].tolist()
            want = bias[channel] - sums.start[channel] - parts * paired_threes.OFFSET
            assert added == want & 2**32 - 1
            np.testing.assert_array_equal(tile[:, k], weights[channel])
            seen.append(channel)
            at += 2 + rounding.shape[1]
    assert words[at:] == [2**32 - 1]
    assert sorted(set(seen)) == list(range(shape[0]))
    assert len(seen) == 2 * -(-shape[0] // 2)


def test_ways() -> None:
    """All are taken, and there are some of several parts, with halves below zero and without."""
    cases = threes.ways(OF_SUMS)
    assert all(packed_words.refuse(case.node) is None for case in cases)
    several = [case.node for case in cases if len(paired_threes.tiles(case.node, 2)[-1][1]) > 1]
    found = [packed_words.rescaling(node) for node in several]
    assert {isinstance(sums, Rescaling) and sums.two_sided for sums in found} == {False, True}
    assert_exact(cases, delegates=(ALONE,))
