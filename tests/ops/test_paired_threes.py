# SPDX-License-Identifier: Apache-2.0
"""Three pixels in two words: that no input makes a sum leave its field, how taps are divided where one would, and the
kernel on this machine. On boards it is in tests/emulated/test_operators.py."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.delegates.test_winograd import layer
from tests.ops import drawing
from tests.ops.cases import Case, assert_exact
from tinyet.boards import Target
from tinyet.delegates import Delegate
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import NO_CLAMP, Int64, requantize
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import paired_threes
from tinyet.ops.shared.conv2d_words import KERNELS
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.straight import Straight, straight
from tinyet.ops.shared.weighted import folded_bias

SYMBOL = "tinyet_conv2d_s8_paired_threes_6x4"
ALONE = Delegate("alone", {Conv2d: tuple(k for k in KERNELS if k.symbol == SYMBOL)})
WORD = 2**32 - 1


def pointwise(weights: Int64, pixels: tuple[int, int], relu: bool, seed: int, of_sums: float = 1.03) -> Case:
    """A pointwise layer, and an image of which each pixel has the inputs for which one channel's sum is at an end.
    of_sums: the part of the largest that 128 steps of the output reach."""
    rng = np.random.default_rng(seed)
    channels, depth = weights.shape
    x = Tensor("x", TensorType((1, *pixels, depth), DType.INT8, QuantParams.per_tensor(1.0, 3)))
    w = constant("w", weights.astype(np.int8).reshape(channels, 1, 1, depth), QuantParams.per_tensor(1.0, 0))
    bias = constant("b", rng.integers(-9000, 9000, (channels,)).astype(np.int32))
    scale = np.abs(weights).sum(axis=1).max() * of_sums
    attrs = Conv2d(clamp=(0.0, float("inf")) if relu else NO_CLAMP)
    node = drawing.node_of(attrs, [x, w, bias], QuantParams.per_tensor(float(scale), -128 if relu else 0))
    data = rng.integers(-128, 128, (pixels[0] * pixels[1], depth))
    for k in range(len(data)):
        if k % 5 < 4:
            ends = (127, -128) if k % 2 else (-128, 127)
            data[k] = np.where(weights[k // 2 % channels] > 0, *ends)
    return Case(node, (data.reshape(x.shape).astype(np.int8),))


def weights_of(channels: int, depth: int, largest: int, seed: int) -> Int64:
    """Those of the first channels are the largest that there are: these come last in the order of tiles."""
    rng = np.random.default_rng(seed)
    found = rng.integers(-largest, largest + 1, (channels, depth))
    found[: channels // 3] = rng.choice([-128, 127], (channels // 3, depth))
    return found


SHAPES = [(4, 1), (5, 2), (1, 8), (3, 9), (8, 10), (6, 64), (9, 65), (7, 200), (2, 300)]
"""Channels and taps: one tap, a turn of the loop to its end and one beyond, one part and several."""
PIXELS = [(1, 1), (1, 2), (1, 3), (2, 2), (1, 5), (2, 3), (1, 7), (3, 3), (2, 5)]


def ways(of_sums: float = 1.03) -> list[Case]:
    """Each shape with several numbers of pixels, with halves below zero and without."""
    return [
        pointwise(weights_of(*SHAPES[k % 9], 40, k), PIXELS[(k + k // 9) % 9], k % 2 == 0, k, of_sums)
        for k in range(36)
    ]


def halves(depth: int, seed: int) -> Case:
    """Sums near zero, of which every sixteenth is a half below zero or above it; one part of the taps, or several."""
    rng = np.random.default_rng(seed)
    x = Tensor("x", TensorType((1, 12, 12, depth), DType.INT8, QuantParams.per_tensor(1.0, 3)))
    weights = rng.integers(-128, 128, (6, 1, 1, depth)).astype(np.int8)
    w = constant("w", weights, QuantParams.per_tensor(1.0, 0))
    bias = constant("b", rng.integers(-40, 40, (6,)).astype(np.int32))
    node = drawing.node_of(Conv2d(clamp=NO_CLAMP), [x, w, bias], QuantParams.per_tensor(16.0, 4))
    moved = rng.integers(-3, 4, x.shape) * (rng.random(x.shape) < 8 / depth)
    return Case(node, ((3 + moved).astype(np.int8),))


def test_halves_below_zero() -> None:
    cases = [halves(depth, depth) for depth in (20, 300)]
    assert [paired_threes.refuse(case.node) for case in cases] == [None, None]
    assert [len(paired_threes.tiles(case.node)[0][1]) > 1 for case in cases] == [False, True]
    assert_exact(cases, delegates=(ALONE,))


@pytest.mark.parametrize("shape", SHAPES)
def test_words_hold_three_sums(shape: tuple[int, int]) -> None:
    """Of each part, with the inputs for which a channel's sum is at an end, in each of the three places."""
    weights = weights_of(*shape, 127, sum(shape))
    node, turn = pointwise(weights, (1, 1), False, 1).node, 8 * (1 + shape[1] % 2)
    r, (stream, packed) = straight(node), paired_threes.constants(node, with_direct=False, turn=turn)
    assert isinstance(r, Straight)
    words, at, tile = stream.data.astype(np.int64), 0, 0
    seen: list[int] = []
    ends = [np.where(weights > 0, *pair) for pair in ((127, -128), (-128, 127))]
    x = np.stack(list(itertools.product(np.concatenate(ends), repeat=3))[:300])
    want = x @ weights.T
    while words[at] != WORD:
        sums, start, more = np.zeros((4, *x.shape[:2]), np.int64), 0, True
        while more:
            taps, left_out, kind = words[at : at + 3]
            end = start + int(taps) // 4 + 1
            assert (end - start - 1 + left_out) % turn == 0
            assert (start > 0) == bool(kind & 1)
            more = bool(kind & 2)
            a, b, c = x[:, :, start:end].swapaxes(0, 1)
            w = packed.data[tile, start:end].astype(np.int64)
            first = ((a + (c << 21)) @ w + 2**20) & WORD
            second = ((b + (c << 10)) @ w + 2**20 + 2**30) & WORD
            second_sum = (second - (first >> 21 << 10)) & 2**21 - 1
            third = ((second - second_sum) & WORD) >> 10
            sums += np.stack([first & 2**21 - 1, second_sum, third]).transpose(2, 1, 0)
            at, start = at + 3, end
        assert start == shape[1]
        assert kind & 4 == 4
        assert end - start <= shape[1]
        channels = np.cumsum((words[at + 3 : at + 20 : 5] ^ 2**31) - 2**31)
        for k, channel in enumerate(channels):
            added = (words[at + 5 * k] ^ 2**31) - 2**31
            full = sums[k] + added
            np.testing.assert_array_equal(full, want[:, :, channel] + r.bias[channel] + r.start[channel])
            said = r.multiplier[channel], (r.place - 128 + r.shift)[channel] & WORD
            assert tuple(words[at + 5 * k + np.array([1, 2])]) == said
            assert words[at + 5 * k + 4] == r.zero[channel] & WORD
        seen += channels.tolist()
        at, tile = at + 20, tile + 1
    assert at == len(words) - 1
    assert tile == len(packed.data)
    assert sorted(set(seen)) == list(range(shape[0]))
    assert len(seen) == -(-shape[0] // 4) * 4


@pytest.mark.parametrize("shape", [(4, 1), (5, 9), (6, 24), (7, 20)])
def test_direct_tiles_have_all_in_their_sums(shape: tuple[int, int]) -> None:
    """As the constants are packed, modulo 2**32: outputs of ReLU of sums at both ends, and of others."""
    rng = np.random.default_rng(sum(shape))
    weights = weights_of(*shape, 127, sum(shape))
    node = pointwise(weights, (1, 1), True, 1).node
    assert all(paired_threes.direct(node, *tile) for tile in paired_threes.tiles(node))
    stream, _ = paired_threes.constants(node, with_direct=True, turn=8)
    words, at = stream.data.astype(np.int64), 0
    ends = [np.where(weights > 0, *pair) for pair in ((127, -128), (-128, 127))]
    x = np.concatenate([*ends, rng.integers(-128, 128, (200, shape[1]))])
    multiplier, left = output_factors(node)
    sums = x @ weights.T + folded_bias(node)
    want = np.clip(requantize(sums, multiplier, left) - 128, -128, 127)
    while words[at] != WORD:
        assert words[at + 2] == 8
        channels = np.cumsum((words[at + 5 : at + 15 : 3] ^ 2**31) - 2**31)
        for k, channel in enumerate(channels):
            start, factor, _ = words[at + 3 + 3 * k : at + 6 + 3 * k]
            whole = ((x @ weights[channel] + 2**20 << 11) + start) & WORD
            value = ((whole ^ 2**31) - 2**31) * factor >> 44
            np.testing.assert_array_equal(np.clip(value, -128, 127), want[:, channel])
        at += 15
    assert at == len(words) - 1


def mixed(relu: bool, pixels: tuple[int, int]) -> Case:
    """Two tiles that are direct where halves below zero are not seen, one of sums without room, one of two parts."""
    rng = np.random.default_rng(0)
    weights = rng.integers(-20, 21, (16, 65))
    weights[1::4] = rng.choice([-126, 126], (4, 65))
    weights[3::4] = rng.choice([-128, 127], (4, 65))
    return pointwise(weights, pixels, relu, 4, of_sums=0.03)


def test_sums_that_do_not_fit_are_not_direct() -> None:
    """But where they have more bits, or are of several parts; nor are any of a layer without ReLU, nor for RISC-V."""
    case, other = mixed(True, (3, 5)), mixed(False, (3, 5))
    tiles = paired_threes.tiles(case.node)
    assert [len(parts) for _, parts in tiles] == [1, 1, 1, 2]
    assert [paired_threes.direct(case.node, *tile) for tile in tiles] == [8, 8, 0, 0]
    assert not any(paired_threes.direct(other.node, *tile) for tile in paired_threes.tiles(other.node))
    lower = ALONE.kernels[Conv2d][0].lower
    streams = [
        lower(case.node, Target(cpu, frozenset())).constants[0].data for cpu in ("cortex-m3", "rv32imac")
    ]
    assert [len(stream) for stream in streams] == [3 * 15 + 18 + 1, 3 * 23 + 26 + 1]
    # Assembly subtracts it from a product, which does not leave 32 bits.
    assert streams[1][-2:-22:-5].astype(np.int32).tolist() == [-(2**30)] * 4
    assert_exact([case, other], delegates=(ALONE,))


def sums_within(weights: Int64) -> bool:
    """Whether no input makes the sum of any channel leave 21 bits, counted from 2**20 below zero."""
    above, below = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
    most, least = 127 * above - 128 * below, 127 * below - 128 * above
    return bool(most.max() < 2**20 and least.min() >= -(2**20))


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_as_long_as_can_be(seed: int) -> None:
    weights = weights_of(3, 400, 127, seed)
    parts = paired_threes.parts_of(weights)
    assert [0, *(end for _, end in parts)] == [*(start for start, _ in parts), 400]
    for start, end in parts:
        assert sums_within(weights[:, start:end])
        assert end == 400 or not sums_within(weights[:, start : end + 1])


def test_only_channels_that_need_it_are_in_parts() -> None:
    """Eight of nine have a part; the one that has more is in a tile with itself."""
    weights = np.full((9, 100), 80)
    weights[2] = 127
    node = pointwise(weights, (1, 1), True, 0).node
    tiles = paired_threes.tiles(node)
    assert [channels for channels, _ in tiles] == [(0, 1, 3, 4), (5, 6, 7, 8), (2, 2, 2, 2)]
    assert [len(parts) for _, parts in tiles] == [1, 1, 2]


def at_the_ends() -> list[Case]:
    """A layer of one part whose sums are at both of its ends."""
    weights = np.full((1, 65), 127)
    weights[0, 64] = 64  # 8,192 in all
    return [pointwise(weights, (2, 3), relu, 4) for relu in (True, False)]


def test_the_ends_of_a_field_are_reached() -> None:
    """With one more there are two parts."""
    cases = at_the_ends()
    weights = rows_of(cases[0].node).astype(np.int64)
    assert -128 * int(weights.sum()) == -(2**20)
    assert len(paired_threes.parts_of(weights)) == 1
    assert len(paired_threes.parts_of(weights + (np.arange(65) == 64))) == 2
    assert len(paired_threes.parts_of(-weights)) == 2  # 2**20 itself is beyond
    assert_exact(cases, delegates=(ALONE,))


def windows() -> list[Case]:
    """With borders, gaps between taps, strides, and images one after the other."""
    rng = np.random.default_rng(8)
    cases = []
    for k, (pads, strides, dilation, kernel) in enumerate(
        itertools.product((0, 1), (1, 2), (1, 2), ((3, 3), (2, 1)))
    ):
        weights = rng.integers(-128, 128, (5, *kernel, 3))
        x = Tensor("x", TensorType((2, 6, 7, 3), DType.INT8, QuantParams.per_tensor(1.0, -9)))
        w = constant("w", weights.astype(np.int8), QuantParams.per_tensor(1.0, 0))
        b = constant("b", rng.integers(-999, 999, 5).astype(np.int32))
        attrs = Conv2d(
            stride_h=strides,
            stride_w=strides,
            pad_top=pads,
            pad_left=pads,
            pad_bottom=pads,
            dilation_h=dilation,
            dilation_w=dilation,
            clamp=(0.0, 6000.0) if k % 2 else NO_CLAMP,
        )
        node = drawing.node_of(attrs, [x, w, b], QuantParams.per_tensor(97.0, -128 if k % 2 else 4))
        assert paired_threes.refuse(node) is None
        cases.append(Case(node, (drawing.int8_data(rng, x.shape),)))
    return cases


def test_windows_of_three_pixels_and_fewer() -> None:
    assert_exact(windows(), delegates=(ALONE,))


def test_ways() -> None:
    assert_exact(ways(), delegates=(ALONE,))


def test_what_it_refuses() -> None:
    node: Node = layer(np.full((1, 3, 3, 504), 127), np.zeros(1, np.int64), scale=0.25)
    assert paired_threes.refuse(node) == "no straight line has all steps of the output"
    assert rows_of(node).shape == (1, 4536)
