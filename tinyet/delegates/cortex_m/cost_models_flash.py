# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of convolutions grow with whose weights are not stored as int8: see cost_models.py."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np

from tinyet.delegates.cortex_m import conv2d, cost_models, winograd
from tinyet.delegates.cortex_m.conv2d import Geometry
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.cost_models import Parts
from tinyet.ops.shared.winograd import F2, F4, Transform
from tinyet.opset import ByCore, CostModel, Exact, Layouts
from tinyet.tiles.core import CorePage, page_of
from tinyet.tiles.products import Products, function
from tinyet.timing.cores import CORES
from tinyet.timing.work import Work


def tile_starts(out: int, tile: int) -> Int64:
    """The first position of each tile along one axis: the last overlaps those before."""
    return np.minimum(np.arange(0, out, tile), out - tile)


def seen(size: int, starts: Int64, pad: int, side: int) -> Int64:
    """Input rows or columns in the image, of each tile along one axis."""
    first = starts - pad
    return np.asarray(np.clip(first + side, 0, size) - np.clip(first, 0, size), np.int64)


def tiles_of(f: Transform, g: Geometry) -> tuple[Int64, Int64]:
    """Rows and columns in the image of every tile that is computed, in the order of computing: (tiles,) each."""
    side = f.tile + 2
    rows = seen(g.in_h, tile_starts(g.out_h, f.tile), g.pad_top, side)
    columns = seen(g.in_w, tile_starts(g.out_w, f.tile), g.pad_left, side)
    both = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
    filled = [np.pad(one, (0, -len(one) % 4), mode="edge") for one in both]
    return filled[0], filled[1]


def winograd_work(f: Transform) -> Callable[[Node], Mapping[str, int]]:
    def parts(node: Node) -> Mapping[str, int]:
        g, r = conv2d.geometry(node), winograd.chosen_rounding(f, node)
        rows, columns = tiles_of(f, g)
        pairs, quads, rest = winograd.pairs_of(g), g.in_c // 4, g.in_c % 4
        whole = (rows == f.tile + 2) & (columns == f.tile + 2)
        tiles, edges = g.batch * len(rows), g.batch * int((~whole).sum())
        hidden_rows, hidden = g.batch * int(rows[~whole].sum()), g.batch * int((rows * columns)[~whole].sum())
        doubles = tiles // 4 * -(-g.out_c // 2)
        found: Parts = {
            "call": 1,
            "four tiles": tiles // 4,
            "tile": tiles,
            "edge": edges,
            "four channels of a tile": tiles * (quads + (rest > 0)),
            "four channels of an edge": edges * quads,
            "four channels of an edge row": hidden_rows * quads,
            "four channels of an edge pixel": hidden * quads,
            "two channels": doubles,
            "finished tile": tiles * g.out_c,
        }
        if rest:
            found["last channels of a tile"] = tiles
            found[f"last {rest} channels of a pixel"] = g.batch * int((rows * columns).sum())
        if f.tile == 4 and winograd.step_bytes(pairs) >= 1024:
            found["far position"] = tiles * g.out_c * f.positions // 2
        cost_models.outputs(found, r, tiles * f.tile**2 * g.out_c)
        return found

    return parts


def winograd_code(f: Transform) -> Callable[[Node], Mapping[str, int]]:
    def parts(node: Node) -> Mapping[str, int]:
        g, r = conv2d.geometry(node), winograd.chosen_rounding(f, node)
        pairs = winograd.pairs_of(g)
        found: Parts = {
            "call": 1,
            "several fours": int(g.in_c > 4),
            f"last {g.in_c % 4} channels": 1,
            "odd channels out": g.out_c % 2,
            "odd height": int(g.out_h % f.tile != 0),
            "odd width": int(g.out_w % f.tile != 0),
            "padding": int(g.pad_top > 0) + int(g.pad_left > 0),
            "several images": int(g.batch > 1),
            "far rows": int(winograd.step_bytes(pairs) * f.tile >= 4096),
            "far position": int(winograd.step_bytes(pairs) >= 1024),
        }
        cost_models.form_of(found, r)
        return found

    return parts


@functools.cache
def _work(products: Products, page: CorePage, core: str, positions: int) -> Work:
    """Of one call."""
    return function(products, page).work(CORES[core], positions)


def products_exact(f: Transform, node: Node, printed_for: str, *, stored: bool) -> Exact:
    """The products of all positions, for each two output channels of each four tiles. stored: whether they read their
    weights from the flash."""
    g, page = conv2d.geometry(node), page_of(printed_for)
    products = winograd.products_of(f, g)
    made = function(products, page)
    rows, _ = tiles_of(f, g)
    calls = g.batch * len(rows) // 4 * -(-g.out_c // 2)
    instructions = calls * _work(products, page, page.cores[0], f.positions).instructions
    reads = {"printed code": page.instruction_bytes * instructions}
    if stored:
        reads["read weights"] = 4 * winograd.words_of_products(f, g) * calls
    return Exact(
        instructions=instructions,
        cycles=ByCore(page.cores, lambda core: calls * _work(products, page, core, f.positions).cycles),
        functions={page.named(products.name): made.code_bytes},
        reads=reads,
    )


def narrow_work(node: Node) -> Mapping[str, int]:
    g = conv2d.geometry(node)
    pairs = -(-g.out_c // 2)
    return {
        **winograd_work(F2)(node),
        "transformed channels": pairs,
        "transformed kernel": pairs * 2 * winograd.pairs_of(g),
    }


_OF_EACH_PART = (
    "four tiles",
    "tile",
    "edge",
    "four channels of a tile",
    "four channels of an edge",
    "four channels of an edge row",
    "four channels of an edge pixel",
    "last channels of a tile",
    "last 1 channels of a pixel",
    "last 2 channels of a pixel",
    "last 3 channels of a pixel",
)
"""Parts of the work on inputs, once for each part of the output channels unless transformed inputs are kept."""


def narrow_f4_work(node: Node) -> Mapping[str, int]:
    g = conv2d.geometry(node)
    pairs, parts = -(-g.out_c // 2), winograd.narrow_parts(node, g)
    found = dict(winograd_work(F4)(node))
    for name in _OF_EACH_PART if not winograd.keeps_tiles(g) else ():
        if name in found:
            found[name] *= parts
    return {
        **found,
        "part": parts,
        "transformed channel": 2 * pairs,
        "transformed kernel": pairs * 2 * winograd.pairs_of(g),
    }


def winograd_model(f: Transform, work: Callable[[Node], Mapping[str, int]], *, stored: bool) -> CostModel:
    def exact(node: Node, _layouts: Layouts, core: str) -> Exact:
        return products_exact(f, node, core, stored=stored)

    return CostModel(work, winograd_code(f), exact=exact)


COST_MODELS: Mapping[str, CostModel] = {
    winograd.NARROW: winograd_model(F2, narrow_work, stored=False),
    winograd.NARROW_F4: winograd_model(F4, narrow_f4_work, stored=False),
    **{winograd.symbol_of(f): winograd_model(f, winograd_work(f), stored=True) for f in (F4, F2)},
}
"""By the kernels' names."""
