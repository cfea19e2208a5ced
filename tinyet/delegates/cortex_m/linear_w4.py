# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers with int4 weights: one row at a time by tiles of one pixel and crossed digits
(tinyet_linear_w4_dsp.h), several as pixels of a convolution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_tiles, int4, linear
from tinyet.delegates.cortex_m.conv2d_tiles import PLAIN_SUMS, packed_ends
from tinyet.delegates.cortex_m.linear_tiles import CHANNELS, MOST_PAIRS, groups_of, row_count
from tinyet.delegates.cortex_m.packing import lane_pairs
from tinyet.delegates.cortex_m.rounding import Form
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.ops.shared.access_orders import by_copied_vectors
from tinyet.opset import Call, Constant, Kernel
from tinyet.opset.cost import cycles_of
from tinyet.tiles.core import page_of
from tinyet.tiles.printer import files
from tinyet.tiles.tile import Tile, Weights

SYMBOL = "tinyet_linear_s8_w4_1x4_dsp"
HEADERS = (
    "tinyet_dsp.h",
    "tinyet_tile_dsp.h",
    "tinyet_tile_w4_dsp.h",
    "tinyet_linear_w4_dsp.h",
)
STRAIGHT = 24
"""Pairs of code, at most, before the loop and in it: with rounding and stores less than a kilobyte, which is what the
flash of many a fast chip keeps."""


def pair_count(node: Node) -> int:
    """Of inputs, in whole fours."""
    return 2 * -(-node.input(1).shape[1] // 4)


def turn_of(pairs: int) -> int:
    """The longest turn of a loop over so many pairs of which there are STRAIGHT in code, those before it included."""
    return next(turn for turn in range(STRAIGHT, 0, -2) if turn + pairs % turn <= STRAIGHT)


def tile_of(node: Node) -> Tile:
    """Of a layer's rows."""
    r, groups = int4.chosen_rounding(node), groups_of(node.input(1).shape[0])
    one_sided = r.exponent if r.form is Form.ONE_SIDED else None
    pairs = pair_count(node)
    return Tile(
        pixels=1,
        channels=CHANNELS,
        weights=Weights.CROSSED_DIGITS if int4.have_words(r, groups) else Weights.LONG_DIGITS,
        pairs=pairs,
        exponent=one_sided if r.alike is None else r.alike.exponent,
        step=0,
        straight=STRAIGHT,
        turn=turn_of(pairs),
        alike=r.alike is not None,
        filling=True,
    )


def refuse(node: Node, target: Target) -> str | None:
    r, pairs, groups = int4.chosen_rounding(node), pair_count(node), groups_of(node.input(1).shape[0])
    if pairs > MOST_PAIRS:
        return f"{pairs} pairs of inputs, takes up to {MOST_PAIRS}"
    return PLAIN_SUMS if r.form is Form.PLAIN else int4.refusal(r, long=not int4.have_words(r, groups))


def lower(node: Node, target: Target) -> Call:
    (count, depth), r = node.input(1).shape, int4.chosen_rounding(node)
    tile, page, groups = tile_of(node), page_of(cycles_of(target)), groups_of(count)
    low, high = np.array(lane_pairs(2 * tile.pairs)).T
    data = int4.framed(
        int4.crossed(r, groups, low, high, tile.weights), packed_ends(r, groups, tile.weights)
    ).astype(np.int32)
    sizes = f"/* rows */ {row_count(node)}, /* depth */ {depth}, /* outputs */ {count}"
    stretch = f"/* lift */ {tile.lift}, /* words */ {tile.group_words}, /* clamp */ {r.low}, {r.high}"
    body = (
        f"{SYMBOL}(input, output, scratch, weights, {sizes},",
        f"    {stretch}, {page.named(tile.name)});",
    )
    constant = Constant("weights", data, "bias, weights and rounding of four outputs after another")
    call = specialised_call(SYMBOL, summary(node), [constant], body, scratch_bytes=4 * tile.input_words)
    return replace(call, files=files(tile, page))


KERNELS = (
    linear.of_rows(conv2d_tiles.DIGITS_ROWS),
    Kernel(SYMBOL, "s8_w4", lower, HEADERS, (), refuse, "cortex_m", access_order=by_copied_vectors),
)

WIDE_KERNELS = tuple(replace(kernel, dtypes="s8_w4") for kernel in (*linear.KERNELS, *linear.FOR_FLASH))
"""Faster, or of more roundings, with the weights as bytes and as int16."""
