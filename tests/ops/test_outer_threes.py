# SPDX-License-Identifier: Apache-2.0
"""Three pixels and two channels in two products: that six sums come out of two words of 64 bits, and the kernel on this
machine. On boards it is in tests/emulated/test_operators.py."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.cases import Case, assert_exact
from tests.ops.test_paired_threes import (
    SHAPES,
    WORD,
    at_the_ends,
    halves,
    mixed,
    pointwise,
    ways,
    weights_of,
    windows,
)
from tinyet.delegates import Delegate
from tinyet.ir import Array
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import outer_threes, paired_threes
from tinyet.ops.shared.conv2d_words import KERNELS
from tinyet.ops.shared.straight import Straight, straight

SYMBOL = "tinyet_conv2d_s8_outer_threes_3x4"
ALONE = Delegate("alone", {Conv2d: tuple(k for k in KERNELS if k.symbol == SYMBOL)})


def cases() -> list[Case]:
    made = [*ways(), *(halves(depth, depth) for depth in (20, 300)), *at_the_ends(), *windows()]
    return made + [mixed(relu, pixels) for relu in (True, False) for pixels in ((1, 2), (3, 3), (3, 5))]


def signed(words: Array) -> list[int]:
    return [(int(word) ^ 2**31) - 2**31 for word in words]


@pytest.mark.parametrize("shape", SHAPES)
def test_words_hold_six_sums(shape: tuple[int, int]) -> None:
    """Of each part and two channels, with inputs for which their sums are at their ends, in each of three places."""
    weights = weights_of(*shape, 127, sum(shape))
    node = pointwise(weights, (1, 1), False, 1).node
    r, (stream, packed) = straight(node), outer_threes.constants(node)
    assert isinstance(r, Straight)
    ends = [np.where(weights > 0, *pair) for pair in ((127, -128), (-128, 127))]
    inputs, rng = np.concatenate(ends), np.random.default_rng(sum(shape))
    chosen = rng.integers(0, len(inputs), (40, 3))
    at, tile, mask = 0, 0, 2**21 - 1
    words, seen = stream.data.astype(np.int64), 0
    while words[at] != WORD:
        sums, start, more = np.zeros((4, 3, 40), np.int64), 0, True
        while more:
            taps, left_out, kind = words[at : at + 3]
            end = start + int(taps) // 8
            assert (taps + left_out) % (8 * outer_threes.TURN) == 0
            assert 0 <= left_out < 8 * outer_threes.TURN
            more = bool(kind & paired_threes.NOT_LAST)
            for k, of_three in enumerate(chosen):
                a, b, c = (inputs[i, start:end].tolist() for i in of_three)
                for two in (0, 1):
                    w = signed(packed.data[tile, start:end, two])
                    first = second = 2**20 + 2**42 + 2**62
                    for i, weight in enumerate(w):
                        first += (a[i] + (b[i] << 21)) * weight
                        second += (b[i] + (c[i] << 21)) * weight
                    assert 0 <= min(first, second) <= max(first, second) < 2**64
                    between = second & mask
                    first -= between << 21
                    second -= first >> 42 << 21
                    sums[2 * two, :, k] += [first & mask, between, second >> 21 & mask]
                    sums[2 * two + 1, :, k] += [first >> 21 & mask, first >> 42, second >> 42]
            at, start = at + 3, end
        assert start == shape[1]
        for k in range(4):
            channel = sum(signed(words[at + 3 : at + 5 * k + 4 : 5]))
            want = inputs[chosen.T] @ weights[channel] + r.bias[channel] + r.start[channel]
            np.testing.assert_array_equal(sums[k] + signed(words[at + 5 * k : at + 5 * k + 1]), want)
        at, tile, seen = at + 20, tile + 1, seen + 4
    assert at == len(words) - 1
    assert tile == len(packed.data)
    assert seen == -(-shape[0] // 4) * 4


def test_tiles_are_direct_where_they_can_be() -> None:
    stream, weights = outer_threes.constants(mixed(True, (3, 5)).node)
    assert len(stream.data) == 2 * 15 + 23 + 26 + 1
    assert weights.data.shape == (4, 65, 2)


def test_the_kernel() -> None:
    assert_exact(cases(), delegates=(ALONE,))
