# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of convolutions grow with that take one or two pixels at a time
(tinyet_conv2d_tiles_dsp.h, tinyet_conv2d_k8_dsp.h): see cost_models.py."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from functools import partial

import numpy as np

from tinyet.delegates.cortex_m import conv2d, conv2d_k8, conv2d_tiles, cost_models
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored
from tinyet.delegates.cortex_m.conv2d_tiles import Family
from tinyet.delegates.cortex_m.int16x2 import NHW2C2
from tinyet.delegates.cortex_m.rounding import Rounding
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts, axis
from tinyet.opset import DENSE, ByCore, CostModel, Exact, Layouts
from tinyet.tiles.core import CorePage, page_of
from tinyet.tiles.function import function
from tinyet.tiles.tile import Tile
from tinyet.timing.cores import CORES
from tinyet.timing.work import Work, total


def widening_turn(quads: int) -> int:
    """Fours of values of a turn of tinyet_widen_two_dsp."""
    return quads if quads <= 8 else next((n for n in (8, 7, 6, 5) if quads % n == 0), 4)


def seen(g: Geometry, family: Family) -> Parts:
    """The pixels that the kernel reads, two at a time."""
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    columns = axis(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)
    pixels = g.out_h * g.out_w
    alone = pixels % 2 if family.alone else 0
    starts = np.minimum(np.arange(0, pixels - alone, 2), pixels - 2)
    which = np.append((starts[:, None] + np.arange(2)).ravel(), np.full(alone, pixels - 1))
    y, x = np.divmod(which, g.out_w)
    whole = rows.whole[y] & columns.whole[x]  # of each pixel
    doubles = len(starts)
    together = whole[: 2 * doubles].reshape(-1, 2).all(axis=1)  # neither of two pixels has an edge
    # Pixels that are looked at row by row, and what of them is in the image.
    checked = np.append(np.repeat(~together, 2), np.full(alone, not g.inside))
    in_rows, in_columns = rows.inside.sum(axis=1)[y], columns.inside.sum(axis=1)[x]
    dilated = g.dilation_w > 1
    taps = g.kernel_w if dilated else 1
    segments, quads = g.kernel_h * taps, g.together // 4
    blocks, singles, edges = g.batch * doubles, g.batch * alone, g.batch * int((~together).sum())
    parts: Parts = {
        "call": 1,
        "block": blocks,
        "block of several rows": blocks * int(g.out_h > 1),
        "block that may reach out": blocks * int(not g.inside),
        "block with an edge": edges,
        "single pixel": singles,
        "row": (blocks - edges) * segments,
        "row with an edge": edges * segments,
        "row of one": singles * segments,
        "four values of two": blocks * segments * quads,
        "four values of one": singles * segments * quads,
        f"last {g.together % 4} values": (blocks + singles) * segments,
        "hidden row": g.batch * int((checked * (g.kernel_h - in_rows)).sum()) * taps,
    }
    turn = widening_turn(quads)
    if quads > turn:
        parts["turn of widening"] = blocks * segments * (quads // turn)
    if dilated:
        parts["hidden tap"] = g.batch * int((checked * in_rows * (g.kernel_w - in_columns)).sum())
    else:
        cut = checked * in_rows * ~columns.whole[x]
        parts["edge"] = g.batch * int(cut.sum())
        parts["edge byte"] = g.batch * int(cut.sum()) * g.together
        parts["copied edge"] = g.batch * int((cut * (in_columns > 0)).sum())
        parts["copied edge byte"] = g.batch * int((cut * in_columns).sum()) * g.in_c
    return parts


def two_work(node: Node, family: Family, layouts: Layouts = DENSE) -> Mapping[str, int]:
    """What is around the tiles."""
    g, r = conv2d.geometry(node), conv2d_tiles.chosen_rounding(node)
    pixels = g.out_h * g.out_w
    parts = {"call": 1, "block": g.batch * (pixels // 2)} if layouts.reads is NHW2C2 else seen(g, family)
    if family.copied:
        parts["copied word"] = weight_words(g, r, family)
    parts["last channels"] = g.batch * -(-pixels // 2) * (g.out_c % family.channels > 0)
    parts["clamped output"] = g.batch * pixels * g.out_c * (cost_models.bounds(r.low, r.high) > 0)
    return parts


def two_code(node: Node, family: Family) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d_tiles.chosen_rounding(node)
    alone = int(family.alone and g.out_h * g.out_w % 2 > 0)
    rows = code_rows(g)
    quads = g.together // 4
    turn = widening_turn(quads)
    return {
        "call": 1,
        "several rows": int(g.out_h > 1),
        "outside": int(not g.inside),
        "outside above or below": int(not g.inside and g.kernel_h > 1),
        "outside at a side": int(not g.inside and g.kernel_w > 1 and g.dilation_w == 1),
        "row": rows,
        "loop over rows": rows * int(g.kernel_h > 1),
        "dilated": int(g.dilation_w > 1),
        "four values": rows * (turn + (quads % turn if turn else 0)),
        "looped values": rows * int(quads > turn),
        "last values": rows * (g.together % 4).bit_count(),
        "single pixel": alone,
        "single pixel that may reach out": alone * int(not g.inside),
        "single pixel, several rows": int(alone > 0 and g.kernel_h > 1),
        "last channels": 1 + alone if g.out_c % family.channels else 0,
        "several images": int(g.batch > 1),
        "clamp": int(cost_models.bounds(r.low, r.high) > 0),
    }


def weight_words(g: Geometry, r: Rounding, family: Family) -> int:
    """Of the stream of all channels."""
    return -(-g.out_c // family.channels) * conv2d_tiles.tile_of(g, r, family).group_words


@functools.cache
def work_of(tile: Tile, page: CorePage, core: str, channels: int) -> Work:
    """Of one call of a tile. Layers of a network share tiles, and plans ask for the same layer again and again."""
    return function(tile, page).work(CORES[core], channels)


def two_exact(node: Node, layouts: Layouts, printed_for: str, family: Family) -> Exact:
    """The tiles: all channels of two pixels, and of a last one, as often as they are called."""
    g, r = conv2d.geometry(node, layouts), conv2d_tiles.chosen_rounding(node)
    pixels, page = g.out_h * g.out_w, page_of(printed_for)
    two, *one = conv2d_tiles.tiles_of(g, r, family, page)
    calls = [(two, g.batch * (pixels // 2 if one else -(-pixels // 2))), *((tile, g.batch) for tile in one)]
    whole = g.out_c // family.channels * family.channels

    def of(core: str) -> Work:
        works = []
        for tile, times in calls:
            works.append(work_of(tile, page, core, whole).times(times))
            if whole != g.out_c:
                works.append(work_of(tile, page, core, family.channels).times(times))
        return total(works)

    instructions = of(page.cores[0]).instructions
    words = 0 if family.copied else weight_words(g, r, family)
    return Exact(
        instructions=instructions,
        cycles=ByCore(page.cores, lambda core: of(core).cycles),
        functions={page.named(tile.name): function(tile, page).code_bytes for tile, _ in calls},
        reads={
            "printed code": page.instruction_bytes * instructions,
            "printed weights": 4 * words * sum(times for _, times in calls),
        },
    )


def code_rows(g: Geometry) -> int:
    """Copies of the code that widens a kernel row of two pixels."""
    if g.out_h * g.out_w < 2:
        return 0
    waits = g.together % 2 and g.dilation_w == 1
    written_out = next((n for n in (3, 2) if g.kernel_h % n == 0), 3) if waits else 1
    fits = g.in_h >= (g.kernel_h - 1) * g.dilation_h + 1 and g.in_w >= (g.kernel_w - 1) * g.dilation_w + 1
    return (min(g.kernel_h, written_out) if fits else 0) + int(not g.inside)


def few_work(node: Node) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    count, unroll = g.out_w * g.out_c, conv2d_k8.unroll_of(g)
    return {
        "call": 1,
        "pixel": g.out_w,
        "four values": g.out_w * (g.in_c // 4),
        "two values": g.out_w * (g.in_c // 2 % 2),
        "last value": g.out_w * (g.in_c % 2),
        f"output, {cost_models.form_name(r)}": count,
        "pair of inputs": count * -(-g.in_c // 2),
        "turn": count // unroll if unroll != g.out_c else 0,
        "clamped output": count * (cost_models.bounds(r.low, r.high) > 0),
    }


def few_code(node: Node) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d.rounding_of(node, Stored.INT16)
    unroll = conv2d_k8.unroll_of(g)
    return {
        "call": 1,
        "four values": g.in_c // 4,
        f"output, {cost_models.form_name(r)}": unroll,
        "pair of inputs": unroll * -(-g.in_c // 2),
        "clamp": int(cost_models.bounds(r.low, r.high) > 0),
    }


def of_family(family: Family) -> CostModel:
    return CostModel(
        partial(two_work, family=family),
        partial(two_code, family=family),
        lambda node, layouts: two_work(node, family, layouts),
        exact=partial(two_exact, family=family),
    )


COST_MODELS: Mapping[str, CostModel] = {
    **{family.symbol: of_family(family) for family in conv2d_tiles.FAMILIES},
    conv2d_k8.SYMBOL: CostModel(few_work, few_code),
}
"""By the kernels' names."""
