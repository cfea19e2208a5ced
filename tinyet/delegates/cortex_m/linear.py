# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers of any factors and clamps (tinyet_linear_dsp.h), and many rows as pixels of a convolution."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_tiles, linear_tiles
from tinyet.delegates.cortex_m.packing import dot_stream, lane_pairs
from tinyet.delegates.cortex_m.rounding import rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import largest_divisor, specialised_call
from tinyet.ir import Node
from tinyet.ops.shared.access_orders import by_copied_vectors, of_input, pixel_walk
from tinyet.ops.shared.clamped import clamp_of
from tinyet.opset import AccessOrder, Call, Constant, Kernel

HEADERS = ("tinyet_dsp.h", "tinyet_conv2d_dsp.h", "tinyet_linear_dsp.h")

# Pairs of inputs a turn of the multiply loop, 40 bytes of code each.
LOOP_PAIRS = 8


def row_count(node: Node) -> int:
    return math.prod(node.output.shape[:-1])


def refuse_rows(node: Node, target: Target) -> str | None:
    rows = row_count(node)
    return f"{rows} rows, needs 4" if rows < 4 else None


def lower(node: Node, target: Target) -> Call:
    count, depth = node.input(1).shape
    r = rounding(node, clamp_of(node))
    pairs = lane_pairs(depth)
    unroll = largest_divisor(len(pairs), LOOP_PAIRS)
    stream = dot_stream(r, pairs).astype(np.int32)
    body = (
        f"const tinyet_rounding_dsp rounding = {r.literal};",
        f"tinyet_linear_s8_1x4_dsp(input, output, scratch, weights, /* rows */ {row_count(node)},",
        f"    /* depth */ {depth}, /* outputs */ {count}, /* unroll */ {unroll}, rounding);",
    )
    constant = Constant("weights", stream, "bias, weights and rounding of four outputs after another")
    return specialised_call(
        "tinyet_linear_s8_1x4_dsp", summary(node), [constant], body, scratch_bytes=4 * len(pairs)
    )


@of_input
def by_fours(node: Node) -> AccessOrder:
    """Four rows at a time, which are widened before they are written."""
    return pixel_walk(node).by_pixels(4, moved_back=True, gathered=True)


def of_rows(family: conv2d_tiles.Family) -> Kernel:
    """Tiles of a convolution whose pixels are the layer's rows."""
    return replace(conv2d_tiles.kernel_of(family), layout_support=None)


KERNELS = (
    *linear_tiles.KERNELS,
    of_rows(conv2d_tiles.FOUR_ROWS),
    Kernel(
        "tinyet_linear_s8_1x4_dsp",
        "s8",
        lower,
        HEADERS,
        (),
        delegate="cortex_m",
        access_order=by_copied_vectors,
    ),
)

FOR_FLASH = (*linear_tiles.FOR_FLASH, of_rows(conv2d_tiles.PACKED_ROWS), of_rows(conv2d_tiles.WIDE_ROWS))
"""Faster: with more code; with twice the weights."""
