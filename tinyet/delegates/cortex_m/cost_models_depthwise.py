# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of the depthwise kernels grow with: see cost_models.py."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from tinyet.delegates.cortex_m import depthwise, depthwise_3x3, depthwise_s16, rounding_s16
from tinyet.delegates.cortex_m.depthwise import Geometry
from tinyet.delegates.cortex_m.depthwise_3x3 import Family
from tinyet.delegates.cortex_m.rounding import Rounding
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts
from tinyet.opset import DENSE, CostModel, Exact, Layouts
from tinyet.opset.cost import NOTHING, ByCore
from tinyet.tiles import planes as planes_tile
from tinyet.tiles.core import CorePage, page_of
from tinyet.tiles.depthwise import Rows
from tinyet.tiles.depthwise_code import function, turns_of
from tinyet.tiles.planes import Planes
from tinyet.tiles.windows import Windows
from tinyet.tiles.windows_code import made
from tinyet.timing.cores import CORES
from tinyet.timing.work import Work, total


def planes_work(node: Node, g: Geometry) -> Parts:
    """What is around printed functions."""
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
        "odd channels": int(channels % g.group != 0),
        "several images": int(batch > 1),
    }


@functools.cache
def filling_work(planes: Planes, page: CorePage, core: str, count: int) -> Work:
    """Of one call for so many rows."""
    return planes_tile.function(planes, page).work(CORES[core], planes_tile.turns_of(planes, count))


def filling(node: Node, g: Geometry, page: CorePage) -> Exact:
    """The rows that are taken out of the image, tile by tile."""
    planes = depthwise.planes_of(g)
    if planes is None:
        return NOTHING
    batch, _, _, channels = node.input(0).shape
    groups = batch * -(-channels // g.group)
    counts = Counter(n for n in depthwise.filled_rows(g) if n)

    def of(core: str) -> Work:
        return total(filling_work(planes, page, core, n).times(groups * times) for n, times in counts.items())

    instructions = of(page.cores[0]).instructions
    return Exact(
        instructions,
        ByCore(page.cores, lambda core: of(core).cycles),
        {page.named(planes.name): planes_tile.function(planes, page).code_bytes},
        {"printed code": page.instruction_bytes * instructions},
    )


def both(a: Exact, b: Exact) -> Exact:
    return Exact(
        a.instructions + b.instructions,
        ByCore(
            tuple(sorted({*a.cycles, *b.cycles})), lambda core: a.cycles.get(core, 0) + b.cycles.get(core, 0)
        ),
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
def rows_work(rows: Rows, page: CorePage, core: str, count: int) -> Work:
    """Of one call for so many output rows. Layers of a network share them, and plans ask for the same layer again."""
    return function(rows, page).work(CORES[core], turns_of(rows, count))


def called(
    node: Node,
    g: Geometry,
    rows: Rows | Windows,
    calls: int,
    work: Callable[[str, int], Work],
    code_bytes: int,
    page: CorePage,
) -> Exact:
    """The output rows of each group of channels, tile by tile. calls: for a group. work: of one call, by core and
    output rows. code_bytes: of the function."""
    batch, _, _, channels = node.input(0).shape
    times = batch * -(-channels // g.group) * calls
    whole, last = divmod(g.v.out, g.tile)
    counts = [(n, tiles) for n, tiles in ((g.tile, whole), (last, 1)) if n and tiles]

    def of(core: str) -> Work:
        return total(work(core, n).times(tiles * times) for n, tiles in counts)

    instructions = of(page.cores[0]).instructions
    weights = 4 * rows.channel_words * rows.channels * times * sum(tiles for _, tiles in counts)
    output_rows = Exact(
        instructions=instructions,
        cycles=ByCore(page.cores, lambda core: of(core).cycles),
        functions={page.named(rows.name): code_bytes},
        reads={"printed code": page.instruction_bytes * instructions, "read weights": weights},
    )
    return both(output_rows, filling(node, g, page))


def three_exact(
    node: Node,
    layouts: Layouts,
    printed_for: str,
    family: Family,
    rounding: Callable[[Node], Rounding | Rounding16] = depthwise.rounding_of,
) -> Exact:
    page = page_of(printed_for)
    g = depthwise.geometry_in(node, layouts, wide=family.wide)
    rows = depthwise_3x3.rows_of(node, g, rounding(node))
    return called(node, g, rows, 1, partial(rows_work, rows, page), function(rows, page).code_bytes, page)


@functools.cache
def windows_work(windows: Windows, page: CorePage, core: str, count: int) -> Work:
    return made(windows, page).work(core, count)


def any_exact(
    node: Node,
    layouts: Layouts,
    printed_for: str,
    rounding: Callable[[Node], Rounding | Rounding16] = depthwise.rounding_of,
) -> Exact:
    page = page_of(printed_for)
    g = depthwise.apart(depthwise.cheapest(node, three=False), layouts)
    windows = depthwise.windows_of(node, g, rounding(node))
    calls = g.group if node.output.shape[3] > node.input(0).shape[3] else 1
    code_bytes = made(windows, page).nest.code_bytes
    return called(node, g, windows, calls, partial(windows_work, windows, page), code_bytes, page)


def any_work(node: Node) -> Mapping[str, int]:
    """What is around the printed rows."""
    return planes_work(node, depthwise.cheapest(node, three=False))


def any_code(node: Node) -> Mapping[str, int]:
    return planes_code(node, depthwise.cheapest(node, three=False))


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
    depthwise_s16.THREE: CostModel(
        partial(three_work, family=depthwise_3x3.BYTES),
        partial(three_code, family=depthwise_3x3.BYTES),
        exact=partial(three_exact, family=depthwise_3x3.BYTES, rounding=rounding_s16.rounding),
    ),
    depthwise_s16.ANY: CostModel(
        any_work, any_code, exact=partial(any_exact, rounding=rounding_s16.rounding)
    ),
}
"""By the kernels' names."""
