# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of the kernels for int16 activations grow with, loop by loop as
firmware/include/tinyet_*_s16_dsp.h have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tinyet.delegates.cortex_m import (
    conv2d,
    conv2d_s16,
    linear_s16,
)
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored
from tinyet.delegates.cortex_m.conv2d_s16 import CHANNELS, Products
from tinyet.delegates.cortex_m.cost_models_pixels import read_again, work_of
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16, rounding
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts, axis
from tinyet.opset import ByCore, CostModel, Exact
from tinyet.opset.data_layout import Layouts
from tinyet.tiles import columns as columns_code
from tinyet.tiles.core import page_of
from tinyet.tiles.function import function
from tinyet.tiles.lanes import PIXELS
from tinyet.timing.cores import CORES
from tinyet.timing.work import Work, total

COPIED = 8
"""Pairs that tinyet_put_int16x2_dsp copies in straight code."""


def copied(parts: Parts, values: int, times: int) -> None:
    """tinyet_put_int16x2_dsp of so many values."""
    pairs = values // 2
    parts["copy"] = times
    parts["pair"] = times * pairs
    parts["odd value"] = times * (values % 2)
    parts["copy by a loop"] = times * (pairs > COPIED)
    parts["turn of a copy"] = times * (pairs // COPIED) * (pairs > COPIED)
    parts["pair behind a loop"] = times * (pairs % COPIED) * (pairs > COPIED)


def copied_code(values: int) -> Parts:
    return {
        "pair": min(values // 2, COPIED),
        "loop of pairs": int(values // 2 > COPIED),
        "odd value": values % 2,
    }


# ---------------------------------------------------------------- convolutions


def around(parts: Parts, g: Geometry, r: Rounding16, p: Products, blocks: int) -> None:
    """What is around the tiles of so many times four pixels."""
    count = len(conv2d_s16.parts(r, p))
    parts["odd channel"] = blocks * (g.out_c % CHANNELS)
    if count > 1:
        channels = blocks * -(-g.out_c // CHANNELS)
        parts["part"] = channels * count
        parts["two channels of parts"] = channels
        parts["odd channel"] = 0
    elif conv2d_s16.leaves_clamp(r):
        parts["clamped output"] = g.batch * g.out_h * g.out_w * g.out_c


def around_code(parts: Parts, g: Geometry, r: Rounding16, p: Products) -> None:
    count = len(conv2d_s16.parts(r, p))
    parts |= {
        "call": 1,
        "odd channel": g.out_c % CHANNELS if count == 1 else 0,
        "parts": int(count > 1),
        "odd channel of parts": g.out_c % CHANNELS if count > 1 else 0,
        "several images": int(g.batch > 1),
        "clamp": int(count == 1 and conv2d_s16.leaves_clamp(r)),
    }


def exact(
    g: Geometry, r: Rounding16, p: Products, stored: Stored, blocks: int, seen: int, printed_for: str
) -> Exact:
    """The tiles, of all channels of so many times four pixels, and what gathers so many rows."""
    found, page = conv2d_s16.parts(r, p), page_of(printed_for)
    two, last = conv2d_s16.tiles_of(g, r, found, p.lanes, stored, page)
    whole = g.out_c // CHANNELS * CHANNELS
    divided = len(found) > 1
    # Channels of a call, and calls.
    calls = [(two, CHANNELS, blocks * whole // CHANNELS * len(found)) if divided else (two, whole, blocks)]
    calls.append((last, 1, blocks * len(found)))
    parts = [(tile, channels, times) for tile, channels, times in calls if tile is not None]

    gathers = [columns_code.function(p.columns, page)] if p.columns is not None else []

    def of(core: str) -> Work:
        works = [work_of(tile, page, core, channels).times(times) for tile, channels, times in parts]
        works += [made.work(CORES[core], columns_code.turns_of(made.tile)).times(seen) for made in gathers]
        return total(works)

    instructions = of(page.cores[0]).instructions
    return Exact(
        instructions=instructions,
        cycles=ByCore(page.cores, lambda core: of(core).cycles),
        functions={page.named(tile.name): function(tile, page).code_bytes for tile, _, _ in parts}
        | {page.named(made.tile.name): made.code_bytes for made in gathers},
        reads={
            "printed code": page.instruction_bytes * instructions,
            "printed code that is read again": sum(
                times * read_again(tile, channels, page) for tile, channels, times in parts
            ),
            "read weights": sum(
                4 * tile.group_words * channels // tile.channels * times for tile, channels, times in parts
            ),
        },
    )


def blocks_of_rows(g: Geometry) -> int:
    """Times four pixels of a row."""
    return g.batch * g.out_h * -(-g.out_w // PIXELS)


def blocks_of_patches(g: Geometry) -> int:
    """Times four pixels of an image."""
    return g.batch * -(-g.out_h * g.out_w // PIXELS)


def rows_seen(g: Geometry) -> int:
    """Kernel rows of four pixels that a printed function gathers at once."""
    if conv2d_s16.of_rows(g).columns is None:
        return 0
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    return g.batch * rows.in_image * int(conv2d_s16.whole_rows(g).sum())


def rows_work(g: Geometry, r: Rounding16) -> Mapping[str, int]:
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    reach = (g.kernel_w - 1) * g.dilation_w
    runs = min(g.stride_w, reach + 1)
    columns = np.array(
        [f + i * g.stride_w for f in range(runs) for i in range((reach - f) // g.stride_w + 4)]
    )
    starts = conv2d_s16.starts_of_rows(g)
    at = starts[:, None] * g.stride_w - g.pad_left + columns[None, :]
    by_column = ~conv2d_s16.whole_rows(g) if conv2d_s16.of_rows(g).columns is not None else starts >= 0
    inside = int(((at >= 0) & (at < g.in_w))[by_column].sum())
    blocks, seen = blocks_of_rows(g), rows_seen(g)
    there = g.batch * rows.in_image * inside
    hidden = g.batch * rows.inside.size * int((~by_column).sum()) - seen
    blank = g.batch * rows.inside.size * int(by_column.sum()) * len(columns) - there
    parts: Parts = {
        "call": 1,
        "row": g.batch * g.out_h,
        "block": blocks,
        "block that may reach out": blocks * int(seen > 0 and not columns_inside(g)),
        "kernel row": blocks * g.kernel_h,
        "row that is seen": seen,
        "hidden row of a block": hidden,
        "blank neighbour": hidden * len(columns) * -(-g.in_c // 2),
        "run": (blocks * g.kernel_h - seen - hidden) * runs,
        "blank": blank,
        "blank word": blank * -(-g.in_c // 2),
        "checked column": there,
    }
    copied(parts, g.in_c, there)
    around(parts, g, r, conv2d_s16.of_rows(g), blocks)
    return parts


def columns_inside(g: Geometry) -> bool:
    """Whether no kernel reaches over the left or the right edge of the image."""
    return not g.pad_left and (g.out_w - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w < g.in_w


def rows_code(g: Geometry, r: Rounding16) -> Mapping[str, int]:
    seen = conv2d_s16.of_rows(g).columns is not None
    copies = not (seen and columns_inside(g))
    parts = copied_code(g.in_c) if copies else {}
    around_code(parts, g, r, conv2d_s16.of_rows(g))
    runs = min(g.stride_w, (g.kernel_w - 1) * g.dilation_w + 1)
    return parts | {
        "odd width": int(g.out_w % PIXELS != 0),
        "several runs": int(runs > 1) * copies,
        **seen_code(g, seen=seen, copies=copies),
    }


def seen_code(g: Geometry, *, seen: bool, copies: bool) -> Parts:
    """What is around a printed function that gathers rows, and around copies beside it."""
    return {
        "several rows": int(g.out_h > 1),
        "kernel rows": int(g.kernel_h > 1),
        "kernel columns": copies * int(g.kernel_w > 1),
        "padding above": int(g.pad_top > 0),
        "padding on the left": int(g.pad_left > 0),
        "seen": int(seen),
        "copies": int(copies),
        "seen beside copies": int(seen and copies),
    }


def patches_seen(g: Geometry) -> int:
    """Kernel rows of four pixels that a printed function gathers at once."""
    if conv2d_s16.of_patches(g).columns is None:
        return 0
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    y = conv2d_s16.starts_of_patches(g)[conv2d_s16.whole_patches(g)] // g.out_w
    return g.batch * int(rows.inside.sum(axis=1)[y].sum())


def patches_work(g: Geometry, r: Rounding16) -> Mapping[str, int]:
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    columns = axis(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)
    starts, seen = conv2d_s16.starts_of_patches(g), patches_seen(g)
    whole_blocks = conv2d_s16.whole_patches(g) if conv2d_s16.of_patches(g).columns is not None else starts < 0
    whole_count = g.batch * int(whole_blocks.sum())
    which = (starts[~whole_blocks, None] + np.arange(4)).ravel()  # pixels that are seen one by one
    blocks = blocks_of_patches(g)
    there = rows.inside.sum(axis=1)[which // g.out_w]  # kernel rows of each pixel
    together = g.in_c * (g.kernel_w if g.dilation_w == 1 else 1)
    words = -(-together // 2) * (1 if g.dilation_w == 1 else g.kernel_w)
    hidden = g.batch * int((g.kernel_h - there).sum())
    single = g.batch * len(which)
    hidden_seen = whole_count * g.kernel_h - seen
    parts: Parts = {
        "call": 1,
        "block": blocks,
        "block that may reach out": blocks * int(whole_count > 0 and not columns_inside(g)),
        "block in rows": blocks * int(g.out_h > 1),
        "block that may wrap": blocks * int(whole_count > 0 and g.out_h > 1 and g.out_w % PIXELS > 0),
        "row that is seen": seen,
        "hidden row of a block": hidden_seen,
        "blank neighbour": 4 * hidden_seen * words,
        "pixel": single,
        ("kernel row" if g.dilation_w == 1 else "dilated kernel row"): single * g.kernel_h,
        "kernel row above or below": single * g.kernel_h * int(g.pad_top > 0),
        "row that may reach out": g.batch * int(there.sum()) * int(not columns.whole.all()),
        "blank row": hidden,
        "blank word": hidden * words,
    }
    taps = columns.inside.sum(axis=1)[which % g.out_w]
    if g.dilation_w == 1:
        whole = columns.whole[which % g.out_w]
        edge = g.batch * int(there[~whole].sum())
        parts["edge"] = edge
        parts["edge byte"] = 2 * edge * together
        parts["copied edge byte"] = 2 * g.batch * g.in_c * int((there * taps)[~whole].sum())
        copied(parts, together, g.batch * int(there.sum()))
    else:
        times = g.batch * int((there * taps).sum())
        blank = g.batch * int(there.sum()) * g.kernel_w - times
        parts["blank tap"] = blank
        parts["blank word"] += blank * -(-together // 2)
        copied(parts, together, times)
    around(parts, g, r, conv2d_s16.of_patches(g), blocks)
    return parts


def patches_code(g: Geometry, r: Rounding16) -> Mapping[str, int]:
    seen = conv2d_s16.of_patches(g).columns is not None
    copies = not (seen and columns_inside(g) and (g.out_h == 1 or g.out_w % PIXELS == 0))
    parts = copied_code(g.in_c * (g.kernel_w if g.dilation_w == 1 else 1)) if copies else {}
    around_code(parts, g, r, conv2d_s16.of_patches(g))
    return parts | {
        "odd number of pixels": int(g.out_h * g.out_w % PIXELS != 0),
        "dilated": int(g.dilation_w > 1),
        "edges of copies": copies * int(g.dilation_w == 1 and not columns_inside(g)),
        **seen_code(g, seen=seen, copies=copies),
    }


# ---------------------------------------------------------------- all


Shape = Callable[[Node], Geometry]
Counted = Callable[[Geometry, Rounding16], Mapping[str, int]]


def of_tiles(
    shape: Shape,
    work: Counted,
    code: Counted,
    products: Callable[[Geometry], Products],
    blocks: Callable[[Geometry], int],
    seen: Callable[[Geometry], int],
    stored: Stored,
) -> CostModel:
    """shape: of a node. blocks: times four pixels. seen: their rows that a printed function gathers."""

    def printed(node: Node, _layouts: Layouts, core: str) -> Exact:
        g = shape(node)
        return exact(g, rounding(node), products(g), stored, blocks(g), seen(g), core)

    return CostModel(
        lambda node: work(shape(node), rounding(node)),
        lambda node: code(shape(node), rounding(node)),
        exact=printed,
    )


ROWS = rows_work, rows_code, conv2d_s16.of_rows, blocks_of_rows, rows_seen
PATCHES = patches_work, patches_code, conv2d_s16.of_patches, blocks_of_patches, patches_seen

COST_MODELS: Mapping[str, CostModel] = {
    stored.named(name): of_tiles(shape, *kind, stored)
    for stored in (Stored.INT8, Stored.INT16)
    for name, shape, kind in (
        ("tinyet_conv2d_s16_direct_4x2_dsp", conv2d.geometry, ROWS),
        ("tinyet_conv2d_s16_im2col_4x2_dsp", conv2d.geometry, PATCHES),
        ("tinyet_linear_s16_4x2_dsp", linear_s16.row_geometry, ROWS),
    )
}
"""By the kernels' names."""
