# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers with int16 activations: many rows as pixels of a convolution (tinyet_conv2d_s16_dsp.h), few
one at a time by printed tiles (tinyet_linear_s16_dsp.h). Each with weights in int8, and widened to int16 ahead of
time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_s16, linear
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored, pixel_row
from tinyet.delegates.cortex_m.conv2d_tiles import both_channels
from tinyet.delegates.cortex_m.linear_tiles import CHANNELS, MOST_PAIRS, groups_of, row_count, turn_of
from tinyet.delegates.cortex_m.packing import pack_int16x2, words
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16, parts_refusal, rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import by_copied_vectors
from tinyet.opset import Call, Constant, Kernel
from tinyet.opset.cost import cycles_of
from tinyet.tiles import int16
from tinyet.tiles.core import page_of
from tinyet.tiles.printer import files
from tinyet.tiles.tile import Tile, Weights

HEADERS = (
    "tinyet_dsp.h",
    "tinyet_s16_dsp.h",
    "tinyet_tile_dsp.h",
    "tinyet_tile_s16_dsp.h",
    "tinyet_linear_s16_dsp.h",
)
STRAIGHT = {Stored.INT8: 28, Stored.INT16: 40}
"""Pairs of code, at most, before the loop and in it: with rounding and stores less than a kilobyte, which is what the
flash of many a fast chip keeps."""
MOST_PARTS = 16


def parts(r: Rounding16) -> list[Int64]:
    """The weights, (channels, inputs), in as few parts of equally many pairs of inputs as have sums that are proved to
    fit, the last with zeros behind; none where none do."""
    depth = r.weights.shape[1]
    pairs = -(-depth // 2)
    for size in dict.fromkeys(2 * -(-pairs // count) for count in range(1, MOST_PARTS + 1)):
        count = -(-depth // size)
        found = np.split(np.pad(r.weights, ((0, 0), (0, count * size - depth))), count, axis=1)
        if parts_refusal(r, found) is None:
            return found
    return []


def refuse_wide(node: Node, target: Target) -> str | None:
    r = rounding(node)
    if (reason := r.refusal or int16.complaint(r.exponent, r.low, r.high)) is not None:
        return reason
    if not (found := parts(r)):
        return f"sums of more than 32 bits, also in {MOST_PARTS} parts"
    pairs = found[0].shape[1] // 2
    return f"{pairs} pairs of inputs, takes up to {MOST_PAIRS}" if pairs > MOST_PAIRS else None


def refuse(node: Node, target: Target) -> str | None:
    if (reason := refuse_wide(node, target)) is not None:
        return reason
    both = both_channels(rounding(node).weights, groups_of(node.input(1).shape[0]))
    return "a weight of -128 beside a negative one of the channel before" if both.min() < -(2**15) else None


def long(part: Int64, bias: Int64, groups: Int64) -> Int64:
    """(groups, words) of int8 weights of a part, (channels, inputs), in front of multipliers."""
    both = both_channels(part, groups)
    two = 256 * bias[groups[:, 1::2]] + bias[groups[:, 0::2]]
    start = np.stack([two & 0xFFFFFFFF, two >> 32], axis=2).reshape(len(groups), -1)
    body = pack_int16x2(both[..., 0::2], both[..., 1::2]).transpose(0, 2, 1).reshape(len(groups), -1)
    return np.concatenate([start, bias[groups[:, 0::2]], body], axis=1)


def wide(part: Int64, bias: Int64, groups: Int64) -> Int64:
    """The same of int16 weights."""
    columns = part[groups]
    body = pack_int16x2(columns[..., 0::2], columns[..., 1::2]).transpose(0, 2, 1)
    return np.concatenate([bias[groups], body.reshape(len(groups), -1)], axis=1)


def tile_of(node: Node, stored: Stored) -> Tile:
    """Of a layer's rows: of outputs, or of the sums of a part."""
    r = rounding(node)
    found = parts(r)
    pairs = found[0].shape[1] // 2
    one = Tile(
        pixels=1,
        channels=CHANNELS,
        weights=Weights.LONG if stored is Stored.INT8 else Weights.WIDE,
        pairs=pairs,
        exponent=r.exponent,
        step=0,
        straight=STRAIGHT[stored],
        turn=turn_of(pairs, STRAIGHT[stored]),
        filling=True,
        bits=16,
        low=r.low,
        high=r.high,
    )
    if len(found) == 1:
        return one
    return replace(one, exponent=None, bits=32, low=int16.LOW, high=int16.HIGH)


def stream(node: Node, stored: Stored) -> Int64:
    """The words of tinyet_linear_s16_dsp.h. The node is not refused."""
    r, groups = rounding(node), groups_of(node.input(1).shape[0])
    pack, found = long if stored is Stored.INT8 else wide, parts(r)
    blocks = [pack(part, np.zeros_like(r.bias) if i else r.bias, groups) for i, part in enumerate(found)]
    blocks.insert(len(blocks) if len(found) == 1 else 0, r.multiplier[groups])
    return words(np.concatenate(blocks, axis=1).ravel())


def lower(node: Node, target: Target, stored: Stored) -> Call:
    (count, depth), r = node.input(1).shape, rounding(node)
    tile, page, count_of_parts = tile_of(node, stored), page_of(cycles_of(target)), len(parts(r))
    sizes = f"/* rows */ {row_count(node)}, /* depth */ {depth},"
    stretch = f"/* words */ {tile.group_words}, /* pairs */ {tile.pairs}, {page.named(tile.name)}"
    if count_of_parts == 1:
        body: tuple[str, ...] = (
            f"tinyet_linear_s16_dsp(input, output, scratch, weights, {sizes}",
            f"    /* outputs */ {count}, {stretch});",
        )
    else:
        body = (
            f"const tinyet_rounding_s16_dsp rounding = {r.literal};",
            f"tinyet_linear_s16_parts_dsp(input, output, scratch, weights, {sizes}",
            f"    /* outputs */ {count}, /* parts */ {count_of_parts}, {stretch}, rounding);",
        )
    data = stream(node, stored).astype(np.int32)
    constant = Constant("weights", data, "bias, weights and factors of four outputs after another")
    comment = f"{row_count(node)} x {depth} -> {count}, fully connected, int16 by {stored.name.lower()}"
    symbol, scratch = stored.named("tinyet_linear_s16_1x4_dsp"), 4 * count_of_parts * tile.pairs
    call = specialised_call(symbol, comment, [constant], body, scratch_bytes=scratch, element="int16_t")
    return replace(call, files=files(tile, page))


def refuse_rows(node: Node, target: Target) -> str | None:
    reason = linear.refuse_rows(node, target)
    g = row_geometry(node)
    return reason or conv2d_s16.refuse_sums(rounding(node), conv2d_s16.of_rows(g))


def row_geometry(node: Node) -> Geometry:
    """The rows are the pixels of an image one pixel high."""
    (count, depth), rows = node.input(1).shape, linear.row_count(node)
    return pixel_row(rows, depth, count)


def lower_rows(node: Node, target: Target, stored: Stored) -> Call:
    return conv2d_s16.rows_call(target, row_geometry(node), rounding(node), summary(node), stored)


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
