# SPDX-License-Identifier: Apache-2.0
"""Five bands of a depthwise channel in three words: with sums at both ends, in each band, of images of all remainders.
On boards it is in tests/emulated/test_operators.py."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tests.calls.exact import assert_kernels
from tests.ops.cases import Case, assert_exact
from tests.ops.test_depthwise_threes import RELU, case, depthwise
from tinyet.delegates import Delegate
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import depthwise_planes
from tinyet.ops.shared.conv2d_words import KERNELS

SYMBOL = "tinyet_depthwise_s8_chw_3x3_fives"
ALONE = Delegate("alone", {Conv2d: tuple(k for k in KERNELS if k.symbol == SYMBOL)})


def ways() -> list[Case]:
    """Rows of all remainders by five, among them fewer than five; columns from one on; all borders."""
    found = []
    heights, widths = (3, 5, 6, 7, 8, 9, 12), (3, 4, 5, 8)
    pads = ((0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 0, 1), (2, 0, 2, 1))
    steps = ((1, 1), (2, 2), (1, 2), (2, 1), (3, 3))
    for k, (size, strides) in enumerate(itertools.product(itertools.product(heights, widths), steps)):
        clamp = (0.0, 9000.0) if k % 7 == 0 else RELU
        found.append(case(depthwise(size, strides, pads[(k + k // 5) % 4], clamp, k), k))
    # Nearly all windows are beside the image.
    found += [case(depthwise((2, 1), (1, 3), (7, 8, 5, 0), RELU, k), k) for k in range(2)]
    return found


def test_ways() -> None:
    cases = ways()
    assert {depthwise_planes.refuse_fives(one.node) for one in cases} == {None}
    assert_exact(cases, delegates=(ALONE,))


def test_memory_in_every_way() -> None:
    """Each array by itself, at odd addresses, and the output over the input as far as it may lie there."""
    assert_kernels(ways(), ALONE)


def test_any_nine_weights_have_room() -> None:
    """And the offset of a field is the smallest that is enough for those that are at both ends."""
    assert 9 * 128 * 128 < 2**18
    f = depthwise_planes.folded_in_fives(depthwise((6, 6), (1, 1), (1, 1, 1, 1), RELU, 0))
    assert f.found.all()
    assert set(f.before.tolist()) == {12}


def test_bands_have_all_rows() -> None:
    """And as few as can be."""
    for rows in range(1, 20):
        node = depthwise((rows + 2, 5), (1, 1), (0, 0, 0, 0), RELU, 0)
        in_band, seen, columns = depthwise_planes.band_of_fives(node)
        starts = [min(i * in_band, rows - in_band) for i in range(5)]
        assert {start + k for start in starts for k in range(in_band)} == set(range(rows))
        assert (in_band, seen, columns) == (-(-rows // 5), -(-rows // 5) + 2, 5)
        assert depthwise_planes.scratch_bytes_of_fives(node) == seen * (20 + 12 * 5) + 5 * 3


def test_what_it_refuses() -> None:
    any_sign = depthwise((6, 6), (1, 1), (1, 1, 1, 1), (-math.inf, math.inf), 0)
    why = "what is added to products is not all in the sum before the first one"
    assert depthwise_planes.refuse_fives(any_sign) == why
    assert np.all(depthwise_planes.folded_in_fives(any_sign).found == 0)
    # Strides may leave the image out: rows of it are packed a place at a time, one at least.
    beside = depthwise((3, 1), (1, 5), (1, 1, 5, 0), RELU, 0)
    assert depthwise_planes.refuse_fives(beside) == "no window sees a column of the image"
    assert depthwise_planes.refuse_fives(depthwise((3, 1), (1, 3), (1, 1, 5, 0), RELU, 0)) is None
