# SPDX-License-Identifier: Apache-2.0
"""Eight pixels in five words, whose sums leave 16 bits: digits that are taken off, and what is proved of outputs. The
kernel itself is in test_conv2d.py, on boards in tests/emulated/test_paired_checked.py and test_operators.py."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.calls.exact import assert_kernels
from tests.delegates.test_winograd import layer
from tests.ops import drawing
from tests.ops import paired_checked as extreme
from tests.ops.cases import Case
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import Int64, requantize
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import paired_checked
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.paired_checked import BEFORE, PIXELS, SHIFT, Lines
from tinyet.ops.shared.weighted import folded_bias

MODULUS = 2**32


def lines_of(node: Node) -> Lines:
    found = paired_checked.lines(node)
    assert isinstance(found, Lines), found
    return found


def signed(words: Int64) -> Int64:
    return np.asarray((words % MODULUS ^ MODULUS // 2) - MODULUS // 2, np.int64)


@pytest.mark.parametrize("taps", [45, 64])
def test_digits_make_whole_sums_of_halves(taps: int) -> None:
    """Of the constants as they are packed; with inputs that reach farthest either way, and random ones."""
    node = extreme.node(taps, seed=taps)
    r, rows = lines_of(node), rows_of(node).astype(np.int64)
    stream = paired_checked.stream(node).data.astype(np.int64)
    rng = np.random.default_rng(taps)
    for channel, weights in enumerate(rows):
        most = np.where(weights > 0, 127, -128)
        x = rng.integers(-128, 128, (60, PIXELS, taps))
        for tile in range(2**PIXELS // 8):
            up = np.array([tile * 8 + tile % 8 >> pixel & 1 for pixel in range(PIXELS)])
            x[tile] = np.where(up[:, None] == 1, most, -1 - most)
        words = x[:, ::2] + (x[:, 1::2] << 16)
        check = (x[:, 1::2] << 4 * np.arange(4)[:, None]).sum(axis=1)
        row = stream[channel]
        sums = (row[0] + words @ weights) % MODULUS
        left = (row[1] + check @ weights - ((sums >> 16) << 4 * np.arange(4)).sum(axis=1)) % MODULUS
        digits = ((left ^ 0xFFFF)[:, None] >> 4 * np.arange(8)) & 15
        lower, upper = digits[:, :4] - 8, digits[:, 4:] - 8
        got = np.empty(x.shape[:2], np.int64)
        got[:, ::2] = (lower << 16) + (sums & 0xFFFF)
        got[:, 1::2] = (upper << 16) + (sums >> 16) - lower - 8
        np.testing.assert_array_equal(got, r.bias[channel] + x @ weights + (r.start[channel] >> BEFORE))
        assert np.abs(got).max() <= 2**19
    if taps == 64:
        assert max(np.abs(rows).sum(axis=1)) * 255 > 0.99 * 2**20


@pytest.mark.parametrize("scale", [0.4, 0.0371, 2.0**-7, 7e-4, 2.0**-11])
@pytest.mark.parametrize("weight", [1, 20])
def test_every_sum_is_rounded_as_the_rule_says(scale: float, weight: int) -> None:
    """Of a channel that has steps of its output and of one that has none."""
    weights = np.zeros((2, 3, 3, 20), np.int64)
    weights[0].flat[:157] = weight
    node = layer(weights, np.array([12, 40]), relu=True, scale=scale)
    r, (multiplier, shift) = lines_of(node), output_factors(node)
    bias = folded_bias(node)
    for c in range(2):
        reach = np.abs(rows_of(node)[c].astype(np.int64)).sum()
        sums = np.arange(bias[c] - 128 * reach, bias[c] + 127 * reach + 1)
        scaled = (sums << BEFORE) + r.start[c]
        assert np.abs(scaled).max() < 2**31
        value = (scaled * r.multiplier[c] >> 32) + r.offset[c]
        assert np.abs(value).max() < 2**31
        want = np.clip(requantize(sums, multiplier[c], shift[c]) + node.output.type.zero_point, -128, 127)
        np.testing.assert_array_equal(np.clip(value >> SHIFT, -128, 127), want)


def test_what_is_refused() -> None:
    weights = np.full((1, 3, 3, 3), 127)
    assert paired_checked.refuse(layer(weights, np.zeros(1, np.int64), relu=True, scale=0.01)) is None
    for refused, relu, scale, bias, why in (
        (weights, False, 0.01, 0, "halves of negative sums are rounded away from zero"),
        (np.full((1, 3, 3, 4), 127), True, 0.01, 0, "sums do not fit 20 bits"),
        (weights, True, 0.6, 0, "a factor is not below a half"),
        (weights, True, 1e-4, 2**30 + 2**29, "sums do not fit 31 bits"),
        (weights, True, 0.4, 2**29, "sums are too far from zero"),
    ):
        assert paired_checked.refuse(layer(refused, np.array([bias]), relu=relu, scale=scale)) == why


@pytest.mark.parametrize("pads", [(0, 0, 0, 1), (0, 1, 0, 0), (1, 0, 1, 0), (1, 1, 1, 1)])
def test_single_pixels_and_what_is_beside_the_image(pads: tuple[int, int, int, int]) -> None:
    """As many outputs as the image has pixels with its padding, which is not copied."""
    top, bottom, left, right = pads
    rng = np.random.default_rng(7)
    x = Tensor("x", TensorType((1, 4, 4, 2), DType.INT8, QuantParams.per_tensor(1.0, 3)))
    w = constant("w", rng.integers(-9, 10, (3, 1, 1, 2)).astype(np.int8), QuantParams.per_tensor(1.0, 0))
    b = constant("b", rng.integers(-20, 20, 3).astype(np.int32))
    attrs = Conv2d(pad_top=top, pad_bottom=bottom, pad_left=left, pad_right=right, clamp=(0.0, math.inf))
    node = drawing.node_of(attrs, [x, w, b], QuantParams.per_tensor(9.0, -128))
    assert paired_checked.refuse(node) is None
    assert paired_checked.padded(node) == (0, 0)
    assert_kernels([Case(node, (rng.integers(-128, 128, node.input(0).shape, np.int8),))])


def test_small_images_are_copied_with_what_windows_see_beside_them() -> None:
    assert paired_checked.padded(extreme.node(64, seed=1)) == (0, 0)
    assert paired_checked.padded(extreme.windows(columns=9)) == (13, 9)
    assert paired_checked.padded(extreme.windows(columns=200)) == (0, 0)
    assert paired_checked.padded(extreme.windows(columns=9, dilation=2)) == (0, 0)
    copied, not_copied = (
        paired_checked.scratch_bytes(extreme.windows(columns=n)) - 4 * 5 * 20 - 8 * extreme.OUT_C
        for n in (9, 200)
    )
    assert (copied, not_copied) == (13 * 9 * 2, 0)
