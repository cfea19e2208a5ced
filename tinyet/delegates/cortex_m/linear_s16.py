# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers with int16 activations: many rows as pixels of a convolution (tinyet_conv2d_s16_dsp.h), few
one at a time (tinyet_linear_s16_dsp.h). Each with weights in int8, and widened to int16 ahead of time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_s16, linear
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored, pixel_row
from tinyet.delegates.cortex_m.packing import pack_int16x2, padded_channels, words
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16, parts_refusal, rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import by_copied_vectors
from tinyet.opset import Call, Constant, Kernel

HEADERS = (
    "tinyet_dsp.h",
    "tinyet_conv2d_dsp.h",
    "tinyet_s16_dsp.h",
    "tinyet_linear_steps_dsp.h",
    "tinyet_linear_s16_dsp.h",
)
STEPS = 6
"""TINYET_DSP_STEPS: eights of inputs in a turn of the multiply loop."""

MOST_PARTS = 16


def divided(weights: Int64) -> Iterator[list[Int64]]:
    """Weights (channels, inputs) in one part, two, … of equally many eights of inputs, the last with zeros behind."""
    depth, eights = weights.shape[1], -(-weights.shape[1] // 8)
    for size in dict.fromkeys(8 * -(-eights // count) for count in range(1, MOST_PARTS + 1)):
        count = -(-depth // size)
        yield np.split(np.pad(weights, ((0, 0), (0, count * size - depth))), count, axis=1)


def parts(r: Rounding16) -> list[Int64]:
    """The weights in as few parts as have sums that are proved to fit, as `divided` gives them; else none."""
    for found in divided(r.weights):
        if parts_refusal(r, found) is None:
            return found
    return []


def refuse_wide(node: Node, target: Target) -> str | None:
    r = rounding(node)
    if r.refusal is not None or parts(r):
        return r.refusal
    return f"sums of more than 32 bits, also in {MOST_PARTS} parts"


def refuse(node: Node, target: Target) -> str | None:
    if (reason := refuse_wide(node, target)) is not None:
        return reason
    lanes = padded_channels(rounding(node).weights, 2)
    both = 256 * lanes[1::2] + lanes[0::2]
    return "a weight of -128 beside a negative one of the channel before" if both.min() < -(2**15) else None


def lanes(part: Int64, bias: Int64) -> Int64:
    """(groups, words) of int8 weights of a part, (channels, inputs), of a multiple of four channels."""
    a, b = part[0::2], part[1::2]
    both = 256 * b + a  # (pairs, inputs)
    body = pack_int16x2(both[:, 0::2], both[:, 1::2]).reshape(-1, 2, part.shape[1] // 2)
    two = 256 * bias[1::2] + bias[0::2]
    start = np.stack([two & 0xFFFFFFFF, two >> 32], axis=1).reshape(-1, 4)
    return np.concatenate(
        [start, bias[0::2].reshape(-1, 2), body.transpose(0, 2, 1).reshape(len(body), -1)], axis=1
    )


def wide(part: Int64, bias: Int64) -> Int64:
    """The same of int16 weights."""
    body = pack_int16x2(part[:, 0::2], part[:, 1::2]).reshape(-1, 4, part.shape[1] // 2)
    return np.concatenate([bias.reshape(-1, 4), body.transpose(0, 2, 1).reshape(len(body), -1)], axis=1)


def lower(node: Node, target: Target, stored: Stored) -> Call:
    (count, depth), rows, r = node.input(1).shape, linear.row_count(node), rounding(node)
    found = parts(r)
    pack, eights = lanes if stored is Stored.INT8 else wide, found[0].shape[1] // 8
    blocks = []
    for i, part in enumerate(found):
        bias = padded_channels(r.bias if i == 0 else np.zeros_like(r.bias), 4)
        blocks.append(pack(padded_channels(part, 4), bias))
    blocks.insert(len(blocks) if len(found) == 1 else 0, padded_channels(r.multiplier, 4).reshape(-1, 4))
    head = np.array([eights, depth, count // 4 * 4], np.int64)
    stream = words(np.concatenate([head, np.concatenate(blocks, axis=1).ravel()]))
    constant = Constant(
        "weights",
        stream.astype(np.int32),
        "sizes, then factors, bias and weights of four outputs after another",
    )
    kind = f"TINYET_DSP_{stored.name}"
    body = (
        f"const tinyet_rounding_s16_dsp rounding = {r.literal};",
        f"tinyet_linear_s16_1x4_dsp(input, output, scratch, weights, {kind}, /* parts */ {len(found)},",
        f"    /* rows */ {rows}, /* rest */ {count % 4}, rounding);",
    )
    # Layers of other sizes share the function, so that the comment is not of their sizes.
    comment = f"fully connected, int16 by {stored.name.lower()}"
    scratch = 16 * eights * len(found)
    symbol = stored.named("tinyet_linear_s16_1x4_dsp")
    return specialised_call(symbol, comment, [constant], body, scratch_bytes=scratch, element="int16_t")


def refuse_rows(node: Node, target: Target) -> str | None:
    reason = linear.refuse_rows(node, target)
    g = row_geometry(node)
    return reason or conv2d_s16.refuse_sums(rounding(node), conv2d_s16.rows_order(g), 1)


def row_geometry(node: Node) -> Geometry:
    """The rows are the pixels of an image one pixel high."""
    (count, depth), rows = node.input(1).shape, linear.row_count(node)
    return pixel_row(rows, depth, count)


def lower_rows(node: Node, target: Target, stored: Stored) -> Call:
    return conv2d_s16.rows_call(row_geometry(node), rounding(node), summary(node), stored)


def kernels(stored: Stored) -> tuple[Kernel, ...]:
    return (
        Kernel(
            stored.named("tinyet_linear_s16_4x2_dsp"),
            "s16",
            partial(lower_rows, stored=stored),
            conv2d_s16.HEADERS,
            (),
            refuse_rows,
            "cortex_m",
            access_order=linear.by_fours,
        ),
        Kernel(
            stored.named("tinyet_linear_s16_1x4_dsp"),
            "s16",
            partial(lower, stored=stored),
            HEADERS,
            (),
            refuse if stored is Stored.INT8 else refuse_wide,
            "cortex_m",
            access_order=by_copied_vectors,
        ),
    )


KERNELS, WIDE_KERNELS = kernels(Stored.INT8), kernels(Stored.INT16)
