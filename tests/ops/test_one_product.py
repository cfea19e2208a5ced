# SPDX-License-Identifier: Apache-2.0
"""The rounding rule by the high half of one product, and two pixels in one product: the proofs, and what they refuse.
The kernels themselves are in test_conv2d.py, on boards in tests/emulated/test_operators.py."""

from __future__ import annotations

import numpy as np
import pytest

from tests.delegates.test_winograd import layer
from tinyet.ir import Node
from tinyet.numerics import Int64, requantize
from tinyet.ops.shared import depthwise_planes, one_product, paired
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.one_product import Rounding
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.straight import Straight, straight
from tinyet.ops.shared.weighted import folded_bias

REACH = 20_000
SCALES = [0.499, 0.4, 0.25, 0.0371, 2.0**-7, 1.7e-4]


def node_of(scale: float, relu: bool = False, weight: int = 1) -> Node:
    """Sums of one channel to REACH on both sides, times the weight, and of one that is the same for all inputs."""
    weights = np.zeros((2, 3, 3, 20), np.int64)
    weights[0].flat[:157] = weight
    return layer(weights, np.array([12, 40]), relu=relu, scale=scale)


def outputs(r: Rounding, sums: Int64) -> Int64:
    """As tinyet_one_product has them. sums: (channels, …)."""
    scaled = sums << r.before[:, None]
    assert np.abs(scaled).max() < 2**31
    high = scaled * r.multiplier[:, None] >> 32
    value = high - np.where(high < 0, r.away[:, None], 0) + r.offset[:, None]
    assert np.abs(value).max() < 2**31
    return np.asarray(np.clip(value >> r.shift[:, None], -128, 127), np.int64)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("scale", SCALES)
def test_every_sum_is_rounded_as_the_rule_says(scale: float, relu: bool) -> None:
    """With a factor before the product that is the same for all channels, and with one shift for all."""
    node = node_of(scale, relu)
    multiplier, shift = output_factors(node)
    sums = np.stack([np.arange(-REACH, REACH + 1), np.full(2 * REACH + 1, 40)])
    zero = node.output.type.zero_point
    want = np.clip(requantize(sums, multiplier[:, None], shift[:, None]) + zero, -128, 127)
    for found in (paired.rounding(node), one_product.rounding(node, shift=14)):
        assert isinstance(found, Rounding), found
        assert found.two_sided == (not relu)
        np.testing.assert_array_equal(outputs(found, sums), want)


@pytest.mark.parametrize("scale", SCALES)
def test_a_start_can_make_up_for_all_that_is_added(scale: float) -> None:
    """Every sum that there can be, of a channel that has steps of its output and of one that has none. Where outputs of
    negative sums are seen, which are rounded the other way, no start does."""
    assert not depthwise_planes.folded(node_of(scale)).found.any()
    node = node_of(scale, relu=True)
    folded = depthwise_planes.folded(node)
    assert folded.found.all()
    bias, weights = folded_bias(node), rows_of(node).astype(np.int64)
    multiplier, shift = output_factors(node)
    for c in range(2):
        reach = 128 * int(np.abs(weights[c]).sum())
        sums = np.arange(bias[c] - reach, bias[c] + int(127 / 128 * reach) + 1)
        scaled = (sums << folded.before[c]) + folded.start[c]
        assert np.abs(scaled).max() < 2**31
        got = np.clip((scaled * folded.multiplier[c] >> 32) >> depthwise_planes.SHIFT, -128, 127)
        want = np.clip(requantize(sums, multiplier[c], shift[c]) + node.output.type.zero_point, -128, 127)
        np.testing.assert_array_equal(got, want)


def straight_of(node: Node) -> Straight:
    found = straight(node)
    assert isinstance(found, Straight), found
    return found


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("scale", [*(scale for scale in SCALES if scale != 0.25), 0.125, 2.0**-10])
@pytest.mark.parametrize("weight", [1, 127])
def test_outputs_counted_from_a_place_need_nothing_added(scale: float, relu: bool, weight: int) -> None:
    """Every sum that there can be, of a channel that has steps of its output and of one that has none; factors that are
    powers of two, whose sums are halves most often, too."""
    node = node_of(scale, relu, weight)
    r, (multiplier, shift) = straight_of(node), output_factors(node)
    assert r.two_sided == (not relu)
    assert not np.any(r.place % 256)
    for c in range(2):
        reach = np.abs(rows_of(node)[c].astype(np.int64)).sum()
        sums = np.arange(r.bias[c] - 128 * reach, r.bias[c] + 127 * reach + 1)
        assert np.abs(sums + r.start[c]).max() < 2**31
        x = (sums + r.start[c]) * r.multiplier[c] >> 32
        x -= (x < r.zero[c]) & r.two_sided
        got = np.clip(x >> r.shift[c], r.place[c] - 128, r.place[c] + 127) - r.place[c]
        want = np.clip(requantize(sums, multiplier[c], shift[c]) + node.output.type.zero_point, -128, 127)
        np.testing.assert_array_equal(got, want)


def test_what_no_straight_line_is() -> None:
    for scale in (0.51, 0.25):  # of a quarter, sums of 0 and -1 have outputs of their own, and one x
        assert straight(node_of(scale)) == "no straight line has all steps of the output"
    assert isinstance(straight(node_of(0.25, relu=True)), Straight)
    wide = np.full((1, 3, 3, 4000), 127)
    assert straight(layer(wide, np.zeros(1, np.int64), scale=0.01)) == "sums do not fit 29 bits"


def test_what_is_refused() -> None:
    assert "below a half" in str(paired.rounding(node_of(0.51)))
    assert "too small" in str(paired.rounding(node_of(2.0**-18, weight=127)))
    wide = np.full((1, 3, 3, 60), 127)  # 540 products of 16,256
    assert paired.refuse(layer(wide, np.zeros(1, np.int64), scale=0.01)) == "sums do not fit 23 bits"
    assert paired.refuse(layer(wide[..., :56], np.zeros(1, np.int64), scale=0.01)) is None
    # All channels have the shift 12, which leaves nothing before the product of 2**-13, and 19 bits for sums of 0.4.
    assert "too small" in str(depthwise_planes.rounding(node_of(2.0**-13)))
    assert depthwise_planes.refuse(node_of(0.4, weight=127)) == "sums do not fit 19 bits"
    assert depthwise_planes.refuse(node_of(0.01)) is None


def test_fields_hold_what_a_pair_adds_up_to() -> None:
    """Both pixels' sums, from a word for two inputs; with the extremes of all inputs, and random ones."""
    rng = np.random.default_rng(3)
    weights, bias = rng.integers(-127, 128, (3, 3, 3, 5)), rng.integers(-9000, 9000, 3)
    node = layer(weights, bias, scale=0.01)
    stream, packed = paired.constants(node)
    words, taps = stream.data.astype(np.int64), 45
    rows = weights.reshape(3, -1)
    x = rng.integers(-128, 128, (50, 2, taps))
    x[0], x[1] = 127, -128
    x[2] = np.where(rows[0] > 0, 127, -128)
    pairs = (x[:, 1] << 24) + x[:, 0] + 128
    for channel in range(3):
        block, c = divmod(channel, 2)
        start = words[block, 2 * c] + (words[block, 2 * c + 1] << 32)
        w = packed.data[block, :taps, c].astype(np.int64)
        total = [(int(start) + int((word * w).sum())) & (2**64 - 1) for word in pairs]
        want = bias[channel] - 3 * w.sum() + x @ w
        np.testing.assert_array_equal([(t & 0xFFFFFF) - 2**23 for t in total], want[:, 0])
        np.testing.assert_array_equal([((t >> 24) & 0xFFFFFFFF ^ 2**31) - 2**31 for t in total], want[:, 1])


@pytest.mark.parametrize("largest", [3, 90, 127])
def test_runs_of_four_taps_or_two_and_what_is_too_much_for_them(largest: int) -> None:
    """As above: small weights are all in runs of four, large ones in twos, and what does not fit is by itself."""
    rng = np.random.default_rng(largest)
    weights, bias = rng.integers(-largest, largest + 1, (3, 3, 3, 5)), rng.integers(-9000, 9000, 3)
    weights[0] //= 3
    weights[0, 0, 0, :2] = -128  # two of them are too many for a run of any length
    node = layer(weights, bias, scale=0.01)
    stream, packed = paired.constants_in_fours(node)
    assert packed.data.shape == (3, 48)
    words, at, lengths, alone = stream.data.astype(np.int64), 0, [], []
    rows = np.pad(weights.reshape(3, -1), ((0, 0), (0, 3)))
    x = np.pad(rng.integers(-128, 128, (50, 2, 45)), ((0, 0), (0, 0), (0, 3)))
    x[0, :, :45], x[1, :, :45], x[2] = 127, -128, np.where(rows[0] > 0, 127, -128)
    pairs = (x[:, 1] << 16) + x[:, 0]
    for channel in range(3):
        both, high, kept = np.full(50, words[at]), np.full(50, words[at + 1]), packed.data[channel].copy()
        length = 2 if words[at + 2] else 4
        runs = [
            (packed.data[channel, tap : tap + length], slice(tap, tap + length))
            for tap in range(0, 48, length)
        ]
        at += 3
        lengths.append(length)
        alone.append(0)
        while words[at] >> 31:
            tap, weight = words[at] >> 11 & 2**20 - 1, (words[at] & 255 ^ 128) - 128
            runs.append((np.array([weight]), slice(tap, tap + 1)))
            assert kept[tap] == 0
            kept[tap] = weight
            alone[-1] += 1
            at += 1
        np.testing.assert_array_equal(kept, rows[channel])
        for run, taps in runs:
            assert np.abs(x[:, 0, taps] @ run.astype(np.int64)).max() < 2**15
            total = (pairs[:, taps] @ run.astype(np.int64) + 2**15) & (2**32 - 1)
            both, high = both + total, high + ((total ^ 2**31) - 2**31 >> 16)
        want = (bias[channel] - 3 * rows[channel].sum() + x @ rows[channel]).T
        upper = ((high & (2**32 - 1)) ^ 2**31) - 2**31
        np.testing.assert_array_equal(upper, want[1])
        lower = (both - (upper << 16)) & (2**32 - 1)
        np.testing.assert_array_equal((lower ^ 2**31) - 2**31, want[0])
        at += 3
    assert at == len(words)
    assert lengths == [4, 2 if largest == 127 else 4, 4]
    assert alone == [1, *{3: (0, 0), 90: (1, 0), 127: (0, 2)}[largest]]
