# SPDX-License-Identifier: Apache-2.0
"""Winograd's F(4x4, 3x3) by products of 32 bits: what is proved of a layer, and refused, and its extremes. On boards it
is in tests/emulated/test_operators.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.delegates.test_cortex_m import winograd_nodes
from tests.delegates.test_winograd import extremes, layer
from tests.ops import bodies, drawing
from tests.ops.cases import Case, assert_exact
from tinyet.delegates import Delegate
from tinyet.ir import Tensor
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import winograd_words
from tinyet.ops.shared.conv2d_words import KERNELS, by_tiles_once
from tinyet.ops.shared.one_product import Rounding
from tinyet.ops.shared.winograd import F4

ALONE = [Delegate("alone", {Conv2d: (k,)}) for k in KERNELS if k.symbol.endswith("winograd_f4x4")]
KERNEL = pytest.mark.parametrize("alone", ALONE, ids=["int8", "w16"])


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
    weights = winograd_words.wide_constants(node)[1].data
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


WAYS = {
    "four tiles": ((1, 8, 8, 9), (3, 1, 1)),
    "all kept": ((1, 16, 32, 32), (8, 1, 4)),
    "all kept, some missing": ((1, 9, 8, 32), (8, 1, 3)),
    "all at once": ((1, 20, 5, 9), (1, 3, 0)),
    "parts": ((1, 12, 24, 8), (2, 1, 0)),
    "parts of several blocks": ((1, 17, 32, 18), (2, 3, 0)),
    "images": ((2, 5, 8, 8), (2, 1, 0)),
}
"""Images, output pixels a side, channels in and out; parts, blocks at once, what is kept."""


def ways() -> list[Case]:
    """int8 weights in all ways in which they are transformed."""
    rng, found = np.random.default_rng(3), []
    for (batch, side, in_c, out_c), _ in WAYS.values():
        weights = rng.integers(-128, 128, (out_c, 3, 3, in_c))
        node = layer(weights, rng.integers(-999, 999, out_c), batch, scale=2.0**-12, side=side + 2)
        found.append(Case(node, (drawing.int8_data(rng, node.input(0).shape),)))
    return found


def test_what_is_transformed_at_a_time() -> None:
    """Scratch is what that takes, and the inputs stay where their output may lie over them only if read once."""
    for case, (name, ((_, _, in_c, _), wanted)) in zip(ways(), WAYS.items(), strict=True):
        node, (parts, at_once, kept) = case.node, wanted
        found = winograd_words.parts(node), winograd_words.at_once(node), winograd_words.kept(node)
        assert found == wanted, name
        assert winograd_words.scratch_bytes(node) == 288 * in_c * (max(kept, 1) + at_once) + 2304, name
        assert (by_tiles_once(node, 0) is None) == (parts > 1 and kept == 0), name


@KERNEL
def test_ways(alone: Delegate) -> None:
    assert_exact(ways(), delegates=(alone,))


def in_upper_halves(case: Case) -> Case:
    """Its images of one tile in the last of four tiles, which is the upper half of a word."""
    _, w, b = case.node.inputs
    batch, _, _, in_c = case.node.input(0).shape
    wide = drawing.node_of(
        case.node.attrs,
        [Tensor("x", replace(case.node.input(0).type, shape=(batch, 10, 10, in_c))), w, b],
        case.node.output.type.quant,
    )
    return Case(wide, (np.pad(case.inputs[0], ((0, 0), (4, 0), (4, 0), (0, 0)), mode="edge"),))


@KERNEL
def test_extremes(alone: Delegate) -> None:
    """Every transformed value at both its ends, in both halves of its word."""
    lower = [case for case in extremes(F4, at_once=36) if winograd_words.refuse(case.node) is None]
    assert_exact([*lower, *(in_upper_halves(case) for case in lower)], delegates=(alone,))


test_tiles_of_all_shapes = bodies.host(winograd_nodes())
