# SPDX-License-Identifier: Apache-2.0
"""Bilinear resizing of int8, four channels at a time (tinyet_resize_dsp.h); for Helium in the same two forms, of which
one has eight values at a time, and of int16 (tinyet_resize_mve.h)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.ir import Node
from tinyet.ops import resize
from tinyet.ops.shared.access_orders import of_input
from tinyet.opset import AccessOrder, Call, Constant, CostModel, Kernel, Pointer, Struct, library_call

HEADERS = ("tinyet_resize_dsp.h",)
HEADERS_MVE = ("tinyet_dsp.h", "tinyet_mve.h", *HEADERS, "tinyet_resize_mve.h")
ONE = {
    "tinyet_resize_bilinear_s8_q4_mve": 16,
    "tinyet_resize_bilinear_s8_q10_mve": 1024,
    "tinyet_resize_bilinear_s16_q8_mve": 256,
    "tinyet_resize_bilinear_s16_q10_mve": 1024,
    "tinyet_resize_bilinear_s8_q4_dsp": 16,
    "tinyet_resize_bilinear_s8_q10_dsp": 1024,
}
"""The sum of the weights of two samples, by the kernels' names."""
VALUES = {16: 8, 256: 4, 1024: 4}
"""That Helium computes at a time, by that sum."""
COLUMN_BYTES = {16: 8, 1024: 16}
"""Scratch of a column of the input, by that sum."""


def runs_of(columns: resize.Samples) -> npt.NDArray[np.int64]:
    """Output pixels in a row between the same two columns: (runs, 3), left and right column and how many."""
    both = np.stack([columns.lower, columns.upper], axis=1)
    starts = np.flatnonzero(np.r_[True, np.any(np.diff(both, axis=0) != 0, axis=1)])
    return np.column_stack([both[starts], np.diff(np.r_[starts, len(both)])])


def for_helium(symbol: str) -> bool:
    return symbol.endswith("_mve")


def refuse(node: Node, target: Target, symbol: str) -> str | None:
    if for_helium(symbol) and (reason := no_helium(target)) is not None:
        return reason
    if resize.mode_of(node) != "bilinear":
        return "only bilinear interpolation"
    channels, one = node.input(0).shape[3], ONE[symbol]
    if channels < 4 and not for_helium(symbol):
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
    column = channels * 16 // VALUES[ONE[symbol]] if for_helium(symbol) else COLUMN_BYTES[ONE[symbol]]
    return library_call(symbol, node, [0], params, constants, width * column)


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


def work_mve(node: Node, lanes: int) -> Mapping[str, int]:
    batch, out_h, out_w, channels = node.output.shape
    rows = batch * out_h
    return {
        "call": 1,
        "image": batch,
        "row": rows,
        "run": rows * len(runs_of(resize.samples(node)[1])),
        "vector between rows": rows * -(-node.input(0).shape[2] * channels // lanes),
        "pixel": rows * out_w,
        "vector": rows * out_w * -(-channels // lanes),
    }


@of_input
def by_rows(node: Node) -> AccessOrder:
    """One output row after another, four channels at a time."""
    return resize.walk(node).by_rows()


def kernel(symbol: str) -> Kernel:
    lanes = VALUES[ONE[symbol]]
    return Kernel(
        symbol,
        "s16" if "_s16_" in symbol else "s8",
        lambda node, _target: lower(node, symbol),
        HEADERS_MVE if for_helium(symbol) else HEADERS,
        (f"{symbol}.c",),
        partial(refuse, symbol=symbol),
        "cortex_m",
        cost_model=CostModel(partial(work_mve, lanes=lanes) if for_helium(symbol) else work),
        access_order=by_rows,
    )


KERNELS = tuple(kernel(symbol) for symbol in ONE)
