# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of fully connected layers grow with that go row by row (tinyet_linear_tiles_dsp.h)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tinyet.delegates.cortex_m import linear_tiles
from tinyet.delegates.cortex_m.cost_models_pixels import work_of
from tinyet.delegates.cortex_m.linear_tiles import CHANNELS, Family
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts
from tinyet.opset import ByCore, CostModel, Exact
from tinyet.opset.data_layout import Layouts
from tinyet.tiles.core import page_of
from tinyet.tiles.function import function
from tinyet.tiles.tile import Weights
from tinyet.timing.work import Work, total

UNROLLED = {Weights.CROSSED: 8, Weights.WIDE: 4}
"""Fours of inputs of a turn of the loop that widens."""


def work(node: Node, family: Family) -> Mapping[str, int]:
    """What is around the tiles."""
    count, depth = node.input(1).shape
    rows, fours, rest = linear_tiles.row_count(node), depth // 4, count % CHANNELS
    unrolled = UNROLLED[family.weights]
    parts: Parts = {
        "call": 1,
        "row": rows,
        "turn of inputs": rows * (fours // unrolled),
        "four inputs": rows * (fours % unrolled),
        f"last {depth % 4} inputs": rows,
        "whole fours of outputs": rows * int(count >= CHANNELS),
        f"last {rest} outputs": rows,
    }
    return parts


def code(node: Node, family: Family) -> Mapping[str, int]:
    count, depth = node.input(1).shape
    fours, rest = depth // 4, count % CHANNELS
    unrolled = UNROLLED[family.weights]
    left = fours % unrolled
    return {
        "call": 1,
        "several rows": int(linear_tiles.row_count(node) > 1),
        "turn of inputs": int(fours >= unrolled),
        "several turns": int(fours >= 2 * unrolled),
        # GCC writes those out that a turn leaves, up to three.
        "four inputs": left if family.weights is Weights.WIDE else int(left > 0),
        f"last {depth % 4} inputs": 1,
        "whole fours of outputs": int(count >= CHANNELS),
        f"last {rest} outputs": 1,
    }


def exact(node: Node, _layouts: Layouts, printed_for: str, family: Family) -> Exact:
    """The tiles: of whole fours of outputs, and of the rest."""
    count, _ = node.input(1).shape
    rows, groups, page = linear_tiles.row_count(node), -(-count // CHANNELS), page_of(printed_for)
    tile = linear_tiles.tile_of(node, family)
    parts = [n for n in (count // CHANNELS * CHANNELS, CHANNELS if count % CHANNELS else 0) if n]

    def of(core: str) -> Work:
        return total(work_of(tile, page, core, channels) for channels in parts)

    instructions = rows * of(page.cores[0]).instructions
    return Exact(
        instructions=instructions,
        cycles=ByCore(page.cores, lambda core: rows * of(core).cycles),
        functions={page.named(tile.name): function(tile, page).code_bytes},
        reads={
            "printed code": page.instruction_bytes * instructions,
            "printed weights": 4 * tile.group_words * groups * rows,
        },
    )


COST_MODELS: Mapping[str, CostModel] = {
    family.symbol: CostModel(
        partial(work, family=family), partial(code, family=family), exact=partial(exact, family=family)
    )
    for family in (linear_tiles.PACKED, linear_tiles.STRAIGHT, linear_tiles.WIDE)
}
"""By the kernels' names."""
