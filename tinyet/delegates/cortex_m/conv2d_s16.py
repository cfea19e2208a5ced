# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one group with int16 activations, four pixels by two channels at a time by printed tiles
(tinyet_conv2d_s16_dsp.h), and a last one of an odd number of channels alone.

Each with weights in int8 and, for more flash and fewer instructions, with these widened to int16 ahead of time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored, geometry
from tinyet.delegates.cortex_m.packing import group_taps, join_bytes, neighbours, pack_int16x2, words
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16, parts_refusal, rounding
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import largest_divisor, specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.opset import AccessOrders, Call, Constant, Kernel, Refuse
from tinyet.opset.cost import cycles_of
from tinyet.tiles import columns as columns_code
from tinyet.tiles import int16
from tinyet.tiles.columns import LARGEST_REACH, Columns, reach_of
from tinyet.tiles.core import CorePage, page_of
from tinyet.tiles.lanes import PIXELS, Lanes
from tinyet.tiles.printer import files
from tinyet.tiles.tile import Tile, Weights

HEADERS = (
    *conv2d.HEADERS,
    "tinyet_tile_dsp.h",
    "tinyet_s16_dsp.h",
    "tinyet_tile_lanes_s16_dsp.h",
    "tinyet_conv2d_s16_dsp.h",
)

CHANNELS = 2
"""Of a tile, but for a last one of an odd number."""
MOST_PARTS = 16
MOST_BYTES = 0xFFFF
"""Of a part's inputs: a constant of MOVW."""
STRAIGHT = {Stored.INT8: 15, Stored.INT16: 16}
"""Pairs of code, at most, before the loop and in it: with rounding and stores a kilobyte, which is what the flash of
many a fast chip keeps. One less in the order of a core of its own, whose loads are of one register each."""
TOGETHER = 14
"""Pairs of straight code, at most, of several groups of channels."""
Order = list[tuple[int, int]]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Products:
    """What a layer multiplies. order: the two columns of the weights of each pair of inputs, lane by lane. lanes: how
    the inputs lie. columns: what four pixels see of a row; None where there are none whose row is in the image, or it
    reaches too far."""

    order: Order
    lanes: Lanes
    columns: Columns | None


def of_rows(g: Geometry) -> Products:
    """Of four pixels of a row."""
    lanes = Lanes(g.kernel_w, g.stride_w, g.dilation_w) if g.kernel_w > 1 else Lanes()
    # Columns that no tap sees are none.
    apart = g.in_c * (g.stride_w if g.kernel_w == 1 else 1)
    columns = columns_of(lanes, g.in_c, apart) if whole_rows(g).any() else None
    return Products(conv2d.rows_order(g, neighbours), lanes, columns)


def of_patches(g: Geometry) -> Products:
    """Of any four pixels that follow each other."""
    seen = g.dilation_w == 1 and whole_patches(g).any()
    columns = columns_of(Lanes(), g.kernel_w * g.in_c, g.stride_w * g.in_c) if seen else None
    return Products(conv2d.patches_order(g, neighbours), Lanes(), columns)


def columns_of(lanes: Lanes, values: int, apart: int) -> Columns | None:
    """Of so many values each, so many values apart; None where they reach too far."""
    return Columns(lanes, values, 2 * apart) if reach_of(lanes, 2 * apart) <= LARGEST_REACH else None


def starts_of_rows(g: Geometry) -> Int64:
    """The first output column of each four pixels of a row; the last overlap those before."""
    return np.minimum(np.arange(0, g.out_w, PIXELS), g.out_w - PIXELS)


def starts_of_patches(g: Geometry) -> Int64:
    """The first output pixel of each four of an image."""
    pixels = g.out_h * g.out_w
    return np.minimum(np.arange(0, pixels, PIXELS), pixels - PIXELS)


def whole_rows(g: Geometry) -> Bools:
    """Of each four pixels of a row, whether all columns that they see are in the image."""
    left = starts_of_rows(g) * g.stride_w - g.pad_left
    reach = (g.kernel_w - 1) * g.dilation_w + (PIXELS - 1) * g.stride_w
    return np.asarray((left >= 0) & (left + reach < g.in_w), np.bool_)


def whole_patches(g: Geometry) -> Bools:
    """Of each four pixels of an image, whether they lie in a row, and all columns that they see in the image."""
    x = starts_of_patches(g) % g.out_w
    left = x * g.stride_w - g.pad_left
    reach = g.kernel_w + (PIXELS - 1) * g.stride_w
    return np.asarray((x + PIXELS <= g.out_w) & (left >= 0) & (left + reach <= g.in_w), np.bool_)


def of_part(r: Rounding16, order: Order) -> Int64:
    """The weights of some taps, (channels, 2 * taps)."""
    return np.pad(r.weights, ((0, 0), (0, 1)))[:, np.array(order).ravel()]  # NONE is the last one


def parts(r: Rounding16, p: Products) -> list[Order]:
    """The taps in as few parts of equally many lanes as have sums that are proved to fit; none where none do."""
    taps = p.lanes.taps
    lanes = len(p.order) // taps
    for count in range(1, MOST_PARTS + 1):
        if lanes % count == 0:
            size = lanes // count * taps
            found = [p.order[i : i + size] for i in range(0, len(p.order), size)]
            fits = 4 * p.lanes.words(size) <= MOST_BYTES
            if fits and parts_refusal(r, [of_part(r, part) for part in found]) is None:
                return found
    return []


def refuse_sums(r: Rounding16, p: Products) -> str | None:
    if r.refusal is not None:
        return r.refusal
    return None if parts(r, p) else f"sums of more than 32 bits, also in up to {MOST_PARTS} equal parts"


def leaves_clamp(r: Rounding16) -> bool:
    """Whether tiles have not the bounds."""
    return int16.complaint(r.exponent, r.low, r.high) is not None


def turn_of(pairs: int, taps: int, straight: int) -> int:
    """The longest turn, of whole lanes, of a loop over so many pairs of which there are `straight` in code, those
    before it included; a lane where none is so short."""
    fits = (turn for turn in range(taps, straight, taps) if turn + (pairs - taps) % turn + taps <= straight)
    return max(fits, default=taps)


def tile_of(
    g: Geometry,
    r: Rounding16,
    found: list[Order],
    lanes: Lanes,
    stored: Stored,
    page: CorePage,
    channels: int,
) -> Tile:
    """The tile of two channels, or of a last one; in parts (found) of their sums."""
    pairs, alone = len(found[0]), channels == 1
    whole = g.out_c // CHANNELS
    straight = STRAIGHT[stored] - (1 if page.pipeline else 0)
    # Code that is there several times is worth its flash where a loop runs it again.
    most = max(min(TOGETHER // pairs, whole // 2), 1)
    one = Tile(
        pixels=PIXELS,
        channels=channels,
        weights=Weights.WIDE if alone or stored is Stored.INT16 else Weights.BYTES,
        pairs=pairs,
        exponent=r.exponent,
        step=2 * g.out_c,
        straight=straight,
        turn=turn_of(pairs, lanes.taps, straight),
        groups=1 if alone else largest_divisor(whole, most),
        bits=16,
        lanes=lanes,
    )
    if len(found) > 1:
        return replace(one, exponent=None, bits=32, step=4 * channels, groups=1)
    return one if leaves_clamp(r) else replace(one, low=r.low, high=r.high)


def tiles_of(
    g: Geometry, r: Rounding16, found: list[Order], lanes: Lanes, stored: Stored, page: CorePage
) -> tuple[Tile | None, Tile | None]:
    """That of two channels and that of a last one, where there are any."""
    two = tile_of(g, r, found, lanes, stored, page, CHANNELS) if g.out_c >= CHANNELS else None
    return two, tile_of(g, r, found, lanes, stored, page, 1) if g.out_c % CHANNELS else None


def stream(r: Rounding16, found: list[Order], stored: Stored) -> Int64:
    """The words of tinyet_conv2d_s16_dsp.h, in such parts."""
    count = len(r.weights)
    whole = count // CHANNELS * CHANNELS
    blocks = []
    if whole:
        blocks.append(stream_of(r, found, stored, np.arange(whole).reshape(-1, CHANNELS)))
    if whole != count:
        blocks.append(stream_of(r, found, Stored.INT16, np.array([[whole]])))
    return np.concatenate(blocks)


def stream_of(r: Rounding16, found: list[Order], stored: Stored, groups: Int64) -> Int64:
    """That of some groups of channels, (groups, channels)."""
    bias = r.bias[groups]
    blocks = []
    for i, part in enumerate(found):
        blocks.append(np.zeros_like(bias) if i else bias)
        if stored is Stored.INT8:
            blocks.append(join_bytes(group_taps(r.weights[groups.ravel()], part, CHANNELS)))
        else:
            low, high = np.array(part).T
            columns = np.pad(r.weights, ((0, 0), (0, 1)))[groups]  # NONE is the last one
            both = pack_int16x2(columns[..., low], columns[..., high]).transpose(0, 2, 1)
            blocks.append(both.reshape(len(groups), -1))
    blocks.insert(len(blocks) if len(found) == 1 else 0, r.multiplier[groups])
    return words(np.concatenate(blocks, axis=1).ravel())


def tiles_call(
    name: str,
    target: Target,
    stored: Stored,
    g: Geometry,
    r: Rounding16,
    p: Products,
    scratch: int,
    text: str,
) -> Call:
    page = page_of(cycles_of(target))
    found = parts(r, p)
    tiles = tiles_of(g, r, found, p.lanes, stored, page)
    two, last, see = (page.named(one.name) if one else "NULL" for one in (*tiles, p.columns))
    group_words, last_words = (tile.group_words if tile else 0 for tile in tiles)
    part_words = p.lanes.words(len(found[0]))
    data = stream(r, found, stored).astype(np.int32)
    constant = Constant("weights", data, "bias, weights and factors of two channels after another")
    clamp = int(len(found) == 1 and leaves_clamp(r))
    body = (
        f"const tinyet_conv2d_shape_dsp shape = {g.literal};",
        f"const tinyet_rounding_s16_dsp rounding = {r.literal};",
        f"const tinyet_tiles_s16_dsp tiles = {{{two}, {last}, {see},",
        f"    /* parts */ {len(found)}, /* words */ {group_words}, {last_words}, {part_words}, /* clamp */ {clamp}}};",
        f"{name}(input, output, scratch, weights, shape, tiles, rounding);",
    )
    call = specialised_call(
        stored.named(name), text, [constant], body, scratch_bytes=scratch, element="int16_t"
    )
    brought = {n: t for tile in tiles if tile for n, t in files(tile, page).items()}
    brought |= columns_code.files(p.columns, page) if p.columns else {}
    return replace(call, files=brought)


def rows_call(target: Target, g: Geometry, r: Rounding16, text: str, stored: Stored) -> Call:
    p = of_rows(g)
    scratch = 4 * p.lanes.words(len(p.order))
    return tiles_call("tinyet_conv2d_s16_direct_4x2_dsp", target, stored, g, r, p, scratch, text)


def lower_rows(node: Node, target: Target, stored: Stored) -> Call:
    return rows_call(target, geometry(node), rounding(node), summary(node), stored)


def lower_patches(node: Node, target: Target, stored: Stored) -> Call:
    g = geometry(node)
    p = of_patches(g)
    scratch = 16 * len(p.order) + 4 * -(-g.kernel_w * g.in_c // 2)
    return tiles_call(
        "tinyet_conv2d_s16_im2col_4x2_dsp", target, stored, g, rounding(node), p, scratch, summary(node)
    )


def refuse_rows(node: Node, target: Target) -> str | None:
    return conv2d.refuse_rows(node, target) or refuse_sums(rounding(node), of_rows(geometry(node)))


def refuse_patches(node: Node, target: Target) -> str | None:
    return conv2d.refuse_patches(node, target) or refuse_sums(rounding(node), of_patches(geometry(node)))


def kernels(stored: Stored) -> tuple[Kernel, ...]:
    def kernel(name: str, lower: Callable[..., Call], refuse: Refuse, access_order: AccessOrders) -> Kernel:
        lowered = partial(lower, stored=stored)
        return Kernel(
            stored.named(name), "s16", lowered, HEADERS, (), refuse, "cortex_m", access_order=access_order
        )

    return (
        kernel("tinyet_conv2d_s16_direct_4x2_dsp", lower_rows, refuse_rows, conv2d.row_by_fours),
        kernel("tinyet_conv2d_s16_im2col_4x2_dsp", lower_patches, refuse_patches, conv2d.by_fours),
    )


KERNELS, WIDE_KERNELS = kernels(Stored.INT8), kernels(Stored.INT16)
