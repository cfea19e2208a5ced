# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers of many rows for Helium: rows are the pixels of a pointwise convolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_mve
from tinyet.delegates.cortex_m.conv2d import Geometry, pixel_row
from tinyet.delegates.cortex_m.conv2d_mve import Plan, vectors
from tinyet.delegates.cortex_m.linear import row_count
from tinyet.delegates.cortex_m.rounding_mve import RoundingMve
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16
from tinyet.delegates.cortex_m.summary import summary
from tinyet.ir import Node
from tinyet.ops.shared.access_orders import of_input, pixel_walk
from tinyet.opset import AccessOrder, Call, CostModel, Exact, Kernel, Layouts
from tinyet.opset.kernel import Refuse
from tinyet.tiles.helium import MOST_VECTORS, PIXELS


def rows_kernel(
    symbol: str,
    dtype: str,
    sources: tuple[str, ...],
    refuse: Refuse,
    plan_of: Callable[[Geometry], Plan],
    rounding_of: Callable[[Node], RoundingMve | Rounding16],
    value_bytes: int,
    headers: tuple[str, ...] = (),
) -> Kernel:
    """The kernel of this name. refuse: what there is against a layer beside its sizes. value_bytes: of an input.
    headers: beside those of convolutions."""

    def plan(node: Node) -> Plan:
        count, depth = node.input(1).shape
        return plan_of(pixel_row(row_count(node), depth, count))

    def refuse_rows(node: Node, target: Target) -> str | None:
        return refuse(node, target) or _refuse_sizes(node, value_bytes)

    def lower(node: Node, _target: Target) -> Call:
        return conv2d_mve.call(symbol, plan(node), rounding_of(node), summary(node))

    def work(node: Node) -> Mapping[str, int]:
        return conv2d_mve.work_of(plan(node), rounding_of(node))

    def exact(node: Node, _layouts: Layouts, _core: str) -> Exact:
        return conv2d_mve.exact_of(plan(node), rounding_of(node))

    @of_input
    def by_blocks(node: Node) -> AccessOrder:
        return pixel_walk(node).by_pixels(plan(node).pixels, moved_back=True, gathered=True)

    return Kernel(
        symbol,
        dtype,
        lower,
        (*conv2d_mve.HEADERS, *headers),
        sources,
        refuse_rows,
        "cortex_m",
        cost_model=CostModel(work, exact=exact),
        access_order=by_blocks,
    )


def _refuse_sizes(node: Node, value_bytes: int) -> str | None:
    if row_count(node) < PIXELS:
        return f"{row_count(node)} rows, needs {PIXELS}"
    seen = vectors(value_bytes * node.input(1).shape[1])
    return f"{seen} vectors of weights an output, takes up to {MOST_VECTORS}" if seen > MOST_VECTORS else None
