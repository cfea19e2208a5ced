# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of transposed convolutions grow with (tinyet_conv_transpose2d_dsp.h)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from tinyet.delegates.cortex_m import conv2d_tiles, conv_transpose2d, cost_models
from tinyet.delegates.cortex_m.conv2d_tiles import Family
from tinyet.delegates.cortex_m.conv_transpose2d import Cells
from tinyet.delegates.cortex_m.cost_models_pixels import copied, exact_of, weight_words
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.cost_models import Parts
from tinyet.opset import CostModel, Exact, Layouts
from tinyet.tiles.core import page_of


def gathered(cells: Cells, pixels: int) -> Int64:
    """The first of each two cells of a row whose inputs are gathered."""
    found: list[int] = []
    for here in cells.columns(pixels):
        for i, at in enumerate(here):
            if i == 0 or at != here[i - 1]:
                found += range(at, at + pixels, 2)
    return np.array(found)


def work(node: Node, family: Family) -> Mapping[str, int]:
    """What is around the printed functions."""
    cells, r = conv_transpose2d.cells_of(node), conv_transpose2d.rounding(node)
    family = conv_transpose2d.of_layer(family, node)
    g, columns, starts = cells.one, cells.columns(family.pixels), gathered(cells, family.pixels)
    rows = g.batch * g.out_h
    tiles = g.batch * cells.out[0] * sum(map(len, columns))
    parts: Parts = {
        "call": 1,
        "row": rows,
        "columns": rows * len(columns),
        "phase of columns": rows * sum(map(len, columns)),
        "block": rows * len(starts),
        "tile": tiles,
        "last channels": tiles * (g.out_c % family.channels > 0),
        "clamped output": node.output.type.count * (cost_models.bounds(r.low, r.high) > 0),
    }
    if g.inside:
        return parts
    top = np.repeat(np.arange(g.out_h) - g.pad_top, len(starts))
    left = np.tile(starts - g.pad_left, g.out_h)
    beyond = (top < 0) | (top + g.kernel_h > g.in_h) | (left < 0) | (left + g.kernel_w >= g.in_w)
    top = (top[beyond, None] + np.arange(g.kernel_h)).ravel()
    left = np.repeat(left[beyond], g.kernel_h)
    parts |= {
        "block that may reach out": rows * len(starts),
        "block with an edge": g.batch * int(beyond.sum()),
    }
    return parts | copied(g, top, left, np.full_like(left, g.kernel_w + 1))


def code(node: Node, family: Family) -> Mapping[str, int]:
    cells, r = conv_transpose2d.cells_of(node), conv_transpose2d.rounding(node)
    g, (stride_h, stride_w) = cells.one, cells.stride
    family = conv_transpose2d.of_layer(family, node)
    row = 0 if g.inside else (g.kernel_w + 1) * g.in_c
    return {
        "call": 1,
        "several rows of phases": int(stride_h > 1),
        "several columns of phases": int(stride_w > 1),
        "cropped": int(any(cells.crop)),
        "odd columns": int(g.out_w % 2 > 0),
        "windows": int(not g.inside),
        "window of rows": int(not g.inside and g.kernel_h > 1),
        "window of columns": int(not g.inside and g.kernel_w > 1),
        "window, padding before": int(row > 0 and g.pad_left > 0),
        "window, whole words": int(row >= 4 and g.in_c > 1),
        "window, whole thirty-twos": int(row >= 32),
        "window, many thirty-twos": int(row >= 64),
        "last channels": int(g.out_c % family.channels > 0),
        "several images": int(g.batch > 1),
        "clamp": int(cost_models.bounds(r.low, r.high) > 0),
    }


def exact(node: Node, layouts: Layouts, printed_for: str, family: Family) -> Exact:
    """What gathers the inputs of two cells, and the tiles of all phases."""
    family, page = conv_transpose2d.of_layer(family, node), page_of(printed_for)
    cells, r = conv_transpose2d.cells_of(node, layouts), conv_transpose2d.rounding(node)
    g = cells.one
    tile = conv2d_tiles.tile_of(g, r, family, page=page)
    (gathering,) = conv2d_tiles.patches_of(g, family)
    blocks = g.batch * g.out_h * len(gathered(cells, family.pixels))
    times = g.batch * cells.out[0] * sum(map(len, cells.columns(family.pixels)))
    whole = g.out_c // family.channels * family.channels
    parts = [(tile, whole, times)]
    if whole != g.out_c:
        last = conv2d_tiles.last_of(g, r, family, page) if conv2d_tiles.has_last(g, family) else tile
        parts.append((last, last.channels, times))
    read = 4 * weight_words(g, r, family) * times
    return exact_of(page, [(gathering, blocks)], parts, read)


def of_family(family: Family) -> CostModel:
    return CostModel(
        partial(work, family=family), partial(code, family=family), exact=partial(exact, family=family)
    )


COST_MODELS: Mapping[str, CostModel] = {
    family.symbol: of_family(family) for family in conv_transpose2d.FAMILIES
}
"""By the kernels' names."""
