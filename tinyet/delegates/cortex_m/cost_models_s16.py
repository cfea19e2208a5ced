# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of the kernels for int16 activations grow with, loop by loop as
firmware/include/tinyet_*_s16_dsp.h have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tinyet.delegates.cortex_m import (
    conv2d,
    conv2d_s16,
    linear_s16,
)
from tinyet.delegates.cortex_m.conv2d import Geometry, Stored, unroll_of
from tinyet.delegates.cortex_m.rounding_s16 import Rounding16, rounding
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts, axis
from tinyet.opset import CostModel

COPIED = 8
"""Pairs that tinyet_put_int16x2_dsp copies in straight code."""


def bounds(r: Rounding16) -> int:
    """Clamps beside the saturation, which stops at zero where all outputs do."""
    return (r.low not in (-32768, 0)) + (r.high < 32767)


def outputs(parts: Parts, r: Rounding16, count: int) -> None:
    """`count` sums that become outputs."""
    parts["output"] = count
    parts["output with an exponent"] = count * (r.exponent > 0)
    parts["clamped output"] = count * bounds(r)


def copied(parts: Parts, values: int, times: int) -> None:
    """tinyet_put_int16x2_dsp of so many values."""
    pairs = values // 2
    parts["copy"] = times
    parts["pair"] = times * pairs
    parts["odd value"] = times * (values % 2)
    parts["copy by a loop"] = times * (pairs > COPIED)
    parts["turn of a copy"] = times * (pairs // COPIED) * (pairs > COPIED)
    parts["pair behind a loop"] = times * (pairs % COPIED) * (pairs > COPIED)


def copied_code(values: int) -> Parts:
    return {
        "pair": min(values // 2, COPIED),
        "loop of pairs": int(values // 2 > COPIED),
        "odd value": values % 2,
    }


# ---------------------------------------------------------------- convolutions


def matrix(
    parts: Parts, g: Geometry, r: Rounding16, order: conv2d_s16.Order, of_lane: int, blocks: int
) -> None:
    """tinyet_four_pixels_s16_dsp, `blocks` times."""
    divided = conv2d_s16.parts(r, order, of_lane)
    count, taps = len(divided), len(order)
    unroll, doubles = unroll_of(taps // count, of_lane), blocks * -(-g.out_c // 2)
    parts["two channels"] = doubles
    parts["odd channel"] = blocks * (g.out_c % 2)
    parts["tap"] = doubles * taps
    if unroll != taps // count:
        parts["two channels by a loop"] = doubles * count
        parts["turn"] = doubles * (taps // unroll)
    if count > 1:
        parts["part"] = doubles * count
        parts["two channels of parts"] = doubles
    outputs(parts, r, blocks * 4 * g.out_c)


def matrix_code(parts: Parts, g: Geometry, r: Rounding16, order: conv2d_s16.Order, of_lane: int) -> None:
    divided = conv2d_s16.parts(r, order, of_lane)
    count = len(divided)
    unroll, copies = unroll_of(len(order) // count, of_lane), 1 + g.out_c % 2 if g.out_c > 1 else 1
    parts |= {
        "call": 1,
        "copy": copies,
        "straight tap": copies * unroll,
        "loop": copies if unroll != len(order) // count else 0,
        "parts": copies * (count > 1),
        "padding": int(g.pad_top > 0) + int(g.pad_left > 0),
        "several images": int(g.batch > 1),
        "clamp": copies * bounds(r),
    }


def rows_work(g: Geometry, r: Rounding16) -> Mapping[str, int]:
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    reach = (g.kernel_w - 1) * g.dilation_w
    runs = min(g.stride_w, reach + 1)
    columns = np.array(
        [f + i * g.stride_w for f in range(runs) for i in range((reach - f) // g.stride_w + 4)]
    )
    starts = np.minimum(np.arange(0, g.out_w, 4), g.out_w - 4)
    at = starts[:, None] * g.stride_w - g.pad_left + columns[None, :]
    inside = int(((at >= 0) & (at < g.in_w)).sum())
    blocks = g.batch * g.out_h * len(starts)
    there = g.batch * rows.in_image * inside
    blank = g.batch * (rows.inside.size * at.size) - there
    parts: Parts = {
        "call": 1,
        "row": g.batch * g.out_h,
        "block": blocks,
        "kernel row": blocks * g.kernel_h,
        "run": blocks * g.kernel_h * runs,
        "blank": blank,
        "blank word": blank * -(-g.in_c // 2),
        "checked column": 0 if g.pointwise else there,
    }
    copied(parts, g.in_c, there)
    matrix(parts, g, r, conv2d_s16.rows_order(g), g.kernel_w, blocks)
    return parts


def rows_code(g: Geometry, r: Rounding16) -> Mapping[str, int]:
    parts = copied_code(g.in_c)
    matrix_code(parts, g, r, conv2d_s16.rows_order(g), g.kernel_w)
    runs = min(g.stride_w, (g.kernel_w - 1) * g.dilation_w + 1)
    return parts | {"odd width": int(g.out_w % 4 != 0), "runs": runs}


def patches_work(g: Geometry, r: Rounding16) -> Mapping[str, int]:
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    columns = axis(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)
    starts = np.minimum(np.arange(0, g.out_h * g.out_w, 4), g.out_h * g.out_w - 4)
    which = (starts[:, None] + np.arange(4)).ravel()  # pixels
    blocks = g.batch * len(starts)
    there = rows.inside.sum(axis=1)[which // g.out_w]  # kernel rows of each pixel
    together = g.in_c * (g.kernel_w if g.dilation_w == 1 else 1)
    words = -(-together // 2) * (1 if g.dilation_w == 1 else g.kernel_w)
    hidden = g.batch * int((g.kernel_h - there).sum())
    parts: Parts = {
        "call": 1,
        "block": blocks,
        "pixel": 4 * blocks,
        ("kernel row" if g.dilation_w == 1 else "dilated kernel row"): 4 * blocks * g.kernel_h,
        "kernel row above or below": 4 * blocks * g.kernel_h * int(g.pad_top > 0),
        "row that may reach out": g.batch * int(there.sum()) * int(not columns.whole.all()),
        "blank row": hidden,
        "blank word": hidden * words,
    }
    taps = columns.inside.sum(axis=1)[which % g.out_w]
    if g.dilation_w == 1:
        whole = columns.whole[which % g.out_w]
        edge = g.batch * int(there[~whole].sum())
        parts["edge"] = edge
        parts["edge byte"] = 2 * edge * together
        parts["copied edge byte"] = 2 * g.batch * g.in_c * int((there * taps)[~whole].sum())
        copied(parts, together, g.batch * int(there.sum()))
    else:
        times = g.batch * int((there * taps).sum())
        blank = g.batch * int(there.sum()) * g.kernel_w - times
        parts["blank tap"] = blank
        parts["blank word"] += blank * -(-together // 2)
        copied(parts, together, times)
    matrix(parts, g, r, conv2d_s16.patches_order(g), 1, blocks)
    return parts


def patches_code(g: Geometry, r: Rounding16) -> Mapping[str, int]:
    parts = copied_code(g.in_c * (g.kernel_w if g.dilation_w == 1 else 1))
    matrix_code(parts, g, r, conv2d_s16.patches_order(g), 1)
    odd = int(g.out_h * g.out_w % 4 != 0)
    return parts | {
        "odd number of pixels": odd,
        "dilated": int(g.dilation_w > 1),
        "kernel": int(g.kernel_h > 1),
    }


# ---------------------------------------------------------------- all


def of_image(
    parts: Callable[[Geometry, Rounding16], Mapping[str, int]],
) -> Callable[[Node], Mapping[str, int]]:
    return lambda node: parts(conv2d.geometry(node), rounding(node))


def of_rows(
    parts: Callable[[Geometry, Rounding16], Mapping[str, int]],
) -> Callable[[Node], Mapping[str, int]]:
    return lambda node: parts(linear_s16.row_geometry(node), rounding(node))


COST_MODELS: Mapping[str, CostModel] = {
    how.named(name): cost_model
    for how in (Stored.INT8, Stored.INT16)
    for name, cost_model in (
        ("tinyet_conv2d_s16_direct_4x2_dsp", CostModel(of_image(rows_work), of_image(rows_code))),
        ("tinyet_conv2d_s16_im2col_4x2_dsp", CostModel(of_image(patches_work), of_image(patches_code))),
        ("tinyet_linear_s16_4x2_dsp", CostModel(of_rows(rows_work), of_rows(rows_code))),
    )
}
"""By the kernels' names."""
