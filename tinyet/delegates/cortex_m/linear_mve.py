# SPDX-License-Identifier: Apache-2.0
"""int8 fully connected layers for Helium: row by row (tinyet_linear_mve.h), many rows as pixels of a convolution."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m import conv2d_mve
from tinyet.delegates.cortex_m.conv2d import pixel_row
from tinyet.delegates.cortex_m.conv2d_mve import no_helium, vectors
from tinyet.delegates.cortex_m.linear import row_count, summary
from tinyet.delegates.cortex_m.rounding_mve import RoundingMve, rounding_mve
from tinyet.ir import Array, Node
from tinyet.ops.shared.access_orders import by_copied_vectors, of_input, pixel_walk
from tinyet.ops.shared.clamped import clamp_of
from tinyet.opset import (
    AccessOrder,
    Call,
    Constant,
    ConstantArg,
    CostModel,
    Exact,
    InputArg,
    Kernel,
    Layouts,
    OutputArg,
    ParamsArg,
    ScratchArg,
    Struct,
)
from tinyet.tiles.helium import LANES, MOST_VECTORS, PIXELS

ROW, ROWS = "tinyet_linear_s8_1x8_mve", "tinyet_linear_s8_4x2_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_linear_mve.h")
OUTPUTS = 8
"""Whose sums are in registers."""


def rounding_of(node: Node) -> RoundingMve:
    return rounding_mve(node, clamp_of(node))


def refuse(node: Node, target: Target) -> str | None:
    return no_helium(target) or rounding_of(node).refused


def stream(r: RoundingMve) -> tuple[Array, int]:
    """The stream of tinyet_linear_mve.h, int8, and how many bytes come before the multipliers."""
    count, depth = r.weights.shape
    behind = -count % OUTPUTS
    weights = np.pad(r.weights, ((0, behind), (0, -depth % LANES))).astype(np.int8)
    eights = (
        weights.reshape(-1, OUTPUTS, vectors(depth), LANES)
        .swapaxes(1, 2)
        .reshape(-1, weights.shape[1] * OUTPUTS)
    )
    bias = np.pad(r.bias, (0, behind)).astype("<i4").reshape(-1, OUTPUTS).view(np.int8)
    body = np.concatenate([bias, eights], axis=1).ravel()
    ends = [
        np.pad(values, (0, behind), constant_values=value).astype("<i4")
        for values, value in ((r.multiplier, 2**30), (r.shift, -1))
    ]
    fours = np.stack([values.reshape(-1, 4) for values in ends], axis=1)
    return np.concatenate([body, np.ascontiguousarray(fours).view(np.int8).ravel()]), len(body)


def lower(node: Node, target: Target) -> Call:
    (count, depth), r = node.input(1).shape, rounding_of(node)
    data, ends = stream(r)
    eights = -(-count // OUTPUTS)
    fields = {"rows": row_count(node), "depth": depth, "count": count, "eights": eights, "ends": ends}
    params = Struct("tinyet_linear_shape_mve", {**fields, "rounding": r.struct})
    constant = Constant("weights", data, "bias and weights of eight outputs after another, then the rounding")
    scratch = 4 * OUTPUTS * eights + (depth + 2 * LANES if depth % LANES else 0)
    args = InputArg(0), OutputArg(0), ScratchArg(), ConstantArg("weights"), ParamsArg()
    return Call(ROW, args, params, (constant,), scratch)


def work(node: Node) -> Mapping[str, int]:
    (count, depth), rows = node.input(1).shape, row_count(node)
    eights, sixteens = -(-count // OUTPUTS), vectors(depth)
    side = "one-sided" if rounding_of(node).one_sided else "two-sided"
    return {
        "call": 1,
        "row": rows,
        "copied row": rows if depth % LANES else 0,
        "copied vector": rows * sixteens if depth % LANES else 0,
        "eight outputs": rows * eights,
        "vector": rows * eights * sixteens,
        "eight vectors": rows * eights * -(-sixteens // 8),
        f"four outputs, {side}": rows * -(-count // 4),
    }


# ---------------------------------------------------------------- many rows


def plan(node: Node) -> conv2d_mve.Plan:
    count, depth = node.input(1).shape
    return conv2d_mve.plan_of(pixel_row(row_count(node), depth, count))


def refuse_rows(node: Node, target: Target) -> str | None:
    if (reason := refuse(node, target)) is not None:
        return reason
    if row_count(node) < PIXELS:
        return f"{row_count(node)} rows, needs {PIXELS}"
    seen = vectors(node.input(1).shape[1])
    return f"{seen} vectors of weights an output, takes up to {MOST_VECTORS}" if seen > MOST_VECTORS else None


def lower_rows(node: Node, target: Target) -> Call:
    return conv2d_mve.call(ROWS, plan(node), rounding_of(node), summary(node))


def rows_exact(node: Node, _layouts: Layouts, _core: str) -> Exact:
    return conv2d_mve.exact_of(plan(node), rounding_of(node))


@of_input
def by_blocks(node: Node) -> AccessOrder:
    return pixel_walk(node).by_pixels(plan(node).pixels, moved_back=True, gathered=True)


COST_MODELS: Mapping[str, CostModel] = {
    ROW: CostModel(work),
    ROWS: CostModel(lambda node: conv2d_mve.work_of(plan(node), rounding_of(node)), exact=rows_exact),
}

KERNELS = (
    Kernel(
        ROWS,
        "s8",
        lower_rows,
        conv2d_mve.HEADERS,
        conv2d_mve.SOURCES,
        refuse_rows,
        "cortex_m",
        access_order=by_blocks,
    ),
    Kernel(ROW, "s8", lower, HEADERS, (f"{ROW}.c",), refuse, "cortex_m", access_order=by_copied_vectors),
)
