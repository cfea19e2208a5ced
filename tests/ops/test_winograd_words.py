# SPDX-License-Identifier: Apache-2.0
"""Winograd's F(4x4, 3x3) by products of 32 bits: what is proved of a layer, and refused, and its extremes. On boards it
is in tests/emulated/test_operators.py."""

from __future__ import annotations

import numpy as np

from tests.delegates.test_cortex_m import winograd_nodes
from tests.delegates.test_winograd import extremes, layer
from tests.ops import bodies, drawing
from tests.ops.cases import assert_exact
from tinyet.delegates import Delegate
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import winograd_words
from tinyet.ops.shared.conv2d_words import KERNELS
from tinyet.ops.shared.one_product import Rounding
from tinyet.ops.shared.winograd import F4

ALONE = Delegate("alone", {Conv2d: tuple(k for k in KERNELS if k.symbol == "tinyet_conv2d_s8_winograd_f4x4")})


def test_sums_have_room_for_what_is_left_of_the_transform() -> None:
    """64 times the largest sum fits 32 bits; one more in the bias does not."""
    weights = np.full((1, 3, 3, 4), 127)
    most = 2**25 - 1 - 128 * 36 * 127
    folded = 3 * 36 * 127
    for bias, fits in ((most, True), (most + 1, False)):
        node = layer(weights, np.array([bias + folded]), scale=2.0**-14)
        found = winograd_words.rounding(node)
        assert isinstance(found, Rounding) == fits, found
        assert (winograd_words.refuse(node) is None) == fits
    assert "25 bits" in str(winograd_words.refuse(node))


def test_any_int8_weights_have_room() -> None:
    """Of all kernels of the ends of int8, which are the extremes of a linear map."""
    signs = np.array(np.meshgrid(*[[-128, 127]] * 9)).reshape(9, -1).T
    node = layer(signs.reshape(-1, 3, 3, 1), np.zeros(len(signs), np.int64), scale=2.0**-9)
    assert winograd_words.refuse(node) is None
    weights = winograd_words.constants(node)[1].data
    assert weights.dtype == np.int16
    blocks = winograd_words.weights(node).reshape(-1, 4, 36, 1)
    np.testing.assert_array_equal(weights, blocks.transpose(0, 2, 3, 1))
    assert np.abs(blocks).max() == 144 * 128


def test_what_has_no_tiles_is_refused() -> None:
    plain = layer(np.ones((2, 3, 3, 4), np.int64), np.zeros(2, np.int64), scale=0.01)
    assert winograd_words.refuse(plain) is None
    small = layer(np.ones((2, 3, 3, 4), np.int64), np.zeros(2, np.int64), scale=0.01, side=5)
    assert winograd_words.refuse(small) == "3x3 output pixels, needs 4x4"
    strided = drawing.node_of(Conv2d(stride_h=2), [*plain.inputs], plain.output.type.quant)
    assert winograd_words.refuse(strided) == "only stride 1 and dilation 1"


def test_extremes() -> None:
    """Every transformed value at both its ends, in the lower half of its word: an image has one tile. What the upper
    half holds is tested by tiles of all shapes."""
    assert_exact(
        [case for case in extremes(F4) if winograd_words.refuse(case.node) is None], delegates=(ALONE,)
    )


test_tiles_of_all_shapes = bodies.host(winograd_nodes())
