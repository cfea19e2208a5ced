# SPDX-License-Identifier: Apache-2.0
"""Bilinear int8 resizing, four channels at a time (tinyet_resize_dsp.h)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.ir import Node
from tinyet.ops import resize
from tinyet.ops.shared.access_orders import of_input
from tinyet.opset import AccessOrder, Call, Constant, CostModel, Kernel, Pointer, Struct, library_call

HEADERS = ("tinyet_resize_dsp.h",)
ONE = {"tinyet_resize_bilinear_s8_q4_dsp": 16, "tinyet_resize_bilinear_s8_q10_dsp": 1024}
"""The sum of the weights of two samples, by the kernels' names."""
COLUMN_BYTES = {16: 8, 1024: 16}
"""Scratch of a column of the input, by that sum."""


def runs_of(columns: resize.Samples) -> npt.NDArray[np.int64]:
    """Output pixels in a row between the same two columns: (runs, 3), left and right column and how many."""
    both = np.stack([columns.lower, columns.upper], axis=1)
    starts = np.flatnonzero(np.r_[True, np.any(np.diff(both, axis=0) != 0, axis=1)])
    return np.column_stack([both[starts], np.diff(np.r_[starts, len(both)])])


def refuse(node: Node, one: int) -> str | None:
    if resize.mode_of(node) != "bilinear":
        return "only bilinear interpolation"
    channels = node.input(0).shape[3]
    if channels < 4:
        return f"{channels} channels, needs 4"
    fine = [s for s in resize.samples(node) if np.any(s.weight % (1024 // one))]
    return f"weights that are no multiples of 1/{one}" if fine else None


def lower(node: Node, symbol: str) -> Call:
    rows, columns = resize.samples(node)
    batch, height, width, channels = node.input(0).shape
    part = 1024 // ONE[symbol]
    runs = runs_of(columns)
    pairs = np.stack([rows.lower, rows.upper], axis=1) * width * channels
    constants = (
        Constant("rows", pairs.astype(np.int32), "offsets of the two samples"),
        Constant("row_weights", (rows.weight // part).astype(np.int16), "of the second sample"),
        Constant("runs", runs.astype(np.int32), "columns on the left and right; pixels"),
        Constant("column_weights", (columns.weight // part).astype(np.int16), "of the second sample"),
    )
    params = Struct(
        "tinyet_resize_bilinear_s8_dsp_params",
        {
            "batch": batch,
            "in_h": height,
            "in_w": width,
            "channels": channels,
            "out_h": node.output.shape[1],
            "out_w": node.output.shape[2],
            "run_count": len(runs),
            **{c.name: Pointer(c.name) for c in constants},
        },
    )
    return library_call(symbol, node, [0], params, constants, width * COLUMN_BYTES[ONE[symbol]])


def work(node: Node) -> Mapping[str, int]:
    batch, out_h, out_w, channels = node.output.shape
    runs = runs_of(resize.samples(node)[1])
    rows, quads = batch * out_h, -(-channels // 4)
    return {
        "call": 1,
        "image": batch,
        "row": rows,
        "four channels": rows * quads,
        "run": rows * quads * len(runs),
        "column": rows * quads * node.input(0).shape[2],
        "pixel": rows * quads * out_w,
    }


@of_input
def by_rows(node: Node) -> AccessOrder:
    """One output row after another, four channels at a time."""
    return resize.walk(node).by_rows()


def kernel(symbol: str) -> Kernel:
    def refuse_node(node: Node, _target: Target) -> str | None:
        return refuse(node, ONE[symbol])

    def lower_node(node: Node, _target: Target) -> Call:
        return lower(node, symbol)

    cost_model = CostModel(work)
    return Kernel(
        symbol,
        "s8",
        lower_node,
        HEADERS,
        (f"{symbol}.c",),
        refuse_node,
        "cortex_m",
        cost_model=cost_model,
        access_order=by_rows,
    )


KERNELS = tuple(kernel(symbol) for symbol in ONE)
