# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of fully connected layers grow with that go row by row (tinyet_linear_tiles_dsp.h)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

from tinyet.delegates.cortex_m import int4, linear, linear_s16, linear_tiles, linear_w4
from tinyet.delegates.cortex_m.conv2d import Stored
from tinyet.delegates.cortex_m.cost_models import bounds
from tinyet.delegates.cortex_m.cost_models_pixels import work_of
from tinyet.delegates.cortex_m.linear_tiles import CHANNELS, Family
from tinyet.delegates.cortex_m.rounding_s16 import rounding
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts
from tinyet.opset import ByCore, CostModel, Exact
from tinyet.opset.data_layout import Layouts
from tinyet.tiles import row as row_tiles
from tinyet.tiles.core import CorePage, page_of
from tinyet.tiles.function import function
from tinyet.tiles.row import Row
from tinyet.tiles.tile import Tile, Weights
from tinyet.timing.cores import CORES
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
    return of_tile(node, linear_tiles.tile_of(node, family), calls(node), printed_for)


def calls(node: Node) -> list[int]:
    """The channels of each, of a row: whole fours of outputs, and the rest."""
    count, _ = node.input(1).shape
    return [n for n in (count // CHANNELS * CHANNELS, CHANNELS if count % CHANNELS else 0) if n]


def of_tile(node: Node, tile: Tile | Row, calls: Sequence[int], printed_for: str) -> Exact:
    """calls: of a row, the channels of each."""
    rows, page = linear_tiles.row_count(node), page_of(printed_for)

    def of(core: str) -> Work:
        work = work_of_row if isinstance(tile, Row) else work_of
        return total(work(tile, page, core, channels) for channels in calls)

    instructions = rows * of(page.cores[0]).instructions
    made = row_tiles.function(tile, page) if isinstance(tile, Row) else function(tile, page)
    return Exact(
        instructions=instructions,
        cycles=ByCore(page.cores, lambda core: rows * of(core).cycles),
        functions={page.named(tile.name): made.code_bytes},
        reads={
            "printed code": page.instruction_bytes * instructions,
            "read weights": 4 * tile.group_words * rows * sum(calls) // CHANNELS,
        },
    )


@cache
def work_of_row(row: Row, page: CorePage, core: str, channels: int) -> Work:
    """Of one call."""
    return row_tiles.function(row, page).work(CORES[core], row_tiles.turns_of(row, channels))


def any_exact(node: Node, _layouts: Layouts, printed_for: str) -> Exact:
    return of_tile(node, linear.row_of(node), calls(node), printed_for)


# ---------------------------------------------------------------- int4


def int4_work(node: Node) -> Mapping[str, int]:
    """What is around the tiles."""
    (count, depth), rows, r = node.input(1).shape, linear_tiles.row_count(node), int4.chosen_rounding(node)
    return {
        "call": 1,
        "row": rows,
        "sixteen inputs": rows * (depth // 16),
        "four inputs": rows * (depth % 16 // 4),
        f"last {depth % 4} inputs": rows,
        "whole fours of outputs": rows * int(count >= CHANNELS),
        f"last {count % CHANNELS} outputs": rows,
        "clamped output": rows * count * (bounds(r.low, r.high) > 0),
    }


def int4_code(node: Node) -> Mapping[str, int]:
    (count, depth), r = node.input(1).shape, int4.chosen_rounding(node)
    return {
        "call": 1,
        "several rows": int(linear_tiles.row_count(node) > 1),
        "sixteen inputs": int(depth >= 16),
        "four inputs": int(depth % 16 >= 4),
        f"last {depth % 4} inputs": 1,
        "whole fours of outputs": int(count >= CHANNELS),
        f"last {count % CHANNELS} outputs": 1,
        "clamp": int(bounds(r.low, r.high) > 0),
    }


def int4_exact(node: Node, _layouts: Layouts, printed_for: str) -> Exact:
    return of_tile(node, linear_w4.tile_of(node), calls(node), printed_for)


# ---------------------------------------------------------------- int16


def int16_parts(node: Node) -> int:
    return len(linear_s16.parts(rounding(node)))


def int16_work(node: Node, stored: Stored) -> Mapping[str, int]:
    """What is around the tiles."""
    (count, depth), rows = node.input(1).shape, linear_tiles.row_count(node)
    divided, groups = int16_parts(node), rows * -(-count // CHANNELS)
    pairs = divided * linear_s16.tile_of(node, stored).pairs
    found: Parts = {
        "call": 1,
        "row": rows,
        "eight inputs": rows * (depth // 8),
        "pair of inputs": rows * (depth % 8 // 2),
        "odd input": rows * (depth % 2),
        "blank word": rows * (pairs - -(-depth // 2)),
    }
    if divided > 1:
        return found | {"part": groups * divided, "four outputs of parts": groups}
    whole, rest = int(count >= CHANNELS), count % CHANNELS
    return found | {"whole fours of outputs": rows * whole, f"last {rest} outputs": rows}


def int16_code(node: Node, stored: Stored) -> Mapping[str, int]:
    (count, depth), rest = node.input(1).shape, node.input(1).shape[0] % CHANNELS
    found: Parts = {
        "call": 1,
        "several rows": int(linear_tiles.row_count(node) > 1),
        "eight inputs": int(depth >= 8),
        "pair of inputs": int(depth % 8 >= 2),
        "odd input": depth % 2,
    }
    if int16_parts(node) > 1:
        return found | {"parts": 1}
    return found | {"whole fours of outputs": int(count >= CHANNELS), f"last {rest} outputs": 1}


def int16_exact(node: Node, _layouts: Layouts, printed_for: str, stored: Stored) -> Exact:
    """The tiles: as those of int8, or of four outputs of each part."""
    divided = int16_parts(node)
    of_parts = [CHANNELS] * (divided * -(-node.input(1).shape[0] // CHANNELS))
    return of_tile(
        node, linear_s16.tile_of(node, stored), of_parts if divided > 1 else calls(node), printed_for
    )


COST_MODELS: Mapping[str, CostModel] = (
    {
        family.symbol: CostModel(
            partial(work, family=family), partial(code, family=family), exact=partial(exact, family=family)
        )
        for family in (linear_tiles.PACKED, linear_tiles.STRAIGHT, linear_tiles.WIDE)
    }
    | {
        # What is around the functions is as around tiles of int16 weights.
        linear.SYMBOL: CostModel(
            partial(work, family=linear_tiles.WIDE), partial(code, family=linear_tiles.WIDE), exact=any_exact
        )
    }
    | {
        stored.named("tinyet_linear_s16_1x4_dsp"): CostModel(
            partial(int16_work, stored=stored),
            partial(int16_code, stored=stored),
            exact=partial(int16_exact, stored=stored),
        )
        for stored in (Stored.INT8, Stored.INT16)
    }
    | {linear_w4.SYMBOL: CostModel(int4_work, int4_code, exact=int4_exact)}
)
"""By the kernels' names."""
