# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one group, and rows of fully connected layers as their pixels, by printed tiles
(tinyet_conv2d_tiles_dsp.h): two pixels by two channels with int16 weights, and two by four with int8 weights, in
straight code, in short code, and with a copy of the weights in RAM; four by two where there are few inputs, and
rounding and stores take most of the time. Two by four with int4 weights, by digits where these fit, else by nibbles.

Where windows reach out of the image, rows of it lie in scratch with their padding, for all windows that see them; by
kernels for less RAM, which take a little longer, those windows alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import int4
from tinyet.delegates.cortex_m.conv2d import (
    Geometry,
    Stored,
    by_fours,
    geometry,
    rounding_of,
    takes_pixel_stride,
    walk,
)
from tinyet.delegates.cortex_m.int16x2 import NHW2C2
from tinyet.delegates.cortex_m.packing import NONE, lane_pairs, pack_int16x2, words
from tinyet.delegates.cortex_m.rounding import LIMIT, Form, Rounding, max_of_sums
from tinyet.delegates.cortex_m.summary import summary
from tinyet.delegates.cortex_m.wrapper import largest_divisor, specialised_call
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.linear import Linear
from tinyet.ops.shared.access_orders import of_input
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import DENSE, AccessOrder, Call, Constant, Kernel, Layouts, LayoutSupport
from tinyet.opset.cost import cycles_of
from tinyet.tiles import patches
from tinyet.tiles.core import ARMV7E_M, CorePage, page_of
from tinyet.tiles.patches import Patches
from tinyet.tiles.printer import files
from tinyet.tiles.tile import Tile, Weights

HEADERS = ("tinyet_dsp.h", "tinyet_conv2d_dsp.h", "tinyet_tile_dsp.h", "tinyet_conv2d_tiles_dsp.h")
INT4_HEADERS = (*HEADERS[:3], "tinyet_tile_w4_dsp.h", HEADERS[3])
LARGEST_OFFSET = 3840  # of STRB, less the channels of a turn
BAND_BYTES = 512  # of a band for more than one output row, or two that a pair of pixels needs
FEW_GROUPS = 8  # of channels: with more, the loop over them is what a flash should keep
PLAIN_SUMS = "a factor of one half and more, or sums too large for its rounding"
MOST_PAIRS = 8191  # whose bytes, of two pixels, are a constant of MOVW
MOST_PAIRS_OF_FOUR = 400  # whose words of the second two pixels are no further than an address reaches


@dataclass(frozen=True)
class Family:
    """Tiles of two pixels, or of four, for any layer.

    symbol: the kernel's name. channels: of a group. weights: as they are stored. at_once, straight: see Tile. turn: see
    there; 0 for the longest of which `straight` pairs are all that there is, those before the loop included.
    together: pairs of straight code, at most, of several groups of channels. alone: whether the last of an odd number
    of pixels is a tile of its own; without, the last ones overlap those before.
    copied: whether a call copies its weights to scratch first, for it reads all of them again for every two pixels.
    windows: whether windows that reach out lie in scratch, instead of rows of the image.
    beside: pairs of straight code, at most, where few groups of channels are computed before inputs are gathered again,
    so that a kilobyte has room for both; 0 for as many as elsewhere.
    """

    symbol: str
    channels: int
    weights: Weights
    at_once: int
    straight: int
    turn: int
    together: int
    alone: bool
    copied: bool = False
    windows: bool = False
    pixels: int = 2
    beside: int = 0

    def for_groups(self, count: int) -> Family:
        """For so many groups of channels."""
        few = self.beside and count <= FEW_GROUPS
        return replace(self, straight=self.beside, together=min(self.together, self.beside)) if few else self

    def turn_of(self, pairs: int) -> int:
        """Pairs of a turn of the loop over so many."""
        if self.turn:
            return self.turn
        # The sums of two pixels begin with a pair before the loop.
        looped, turns = max(pairs - 1, 1), 1
        while pairs - (turns - 1) * (looped // turns) > self.straight:
            turns += 1
        return looped // turns


WIDE = Family("tinyet_conv2d_s8_w16_im2col_2x2_dsp", 2, Weights.WIDE, 2, 56, 24, 56, True)
PACKED = Family("tinyet_conv2d_s8_packed_2x4_dsp", 4, Weights.PACKED, 0, 32, 32, 64, False)
SHORT = Family("tinyet_conv2d_s8_packed_2x4_short_dsp", 4, Weights.PACKED, 0, 14, 0, 14, False, beside=10)
"""Less than a kilobyte of code, which is what the flash of many a fast chip keeps."""

COPIED = replace(SHORT, symbol="tinyet_conv2d_s8_packed_2x4_ram_dsp", copied=True)
"""The same where reading the weights lets the core wait, too."""

WIDE_WINDOWS = replace(WIDE, symbol="tinyet_conv2d_s8_w16_im2col_2x2_windows_dsp", windows=True)
PACKED_WINDOWS = replace(PACKED, symbol="tinyet_conv2d_s8_packed_2x4_windows_dsp", windows=True)

FOUR = Family("tinyet_conv2d_s8_packed_4x2_dsp", 2, Weights.PACKED, 0, 32, 16, 32, False, pixels=4)

DIGITS = replace(SHORT, symbol="tinyet_conv2d_s8_w4_2x4_dsp", weights=Weights.DIGITS, straight=13, together=1)
"""Four bits a weight, which is for little flash: little code, too, and none of it several times."""

NIBBLES_STRAIGHT = 10
"""Of nibbles, which have more instructions a pair."""

FAMILIES = (WIDE, PACKED, SHORT, COPIED, WIDE_WINDOWS, PACKED_WINDOWS, FOUR, DIGITS)

FOUR_ROWS = replace(FOUR, symbol="tinyet_linear_s8_packed_4x2_dsp")
PACKED_ROWS = replace(PACKED, symbol="tinyet_linear_s8_packed_2x4_dsp")
WIDE_ROWS = replace(WIDE, symbol="tinyet_linear_s8_w16_2x2_dsp")
DIGITS_ROWS = replace(DIGITS, symbol="tinyet_linear_s8_w4_2x4_dsp")
ROWS = (FOUR_ROWS, PACKED_ROWS, WIDE_ROWS, DIGITS_ROWS)
"""The same of fully connected layers, whose rows are pixels."""


def order_of(g: Geometry) -> list[tuple[int, int]]:
    """Two columns of the weights for each pair of input values.

    The last of an odd number of neighbours is paired with that of the next kernel row, or tap.
    """
    order: list[tuple[int, int]] = []
    waiting = NONE
    for start in range(0, g.kernel_h * g.kernel_w * g.in_c, g.together):
        pairs = lane_pairs(g.together)
        order += [(start + first, start + second) for first, second in pairs if second != NONE]
        if pairs[-1][1] == NONE:
            last = start + g.together - 1
            if waiting != NONE:
                order.append((waiting, last))
            waiting = last if waiting == NONE else NONE
    if waiting != NONE:
        order.append((waiting, NONE))
    return order


def filled_order(g: Geometry, family: Family) -> list[tuple[int, int]]:
    """The same with as many pairs as the family's loads want."""
    order = order_of(g)
    return order + [(NONE, NONE)] * (-len(order) % max(family.at_once, 1))


def tile_of(g: Geometry, r: Rounding, family: Family, pixels: int = 0, page: CorePage = ARMV7E_M) -> Tile:
    """The tile of so many pixels of a layer, or of as many as the family's. Loads that go beside products are of one
    register each."""
    pixels = pixels or family.pixels
    pairs, channels = len(filled_order(g, family)), family.channels
    groups, rest = divmod(g.out_c, channels)
    family = family.for_groups(groups + (rest > 0))
    # Code that is there several times is worth its flash where a loop runs it again.
    most = max(min(family.together // pairs, groups // 2), 1)
    together = 1 if rest else largest_divisor(groups, most)
    alike = r.alike if family.weights.packed else None
    one_sided = r.exponent if r.form is Form.ONE_SIDED else None
    return Tile(
        pixels=pixels,
        channels=channels,
        weights=family.weights,
        pairs=pairs,
        exponent=one_sided if alike is None else alike.exponent,
        step=g.out_pixel_stride if pixels > 1 else 0,
        at_once=0 if page.beside else family.at_once,
        straight=family.straight,
        turn=family.turn_of(pairs),
        groups=together,
        alike=alike is not None,
        plain=r.form is Form.PLAIN,
    )


def of_layer(family: Family, node: Node) -> Family:
    """By how many channels a layer goes: by one where there is no second. By which form of int4 weights: by nibbles
    where they are no digits."""
    if family.weights.int4:
        r, out_c = chosen_rounding(node, family), node.output.shape[-1]
        if out_c < family.channels or int4.have_signs(r, groups_of(out_c, family.channels)):
            return family
        return replace(family, weights=Weights.NIBBLES, straight=NIBBLES_STRAIGHT, beside=0)
    g = geometry(node)
    wide = family.weights is Weights.WIDE or family.pixels == 4
    return alone(family) if wide and g.out_c == 1 else family


def alone(family: Family) -> Family:
    """The same by one channel, whose weights have words of their own."""
    return replace(family, channels=1, weights=Weights.WIDE)


def has_last(g: Geometry, family: Family) -> bool:
    """Whether last channels are a tile of their own. By two pixels the last channels overlap those before; of int4
    weights one or two do not where more than an eighth of all channels would be computed twice."""
    rest = g.out_c % family.channels
    if family.weights.int4:
        return 0 < rest <= 2 and 8 * (family.channels - rest) > g.out_c
    return family.pixels == 4 and rest > 0


def family_of_last(g: Geometry, family: Family) -> Family:
    """By which last channels go that are no whole group: their weights are int8, or int16."""
    if g.out_c % family.channels == 1:
        return alone(family)
    return replace(family, channels=2, weights=Weights.PACKED)


def last_of(g: Geometry, r: Rounding, family: Family, page: CorePage) -> Tile:
    """The tile of last channels that are no whole group."""
    of_rest = replace(g, out_c=g.out_c % family.channels)
    return tile_of(of_rest, r, family_of_last(g, family), page=page)


def leaves_one(g: Geometry, family: Family) -> bool:
    """Whether the last of an odd number of pixels is a tile of its own."""
    return family.alone and g.out_h * g.out_w % 2 != 0


def tiles_of(g: Geometry, r: Rounding, family: Family, page: CorePage) -> tuple[Tile, ...]:
    """That of several pixels, and that of a last one where it is needed."""
    counts = (family.pixels, 1) if leaves_one(g, family) else (family.pixels,)
    return tuple(tile_of(g, r, family, pixels, page) for pixels in counts)


def patches_of(g: Geometry, family: Family) -> tuple[Patches, ...]:
    """What gathers the inputs of each of the tiles."""
    band = band_of(g, family)
    row = band.columns * g.in_c if band.outputs else g.in_w * g.in_pixel_stride
    pixel = g.in_c if band.outputs else g.in_pixel_stride
    rows, taps = (g.kernel_h, g.dilation_h * row), (g.kernel_w, g.dilation_w * pixel)
    if g.dilation_w == 1:
        taps = 1, 0
    elif g.kernel_h == 1:
        rows, taps = taps, (1, 0)
    two = Patches(
        pixels=2,
        rows=rows[0],
        taps=taps[0],
        values=g.together,
        # Windows that reach out lie elsewhere, closer together.
        row_step=rows[1] if rows[0] > 1 and (band.outputs or g.inside) else 0,
        tap_step=taps[1],
        filled=len(filled_order(g, family)) - len(order_of(g)),
    )
    return (two, replace(two, pixels=1)) if leaves_one(g, family) else (two,)


@dataclass(frozen=True)
class Band:
    """The fields of tinyet_band_dsp, in order."""

    outputs: int
    rows: int
    columns: int


def band_of(g: Geometry, family: Family) -> Band:
    """What lies in scratch with padding."""
    if g.inside:
        return Band(0, 0, 0)
    rows = (g.kernel_h - 1) * g.dilation_h + 1
    columns = (g.kernel_w - 1) * g.dilation_w + 1
    # Two pixels may be in two output rows.
    wraps = g.out_h > 1 and g.out_w % 2 > 0
    if family.windows:
        if by_taps(g):
            return Band(0, 1, g.kernel_w)
        return Band(0, g.kernel_h, max(columns + g.stride_w, 2 * columns if wraps else 0))
    width = (g.out_w - 1) * g.stride_w + columns
    most = (BAND_BYTES // (width * g.in_c) - rows) // g.stride_h + 1
    outputs = min(max(most, 2 if wraps else 1), g.out_h)
    return Band(outputs, (outputs - 1) * g.stride_h + rows, width)


def by_taps(g: Geometry) -> bool:
    """Whether the printed function takes a window's taps, which lie apart, for rows."""
    return g.kernel_h == 1 and g.dilation_w > 1


def padded_bytes(g: Geometry, family: Family) -> int:
    """Of scratch, of a band or of two windows, in whole words."""
    band = band_of(g, family)
    windows = 2 if family.windows and by_taps(g) else 1
    return -(-windows * band.rows * band.columns * g.in_c // 4) * 4


def chosen_rounding(node: Node, family: Family) -> Rounding:
    """With weights shifted by up to 8: they leave int16 otherwise, or a packed sum its word."""
    return int4.chosen_rounding(node) if family.weights.int4 else rounding_of(node, Stored.INT16)


def refuse(node: Node, target: Target, family: Family) -> str | None:
    if not isinstance(node.attrs, Linear) and attrs_of(node).groups != 1:
        return "only one group"
    g = geometry(node)
    family = of_layer(family, node)
    if family.windows and (reason := refuse_windows(g, family)) is not None:
        return reason
    if (pixels := g.out_h * g.out_w) < family.pixels:
        return f"{pixels} output pixels, needs {family.pixels}"
    if not family.channels <= g.out_c <= LARGEST_OFFSET:
        return f"{g.out_c} output channels, takes {family.channels} to {LARGEST_OFFSET}"
    most = MOST_PAIRS_OF_FOUR if family.pixels == 4 else MOST_PAIRS
    if len(order_of(g)) > most:
        return f"{len(order_of(g))} pairs of input values, takes up to {most}"
    r = chosen_rounding(node, family)
    if family.weights.int4:
        return PLAIN_SUMS if r.form is Form.PLAIN else int4.refusal(r)
    if family.weights is Weights.PACKED:
        return refuse_packed(r, groups_of(g.out_c - has_last(g, family), family.channels))
    if r.form is Form.PLAIN and any_factor(r) is None:
        return "sums too large for its rounding"
    return None


def refuse_windows(g: Geometry, family: Family) -> str | None:
    """Where windows in scratch are of no use."""
    if padded_bytes(g, family) >= padded_bytes(g, replace(family, windows=False)):
        return "no less scratch than for rows"
    rows = windows_inside(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    columns = windows_inside(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)
    # Two of three neighbours are a pair.
    return None if rows >= 1 and columns >= 3 else "nearly all windows reach out"


def windows_inside(size: int, out: int, kernel: int, stride: int, dilation: int, pad: int) -> int:
    """Along one axis, how many do not reach over an edge of the image."""
    first, last = -(-pad // stride), (size - (kernel - 1) * dilation - 1 + pad) // stride
    return max(min(last, out - 1) - first + 1, 0)


def refuse_packed(r: Rounding, groups: Int64) -> str | None:
    """Where two of the channels, by groups, are no one number."""
    if r.form is Form.PLAIN:
        return PLAIN_SUMS
    bound = int(max_of_sums(r).max(initial=0))
    if 256 * bound >= LIMIT:
        return f"256 times a sum of up to {bound} leaves int32"
    if int(both_channels(r.weights, groups).min()) < -(2**15):
        return "a weight of -128 beside a negative one of the channel before"
    return None


def groups_of(count: int, channels: int) -> Int64:
    """(groups, channels) channels; the last group overlaps the one before where the count is no multiple."""
    first = np.minimum(np.arange(0, count, channels), count - channels)
    return np.asarray(first[:, None] + np.arange(channels), np.int64)


def both_channels(weights: Int64, groups: Int64) -> Int64:
    """Of weights (channels, columns), (groups, pairs of channels, columns): 256 * b + a; may leave int16."""
    return np.asarray(weights[groups[:, 0::2]] + 256 * weights[groups[:, 1::2]], np.int64)


def stream(r: Rounding, g: Geometry, family: Family, first: int = 0) -> Int64:
    """The streams of tinyet_tile_dsp.h of all channels, (words,). first: their first one in the rounding."""
    if not has_last(g, family):
        return stream_of(r, g, family, first + groups_of(g.out_c, family.channels))
    count = g.out_c // family.channels * family.channels
    whole = first + groups_of(count, family.channels)
    last = stream_of(r, g, family_of_last(g, family), np.arange(first + count, first + g.out_c)[None])
    return np.concatenate([stream_of(r, g, family, whole), last])


def stream_of(r: Rounding, g: Geometry, family: Family, groups: Int64) -> Int64:
    """That of some groups of channels, (groups, channels)."""
    low, high = np.array(filled_order(g, family)).T
    if family.weights.int4:
        packed = int4.digits if family.weights is Weights.DIGITS else int4.nibbles
        return int4.framed(packed(r, groups, low, high), packed_ends(r, groups, family.weights))
    if family.weights is Weights.WIDE:
        columns, bias = (r.weights << r.before[:, None])[groups], (r.bias << r.before)[groups]
        tail = wide_ends(r, groups)
    else:
        columns, bias = both_channels(r.weights, groups), r.bias[groups]
        bias[:, 1::2] = 256 * bias[:, 1::2] + bias[:, 0::2]
        tail = packed_ends(r, groups)
    columns = np.pad(columns, ((0, 0), (0, 0), (0, 1)))  # NONE is the last one
    # (groups, pairs of inputs, words of a pair)
    body = pack_int16x2(columns[..., low], columns[..., high]).transpose(0, 2, 1)
    return words(np.concatenate([bias, body.reshape(len(body), -1), tail], axis=1).ravel())


def wide_ends(r: Rounding, groups: Int64) -> Int64:
    """(groups, words): what rounds the sums of channels that have words of their own."""
    if (plain := any_factor(r)) is not None:
        return plain[groups].reshape(len(groups), -1)
    ends = [r.multiplier, r.offset] + ([] if r.form is Form.ONE_SIDED else [r.shift])
    return np.concatenate([values[groups] for values in ends], axis=1)


def any_factor(r: Rounding) -> Int64 | None:
    """(channels, 5): multiplier, offset, shift, before and mask of a plain rounding (`Tile`); None of another one, and
    where sums before the multiplication leave int32."""
    left, right = np.maximum(r.shift, 0), np.maximum(-r.shift, 0)
    bound = max_of_sums(r)
    if (
        r.form is not Form.PLAIN
        or np.any(right > 21)
        or np.any(left > 29)
        or np.any(bound << (left + 1) >= LIMIT)
    ):
        return None
    offset = (r.offset << right) + ((np.int64(1) << right) >> 1)
    return np.stack([r.multiplier, offset, right, left + 1, -(right > 0).astype(np.int64)], axis=1)


def packed_ends(r: Rounding, groups: Int64, weights: Weights = Weights.PACKED) -> Int64:
    """(groups, words): what rounds the sums of several channels a word of weights."""
    if r.alike is not None:
        parts = (r.alike.multiplier, r.alike.offset)
        by_two = [part[groups].reshape(len(groups), -1, 2) for part in parts]
        return np.concatenate(by_two, axis=2).reshape(len(groups), -1)
    shift = r.shift[groups]
    if r.form is Form.ONE_SIDED:
        scale = np.array([weights.scale(channel) for channel in range(groups.shape[1])])
        shift = np.where(scale > int4.LEAST_BEFORE, scale - shift, shift - scale)
    turned = np.arange(groups.shape[1]) ^ 1  # b before a
    by_channel = np.stack([r.multiplier[groups], r.offset[groups], shift], axis=2)
    return np.asarray(by_channel[:, turned].reshape(len(groups), -1), np.int64)


def lower(node: Node, target: Target, layouts: Layouts = DENSE, *, family: Family) -> Call:
    family = of_layer(family, node)
    g, r = geometry(node, layouts), chosen_rounding(node, family)
    page = page_of(cycles_of(target))
    several, *one = tiles_of(g, r, family, page)
    last = [last_of(g, r, family, page)] if has_last(g, family) else []
    paired = layouts.reads is NHW2C2
    gathering = () if paired else patches_of(g, family)
    see_two, see_one = ([page.named(p.name) for p in gathering] + ["NULL", "NULL"])[:2]
    band = band_of(g, family)
    sizes = f"{several.channels}, {several.group_words}, /* pairs */ {several.pairs}"
    by_itself, behind = (page.named(found[0].name) if found else "NULL" for found in (one, last))
    shape: tuple[str, ...] = (
        f"const tinyet_conv2d_shape_dsp shape = {g.literal};",
        f"const tinyet_rounding_dsp rounding = {r.literal};",
        f"const tinyet_tiles_dsp tiles = {{{page.named(several.name)}, {by_itself}, {behind},",
        f"    {see_two}, {see_one},",
        f"    /* pixels */ {several.pixels}, /* channels, words */ {sizes}}};",
    )
    data = stream(r, g, family).astype(np.int32)
    text = f"bias, weights and rounding of {several.channels} channels after another"
    brought = {name: text for tile in (several, *one, *last) for name, text in files(tile, page).items()}
    brought |= {name: text for p in gathering for name, text in patches.files(p, page).items()}
    constant = Constant("weights", data, text)
    scratch = 0 if paired else 4 * several.pixels * several.pairs + padded_bytes(g, family)
    read = "weights"
    if family.copied:
        copy = f"tinyet_copied_weights_dsp((int32_t *)scratch + {scratch // 4}, weights, {data.size})"
        shape = (*shape, f"const int32_t *const copied = {copy};")
        read, scratch = "copied", scratch + data.nbytes
    if paired:
        body = (*shape, f"tinyet_conv2d_nhw2c2_tiles_dsp(input, output, {read}, shape, rounding, tiles);")
    else:
        sizes = f"/* outputs */ {band.outputs}, /* rows */ {band.rows}, /* columns */ {band.columns}"
        shape = (*shape, f"const tinyet_band_dsp band = {{{sizes}}};")
        body = (
            *shape,
            f"tinyet_conv2d_tiles_dsp(input, output, scratch, {read}, shape, rounding, tiles, band);",
        )
    call = specialised_call(family.symbol, summary(node), [constant], body, scratch_bytes=scratch)
    return replace(call, files=brought)


def takes(node: Node, layouts: Layouts, *, family: Family) -> bool:
    if layouts.writes is not None:
        return False
    g = geometry(node)
    if layouts.reads is NHW2C2:
        return g.pointwise and g.inside
    if family.windows and layouts.input and g.dilation_w > 1 and not by_taps(g):
        return False  # taps in scratch are closer together than in the image
    return takes_pixel_stride(node, layouts) and layouts.output <= LARGEST_OFFSET


@of_input
def by_twos(node: Node) -> AccessOrder:
    """Two pixels at a time, whose inputs are widened before they are written."""
    return walk(node).by_pixels(2, gathered=True)


@of_input
def by_overlapping_twos(node: Node) -> AccessOrder:
    return walk(node).by_pixels(2, moved_back=True, gathered=True)


ORDERS = {2: by_overlapping_twos, 4: by_fours}


def kernel_of(family: Family) -> Kernel:
    lowered = partial(lower, family=family)
    return Kernel(
        family.symbol,
        "s8_w4" if family.weights.int4 else "s8",
        lowered,
        INT4_HEADERS if family.weights.int4 else HEADERS,
        (),
        partial(refuse, family=family),
        "cortex_m",
        layout_support=LayoutSupport(lowered, partial(takes, family=family), (NHW2C2,)),
        access_order=by_twos if family.alone else ORDERS[family.pixels],
    )


KERNELS = (kernel_of(WIDE),)
FOR_FLASH = tuple(kernel_of(family) for family in FAMILIES if family not in (WIDE, DIGITS))
INT4_KERNELS = (kernel_of(DIGITS),)
