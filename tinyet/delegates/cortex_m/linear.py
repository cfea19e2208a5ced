# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers of any factors and clamps, by printed functions of a row (tinyet/tiles/row.py), and many rows
as pixels of a convolution."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_tiles, linear_tiles
from tinyet.delegates.cortex_m.packing import group_taps, join_bytes, lane_pairs, words
from tinyet.delegates.cortex_m.rounding import Form, Rounding, rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import by_copied_vectors, of_input, pixel_walk
from tinyet.ops.shared.clamped import clamp_of
from tinyet.opset import AccessOrder, Call, Constant, Kernel
from tinyet.opset.cost import cycles_of
from tinyet.tiles.core import page_of
from tinyet.tiles.row import Row, files

SYMBOL = "tinyet_linear_s8_1x4_dsp"
HEADERS = (*linear_tiles.HEADERS, "tinyet_row_dsp.h")

STRAIGHT = 12
"""Pairs of inputs in code, at most, before the loop and in it."""


def row_count(node: Node) -> int:
    return math.prod(node.output.shape[:-1])


def refuse_rows(node: Node, target: Target) -> str | None:
    rows = row_count(node)
    return f"{rows} rows, needs 4" if rows < 4 else None


def chosen_rounding(node: Node) -> Rounding:
    return rounding(node, clamp_of(node))


def row_of(node: Node) -> Row:
    """The function of a layer's rows."""
    r = chosen_rounding(node)
    low, high = max(r.low, -128), min(r.high, 127)
    pairs = len(lane_pairs(node.input(1).shape[1]))
    return Row(pairs, linear_tiles.turn_of(pairs, STRAIGHT), r.form, r.exponent, low, high)


def refuse(node: Node, target: Target) -> str | None:
    pairs, r = len(lane_pairs(node.input(1).shape[1])), chosen_rounding(node)
    if pairs > linear_tiles.MOST_PAIRS:
        return f"{pairs} pairs of inputs, takes up to {linear_tiles.MOST_PAIRS}"
    if r.form is Form.PLAIN and conv2d_tiles.any_factor(r) is None:
        return "sums too large for its rounding"
    return None


def stream(node: Node) -> Int64:
    """The stream of tinyet_row_dsp.h, (words,). The node is not refused."""
    count, depth = node.input(1).shape
    r, groups = chosen_rounding(node), linear_tiles.groups_of(count)
    ends = conv2d_tiles.any_factor(r)
    if ends is None:
        ends = np.stack([r.multiplier, r.offset, r.shift], axis=1)
    weights = r.weights[groups.ravel()]  # those that are missing at the end are the last one again
    body = join_bytes(group_taps(weights, lane_pairs(depth), linear_tiles.CHANNELS))
    parts = [r.bias[groups], body, ends[groups].reshape(len(groups), -1)]
    return words(np.concatenate(parts, axis=1).ravel())


def lower(node: Node, target: Target) -> Call:
    count, depth = node.input(1).shape
    row, page = row_of(node), page_of(cycles_of(target))
    body = (
        f"tinyet_linear_tiles_dsp(input, output, scratch, weights, /* rows */ {row_count(node)}, /* depth */ {depth},",
        f"    /* outputs */ {count}, /* lift */ -1, /* words */ {row.group_words}, {page.named(row.name)});",
    )
    data = stream(node).astype(np.int32)
    constant = Constant("weights", data, "bias, weights and rounding of four outputs after another")
    call = specialised_call(SYMBOL, summary(node), [constant], body, scratch_bytes=4 * row.pairs)
    return replace(call, files=files(row, page))


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
        SYMBOL,
        "s8",
        lower,
        HEADERS,
        (),
        refuse,
        delegate="cortex_m",
        access_order=by_copied_vectors,
    ),
)

FOR_FLASH = (*linear_tiles.FOR_FLASH, of_rows(conv2d_tiles.PACKED_ROWS), of_rows(conv2d_tiles.WIDE_ROWS))
"""Faster: with more code; with twice the weights."""
