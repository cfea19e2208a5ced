# SPDX-License-Identifier: Apache-2.0
"""Constants of the kernel that multiplies two pixels' inputs at once and lets sums leave 16 bits.

A word 2**16 b + a of two pixels' inputs times weights adds up to 2**16 B + A modulo 2**32: the lower half of A, and the
lower half of B + (A >> 16). What is missing are four bits of each where both sums are within 20 bits. Of four words
these are 32 bits, which one word more has:

    b0 + 2**4 b1 + 2**8 b2 + 2**12 b3

adds up to the same of the sums B. Less what the words say of them, a digit of 16 is left of each A and each B: no sum
has to be drained in between, and eight pixels have five words.

Sums are counted from the middle of what they can be, so that 20 bits mean that all that they can be is less than 2**20
apart. Outputs are

    clamp(floor((2**BEFORE * sum + start) * multiplier / 2**32) + offset >> SHIFT)

where the start has a fraction of BEFORE bits, which the lower bits of a word hold that have no sum in them: found for
each channel, and proved at every step of the output, as depthwise_planes.py has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.numerics import Int64, clamp_range
from tinyet.ops.shared import depthwise_planes, two_products
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.depthwise_planes import TRIALS, starts
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant, FieldValue, Pointer

PIXELS = 8
BEFORE, SHIFT = 12, depthwise_planes.SHIFT
"""As in tinyet_conv2d_s8_paired_checked_8x1.c."""
TAPS = 4
"""What taps are rounded up to."""
WORDS = PIXELS // 2 + 1
"""Of a tap."""
MOST_PADDED = 1024
"""Bytes of a copied image."""
_LEAST, _MOST = -(2**19), 2**19 - 16
"""Of a sum and what it is counted from."""
_LIFT = 8
"""Upper sums are so much more, for the digit that is taken off is never below zero."""
_DIGITS = 0x8888_7777
"""With it no digit is below zero: that of a lower sum, which is subtracted, is -8 … 7, that of an upper one, too."""


@dataclass(frozen=True)
class Lines:
    """Arrays are (channels,); start: integer and, below BEFORE, the fraction."""

    bias: Int64
    start: Int64
    multiplier: Int64
    offset: Int64


@memoize_by_weights
def lines(node: Node) -> Lines | str:
    """Of a node with weights and per-channel factors; why there are none otherwise."""
    weights, bias = rows_of(node).astype(np.int64), folded_bias(node)
    multiplier, left = output_factors(node)
    zero_point, clamp = node.output.type.zero_point, clamp_range(clamp_of(node), node.output.type)
    reach = sum_range(weights, bias)
    if np.any(reach[1] - reach[0] >= _MOST - _LEAST - 2):
        return "sums do not fit 20 bits"
    if clamp[0] < zero_point:
        return "halves of negative sums are rounded away from zero"
    steps = two_products.steps_of(multiplier, left, zero_point, clamp, reach)
    if steps is None:
        return "an output changes where real numbers have it otherwise"
    near = np.rint(np.ldexp(multiplier.astype(np.float64), left + 1 + SHIFT - BEFORE)).astype(np.int64)
    if np.any(near >= 2**31 - len(TRIALS)):
        return "a factor is not below a half"
    # Where the middle of all sums is zero, an offset makes up for the product.
    middle = reach[0] + reach[1] >> 1
    if np.any(np.abs(middle) >= 2**30):
        return "sums do not fit 31 bits"
    offset = (middle * near >> 32 - BEFORE) + (2 * zero_point + 1 << SHIFT - 1)
    if np.any(np.abs(offset) >= 2**30):
        return "sums are too far from zero"
    outputs = np.arange(clamp[0] + 1, clamp[1] + 1, dtype=np.int64) << SHIFT
    values = outputs - offset[:, None] << 32
    found, start, factor = near < 0, np.zeros_like(bias), np.zeros_like(bias)
    for trial in TRIALS:
        m = np.maximum(near + trial, 1)
        right, at = starts(steps, reach, values, m, BEFORE)
        fits = (reach[0] + (at >> BEFORE) >= _LEAST) & (reach[1] + (at >> BEFORE) <= _MOST)
        new = ~found & right & fits
        found, start, factor = found | new, np.where(new, at, start), np.where(new, m, factor)
        if found.all():
            return Lines(bias, start, factor, offset)
    return "no straight line has all steps of the output"


def refuse(node: Node) -> str | None:
    found = lines(node)
    return found if isinstance(found, str) else None


@memoize_by_weights
def stream(node: Node) -> Constant:
    """Of tinyet_conv2d_s8_paired_checked_8x1, uint32 (channels, words)."""
    r = lines(node)
    assert isinstance(r, Lines)
    weights = rows_of(node)
    weights = np.pad(weights, ((0, 0), (0, -weights.shape[1] % TAPS)))
    first = r.bias + (r.start >> BEFORE)
    lifted = first + _LIFT
    begin = np.stack([first + (lifted << 16), 0x1111 * lifted + _DIGITS], axis=1)
    fraction = (r.start & (1 << BEFORE) - 1) + 2**31
    end = np.stack([r.offset, r.multiplier, fraction], axis=1)
    bytes_of = weights.astype(np.uint8).reshape(len(weights), -1, 4).astype(np.int64)
    words = (bytes_of << np.arange(0, 32, 8)).sum(axis=2)
    found = np.concatenate([begin, words, end], axis=1) & 0xFFFFFFFF
    return Constant("stream", found.astype(np.uint32), "as tinyet_conv2d_paired.h")


def padded(node: Node) -> tuple[int, int]:
    """Rows and columns of the image with all that windows see, where they see what is not in it and a copy is small;
    zeros otherwise, and where windows are single pixels, which are in the image or beside it as wholes."""
    attrs, (_, in_h, in_w, channels) = attrs_of(node), node.input(0).shape
    (_, kernel_h, kernel_w, _), (_, out_h, out_w, _) = node.input(1).shape, node.output.shape
    bottom = (out_h - 1) * attrs.stride_h + kernel_h - attrs.pad_top
    right = (out_w - 1) * attrs.stride_w + kernel_w - attrs.pad_left
    inside = attrs.pad_top == attrs.pad_left == 0 and bottom <= in_h and right <= in_w
    rows, columns = max(bottom, in_h) + attrs.pad_top, max(right, in_w) + attrs.pad_left
    single, gaps = kernel_h == kernel_w == 1, (attrs.dilation_h, attrs.dilation_w) != (1, 1)
    return (0, 0) if inside or single or gaps or rows * columns * channels > MOST_PADDED else (rows, columns)


def scratch_bytes(node: Node) -> int:
    """Eight pixels' windows, five words a tap, taps rounded up; eight pixels' outputs; the padded image."""
    channels, taps = rows_of(node).shape
    image = math.prod(padded(node)) * node.input(0).shape[3]
    return int(4 * WORDS * (taps + -taps % TAPS) + PIXELS * channels + image)


def fields(node: Node) -> dict[str, FieldValue]:
    """Of the params, behind the shape."""
    low, high = clamp_range(clamp_of(node), node.output.type)
    zero_point, (rows, columns) = node.input(0).type.zero_point, padded(node)
    return {
        "stream": Pointer("stream"),
        "padding": zero_point,
        "clamp_low": low,
        "clamp_high": high,
        "padded_h": rows,
        "padded_w": columns,
    }
