# SPDX-License-Identifier: Apache-2.0
"""Three pixels and two channels in two products: that six sums come out of two words of 64 bits, and the kernel on this
machine. On boards it is in tests/emulated/test_operators.py."""

from __future__ import annotations

import numpy as np
import pytest

from tests.delegates.test_winograd import layer
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
from tinyet.numerics import requantize
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import depthwise_planes, outer_threes, paired_threes
from tinyet.ops.shared.conv2d_words import KERNELS
from tinyet.ops.shared.cost_models_words import weights_of_outer_threes
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.straight import Straight, straight
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import DENSE

SYMBOL = "tinyet_conv2d_s8_outer_threes_3x4"
ALONE = Delegate("alone", {Conv2d: tuple(k for k in KERNELS if k.symbol == SYMBOL)})


def in_parts() -> Case:
    """Direct tiles of two parts and of four."""
    weights = np.random.default_rng(3).integers(-127, 128, (8, 200))
    weights[::2] = np.random.default_rng(4).choice([-128, 127], (4, 200))
    return pointwise(weights, (2, 4), True, 5, of_sums=0.03)


def cases() -> list[Case]:
    made = [in_parts(), *ways(), *(halves(depth, depth) for depth in (20, 300)), *at_the_ends(), *windows()]
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
    """Those of several parts, too, and with sums that have no room at 2**11 times what they are."""
    stream, weights = outer_threes.constants(mixed(True, (3, 5)).node)
    assert len(stream.data) == 3 * 15 + 18 + 1
    assert weights.data.shape == (4, 65, 2)
    tiles = paired_threes.tiles(in_parts().node, wide=True)
    assert [len(parts) for _, parts in tiles] == [2, 4]
    assert [paired_threes.direct(in_parts().node, *tile, wide=True) for tile in tiles] == [
        paired_threes.WIDE
    ] * 2


@pytest.mark.parametrize("case", [in_parts(), mixed(True, (3, 5))])
def test_direct_tiles_of_more_bits(case: Case) -> None:
    """As the constants are packed, modulo 2**32: outputs of ReLU of sums at both ends, and of others."""
    node, rng = case.node, np.random.default_rng(1)
    weights, f = rows_of(node).astype(np.int64), depthwise_planes.folded_wide(node)
    ends = [np.where(weights > 0, *pair) for pair in ((127, -128), (-128, 127))]
    x = np.concatenate([*ends, rng.integers(-128, 128, (200, weights.shape[1]))])
    multiplier, left = output_factors(node)
    sums = x @ weights.T
    want = np.clip(requantize(sums + folded_bias(node), multiplier, left) - 128, -128, 127)
    words, at, several = outer_threes.constants(node)[0].data.astype(np.int64), 0, 0
    for channels, parts in paired_threes.tiles(node, wide=True):
        direct = paired_threes.direct(node, channels, parts, wide=True)
        at += 3 * len(parts)
        if direct == paired_threes.WIDE:
            assert words[at - 1] == paired_threes.WIDE + paired_threes.NOT_FIRST * (len(parts) > 1)
            for k, channel in enumerate(channels):
                start, factor, _ = words[at + 3 * k : at + 3 * k + 3]
                assert factor == f.multiplier[channel]
                whole = ((sums[:, channel] + len(parts) * 2**20 << 9) + start) & WORD
                value = ((whole ^ 2**31) - 2**31) * factor >> 44
                np.testing.assert_array_equal(np.clip(value, -128, 127), want[:, channel])
            several += 1
        at += 4 * (3 if direct else 5)
    assert several > 0
    assert at == len(words) - 1


def test_the_kernel() -> None:
    assert_exact(cases(), delegates=(ALONE,))


def test_all_weights_are_read_for_each_three_pixels() -> None:
    """What a small cache in front of the flash cannot hold is read again."""
    node = layer(np.ones((5, 1, 1, 6), np.int64), np.zeros(5, np.int64), relu=True, scale=0.01, side=4)
    reads = weights_of_outer_threes(node, DENSE, "cortex-m33").reads
    tiles, taps, steps = 2, 6, 6
    assert reads == {"read weights": steps * tiles * taps * 8}
