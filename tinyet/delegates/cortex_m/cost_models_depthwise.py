# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of the depthwise kernels grow with: see cost_models.py."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from functools import partial

from tinyet.delegates.cortex_m import cost_models, depthwise, depthwise_3x3
from tinyet.delegates.cortex_m.depthwise import Geometry
from tinyet.delegates.cortex_m.depthwise_3x3 import Family
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts
from tinyet.opset import DENSE, CostModel, Exact, Layouts
from tinyet.opset.cost import NOTHING
from tinyet.tiles import planes as planes_tile
from tinyet.tiles.core import ARMV7E_M
from tinyet.tiles.depthwise import Rows
from tinyet.tiles.depthwise_code import function, turns_of
from tinyet.tiles.planes import Planes
from tinyet.timing.cores import CORES
from tinyet.timing.work import Work, total

TAPS = 4
"""Pairs of taps of a turn of the loop over a kernel row (TINYET_DSP_TAPS)."""


def seen(g: Geometry) -> tuple[int, int]:
    """Words of an input row in which both pixels are, and in which one is."""
    u = g.u
    reach = (u.out - 1) * u.stride + (u.kernel - 1) * u.dilation + 1
    whole = half = 0
    for part in range(u.dilation):
        first = max(-(-(u.pad - part) // u.dilation), 0)
        count = -(-(min(reach, u.pad + u.size) - part) // u.dilation) - first
        if count > 0:
            odd = first % 2
            whole, half = whole + (count - odd) // 2, half + odd + (count - odd) % 2
    return whole, half


def planes_work(node: Node, g: Geometry) -> Parts:
    """What is around printed functions, and rows that are widened in parts."""
    batch, channels = node.input(0).shape[0], node.input(0).shape[3]
    v, tile = g.v, g.tile
    groups, tiles = batch * -(-channels // g.group), -(-v.out // tile)
    rows, kept = g.tile_rows(tile), g.kept
    inside = depthwise.filled_rows(g)
    filled = sum(inside)
    blank = rows * tiles - kept * (tiles - 1) - filled
    parts: Parts = {
        "call": 1,
        "word": g.group * rows * g.row_words,
        "group": groups,
        "tile": groups * tiles,
        "kept row": groups * (tiles - 1) * int(kept > 0) * g.group,
        "kept word": groups * (tiles - 1) * kept * g.row_words * g.group,
        "outer row": groups * blank,
    }
    if tiles > 1:
        parts |= {"blank row": groups * blank, "blank word": groups * blank * g.row_words * g.group}
    if depthwise.planes_of(g) is None:
        whole, half = seen(g)
        parts |= {
            "filled row": groups * filled * g.u.dilation,
            f"looped word of {g.group}": groups * filled * whole,
            f"half word of {g.group}": groups * filled * half,
        }
    return parts


def planes_code(node: Node, g: Geometry) -> Parts:
    batch, channels = node.input(0).shape[0], node.input(0).shape[3]
    several = int(g.tile < g.v.out)
    outer = g.tile_rows(g.tile) > min(depthwise.filled_rows(g))
    return {
        "call": 1,
        "several groups": int(channels > g.group),
        "several tiles": several,
        "kept rows": several * int(g.kept > 0),
        "blank rows": several * int(outer),
        "last tile": int(g.v.out % g.tile != 0),
        "by tiles": int(g.by_tiles),
        "looped words": int(depthwise.planes_of(g) is None),
        "odd channels": int(channels % g.group != 0),
        "several images": int(batch > 1),
    }


@functools.cache
def filling_work(planes: Planes, core: str, count: int) -> Work:
    """Of one call for so many rows."""
    return planes_tile.function(planes).work(CORES[core], planes_tile.turns_of(planes, count))


def filling(node: Node, g: Geometry) -> Exact:
    """The rows of the image that are widened by a printed function, tile by tile."""
    planes = depthwise.planes_of(g)
    if planes is None:
        return NOTHING
    batch, _, _, channels = node.input(0).shape
    groups = batch * -(-channels // g.group)
    counts = Counter(n for n in depthwise.filled_rows(g) if n)
    works = {
        name: total(filling_work(planes, name, n).times(groups * times) for n, times in counts.items())
        for name in ARMV7E_M.cores
    }
    instructions = next(iter(works.values())).instructions
    return Exact(
        instructions,
        {name: work.cycles for name, work in works.items()},
        {planes.name: planes_tile.function(planes).code_bytes},
        {"printed code": ARMV7E_M.instruction_bytes * instructions},
    )


def both(a: Exact, b: Exact) -> Exact:
    return Exact(
        a.instructions + b.instructions,
        added(a.cycles, b.cycles),
        {**a.functions, **b.functions},
        added(a.reads, b.reads),
    )


def added(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in sorted({*a, *b})}


def three_work(node: Node, layouts: Layouts = DENSE, *, family: Family) -> Mapping[str, int]:
    """What is around the printed rows."""
    return planes_work(node, depthwise.geometry_in(node, layouts, wide=family.wide))


def three_code(node: Node, *, family: Family) -> Mapping[str, int]:
    return planes_code(node, depthwise.cheapest(node, three=True, wide=family.wide))


@functools.cache
def rows_work(rows: Rows, core: str, count: int) -> Work:
    """Of one call for so many output rows. Layers of a network share them, and plans ask for the same layer again."""
    return function(rows).work(CORES[core], turns_of(rows, count))


def three_exact(node: Node, layouts: Layouts, _printed_for: str, family: Family) -> Exact:
    """The output rows of each group of channels, tile by tile."""
    g, r = depthwise.geometry_in(node, layouts, wide=family.wide), depthwise.rounding_of(node, three=True)
    rows = depthwise_3x3.rows_of(node, g, r)
    batch, _, _, channels = node.input(0).shape
    groups = batch * -(-channels // g.group)
    whole, last = divmod(g.v.out, g.tile)
    counts = [(n, times) for n, times in ((g.tile, whole), (last, 1)) if n and times]
    works = {
        name: total(rows_work(rows, name, n).times(times * groups) for n, times in counts)
        for name in ARMV7E_M.cores
    }
    instructions = next(iter(works.values())).instructions
    calls = groups * sum(times for _, times in counts)
    output_rows = Exact(
        instructions=instructions,
        cycles={name: work.cycles for name, work in works.items()},
        functions={rows.name: function(rows).code_bytes},
        reads={
            "printed code": ARMV7E_M.instruction_bytes * instructions,
            "printed weights": 4 * rows.channel_words * rows.channels * calls,
        },
    )
    return both(output_rows, filling(node, g))


def straight(g: Geometry, pairs: int) -> int:
    """Loads of weights and of words, and products, of so many pairs of taps for a block of outputs."""
    if g.between > 2:
        words = g.block * pairs
    else:
        words = len({i * g.between + 2 * t for i in range(g.block) for t in range(pairs)})
    return words + pairs * (1 + g.block)


def any_work(node: Node) -> Mapping[str, int]:
    g, r = depthwise.cheapest(node, three=False), depthwise.rounding_of(node, three=False)
    parts = planes_work(node, g)
    batch, _, _, channels = node.input(0).shape
    out_c = batch * g.group * -(-channels // g.group) * (node.output.shape[3] // channels)
    rows, tiles = out_c * g.v.out, -(-g.v.out // g.tile)
    blocks = rows * g.blocks
    turns, rest = divmod(g.tap_pairs, TAPS)
    parts |= {
        "channel of a tile": out_c * tiles,
        "unpacked word": out_c * tiles * g.tap_words,
        "output row": rows,
        "run": rows * min(g.apart, g.u.out),
        "block": blocks,
        "uneven row": rows * int(g.u.out // min(g.apart, g.u.out) % g.block > 0),
        "uneven block": blocks * int(g.u.out // min(g.apart, g.u.out) % g.block > 0),
        "kernel row": blocks * g.v.kernel * int(g.v.kernel > 1),
        "load or product": blocks * g.v.kernel * (turns * straight(g, TAPS) + straight(g, rest)),
        "turn of taps": blocks * g.v.kernel * turns,
    }
    cost_models.outputs(parts, r, blocks * g.block)
    return parts


def any_exact(node: Node, layouts: Layouts, _printed_for: str) -> Exact:
    return filling(node, depthwise.apart(depthwise.cheapest(node, three=False), layouts))


def any_code(node: Node) -> Mapping[str, int]:
    g, r = depthwise.cheapest(node, three=False), depthwise.rounding_of(node, three=False)
    parts = planes_code(node, g)
    turns, rest = divmod(g.tap_pairs, TAPS)
    parts |= {
        "load or product": min(turns, 1) * straight(g, TAPS) + straight(g, rest),
        "loop over taps": min(turns, 1),
        "kernel rows": int(g.v.kernel > 1),
        "runs": int(g.apart > 1),
        "blocks": int(g.blocks > 1),
    }
    cost_models.form_of(parts, r)
    parts[f"output, {cost_models.form_name(r)}"] = g.block
    return parts


COST_MODELS: Mapping[str, CostModel] = {
    **{
        family.symbol: CostModel(
            partial(three_work, family=family),
            partial(three_code, family=family),
            partial(three_work, family=family),
            exact=partial(three_exact, family=family),
        )
        for family in (depthwise_3x3.BYTES, depthwise_3x3.WIDE)
    },
    "tinyet_depthwise_s8_chw_dsp": CostModel(any_work, any_code, exact=any_exact),
}
"""By the kernels' names."""
