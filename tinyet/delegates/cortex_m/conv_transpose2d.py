# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions of one group, phase by phase as ordinary ones (tinyet_conv_transpose2d_dsp.h), by the printed
tiles of these (conv2d_tiles.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_tiles
from tinyet.delegates.cortex_m.conv2d import MOST_BEFORE, Geometry
from tinyet.delegates.cortex_m.conv2d_tiles import LARGEST_OFFSET, MOST_PAIRS, MOST_PAIRS_OF_FOUR, Family
from tinyet.delegates.cortex_m.rounding import Form, Rounding, choose
from tinyet.delegates.cortex_m.wrapper import specialised_call
from tinyet.ir import Node
from tinyet.ir.memoize import memoize
from tinyet.numerics import Int64, clamp_range
from tinyet.ops import conv_transpose2d
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.weighted import int_bias
from tinyet.opset import DENSE, Call, Constant, Kernel, Layouts, LayoutSupport, only_strides
from tinyet.opset.cost import cycles_of
from tinyet.tiles import patches
from tinyet.tiles.core import page_of
from tinyet.tiles.printer import files
from tinyet.tiles.tile import Weights

HEADERS = (*conv2d_tiles.HEADERS, "tinyet_conv_transpose2d_dsp.h")


def named(family: Family, symbol: str) -> Family:
    """A family of convolutions' for the pixels of a phase."""
    return replace(family, symbol=symbol, alone=False, windows=True)


PACKED = named(conv2d_tiles.PACKED, "tinyet_conv_transpose2d_s8_polyphase_2x4_dsp")
SHORT = named(conv2d_tiles.SHORT, "tinyet_conv_transpose2d_s8_polyphase_2x4_short_dsp")
WIDE = named(conv2d_tiles.WIDE, "tinyet_conv_transpose2d_s8_w16_polyphase_2x2_dsp")
FOUR = named(conv2d_tiles.FOUR, "tinyet_conv_transpose2d_s8_polyphase_4x2_dsp")
FAMILIES = (WIDE, PACKED, SHORT, FOUR)


@dataclass(frozen=True)
class Cells:
    """stride: rows and columns of a cell. crop: those that the first one lacks. one: the convolution that a phase is,
    with a pixel for each cell, whole or not, and its step from cell to cell."""

    stride: tuple[int, int]
    crop: tuple[int, int]
    out: tuple[int, int]
    one: Geometry

    def columns(self, pixels: int) -> list[list[int]]:
        """Of each so many columns of cells, for each column of phases that has outputs there, the first cell of those
        that are computed."""
        found: list[list[int]] = []
        for column in range(0, self.one.out_w, pixels):
            here = []
            for phase in range(self.stride[1]):
                end = (self.out[1] - 1 + self.crop[1] - phase) // self.stride[1] + 1
                if column < end:
                    here.append(min(max(column, int(phase < self.crop[1])), end - pixels))
            found.append(here)
        return found


def cells_of(node: Node, layouts: Layouts = DENSE) -> Cells:
    a = conv_transpose2d.attrs_of(node)
    stride, pad = (a.stride_h, a.stride_w), (a.pad_top, a.pad_left)
    batch, in_h, in_w, in_c = node.input(0).shape
    out, out_c = node.output.shape[1:3], node.output.shape[3]
    taps = [-(-size // s) for size, s in zip(node.input(1).shape[1:3], stride, strict=True)]
    before = [p // s for p, s in zip(pad, stride, strict=True)]  # cells that are cropped
    counts = [(n - 1 + p) // s - b + 1 for n, p, s, b in zip(out, pad, stride, before, strict=True)]
    one = Geometry(
        batch=batch,
        in_h=in_h,
        in_w=in_w,
        in_c=in_c,
        out_h=counts[0],
        out_w=counts[1],
        out_c=out_c,
        kernel_h=taps[0],
        kernel_w=taps[1],
        stride_h=1,
        stride_w=1,
        dilation_h=1,
        dilation_w=1,
        pad_top=taps[0] - 1 - before[0],
        pad_left=taps[1] - 1 - before[1],
        in_pixel_stride=layouts.input or in_c,
        out_pixel_stride=a.stride_w * (layouts.output or out_c),
        zero_point=node.input(0).type.zero_point,
    )
    crop = pad[0] % stride[0], pad[1] % stride[1]
    return Cells(stride, crop, (out[0], out[1]), one)


def phase_weights(node: Node) -> Int64:
    """The kernel of each phase as an ordinary convolution has it, with zeros for taps that a phase has not: int64
    (stride_h * stride_w, out_c, taps_h, taps_w, in_c)."""
    weights = node.input(1).array.astype(np.int64)
    c = cells_of(node)
    (stride_h, stride_w), g = c.stride, c.one
    found = np.zeros((stride_h, stride_w, g.out_c, g.kernel_h, g.kernel_w, g.in_c), np.int64)
    for ky in range(weights.shape[1]):
        for kx in range(weights.shape[2]):
            # Later taps read earlier rows and columns.
            row, column = g.kernel_h - 1 - ky // stride_h, g.kernel_w - 1 - kx // stride_w
            found[ky % stride_h, kx % stride_w][:, row, column] = weights[:, ky, kx]
    return found.reshape(-1, *found.shape[2:])


@memoize
def rounding(node: Node) -> Rounding:
    """Of all phases; the channels of one after those of another."""
    weights = phase_weights(node)
    count = len(weights)
    matrix = weights.reshape(count * weights.shape[1], -1)
    bias = np.tile(int_bias(node), count) - node.input(0).type.zero_point * matrix.sum(axis=1)
    multiplier, shift = (np.tile(v, count) for v in output_factors(node))
    out = node.output.type
    clamp = clamp_range(conv_transpose2d.attrs_of(node).clamp, out)
    bias = np.asarray(bias, np.int64)
    return choose(matrix, bias, multiplier, shift, out.zero_point, clamp, MOST_BEFORE)


def of_layer(family: Family, node: Node) -> Family:
    """By how many channels a layer goes."""
    out_c = node.output.shape[3]
    if family.weights is Weights.WIDE or family.pixels == 4:
        return conv2d_tiles.alone(family) if out_c == 1 else family
    return replace(family, channels=2) if out_c < family.channels else family


def first_channels(cells: Cells) -> Int64:
    """(phases,): the first of each in the rounding of all."""
    return np.arange(cells.stride[0] * cells.stride[1]) * cells.one.out_c


def padded_bytes(g: Geometry) -> int:
    """Of scratch for the windows of two cells where some reach out of the image, in whole words."""
    return 0 if g.inside else -(-g.kernel_h * (g.kernel_w + 1) * g.in_c // 4) * 4


def refuse(node: Node, target: Target, family: Family) -> str | None:
    a = conv_transpose2d.attrs_of(node)
    if a.groups != 1:
        return "only one group"
    if (a.dilation_h, a.dilation_w) != (1, 1):
        return "no dilation"
    family, width = of_layer(family, node), node.output.shape[2]
    if width < family.pixels * a.stride_w:
        return f"rows of {width} output pixels, needs {family.pixels * a.stride_w}"
    cells, r = cells_of(node), rounding(node)
    g = cells.one
    if g.out_c < family.channels:
        return f"{g.out_c} output channels, needs {family.channels}"
    if g.out_pixel_stride > LARGEST_OFFSET:
        return f"{g.out_pixel_stride} output values from a phase's pixel to the next, takes up to {LARGEST_OFFSET}"
    most = MOST_PAIRS_OF_FOUR if family.pixels == 4 else MOST_PAIRS
    if (pairs := len(conv2d_tiles.order_of(g))) > most:
        return f"{pairs} pairs of input values, takes up to {most}"
    if family.weights is Weights.PACKED:
        groups = conv2d_tiles.groups_of(g.out_c - conv2d_tiles.has_last(g, family), family.channels)
        of_phases = (first_channels(cells)[:, None, None] + groups).reshape(-1, family.channels)
        return conv2d_tiles.refuse_packed(r, of_phases)
    if r.form is Form.PLAIN and conv2d_tiles.any_factor(r) is None:
        return "sums too large for its rounding"
    return None


def takes(node: Node, layouts: Layouts) -> bool:
    """Where the taps of a kernel row are no neighbouring bytes, they must not be taken for such."""
    g = cells_of(node, layouts).one
    near = g.out_pixel_stride <= LARGEST_OFFSET
    return only_strides(node, layouts) and near and (not layouts.input or g.kernel_w == 1)


def lower(node: Node, target: Target, layouts: Layouts = DENSE, *, family: Family) -> Call:
    family = of_layer(family, node)
    cells, r = cells_of(node, layouts), rounding(node)
    g, page = cells.one, page_of(cycles_of(target))
    tile = conv2d_tiles.tile_of(g, r, family, page=page)
    (gathering,) = conv2d_tiles.patches_of(g, family)
    last = [conv2d_tiles.last_of(g, r, family, page)] if conv2d_tiles.has_last(g, family) else []
    phases = [conv2d_tiles.stream(r, g, family, int(first)) for first in first_channels(cells)]
    data = np.concatenate(phases).astype(np.int32)
    text = f"phase by phase: bias, weights and rounding of {tile.channels} channels after another"
    (stride_h, stride_w), (top, left), (out_h, out_w) = cells.stride, cells.crop, cells.out
    whole = replace(
        g,
        out_h=out_h,
        out_w=out_w,
        stride_h=stride_h,
        stride_w=stride_w,
        pad_top=top,
        pad_left=left,
        out_pixel_stride=g.out_pixel_stride // stride_w,
    )
    behind = page.named(last[0].name) if last else "NULL"
    sizes = f"{tile.channels}, {tile.group_words}"
    places = f"{g.out_h}, {g.out_w}, /* first */ {-g.pad_top}, {-g.pad_left}"
    body = (
        f"const tinyet_conv2d_shape_dsp shape = {whole.literal};",
        f"const tinyet_rounding_dsp rounding = {r.literal};",
        f"const tinyet_tiles_dsp tiles = {{{page.named(tile.name)}, NULL, {behind},",
        f"    {page.named(gathering.name)}, NULL,",
        f"    /* pixels */ {tile.pixels}, /* channels, words */ {sizes}, /* pairs */ {tile.pairs}}};",
        f"const tinyet_cells_dsp cells = {{{places}, /* words */ {len(phases[0])}}};",
        "tinyet_conv_transpose2d_tiles_dsp(input, output, scratch, weights, shape, rounding, tiles, cells);",
    )
    read, written = ("x".join(map(str, t.shape[1:])) for t in (node.input(0), node.output))
    kernel = "x".join(map(str, node.input(1).shape[1:3]))
    summary = f"{read} -> {written}, transposed, kernel {kernel}, stride {stride_h}x{stride_w}"
    scratch = 4 * tile.pixels * tile.pairs + padded_bytes(g)
    constants = [Constant("weights", data, text)]
    call = specialised_call(family.symbol, summary, constants, body, scratch_bytes=scratch)
    brought = {name: text for one in (tile, *last) for name, text in files(one, page).items()}
    return replace(call, files=brought | patches.files(gathering, page))


def kernel_of(family: Family) -> Kernel:
    lowered = partial(lower, family=family)
    return Kernel(
        family.symbol,
        "s8",
        lowered,
        HEADERS,
        (),
        partial(refuse, family=family),
        "cortex_m",
        layout_support=LayoutSupport(lowered, takes),
    )


KERNELS = tuple(kernel_of(family) for family in FAMILIES)
