# SPDX-License-Identifier: Apache-2.0
"""Constants of the depthwise kernels that go from channel to channel and round by one product (one_product.py), with
one shift for all channels: sums are multiplied ahead of time, in weights and bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.numerics import Int64, clamp_range
from tinyet.ops.shared import one_product, packed_words, two_products
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.one_product import Rounding
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.two_products import Steps
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant, FieldValue, Pointer

SHIFT = 12
"""As in tinyet_depthwise_s8_chw_3x3_2x1.c."""
TOGETHER = 4
"""Channels of a plane, whose inputs of a pixel are a word: as in tinyet_plane_copies_body.h."""
MOST_BEFORE, LEAST_BEFORE = 14, 3
"""Powers of two that sums are multiplied by ahead of time, where that is not to be what one_product.py has."""
WORDS_BEFORE = 11
"""The same of sums whose fields have 21 bits: they are shifted to the upper end of a word."""
WIDE_BEFORE = 9
"""The same of sums that have more bits, with what is added to them or of several parts."""
FIVES_BEFORE = 12
"""The same of sums whose fields have 19 bits, and a bit more with what is added to them."""
TRIALS = sorted(range(-4, 5), key=abs)
_FAR = 2**62


@memoize_by_weights
def rounding(node: Node) -> Rounding | str:
    return one_product.rounding(node, shift=SHIFT)


@dataclass(frozen=True)
class Folded:
    """Arrays are (channels,). Where `found`, the output of a sum is

        clamp(floor((2**before * sum + start) * multiplier / 2**32) >> SHIFT)

    for every sum within reach: what one_product.py adds to the product is in the start."""

    found: npt.NDArray[np.bool_]
    before: Int64
    start: Int64
    multiplier: Int64


@memoize_by_weights
def folded(node: Node) -> Folded:
    """With any power that fits."""
    return _folded(node, range(MOST_BEFORE, LEAST_BEFORE, -1))


@memoize_by_weights
def folded_in_words(node: Node) -> Folded:
    """With the power that sums have where words are taken apart."""
    return _folded(node, (WORDS_BEFORE,))


@memoize_by_weights
def folded_whole(node: Node) -> Folded:
    """The same of sums that are made modulo 2**32: only the whole one has to fit, with what is added to it."""
    return _folded(node, (WORDS_BEFORE,), whole=True)


@memoize_by_weights
def folded_wide(node: Node) -> Folded:
    """The same of sums that have more bits."""
    return _folded(node, (WIDE_BEFORE,), whole=True)


@memoize_by_weights
def folded_in_fives(node: Node) -> Folded:
    """The same of sums that have fewer bits."""
    return _folded(node, (FIVES_BEFORE,), whole=True)


def _folded(node: Node, powers: Sequence[int], *, whole: bool = False) -> Folded:
    """Both sides are monotone in the sum, so they agree everywhere if they do on both sides of each step of the output.
    With each factor that is tried a step says between which bounds the start must be. None is found where outputs of
    negative sums are seen: halves of those are rounded the other way."""
    weights, bias = rows_of(node).astype(np.int64), folded_bias(node)
    multiplier, left = output_factors(node)
    zero_point, clamp = node.output.type.zero_point, clamp_range(clamp_of(node), node.output.type)
    reach = sum_range(weights, bias)
    nothing = np.zeros(len(bias), np.int64)
    found, before, start, factor = nothing > 0, nothing, nothing, nothing
    steps = two_products.steps_of(multiplier, left, zero_point, clamp, reach)
    if clamp[0] < zero_point or steps is None:
        return Folded(found, before, start, factor)
    values = np.arange(clamp[0] + 1, clamp[1] + 1) << 32 + SHIFT
    # Of every part of a sum, too: what a C compiler adds up must not overflow.
    bound = np.abs(bias) + 128 * np.abs(weights).sum(axis=1)
    for k, trial in product(powers, TRIALS):
        near = np.rint(np.ldexp(multiplier.astype(np.float64), left + 1 + SHIFT - k)).astype(np.int64)
        m = np.clip(near + trial, 1, 2**31 - 1)
        right, middle = starts(steps, reach, values, m, k)
        if whole:
            fits = ((reach[0] << k) + middle >= -(2**31)) & ((reach[1] << k) + middle < 2**31)
        else:
            fits = (bound << k) + np.abs(middle) < 2**31
        new = ~found & (near < 2**31 - 8) & right & fits
        before, start = np.where(new, k, before), np.where(new, middle, start)
        factor = np.where(new, m, factor)
        found = found | new
        if found.all():
            break
    return Folded(found, before, start, factor)


def starts(
    steps: Steps, reach: tuple[Int64, Int64], values: Int64, multiplier: Int64, before: int
) -> tuple[npt.NDArray[np.bool_], Int64]:
    """Whether there are starts with which (2**before * sum + start) * multiplier comes to each value at its step, and
    the one in the middle, (channels,). values: (channels, steps), or (steps,) of all channels."""
    # A step that no sum comes to is beyond all, one that is behind every sum is below: one side is to be right then.
    reached, left_behind = steps.at <= reach[1][:, None], steps.at > reach[0][:, None]
    # The least start with which a sum that is one step further comes to this output.
    least = -(-values // multiplier[:, None]) - (steps.at << before)
    low = np.where(reached, least, -_FAR).max(axis=1, initial=-_FAR)
    high = np.where(left_behind, least + (1 << before) - 1, _FAR).min(axis=1, initial=_FAR)
    one_side = (low == -_FAR) | (high == _FAR)
    return low <= high, np.where(one_side, np.clip(0, low, high), low + high >> 1)


def refuse(node: Node) -> str | None:
    if folded(node).found.all():
        return None
    found = rounding(node)
    return found if isinstance(found, str) else None


def constants(node: Node, *, transposed: bool = False) -> tuple[Constant, Constant]:
    """The stream and the weights of tinyet_depthwise_s8_chw_3x3_2x1: int32 (channels, 2 or 4), int8 (channels, 10).
    transposed: weights column by column."""
    f, r = folded(node), rounding(node)
    before, start, multiplier = f.before, f.start, f.multiplier
    offset = away = np.zeros_like(start)
    if not f.found.all():
        assert isinstance(r, Rounding)
        before, multiplier = np.where(f.found, before, r.before), np.where(f.found, multiplier, r.multiplier)
        offset, away = np.where(f.found, 0, r.offset), np.where(f.found, 0, r.away)
    start = (folded_bias(node) << before) + start
    weights = rows_of(node).astype(np.int64)
    if transposed:
        weights = weights.reshape(-1, 3, 3).swapaxes(1, 2).reshape(weights.shape)
    words = np.stack([start, multiplier, offset, away], axis=1)[:, : words_of(node)].astype(np.int32)
    by_channel = np.concatenate([weights, before[:, None]], axis=1).astype(np.int8)
    return (
        Constant("stream", words, "as tinyet_depthwise_planes.h"),
        Constant("weights", by_channel, "nine, and the power of two that sums are multiplied by"),
    )


def words_of(node: Node) -> int:
    """Of the stream, a channel."""
    return 2 if folded(node).found.all() else 4


def by_words(node: Node) -> bool:
    """Whether inputs are copied by words, where the image begins at a multiple of four bytes, and not by bytes."""
    return node.input(0).shape[3] % TOGETHER == 0


def scratch_bytes(node: Node) -> int:
    """A plane of four channels, however many there are."""
    return TOGETHER * packed_words.plane_bytes(node)


def fields(node: Node) -> dict[str, FieldValue]:
    """Of the params, behind the shape."""
    low, high = clamp_range(clamp_of(node), node.output.type)
    padding = node.input(0).type.zero_point
    return {"stream": Pointer("stream"), "padding": padding, "clamp_low": low, "clamp_high": high}


def fields_of_2x1(node: Node) -> dict[str, FieldValue]:
    return {**fields(node), "weights": Pointer("weights"), "words": words_of(node)}


def refuse_threes(node: Node) -> str | None:
    """Of tinyet_depthwise_s8_chw_3x3_threes, which has only outputs whose sums begin with all that is added."""
    if attrs_of(node).stride_w > 2 or node.output.shape[2] < 2:
        return "only strides of one or two columns, and two outputs a row or more"
    found = folded_in_words(node).found.all()
    return None if found else "what is added to products is not all in the sum before the first one"


def band(node: Node) -> tuple[int, int, int]:
    """Rows of outputs of a third of the image, rounded up, and rows and columns of the inputs that they see."""
    a, (_, out_h, out_w, _) = attrs_of(node), node.output.shape
    rows = -(-out_h // 3)
    return rows, (rows - 1) * a.stride_h + 3, (out_w - 1) * a.stride_w + 3


def constants_of_threes(node: Node) -> tuple[Constant, Constant]:
    """The stream and the weights of tinyet_depthwise_s8_chw_3x3_threes: uint32 (channels, 2), int8 (channels, 9)."""
    f = folded_in_words(node)
    start = (folded_bias(node) << WORDS_BEFORE) + f.start
    found = (np.stack([start, f.multiplier], axis=1) & 0xFFFFFFFF).astype(np.uint32)
    stream = Constant("stream", found, "as tinyet_depthwise_planes.h")
    return stream, Constant("weights", rows_of(node).astype(np.int8), "a channel a row")


def scratch_bytes_of_threes(node: Node) -> int:
    """Two words for each input of a band; a row of padding."""
    (_, rows, columns), (_, _, in_w, channels) = band(node), node.input(0).shape
    return 8 * rows * columns + in_w * channels


def refuse_fives(node: Node) -> str | None:
    """Of tinyet_depthwise_s8_chw_3x3_fives, which has only outputs whose sums begin with all that is added. Any nine
    weights have room."""
    _, _, columns = band_of_fives(node)
    if columns <= attrs_of(node).pad_left:
        return "no window sees a column of the image"
    found = folded_in_fives(node).found.all()
    return None if found else "what is added to products is not all in the sum before the first one"


def band_of_fives(node: Node) -> tuple[int, int, int]:
    """As `band`, of a fifth of the image."""
    a, (_, out_h, out_w, _) = attrs_of(node), node.output.shape
    rows = -(-out_h // 5)
    return rows, (rows - 1) * a.stride_h + 3, (out_w - 1) * a.stride_w + 3


def constants_of_fives(node: Node) -> tuple[Constant, Constant]:
    """As `constants_of_threes`."""
    f = folded_in_fives(node)
    # What makes all sums positive is taken off again.
    start = (folded_bias(node) - 2**18 << FIVES_BEFORE) + f.start
    found = (np.stack([start, f.multiplier], axis=1) & 0xFFFFFFFF).astype(np.uint32)
    stream = Constant("stream", found, "as tinyet_depthwise_planes.h")
    return stream, Constant("weights", rows_of(node).astype(np.int8), "a channel a row")


def scratch_bytes_of_fives(node: Node) -> int:
    """Where five rows are, and three words for each input, of each row of a band; a row of padding."""
    (_, rows, columns), (_, _, in_w, channels) = band_of_fives(node), node.input(0).shape
    return 20 * rows + 12 * rows * columns + in_w * channels
