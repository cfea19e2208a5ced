# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers with int4 weights: many rows as pixels of a convolution, few one at a time, with four weights
in a lane (tinyet_linear_w4_dsp.h)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d, linear
from tinyet.delegates.cortex_m.packing import pack_int16x2, padded_channels, words
from tinyet.delegates.cortex_m.rounding import LIMIT, Form, Rounding, rounding, sum_range
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import by_copied_vectors
from tinyet.ops.shared.clamped import clamp_of
from tinyet.opset import Call, Constant, Kernel

HEADERS = ("tinyet_dsp.h", "tinyet_linear_steps_dsp.h", "tinyet_linear_w4_dsp.h")
STEPS = 6
"""TINYET_DSP_STEPS: eights of inputs in a turn of the multiply loop."""
MOST_PARTS = 16


def divided(weights: Int64) -> Iterator[list[Int64]]:
    """Weights (channels, inputs) in one part, two, … of equally many eights of inputs, the last with zeros behind."""
    depth, eights = weights.shape[1], -(-weights.shape[1] // 8)
    for size in dict.fromkeys(8 * -(-eights // count) for count in range(1, MOST_PARTS + 1)):
        count = -(-depth // size)
        yield np.split(np.pad(weights, ((0, 0), (0, count * size - depth))), count, axis=1)


PLACES = np.array([1, 16, 256, 4096])
"""Of the four digits of a lane."""
DIGIT = np.array([8, 8, 8, 0])
"""The offset of each weight."""


def rounding_of(node: Node) -> Rounding:
    return rounding(node, clamp_of(node))


def fits(part: Int64, bias: Int64) -> bool:
    """Whether sums of the four channels of each lane, times their places, stay within int32."""
    bound = np.maximum(*map(np.abs, sum_range(part, bias)))
    return bool(np.all(padded_channels(bound, 4).reshape(-1, 4) * PLACES < LIMIT))


def parts(r: Rounding) -> list[Int64]:
    """The weights in as few parts as have sums that are proved to fit; none where none have."""
    for found in divided(r.weights):
        if all(fits(part, r.bias if i == 0 else np.zeros_like(r.bias)) for i, part in enumerate(found)):
            return found
    return []


def refuse(node: Node, target: Target) -> str | None:
    return None if parts(rounding_of(node)) else "sums of a fourth channel of more than 20 bits"


def block(part: Int64, bias: Int64) -> Int64:
    """The words of a part, (groups of four channels, words)."""
    digits = padded_channels(part, 4).reshape(-1, 4, part.shape[1]) + DIGIT[:, None]
    lanes = (digits * PLACES[:, None]).sum(axis=1)  # (groups, inputs)

    def constant(low: Int64) -> Int64:
        """The sum of Winograd's products of two neighbouring weights."""
        return np.asarray((low[:, 0::2] * low[:, 1::2]).sum(axis=1), np.int64)

    a, b, c, d = padded_channels(bias, 4).reshape(-1, 4).T
    start = (
        a - constant(digits[:, 0]),
        16 * b + a - constant(lanes & 255),
        256 * c + a,
        4096 * d + 256 * c + 16 * b + a,
    )
    four = lanes.reshape(len(lanes), -1, 4)
    body = np.stack([pack_int16x2(four[..., i], four[..., i + 2]) for i in (0, 1)], axis=-1)
    return np.concatenate([np.stack(start, axis=1), body.reshape(len(lanes), -1)], axis=1)


def lower(node: Node, target: Target) -> Call:
    (count, depth), rows, r = node.input(1).shape, linear.row_count(node), rounding_of(node)
    found = parts(r)
    eights = found[0].shape[1] // 8
    blocks = [block(part, r.bias if i == 0 else np.zeros_like(r.bias)) for i, part in enumerate(found)]
    factors = [r.multiplier, r.offset]
    ends = [r.shift, *factors] if r.form is Form.ONE_SIDED else [*factors, r.shift]
    blocks += [padded_channels(v, 4).reshape(-1, 4) for v in ends]
    head = np.array([eights, depth, count // 4 * 4], np.int64)
    stream = words(np.concatenate([head, np.concatenate(blocks, axis=1).ravel()]))
    constant = Constant(
        "weights",
        stream.astype(np.int32),
        "sizes, then bias, weights and rounding of four outputs after another",
    )
    body = (
        f"const tinyet_rounding_dsp rounding = {r.literal};",
        f"tinyet_linear_s8_w4_1x4_dsp(input, output, scratch, weights, /* parts */ {len(found)}, /* rows */ {rows},",
        f"    /* rest */ {count % 4}, rounding);",
    )
    # Layers of other sizes share the function, so that the comment is not of their sizes.
    comment = "fully connected, four int4 weights in a lane"
    scratch = 16 * (eights + 1) * len(found)
    return specialised_call("tinyet_linear_s8_w4_1x4_dsp", comment, [constant], body, scratch_bytes=scratch)


def refuse_rows(node: Node, target: Target) -> str | None:
    order = conv2d.rows_order(conv2d.geometry(node))
    return linear.refuse_rows(node, target) or conv2d.refuse_nibbles(node, order, 1)


KERNELS = (
    Kernel(
        "tinyet_linear_s8_w4_4x2_dsp",
        "s8_w4",
        conv2d.lower_rows,
        conv2d.HEADERS,
        (),
        refuse_rows,
        "cortex_m",
        access_order=linear.by_fours,
    ),
    Kernel(
        "tinyet_linear_s8_w4_1x4_dsp",
        "s8_w4",
        lower,
        HEADERS,
        (),
        refuse,
        "cortex_m",
        access_order=by_copied_vectors,
    ),
)

WIDE_KERNELS = tuple(replace(kernel, dtypes="s8_w4") for kernel in (*linear.KERNELS[:2], *linear.FOR_FLASH))
"""Faster, with the weights as bytes and as int16."""
