# SPDX-License-Identifier: Apache-2.0
"""The greatest and the least over axes, and where the greatest of a row or a column is, of int8 and int16 for Helium
(tinyet_select_mve.h)."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.ir import Node
from tinyet.ops import argmax
from tinyet.ops.shared import reduction
from tinyet.ops.shared.shapes import around_axis
from tinyet.opset import Call, CostModel, Kernel, Struct, library_call
from tinyet.tiles.helium import LANES

HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", "tinyet_argmax.h", "tinyet_select_mve.h")


def lanes(node: Node) -> int:
    return LANES // node.input(0).dtype.bytes


# ---------------------------------------------------------------- over axes


def sizes_of(node: Node) -> tuple[int, int, int] | None:
    """(outer, count, inner), of which the middle is reduced."""
    sizes = reduction.loops(node)
    return None if sizes is None or sizes[1] != 1 else (sizes[0] * sizes[2], sizes[3], sizes[4])


def sizes_taken(node: Node) -> tuple[int, int, int]:
    found = sizes_of(node)
    assert found is not None
    return found


def refuse(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    return None if sizes_of(node) is not None else "only over one run of axes"


def work(node: Node) -> Mapping[str, int]:
    outer, count, inner = sizes_taken(node)
    if inner == 1:
        return {"call": 1, "row": outer, "vector": outer * -(-count // lanes(node))}
    columns = outer * -(-inner // lanes(node))
    return {"call": 1, "image": outer, "columns": columns, "vector of columns": columns * count}


def over_axes(name: str, dtype: str) -> Kernel:
    symbol = f"tinyet_{name}_{dtype}_mve"

    def lower(node: Node, _target: Target) -> Call:
        fields = dict(zip(("outer", "count", "inner"), sizes_taken(node), strict=True))
        return library_call(symbol, node, [0], Struct("tinyet_select_mve_params", fields))

    cost_model = CostModel(work)
    return Kernel(symbol, dtype, lower, HEADERS, (f"{symbol}.c",), refuse, "cortex_m", cost_model=cost_model)


# ---------------------------------------------------------------- where the greatest is


def refuse_row(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    inner = around_axis(node.input(0).shape, argmax.attrs_of(node).axis)[2]
    return "only along the last axis" if inner != 1 else None


COLUMNS, MOST_PLACES = 8, 1 << 16


def refuse_columns(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    _, count, inner = around_axis(node.input(0).shape, argmax.attrs_of(node).axis)
    if inner == 1:
        return "not along the last axis"
    return f"{count} places, takes up to {MOST_PLACES}" if count > MOST_PLACES else None


def searched_columns(node: Node) -> Mapping[str, int]:
    outer, count, inner = around_axis(node.input(0).shape, argmax.attrs_of(node).axis)
    eights = outer * -(-inner // COLUMNS)
    return {"call": 1, "image": outer, "columns": eights, "vector of columns": eights * count}


def searched(node: Node) -> Mapping[str, int]:
    """The greatest of a row is as often in one vector as in another."""
    outer, count, _ = around_axis(node.input(0).shape, argmax.attrs_of(node).axis)
    width = lanes(node)
    looked_at = sum(1 + place // width for place in range(count)) / count
    return {
        "call": 1,
        "row": outer,
        "vector": outer * -(-count // width),
        "vector until it is found": round(outer * looked_at),
    }


def place(dtype: str, *, of_columns: bool = False) -> Kernel:
    symbol = f"tinyet_argmax_{dtype}_{'columns_' if of_columns else ''}mve"

    def lower(node: Node, _target: Target) -> Call:
        sizes = around_axis(node.input(0).shape, argmax.attrs_of(node).axis)
        fields = dict(zip(("outer", "count", "inner"), sizes, strict=True))
        return library_call(symbol, node, [0], Struct("tinyet_argmax_params", fields))

    cost_model = CostModel(searched_columns if of_columns else searched)
    return Kernel(
        symbol,
        f"{dtype}_s32",
        lower,
        HEADERS,
        (f"{symbol}.c",),
        refuse_columns if of_columns else refuse_row,
        "cortex_m",
        cost_model=cost_model,
    )


AMAX_KERNELS = tuple(over_axes("amax", dtype) for dtype in ("s8", "s16"))
AMIN_KERNELS = tuple(over_axes("amin", dtype) for dtype in ("s8", "s16"))
ARGMAX_KERNELS = tuple(
    place(dtype, of_columns=of_columns) for of_columns in (False, True) for dtype in ("s8", "s16")
)
