# SPDX-License-Identifier: Apache-2.0
"""Permutations of int8 and int16 that transpose matrices, for Helium (tinyet_transpose_mve.h): images whose channels
come first, and whose channels come last."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium, vectors
from tinyet.ir import DType, Node
from tinyet.ops.permute import plan_of
from tinyet.ops.shared.transposition import Transposition, transposition
from tinyet.opset import Call, CostModel, Kernel, Struct, library_call
from tinyet.tiles.helium import LANES

SYMBOLS = {DType.INT8: "tinyet_transpose_s8_mve", DType.INT16: "tinyet_transpose_s16_mve"}
MOST_ROWS = 9362
"""Of which seven are apart what 16 bits hold."""
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_transpose_mve.h")


def of(node: Node) -> Transposition:
    found = transposition(plan_of(node))
    assert found is not None
    return found


def refuse(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    found = transposition(plan_of(node))
    if found is None or found.item != 1:
        return "no transposed matrix of single values"
    return f"{found.rows} rows, takes up to {MOST_ROWS}" if found.rows > MOST_ROWS else None


def lower(node: Node, _target: Target) -> Call:
    found = of(node)
    fields = {"matrices": found.matrices, "rows": found.rows, "columns": found.columns}
    symbol = SYMBOLS[node.input(0).dtype]
    return library_call(symbol, node, [0], Struct("tinyet_transpose_mve_params", fields))


def work(node: Node) -> Mapping[str, int]:
    found = of(node)
    rows, columns = found.rows, found.columns
    by_eights = node.input(0).dtype is DType.INT16 or min(rows, columns) > LANES
    if by_eights:
        eights = found.matrices * rows * -(-columns // 8)
        apart = found.matrices * rows
        return {"call": 1, "matrix": found.matrices, "row apart": apart, "eight values": eights}
    few, many = (rows, columns) if rows <= LANES else (columns, rows)
    return {
        "call": 1,
        "matrix": found.matrices,
        "row": found.matrices * few,
        "sixteen values": found.matrices * few * vectors(many),
    }


KERNELS = tuple(
    Kernel(
        symbol, dtype.suffix, lower, HEADERS, (f"{symbol}.c",), refuse, "cortex_m", cost_model=CostModel(work)
    )
    for dtype, symbol in SYMBOLS.items()
)
