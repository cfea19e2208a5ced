# SPDX-License-Identifier: Apache-2.0
"""Permutations of int8 that transpose matrices of a few rows or columns, for Helium (tinyet_transpose_mve.h): images
whose channels come first, and whose channels come last."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium, vectors
from tinyet.ir import Node
from tinyet.ops.permute import plan_of
from tinyet.ops.shared.transposition import Transposition, transposition
from tinyet.opset import Call, CostModel, Kernel, Struct, library_call
from tinyet.tiles.helium import LANES

SYMBOL = "tinyet_transpose_s8_mve"
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
    least = min(found.rows, found.columns)
    return f"a matrix of {least} rows or columns, takes up to {LANES}" if least > LANES else None


def lower(node: Node, _target: Target) -> Call:
    found = of(node)
    fields = {"matrices": found.matrices, "rows": found.rows, "columns": found.columns}
    return library_call(SYMBOL, node, [0], Struct("tinyet_transpose_s8_mve_params", fields))


def work(node: Node) -> Mapping[str, int]:
    found = of(node)
    few, many = (found.rows, found.columns) if found.rows <= LANES else (found.columns, found.rows)
    return {
        "call": 1,
        "matrix": found.matrices,
        "row": found.matrices * few,
        "sixteen values": found.matrices * few * vectors(many),
    }


KERNELS = (
    Kernel(SYMBOL, "s8", lower, HEADERS, (f"{SYMBOL}.c",), refuse, "cortex_m", cost_model=CostModel(work)),
)
