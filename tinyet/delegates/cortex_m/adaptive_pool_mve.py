# SPDX-License-Identifier: Apache-2.0
"""Average pools to a given size whose windows differ, for Helium (tinyet_adaptive_avg_pool2d_mve.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium
from tinyet.ir import DType, Node
from tinyet.ops.adaptive_avg_pool2d import access_order, common, node_spans
from tinyet.ops.shared.averaging import MAX_TABLE, division
from tinyet.opset import Call, Constant, CostModel, Kernel, Pointer, Struct, library_call

HEADERS = (
    *("tinyet_dsp.h", "tinyet_mve.h", "tinyet_adaptive_avg_pool2d.h"),
    "tinyet_adaptive_avg_pool2d_mve.h",
)
MOST_PIXELS = 256
"""Whose sum int16 holds."""
LANES = {DType.INT8: 8, DType.INT16: 4}


@dataclass(frozen=True)
class Average:
    """The fields of tinyet_average_mve."""

    multiplier: int
    even: int
    offset: int
    shift: int
    bias: int


def average_of(count: int, zero_point: int, dtype: DType) -> Average | None:
    """Of so many pixels, by the largest reciprocal of 32 bits; None where that is not exact for all sums."""
    if count < 2:
        return None
    d = division(count, count, zero_point, dtype)
    shift = count.bit_length() - 1 - int(count & (count - 1) == 0)
    multiplier = -(-(2 ** (32 + shift)) // count)
    most, error = dtype.range[1] * count + d.offset, multiplier * count - 2 ** (32 + shift)
    # floor(u * m / 2**s) is floor(u / d) as long as u * (m * d - 2**s) < 2**s.
    exact = multiplier < 2**32 and most * error < 2 ** (32 + shift)
    return Average(multiplier, int(d.even), d.offset, -shift, d.bias) if exact else None


def counts_of(node: Node) -> list[int]:
    """Pixels of a window, all that there are."""
    rows, columns = node_spans(node)
    return sorted({int(count) for count in (rows[:, 1:] * columns[:, 1]).ravel()})


def average_in(node: Node, count: int) -> Average | None:
    x = node.input(0).type
    return average_of(count, x.zero_point, x.dtype)


def refuse(node: Node, target: Target) -> str | None:
    if (reason := no_helium(target)) is not None:
        return reason
    counts = counts_of(node)
    if node.input(0).dtype is DType.INT8 and counts[-1] > MOST_PIXELS:
        return f"{counts[-1]} pixels a window, takes up to {MOST_PIXELS}"
    if counts[-1] - counts[0] >= MAX_TABLE or not all(average_in(node, count) for count in counts):
        return f"no exact reciprocal for windows of {counts} pixels"
    return None


def lower(node: Node, _target: Target) -> Call:
    symbol = symbol_of(node.input(0).dtype.suffix)
    shape, tables = common(node)
    counts = counts_of(node)
    rows = np.zeros((counts[-1] - counts[0] + 1, len(fields(Average))), np.int64)
    for count in counts:
        found = average_in(node, count)
        assert found is not None
        rows[count - counts[0]] = astuple(found)
    divisions = Constant(
        "divisions", rows.astype(np.uint32).view(np.int32), ", ".join(f.name for f in fields(Average))
    )
    struct = Struct("tinyet_adaptive_avg_pool2d_shape", shape)
    params = Struct(
        "tinyet_adaptive_avg_pool2d_mve_params",
        {"shape": struct, "divisions": Pointer(divisions.name), "first_count": counts[0]},
    )
    return library_call(symbol, node, [0], params, (*tables, divisions))


def work(node: Node) -> Mapping[str, int]:
    rows, columns = node_spans(node)
    batch, out_h, out_w, channels = node.output.shape
    vectors = batch * -(-channels // LANES[node.input(0).dtype])
    tap_rows = int(rows[:, 1].sum())
    return {
        "call": 1,
        "row": batch * out_h,
        "window": batch * out_h * out_w,
        "vector": out_h * out_w * vectors,
        "row of taps": tap_rows * out_w * vectors,
        "vector of taps": tap_rows * int(columns[:, 1].sum()) * vectors,
    }


def symbol_of(dtype: str) -> str:
    return f"tinyet_adaptive_avg_pool2d_{dtype}_mve"


KERNELS = tuple(
    Kernel(
        symbol_of(dtype),
        dtype,
        lower,
        HEADERS,
        (f"{symbol_of(dtype)}.c",),
        refuse,
        "cortex_m",
        cost_model=CostModel(work),
        access_order=access_order,
    )
    for dtype in ("s8", "s16")
)
