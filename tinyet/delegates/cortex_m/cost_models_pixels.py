# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of convolutions grow with that take one or two pixels at a time
(tinyet_conv2d_tiles_dsp.h, tinyet_conv2d_k8_dsp.h): see cost_models.py."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tinyet.delegates.cortex_m import conv2d, conv2d_k8, conv2d_tiles, cost_models
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored
from tinyet.delegates.cortex_m.conv2d_tiles import Family
from tinyet.delegates.cortex_m.int16x2 import NHW2C2
from tinyet.delegates.cortex_m.rounding import Rounding
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.cost_models import Parts, axis
from tinyet.opset import DENSE, ByCore, CostModel, Exact, Layouts
from tinyet.tiles import few_channels
from tinyet.tiles import patches as patches_code
from tinyet.tiles.core import ARMV7E_M, CorePage, page_of
from tinyet.tiles.function import function
from tinyet.tiles.patches import Patches
from tinyet.tiles.tile import Tile
from tinyet.timing.cores import CORES
from tinyet.timing.work import Work, total


def places(g: Geometry, family: Family) -> Int64:
    """(calls, 2) output pixels whose inputs are gathered at once, in order; of a last one alone twice the same."""
    pixels = g.out_h * g.out_w
    first = np.arange(0, pixels, family.pixels)
    if not family.alone:
        first = np.minimum(first, pixels - family.pixels)
    first = (first[:, None] + np.arange(0, family.pixels, 2)).ravel()
    return np.stack([first, np.minimum(first + 1, pixels - 1)], axis=1)


def begins_of_bands(g: Geometry, family: Family) -> list[int]:
    """The output rows at which bands begin, of an image."""
    band, found, end = conv2d_tiles.band_of(g, family), [], 0
    which = places(g, family)
    for before, first, (y, next_y) in zip(
        [-1, *which[:-1, 1]], which[:, 0], (which // g.out_w).tolist(), strict=True
    ):
        # Four that overlap those before have a band that begins with them.
        if next_y >= end or (family.pixels > 2 and first <= before):
            found.append(y)
            end = y + band.outputs
    return found


def seen(g: Geometry, family: Family) -> Parts:
    """The pixels that the kernel reads, two at a time, and what it copies with padding before."""
    which = places(g, family)
    single = int(conv2d_tiles.leaves_one(g, family))
    blocks = g.batch * (len(which) - single)
    parts: Parts = {
        "call": 1,
        "block": blocks,
        "four pixels": g.batch * -(-g.out_h * g.out_w // 4) * (family.pixels == 4),
        "block of several rows": blocks * int(g.out_h > 1),
        "single pixel": g.batch * single,
    }
    if g.inside:
        return parts
    band = conv2d_tiles.band_of(g, family)
    if band.outputs:
        starts = np.array(begins_of_bands(g, family))
        top = starts[:, None] * g.stride_h - g.pad_top + np.arange(band.rows)
        return (
            parts
            | {"block of a band": blocks, "band": g.batch * len(starts)}
            | copied(g, top.ravel(), np.full(top.size, -g.pad_left), np.full(top.size, band.columns))
        )
    y, x = np.divmod(which, g.out_w)
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    columns = axis(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)
    edge = ~(rows.whole[y] & columns.whole[x]).all(axis=1)
    pairs = which[edge]
    (y, next_y), (x, next_x) = (values.T for values in np.divmod(pairs, g.out_w))
    single, wraps = pairs[:, 0] == pairs[:, 1], y != next_y
    taps = conv2d_tiles.by_taps(g)
    # What lies in one row and in the next is copied by itself, and so are taps.
    own = ~single & (wraps | taps)
    y, x = np.append(y, next_y[own]), np.append(x, next_x[own])
    top = y[:, None] * g.stride_h - g.pad_top + np.arange(g.kernel_h) * g.dilation_h
    left = np.broadcast_to(x[:, None] * g.stride_w - g.pad_left, top.shape)
    span = (g.kernel_w - 1) * g.dilation_w + 1
    length = span + np.append(np.where(single | wraps, 0, g.stride_w), np.zeros(own.sum(), np.int64))
    length = np.broadcast_to(length[:, None], top.shape)
    if taps:
        left = left + np.arange(g.kernel_w) * g.dilation_w
        top, length = np.broadcast_to(top, left.shape), np.ones_like(left)
    parts |= {
        "block that may reach out": blocks,
        "block with an edge": g.batch * int(edge.sum()),
        "window": g.batch * len(y),
    }
    return parts | copied(g, top.ravel(), left.ravel(), length.ravel())


def copied(g: Geometry, top: Int64, left: Int64, columns: Int64) -> Parts:
    """tinyet_padded_dsp, of rows of so many columns that begin there."""
    first, end = np.maximum(-left, 0), np.minimum(g.in_w - left, columns)
    there = (top >= 0) & (top < g.in_h) & (first < end)
    inner = np.where(there, end - first, 0)
    length, padding = inner * g.in_c, np.where(there, columns - inner, 0)
    hidden = g.batch * int((~there).sum())
    return {
        "copied row": g.batch * int(there.sum()),
        "copied thirty-two bytes": g.batch * int((length // 32).sum()),
        "copied four bytes": g.batch * int((length % 32 // 4).sum()),
        "copied byte": g.batch * int((length % 4).sum()),
        "padding": g.batch * int((padding > 0).sum()),
        "padding byte": g.batch * int(padding.sum()) * g.in_c,
        "hidden row": hidden,
        "hidden byte": g.batch * int(columns[~there].sum()) * g.in_c,
    }


def two_work(node: Node, family: Family, layouts: Layouts = DENSE) -> Mapping[str, int]:
    """What is around the tiles."""
    family = conv2d_tiles.of_layer(family, node)
    g, r = conv2d.geometry(node), conv2d_tiles.chosen_rounding(node, family)
    pixels = g.out_h * g.out_w
    tiles = g.batch * -(-pixels // family.pixels)
    several = "four pixels" if family.pixels == 4 else "block"
    parts = {"call": 1, several: tiles} if layouts.reads is NHW2C2 else seen(g, family)
    if family.copied:
        parts["copied word"] = weight_words(g, r, family)
    parts["last channels"] = tiles * (g.out_c % family.channels > 0)
    parts["clamped output"] = g.batch * pixels * g.out_c * (cost_models.bounds(r.low, r.high) > 0)
    return parts


def padded_code(g: Geometry, family: Family) -> Parts:
    """What copies rows of the image with their padding: of bands their sizes are known, of windows they are not."""
    if g.inside:
        return {}
    band, odd = conv2d_tiles.band_of(g, family), int(g.out_h > 1 and g.out_w % 2 > 0)
    if not band.outputs:
        taps = int(conv2d_tiles.by_taps(g))
        return {
            "windows": 1,
            "windows, odd rows": odd,
            "window of rows": int(g.kernel_h > 1),
            "window of columns": int(g.kernel_w > 1),
            "window of taps": taps,
            "window, padding before": int(g.pad_left > 0),
            "window, whole thirty-twos": int(band.columns * g.in_c >= 32),
        }
    copied = max(min(g.in_w, band.columns - g.pad_left), 0)
    length = g.in_c * copied
    return {
        "bands": 1,
        "bands, odd rows": odd,
        "whole thirty-twos": int(length >= 32),
        "words of a run": length % 32 // 4,
        "bytes of a run": length % 4,
        "padding before": int(g.pad_left > 0),
        "padding behind": int(band.columns > g.pad_left + copied),
    }


def two_code(node: Node, family: Family) -> Mapping[str, int]:
    family = conv2d_tiles.of_layer(family, node)
    g, r = conv2d.geometry(node), conv2d_tiles.chosen_rounding(node, family)
    alone = int(conv2d_tiles.leaves_one(g, family))
    return {
        "call": 1,
        "several rows": int(g.out_h > 1),
        "odd rows": int(g.out_h > 1 and g.out_w % 2 > 0),
        "odd pixels": int(g.out_h * g.out_w % 2 > 0),
        **padded_code(g, family),
        "single pixel": alone,
        "last channels": 1 + alone if g.out_c % family.channels else 0,
        "several images": int(g.batch > 1),
        "clamp": int(cost_models.bounds(r.low, r.high) > 0),
    }


def weight_words(g: Geometry, r: Rounding, family: Family) -> int:
    """Of the stream of all channels."""
    words = conv2d_tiles.tile_of(g, r, family).group_words
    if not conv2d_tiles.has_last(g, family):
        return -(-g.out_c // family.channels) * words
    return g.out_c // family.channels * words + conv2d_tiles.last_of(g, r, family, ARMV7E_M).group_words


@functools.cache
def work_of(tile: Tile, page: CorePage, core: str, channels: int) -> Work:
    """Of one call of a tile. Layers of a network share tiles, and plans ask for the same layer again and again."""
    return function(tile, page).work(CORES[core], channels)


@functools.cache
def work_of_patches(patches: Patches, page: CorePage, core: str) -> Work:
    """Of one call."""
    return patches_code.function(patches, page).work(CORES[core], patches_code.turns_of(patches))


def read_again(tile: Tile, channels: int, page: CorePage) -> int:
    """Bytes of code that one call reads, of a function that is longer than what the flash's buffers keep: all of it in
    each turn of the loop over channels; a turn of the loop over pairs once there, if that is not longer itself."""
    made = function(tile, page)
    turn = page.instruction_bytes * len(made.groups[0][1])
    if made.code_bytes <= cost_models.KEPT_BYTES:
        return 0
    more = tile.groups * (tile.turns - 1) * turn if turn > cost_models.KEPT_BYTES else 0
    return channels // tile.units * (made.code_bytes + more)


def two_exact(node: Node, layouts: Layouts, printed_for: str, family: Family) -> Exact:
    """What gathers the inputs of two pixels, and of a last one, and the tiles, of all channels of these."""
    family = conv2d_tiles.of_layer(family, node)
    g, r = conv2d.geometry(node, layouts), conv2d_tiles.chosen_rounding(node, family)
    pixels, page = g.out_h * g.out_w, page_of(printed_for)
    several, *one = conv2d_tiles.tiles_of(g, r, family, page)
    last = [conv2d_tiles.last_of(g, r, family, page)] if conv2d_tiles.has_last(g, family) else []
    times = g.batch * (pixels // 2 if one else -(-pixels // family.pixels))
    calls = [(several, times), *((tile, g.batch) for tile in one)]
    whole = g.out_c // family.channels * family.channels
    gathering = () if layouts.reads is NHW2C2 else conv2d_tiles.patches_of(g, family)
    gathered = [times * family.pixels // 2, *[g.batch for _ in one]]

    parts = [(tile, whole, times) for tile, times in calls]
    if whole != g.out_c:
        ends = [(last[0] if last else tile, times) for tile, times in calls]
        parts += [(end, end.channels, times) for end, times in ends]
    words = 0 if family.copied else weight_words(g, r, family)
    read = 4 * words * sum(times for _, times in calls)
    return exact_of(page, list(zip(gathering, gathered, strict=False)), parts, read)


def exact_of(
    page: CorePage, gathered: Sequence[tuple[Patches, int]], parts: Sequence[tuple[Tile, int, int]], read: int
) -> Exact:
    """gathered: what gathers inputs, and how often. parts: tiles, their channels of a call, and calls. read: bytes of
    weights."""

    def of(core: str) -> Work:
        works = [work_of_patches(p, page, core).times(n) for p, n in gathered]
        works += [work_of(tile, page, core, channels).times(times) for tile, channels, times in parts]
        return total(works)

    instructions = of(page.cores[0]).instructions
    return Exact(
        instructions=instructions,
        cycles=ByCore(page.cores, lambda core: of(core).cycles),
        functions={page.named(tile.name): function(tile, page).code_bytes for tile, _, _ in parts}
        | {page.named(p.name): patches_code.function(p, page).code_bytes for p, _ in gathered},
        reads={
            "printed code": page.instruction_bytes * instructions,
            "printed code that is read again": sum(
                times * read_again(tile, channels, page) for tile, channels, times in parts
            ),
            "read weights": read,
        },
    )


def few_work(node: Node) -> Mapping[str, int]:
    """What is around the printed function."""
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    return {"call": 1, "clamped output": g.out_w * g.out_c * (cost_models.bounds(r.low, r.high) > 0)}


def few_code(node: Node) -> Mapping[str, int]:
    r = conv2d.rounding_of(node, Stored.INT16)
    return {"call": 1, "clamp": int(cost_models.bounds(r.low, r.high) > 0)}


def few_exact(node: Node, _layouts: Layouts, _core: str) -> Exact:
    """All pixels."""
    g = conv2d.geometry(node)
    few = conv2d_k8.few_of(g, conv2d.rounding_of(node, Stored.INT16))
    made = few_channels.function(few)

    def of(core: str) -> Work:
        return made.work(CORES[core], few_channels.turns_of(few, g.out_w))

    instructions = of(made.page.cores[0]).instructions
    size, long = made.code_bytes, made.code_bytes > cost_models.KEPT_BYTES
    return Exact(
        instructions=instructions,
        cycles=ByCore(made.page.cores, lambda core: of(core).cycles),
        functions={few.name: size},
        reads={
            "printed code": made.page.instruction_bytes * instructions,
            "printed code that is read again": g.out_w * size if long else 0,
            "read weights": 4 * g.out_w * g.out_c * few.words,
        },
    )


def of_family(family: Family) -> CostModel:
    return CostModel(
        partial(two_work, family=family),
        partial(two_code, family=family),
        lambda node, layouts: two_work(node, family, layouts),
        exact=partial(two_exact, family=family),
    )


COST_MODELS: Mapping[str, CostModel] = {
    **{family.symbol: of_family(family) for family in (*conv2d_tiles.FAMILIES, *conv2d_tiles.ROWS)},
    conv2d_k8.SYMBOL: CostModel(few_work, few_code, exact=few_exact),
}
"""By the kernels' names."""
