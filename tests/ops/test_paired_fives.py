# SPDX-License-Identifier: Apache-2.0
"""Five pixels in three words: that no input makes a sum leave its field, that five sums come out of three words, and
the kernel on this machine. On boards it is in tests/emulated/test_operators.py."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import bodies, drawing
from tests.ops.cases import Case, assert_exact
from tests.ops.test_paired_threes import WORD, pointwise
from tinyet.delegates import Delegate
from tinyet.ir import DType, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import Int64, requantize
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import paired_checked, paired_fives
from tinyet.ops.shared.conv2d_words import KERNELS
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.paired_fives import FIELD, OFFSET, Parts
from tinyet.ops.shared.weighted import folded_bias

SYMBOL = "tinyet_conv2d_s8_paired_fives_5x2"
ALONE = Delegate("alone", {Conv2d: tuple(k for k in KERNELS if k.symbol == SYMBOL)})
SHAPES = [(2, 1), (4, 3), (8, 8), (6, 15), (4, 16), (10, 17), (2, 33), (2, 100)]
"""Channels and taps: one tap, odd and even numbers of them, a turn of the loop to its end, one beyond, and several."""
PIXELS = [(1, 1), (1, 4), (1, 5), (2, 3), (3, 3), (2, 5), (3, 4)]


def weights_of(channels: int, taps: int, seed: int) -> Int64:
    """As large as 19 bits have room for; of the first channel all that have."""
    rng = np.random.default_rng(seed)
    largest = min(OFFSET // (128 * taps), 127)
    found = rng.integers(-largest, largest + 1, (channels, taps))
    found[0] = largest
    if 128 * largest * taps == OFFSET and rng.random() < 0.5:
        found[0, 0] -= 1
    return found


def ways() -> list[Case]:
    """Each shape with several numbers of pixels."""
    return [
        pointwise(weights_of(*SHAPES[k % 8], k), PIXELS[(k + k // 8) % 7], True, k, (0.2, 0.4, 0.7)[k % 3])
        for k in range(28)
    ]


def in_parts(channels: int, larger: int, taps: int, pixels: tuple[int, int], seed: int) -> Case:
    """So many of the channels, here and there, have weights that need two parts, of which either may be longer."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-30, 31, (channels, taps)) * 32 // max(taps, 32)
    split = int(rng.integers(1 + 2 * taps // 5, 1 + 3 * taps // 5))
    largest = min(OFFSET // (128 * max(split, taps - split)), 127)
    some = rng.permutation(channels)[:larger]
    weights[some] = rng.choice([-largest, largest], (larger, taps))
    weights[some[0]] = largest
    if 128 * largest * max(split, taps - split) == OFFSET:
        weights[some] = np.abs(weights[some])  # 2**18 is beyond, where the other end is not
    return pointwise(weights, pixels, True, seed, 0.4)


def divided() -> list[Case]:
    """All channels, and some: even and odd numbers of either kind, and of taps; several turns of the loop."""
    shapes = [
        (2, 2, 33),
        (4, 2, 40),
        (6, 3, 64),
        (8, 5, 37),
        (10, 1, 50),
        (2, 2, 100),
        (6, 5, 96),
        (4, 4, 32),
    ]
    return [in_parts(*shapes[k % 8], PIXELS[(k + k // 8) % 7], k) for k in range(16)]


def windows() -> list[Case]:
    """With borders, strides, a clamp above, and images one after the other, some too large for a padded copy."""
    rng = np.random.default_rng(8)
    cases = []
    for k, (pads, strides, size) in enumerate(
        itertools.product((0, 1, 2), (1, 2), (((3, 3), (9, 8)), ((2, 1), (5, 7)), ((4, 2), (20, 17))))
    ):
        kernel, image = size
        weights = rng.integers(-60, 61, (4, *kernel, 3))
        x = Tensor("x", TensorType((2, *image, 3), DType.INT8, QuantParams.per_tensor(1.0, -9)))
        w = constant("w", weights.astype(np.int8), QuantParams.per_tensor(1.0, 0))
        b = constant("b", rng.integers(-999, 999, 4).astype(np.int32))
        attrs = Conv2d(
            stride_h=strides,
            stride_w=strides,
            pad_top=pads,
            pad_left=min(pads, kernel[1]),
            pad_bottom=pads,
            pad_right=1,
            clamp=(0.0, 6000.0) if k % 2 else (0.0, float("inf")),
        )
        node = drawing.node_of(attrs, [x, w, b], QuantParams.per_tensor(97.0, -128))
        assert paired_fives.refuse(node) is None
        cases.append(Case(node, (drawing.int8_data(rng, x.shape),)))
    return cases


def test_divided() -> None:
    cases = divided()
    found = [paired_fives.parts(case.node) for case in cases]
    assert all(isinstance(parts, Parts) for parts in found)
    kinds = [(len(parts.whole), len(parts.others)) for parts in found if isinstance(parts, Parts)]
    # Of an odd number of either kind, one that has room in one part is of two.
    assert kinds == [(0, 2), (2, 2), (2, 4), (2, 6), (8, 2), (0, 2), (0, 6), (0, 4)] * 2
    assert_exact(cases, delegates=(ALONE,))


def test_parts_reach_their_ends() -> None:
    """-2**18 is a sum that a part may have, 2**18 and -2**18 - 128 are not."""
    rows = np.full((1, 64), 64)
    assert paired_fives.splits_of(rows) == [32]
    assert paired_fives.splits_of(-rows) == []
    for tap in (0, 63):
        assert paired_fives.splits_of(rows + (np.arange(64) == tap)) == []


@pytest.mark.parametrize("seed", range(4))
def test_both_parts_have_room(seed: int) -> None:
    """Every split that is said, and no other."""
    rows = np.random.default_rng(seed).integers(-128, 128, (3, 45)) // 2
    splits = paired_fives.splits_of(rows)
    assert splits
    for k in range(1, 45):
        assert (k in splits) == all(paired_fives.fits(part).all() for part in (rows[:, :k], rows[:, k:]))


@st.composite
def layers(draw: st.DrawFn) -> Case:
    """Any window, stride and border; weights so large that channels are of one part, of two, or of too many."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kernel, strides = rng.integers(1, 5, 2), rng.integers(1, 4, 2)
    size, pads = kernel + rng.integers(0, 9, 2), rng.integers(0, kernel, (2, 2))
    in_c, channels, batch = int(rng.integers(1, 20)), 2 * int(rng.integers(1, 6)), int(rng.integers(1, 3))
    x = Tensor("x", TensorType((batch, *map(int, size), in_c), DType.INT8, QuantParams.per_tensor(1.0, -9)))
    taps = in_c * int(kernel.prod())
    largest = np.clip(rng.integers(1, 6, (channels, 1, 1, 1)) * 2100 // taps, 1, 127)
    weights = rng.integers(-largest, largest + 1, (channels, *map(int, kernel), in_c))
    w = constant("w", weights.astype(np.int8), QuantParams.per_tensor(1.0, 0))
    b = constant("b", rng.integers(-999, 999, channels).astype(np.int32))
    (top, left), (bottom, right) = (tuple(map(int, side)) for side in pads)
    attrs = Conv2d(
        stride_h=int(strides[0]),
        stride_w=int(strides[1]),
        pad_top=top,
        pad_left=left,
        pad_bottom=bottom,
        pad_right=right,
        clamp=(0.0, float("inf")),
    )
    node = drawing.node_of(attrs, [x, w, b], QuantParams.per_tensor(float(rng.integers(100, 3000)), -128))
    return Case(node, (rng.choice([-128, 127, 0], x.shape).astype(np.int8),))


test_host_layers = bodies.batches(st.lists(layers(), min_size=8, max_size=8))


@pytest.mark.parametrize("shape", SHAPES)
def test_words_hold_five_sums(shape: tuple[int, int]) -> None:
    """As the constants are packed, modulo 2**32: outputs of inputs for which sums are at their ends, and of others, in
    each of the five places."""
    rng = np.random.default_rng(sum(shape))
    weights = weights_of(*shape, sum(shape))
    node = pointwise(weights, (1, 1), True, 1, 0.5).node
    assert paired_fives.refuse(node) is None
    words, taps = paired_fives.stream(node).data.astype(np.int64), shape[1]
    ends = [np.where(weights > 0, *pair) for pair in ((127, -128), (-128, 127))]
    x = np.concatenate([*ends, rng.integers(-128, 128, (20, taps))])
    places = rng.integers(0, len(x), (300, 5))
    places[:32] = np.array(list(itertools.product((0, shape[0]), repeat=5)))
    a, b, c, d, e = x[places].swapaxes(0, 1)
    multiplier, left = output_factors(node)
    sums = x @ weights.T + folded_bias(node)
    want = np.clip(requantize(sums, multiplier, left) - 128, -128, 127)[places]
    half = -(-taps // 2)
    assert words.shape == (shape[0] // 2, half + 6)
    for channel in range(shape[0]):
        of_pair = words[channel // 2]
        bytes_of = (of_pair[:half, None] >> np.arange(0, 32, 8) & 255).reshape(-1, 2)
        w = (bytes_of[:taps, channel % 2] ^ 128) - 128
        assert not bytes_of[taps:].any()
        first = (a + (d << 19)) @ w + OFFSET & WORD
        second = (b + (e << 19)) @ w + OFFSET & WORD
        third = (c + (d << 6) + (e << 12)) @ w + OFFSET * (1 + 2**6 + 2**12) & WORD
        fourth, fifth = first >> FIELD, second >> FIELD
        third = third - (fourth << 6) - (fifth << 12) & WORD
        mask = 2**FIELD - 1
        found = [
            first & mask,
            second & mask,
            third & mask,
            fourth + ((third >> 19 & 63) << 13),
            fifth + (third >> 25 << 13),
        ]
        start, factor, behind = of_pair[half + 3 * (channel % 2) :][:3]
        assert behind == (channel > 0)
        for k in range(5):
            np.testing.assert_array_equal(found[k], x[places[:, k]] @ weights[channel] + OFFSET)
            whole = (found[k] << 12) + start & WORD
            value = ((whole ^ 2**31) - 2**31) * factor >> 44
            np.testing.assert_array_equal(np.clip(value, -128, 127), want[:, k, channel])


def test_ways() -> None:
    assert {paired_fives.refuse(case.node) for case in ways()} == {None}
    assert_exact(ways(), delegates=(ALONE,))


def test_windows_of_five_pixels_and_fewer() -> None:
    copied = {k: paired_checked.padded(case.node) != (0, 0) for k, case in enumerate(windows())}
    assert (copied[6], copied[8]) == (True, False)  # of a border each
    assert_exact(windows(), delegates=(ALONE,))


def test_memory_in_every_way() -> None:
    """Each array by itself, at odd addresses, and the output over the input as far as it may lie there."""
    assert_kernels([*ways(), *windows(), *divided()], ALONE)


def test_the_ends_of_a_field_are_reached() -> None:
    """The largest weights that fit, and one more."""
    weights = np.full((2, 32), 64)
    weights[1] = 3
    fit = pointwise(weights, (1, 1), True, 1, 0.5).node
    assert 128 * int(rows_of(fit).astype(np.int64).sum(axis=1).max()) == OFFSET
    assert paired_fives.parts(fit) == Parts((0, 1), (), 0)
    # 2**18 itself is beyond.
    assert paired_fives.parts(pointwise(-weights, (1, 1), True, 1, 0.5).node) == Parts((), (0, 1), 16)
    weights[0, 0] += 1
    assert paired_fives.parts(pointwise(weights, (1, 1), True, 1, 0.5).node) == Parts((), (0, 1), 16)


def test_what_it_refuses() -> None:
    weights = np.full((2, 65), 64)
    why = "sums do not fit 19 bits, nor those of two parts"
    assert paired_fives.refuse(pointwise(weights, (1, 1), True, 1, 0.5).node) == why
    why = "what is added to products is not all in the sums"
    assert paired_fives.refuse(pointwise(weights // 2, (1, 1), False, 1).node) == why
    assert paired_fives.refuse(pointwise(weights[:1] // 2, (1, 1), True, 1).node) == (
        "only even numbers of output channels"
    )
    node = windows()[0].node
    assert paired_fives.refuse(node.replace(attrs=Conv2d(dilation_w=2, clamp=(0.0, 6000.0)))) == (
        "only without dilation"
    )
