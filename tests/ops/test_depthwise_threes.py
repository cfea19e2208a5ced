# SPDX-License-Identifier: Apache-2.0
"""Three bands of a depthwise channel in two words: with sums at both ends, in each band, of images of all remainders.
On boards it is in tests/emulated/test_operators.py."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, assert_exact
from tests.ops.test_packed_twos import lines
from tinyet.delegates import Delegate
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import depthwise_planes
from tinyet.ops.shared.conv2d_words import KERNELS

SYMBOL = "tinyet_depthwise_s8_chw_3x3_threes"
ALONE = Delegate("alone", {Conv2d: tuple(k for k in KERNELS if k.symbol == SYMBOL)})
RELU = (0.0, math.inf)
WORD = 2**32 - 1


def depthwise(
    size: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    clamp: tuple[float, float],
    seed: int,
) -> Node:
    """3x3 of three channels, of which the first has the largest weights that there are.

    pads: top, bottom, left, right."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, (3, 3, 3, 1))
    weights[0] = rng.choice([-128, 127], (3, 3, 1))
    x = Tensor("x", TensorType((2, *size, 3), DType.INT8, QuantParams.per_tensor(1.0, -9)))
    w = constant("w", weights.astype(np.int8), QuantParams.per_tensor(1.0, 0))
    b = constant("b", rng.integers(-9000, 9000, 3).astype(np.int32))
    top, bottom, left, right = pads
    attrs = Conv2d(
        groups=3,
        stride_h=strides[0],
        stride_w=strides[1],
        pad_top=top,
        pad_bottom=bottom,
        pad_left=left,
        pad_right=right,
        clamp=clamp,
    )
    zero_point = -128 if clamp[0] == 0 else 4
    return drawing.node_of(attrs, [x, w, b], QuantParams.per_tensor(150.0, zero_point))


def case(node: Node, seed: int) -> Case:
    """Of inputs three quarters are at an end."""
    rng = np.random.default_rng(seed)
    shape = node.input(0).shape
    ends, any_ = rng.choice([-128, 127], shape), rng.integers(-128, 128, shape)
    return Case(node, (np.where(rng.random(shape) < 0.25, any_, ends).astype(np.int8),))


def ways() -> list[Case]:
    """Rows of all remainders by three, among them fewer than three; even and odd columns, from two on; all borders."""
    found = []
    heights, widths = (3, 4, 5, 6, 7, 9, 11), (4, 5, 6, 9)
    pads = ((0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 0, 1), (2, 0, 2, 1))
    steps = ((1, 1), (2, 2), (1, 2), (2, 1), (3, 1))
    for k, (size, strides) in enumerate(itertools.product(itertools.product(heights, widths), steps)):
        clamp = (0.0, 9000.0) if k % 7 == 0 else RELU
        node = depthwise(size, strides, pads[(k + k // 5) % 4], clamp, k)
        if node.output.shape[2] > 1:
            found.append(case(node, k))
    return found


def test_ways() -> None:
    assert_exact(ways(), delegates=(ALONE,))


test_host_lines = bodies.batches(st.lists(lines(), min_size=8, max_size=8))


@pytest.mark.parametrize("seed", range(3))
def test_words_hold_three_sums(seed: int) -> None:
    """With the inputs for which a channel's sum is at an end, in each of the three places."""
    node = depthwise((6, 6), (1, 1), (1, 1, 1, 1), RELU, seed)
    (_, packed), f = depthwise_planes.constants_of_threes(node), depthwise_planes.folded_in_words(node)
    assert f.found.all()
    assert set(f.before.tolist()) == {11}
    for weights in packed.data.astype(np.int64):
        ends = [np.where(weights > 0, *pair) for pair in ((127, -128), (-128, 127))]
        for a, b, c in itertools.product([*ends, np.zeros(9, np.int64)], repeat=3):
            first, second = int((a + (c << 21)) @ weights) & WORD, int((b + (c << 10)) @ weights) & WORD
            sums = taken_apart(first, second)
            assert sums == (int(a @ weights), int(b @ weights), int(c @ weights))


def taken_apart(first: int, second: int) -> tuple[int, int, int]:
    """As the assembly has it, in registers of 32 bits."""

    def signed(word: int) -> int:
        return (word & WORD ^ 2**31) - 2**31

    a = signed(first << 11)
    rest = first - (a >> 11) & WORD
    b = signed(second - (rest >> 11) << 11)
    third = signed(second - (b >> 11))
    return a >> 11, b >> 11, signed(third << 1) >> 11


def test_bands_have_all_rows() -> None:
    """And as few as can be."""
    for rows in range(1, 20):
        node = depthwise((rows + 2, 5), (1, 1), (0, 0, 0, 0), RELU, 0)
        in_band, seen, columns = depthwise_planes.band(node)
        third = rows - in_band
        second = min(in_band, third)
        found = {start + k for start in (0, second, third) for k in range(in_band)}
        assert found == set(range(rows))
        assert (in_band, seen, columns) == (-(-rows // 3), -(-rows // 3) + 2, 5)


def reason(node: Node) -> str | None:
    return depthwise_planes.refuse_threes(node)


def test_what_it_refuses() -> None:
    strides = "only strides of one or two columns, and two outputs a row or more"
    assert reason(depthwise((6, 8), (1, 3), (1, 1, 1, 1), RELU, 0)) == strides
    assert reason(depthwise((6, 3), (1, 1), (0, 0, 0, 0), RELU, 0)) == strides
    any_sign = depthwise((6, 6), (1, 1), (1, 1, 1, 1), (-math.inf, math.inf), 0)
    assert reason(any_sign) == "what is added to products is not all in the sum before the first one"
    assert reason(depthwise((6, 6), (3, 1), (1, 1, 1, 1), RELU, 0)) is None
