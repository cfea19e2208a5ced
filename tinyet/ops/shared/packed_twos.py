# SPDX-License-Identifier: Apache-2.0
"""Weights of the kernels that compute two outputs by one multiplication of 32 bits, in short runs of inputs.

Two sums a, b of a run are the word 65536 b + a. Where both stay within 16 bits with their signs, a is its lower half,
and b the upper half, one more where a is negative. An input is -128 … 127, so this holds for all where magnitudes of
a run's weights add up to at most 255: of two weights always, but for -128 twice. A word is either of two output
channels' weights, for two taps of each block of four channels, or of two neighbouring pixels' inputs, for the taps of
a row, or a column, of a depthwise channel's kernel: three where that holds, else two and one.
"""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize
from tinyet.numerics import Int64, clamp_range
from tinyet.ops.shared import packed_words, two_products
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.packed_words import CHANNELS, rows_of, words
from tinyet.ops.shared.two_products import Rescaling
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant, FieldValue, Struct

RIGHT = 14
"""As in tinyet_depthwise_s8_chw_3x3_twos.c."""
TWOS = 8
"""Runs of the straight code in tinyet_conv2d_s8_packed_twos.c."""
_ROOM = 255


def _in_twos(weights: Int64) -> Int64:
    """(channels, taps) with a tap of zeros where their number is odd."""
    return np.pad(weights, ((0, 0), (0, weights.shape[1] % 2)))


def refuse(node: Node) -> str | None:
    """Why a convolution is not computed so."""
    magnitudes = _in_twos(np.abs(rows_of(node).astype(np.int64)))
    if int((magnitudes[:, ::2] + magnitudes[:, 1::2]).max()) > _ROOM:
        return "two neighbouring weights are -128"
    return packed_words.refuse(node)


def stream(node: Node) -> Constant:
    """All that a pixel of a convolution reads, front to back, block by block of CHANNELS channels. Missing channels of
    the last block have zeros for weights."""
    sums = packed_words.rescaling(node)
    assert isinstance(sums, Rescaling)
    weights, bias = _in_twos(rows_of(node).astype(np.int64)), folded_bias(node) - sums.start
    more = -len(weights) % CHANNELS
    blocks = (len(weights) + more) // CHANNELS
    before = np.pad(bias, (0, more)).reshape(blocks, CHANNELS // 2, 2)
    # (block, pair, channel of the pair, run, tap of the run)
    pairs = np.pad(weights, ((0, more), (0, 0))).reshape(blocks, CHANNELS // 2, 2, -1, 2)
    found = [
        words(before[:, :, 0], before[:, :, 1]),
        before[:, :, 1],
        words(pairs[:, :, 0], pairs[:, :, 1]).transpose(0, 2, 1, 3).reshape(blocks, -1),
        sums.padded(more).words(0, CHANNELS * blocks).reshape(blocks, -1),
    ]
    together = (np.concatenate(found, axis=1) & 0xFFFFFFFF).astype(np.uint32)
    return Constant("stream", together, "as tinyet_packed_twos.h")


def patch_bytes(node: Node) -> int:
    """Scratch: a word an input of a pixel, of an even number."""
    taps: int = rows_of(node).shape[1]
    return 4 * (taps + taps % 2)


def fields(node: Node) -> Struct:
    """The struct tinyet_packed_words of a convolution."""
    return packed_words.fields(node, above=0)


@memoize
def plane_rescaling(node: Node) -> Rescaling | str:
    """Of a depthwise layer's sums of inputs as they are, by products with RIGHT fixed."""
    weights, bias = rows_of(node).astype(np.int64), folded_bias(node)
    multiplier, shift = output_factors(node)
    highest, lowest = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
    reach = bias + 127 * lowest - 128 * highest, bias + 127 * highest - 128 * lowest
    clamp = clamp_range(clamp_of(node), node.output.type)
    zero_point = node.output.type.zero_point
    return two_products.rescaling(multiplier, shift, zero_point, clamp, reach, bits=RIGHT)


@memoize
def down(node: Node) -> bool:
    """Whether a depthwise layer's outputs are computed in twos down its columns, or along its rows: what leaves fewer
    of them alone, then what has fewer lines."""
    attrs, (_, out_h, out_w, _) = attrs_of(node), node.output.shape
    if attrs.stride_w > 2 or attrs.stride_h > 2:
        return attrs.stride_w > 2
    return (out_w * -(-out_h // 2), out_w) < (out_h * -(-out_w // 2), out_h)


def stride_along(node: Node) -> int:
    """From window to window of a line."""
    attrs = attrs_of(node)
    return attrs.stride_h if down(node) else attrs.stride_w


def _lines(node: Node) -> Int64:
    """(channels, lines, taps of a line)."""
    weights = rows_of(node).astype(np.int64).reshape(-1, 3, 3)
    return weights.transpose(0, 2, 1) if down(node) else weights


def refuse_planes(node: Node) -> str | None:
    """Why a depthwise layer is not computed so."""
    if stride_along(node) > 2:
        return "only strides 1 and 2"
    if int(np.abs(_lines(node))[:, :, :2].sum(axis=2).max()) > _ROOM:
        return "two neighbouring weights are -128"
    found = plane_rescaling(node)
    if isinstance(found, str):
        return found
    if found.two_sided:
        return "outputs of negative sums are rounded the other way"
    return None if found.right == RIGHT else "sums within the clamp reach too far"


@memoize
def divided(node: Node) -> list[bool]:
    """Of which channels some line of three taps is no run."""
    return [bool(each) for each in (np.abs(_lines(node)).sum(axis=2) > _ROOM).any(axis=1)]


def plane_stream(node: Node) -> Constant:
    """Of a depthwise layer, channel by channel."""
    sums = plane_rescaling(node)
    assert isinstance(sums, Rescaling)
    weights = _lines(node).reshape(-1, 9)
    bias = (folded_bias(node) - sums.start)[:, None]
    kinds = np.array(divided(node), np.int64)[:, None]
    parts = [kinds, 65537 * bias, bias, weights, sums.words(0, len(weights))]
    found = (np.concatenate(parts, axis=1) & 0xFFFFFFFF).astype(np.uint32)
    return Constant("stream", found, "as tinyet_packed_twos.h")


def plane_fields(node: Node) -> dict[str, FieldValue]:
    """What the params of a depthwise layer have beside its shape."""
    sums = plane_rescaling(node)
    assert isinstance(sums, Rescaling)
    return {"words": packed_words.described(node, sums, above=0), "down": int(down(node))}


def plane_bytes(node: Node) -> int:
    """Scratch: the part of a channel's image that windows reach, a word a pixel, and what is before each line."""
    attrs, (_, out_h, out_w, _) = attrs_of(node), node.output.shape
    rows, columns = (out_h - 1) * attrs.stride_h + 3, (out_w - 1) * attrs.stride_w + 3
    lines = columns if down(node) else rows
    return int(4 * (rows * columns + lines * stride_along(node)))
