# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers, one row at a time: the streams of tinyet_linear_1x4_dsp.h, and what they need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.packing import join_bytes, pack_int16x2, padded_channels, words
from tinyet.delegates.cortex_m.rounding import Form, Rounding, rounding, sum_range
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import by_copied_vectors
from tinyet.ops.shared.clamped import clamp_of
from tinyet.opset import Call, Constant, Kernel

HEADERS = ("tinyet_dsp.h", "tinyet_conv2d_dsp.h", "tinyet_linear_1x4_dsp.h")

TURN = 9
"""TINYET_DSP_ROW_TURN"""

MOST_BEFORE = 8
"""-128 << 8 fits int16."""

LEAST_LEFT, MOST_LEFT = 2, 8
"""Right shifts of SMLAW, so that both powers of two fit their byte."""


@dataclass(frozen=True)
class Paired:
    """The factors and shifts; arrays are int64, one element a channel, as many as `count` rounded up to four.

    weights: (channels, depth rounded up to eight); shift: the right shift e of numerics.requantize, made positive;
    exponent: the part of it that all channels share.
    """

    weights: Int64
    bias: Int64
    multiplier: Int64
    shift: Int64
    exponent: int


def shared_exponent(shift: Int64) -> int | None:
    """A multiple of 4 where one fits, so that more layers have equal constants and share their code."""
    least = max(1, int(shift.max(initial=0)) - MOST_LEFT)
    most = int(shift.min(initial=MOST_LEFT + least)) - LEAST_LEFT
    exponent = least + -least % 4
    return None if least > most else exponent if exponent <= most else least


def paired(r: Rounding, zero_point: int) -> Paired | None:
    """None where the shifts of the channels are too far apart, or too small. The form of `r` is not PLAIN."""
    live = r.multiplier != 0
    one_sided = r.form is Form.ONE_SIDED
    shift = 1 + r.exponent - r.shift if one_sided else r.shift
    exponent = shared_exponent(shift[live])
    if exponent is None:
        return None
    # A channel of one output has that as its bias, times the power of two that requantization divides by.
    fixed = r.offset >> (r.exponent if one_sided else r.shift)
    shift = np.where(live, shift, exponent + LEAST_LEFT)
    bias = np.where(live, r.bias, (fixed - zero_point) << (shift + 1))
    multiplier = np.where(live, r.multiplier, 2**30)
    deep = np.pad(r.weights, ((0, 0), (0, -r.weights.shape[1] % 8)))
    short = padded_channels(multiplier - 2**30, 4) + 2**30  # what is behind the last channel is any valid one
    left = padded_channels(shift - exponent - LEAST_LEFT, 4) + exponent + LEAST_LEFT
    return Paired(padded_channels(deep, 4), padded_channels(bias, 4), short, left, exponent)


def rounding_of(node: Node) -> Rounding:
    return rounding(node, clamp_of(node))


def refuse(node: Node, target: Target) -> str | None:
    r = rounding_of(node)
    if r.form is Form.PLAIN:
        return "a factor of one half or more, or sums too large to be scaled in one step"
    if (r.low, r.high) != (-128, 127):
        return f"clamped to {r.low} … {r.high} within int8"
    p = paired(r, node.output.type.zero_point)
    if p is None:
        return "the factors of its channels are too far apart, or one is 1/8 or more"
    a, b = p.weights[0::2], p.weights[1::2]
    if np.any((b == -128) & (a < 0)):
        return "a weight of -128"
    smallest, largest = sum_range(b, p.bias[1::2])
    bound = int(max(-smallest.min(), largest.max()))
    return f"sums up to {bound}, needs fewer than 2**23" if bound >= 2**23 else None


def head(depth: int, count: int, offset: int, signs: int) -> Int64:
    """A tinyet_row_head_dsp."""
    eights = -(-depth // 8)
    turns = (eights - 1) // TURN
    return np.array([eights - turns * TURN, turns, count // 4 * 4, offset, signs], np.int64)


def stream(node: Node) -> tuple[Int64, int]:
    """The words of tinyet_linear_1x4_dsp.h, and the exponent. The node is not refused."""
    count, depth = node.input(1).shape
    zero_point = node.output.type.zero_point
    r = rounding_of(node)
    p = paired(r, zero_point)
    assert p is not None
    signs = 20 if r.form is Form.TWO_SIDED else 0
    offset = (1 << (p.exponent - 1)) + (zero_point << p.exponent)
    a, b = p.weights[0::2], p.weights[1::2]
    lanes = (256 * b + a).reshape(len(a), -1, 4)  # (pairs, quads of inputs, 4)
    both = np.stack(
        [pack_int16x2(lanes[..., i], lanes[..., i + 2]) for i in (0, 1)], axis=-1
    )  # (pairs, quads, 2)
    # (groups, pair, quads, 2) -> (groups, quads, pair, 2)
    body = both.reshape(-1, 2, both.shape[1], 2).transpose(0, 2, 1, 3).reshape(len(a) // 2, -1)
    four = a.reshape(len(a), -1, 4)
    constant = (four[..., 0] * four[..., 1] + four[..., 2] * four[..., 3]).sum(axis=1)
    bias_a, bias_b = p.bias[0::2], p.bias[1::2]
    start = np.stack([256 * bias_b + bias_a, bias_a - constant], axis=1).reshape(-1, 4)
    multiplier = np.stack([2 * p.multiplier[0::2], p.multiplier[1::2]], axis=1).reshape(-1, 4)
    left = p.shift - p.exponent
    powers = np.stack([1 << (9 - left[1::2]), 1 << (8 - left[0::2])], axis=1).reshape(-1, 4)
    groups = np.concatenate([start, body, multiplier, join_bytes(powers)[:, None]], axis=1)
    return words(np.concatenate([head(depth, count, offset, signs), groups.ravel()])), p.exponent


def wide_rounding(node: Node) -> Rounding:
    """Of sums of weights that are shifted before: they have to fit int16."""
    return rounding(node, clamp_of(node), MOST_BEFORE)


def refuse_wide(node: Node, target: Target) -> str | None:
    r = wide_rounding(node)
    if r.form is Form.PLAIN:
        return "a factor of one half or more, or sums too large to be scaled in one step"
    return None if (r.low, r.high) == (-128, 127) else f"clamped to {r.low} … {r.high} within int8"


def wide_stream(node: Node) -> Int64:
    count, depth = node.input(1).shape
    r = wide_rounding(node)
    deep = np.pad(r.weights << r.before[:, None], ((0, 0), (0, -depth % 8)))
    four = padded_channels(deep, 4).reshape(-1, 4, deep.shape[1] // 4, 4)  # (groups, channel, quads, 4)
    body = np.stack([pack_int16x2(four[..., i], four[..., i + 2]) for i in (0, 1)], axis=-1)
    body = body.transpose(0, 2, 3, 1).reshape(len(four), -1)
    ends = [r.multiplier, r.offset, *([r.shift] if r.form is Form.TWO_SIDED else [])]
    start, *tail = (padded_channels(v, 4).reshape(-1, 4) for v in (r.bias << r.before, *ends))
    return words(
        np.concatenate([head(depth, count, 0, 0), np.concatenate([start, body, *tail], axis=1).ravel()])
    )


def call(node: Node, data: Int64, literal: str, *, wide: bool) -> Call:
    count, depth = node.input(1).shape
    rows, eights = node.output.type.count // count, -(-depth // 8)
    body = (
        f"const tinyet_rounding_dsp rounding = {literal};",
        f"tinyet_linear_1x4_dsp(input, output, scratch, weights, /* wide */ {int(wide)}, /* rows */ {rows},",
        f"    /* odd */ {depth % 8}, /* rest */ {count % 4}, rounding);",
    )
    constant = Constant(
        "weights",
        data.astype(np.int32),
        "sizes, then bias, weights and rounding of four outputs after another",
    )
    kernel = "tinyet_linear_s8_w16_1x4_dsp" if wide else "tinyet_linear_s8_packed_1x4_dsp"
    # Layers of other sizes share the function, so that the comment is not of their sizes.
    comment = f"fully connected, {'int16 weights' if wide else 'two weights in a lane'}"
    return specialised_call(
        kernel, comment, [constant], body, scratch_bytes=16 * eights + 4 * -(-eights // TURN)
    )


def lower(node: Node, target: Target) -> Call:
    data, exponent = stream(node)
    return call(
        node, data, f"{{TINYET_DSP_TWO_SIDED, /* exponent */ {exponent}, /* clamp */ -128, 127}}", wide=False
    )


def lower_wide(node: Node, target: Target) -> Call:
    return call(node, wide_stream(node), wide_rounding(node).literal, wide=True)


KERNELS = (
    Kernel(
        "tinyet_linear_s8_packed_1x4_dsp",
        "s8",
        lower,
        HEADERS,
        (),
        refuse,
        "cortex_m",
        access_order=by_copied_vectors,
    ),
)

WIDE_KERNELS = (
    Kernel(
        "tinyet_linear_s8_w16_1x4_dsp",
        "s8",
        lower_wide,
        HEADERS,
        (),
        refuse_wide,
        "cortex_m",
        access_order=by_copied_vectors,
    ),
)
"""Faster, with twice the weights."""
