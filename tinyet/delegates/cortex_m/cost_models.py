# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of the specialised kernels grow with, loop by loop as firmware/include/tinyet_*_dsp.h have
them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.delegates.cortex_m import conv2d
from tinyet.delegates.cortex_m.conv2d import Stored
from tinyet.delegates.cortex_m.packing import lane_pairs
from tinyet.delegates.cortex_m.pool import LEAST_PART, MOST_PIXELS
from tinyet.delegates.cortex_m.rounding import Rounding
from tinyet.ir import Node
from tinyet.ops.shared.cost_models import Parts, axis
from tinyet.opset import CostModel

_TAP_BYTES, _ENDS_BYTES = 52, 150
"""Of code: of a tap of four pixels by two channels, and of what begins and rounds their sums."""
KEPT_BYTES = 64 * 16
"""Of code in the buffers of the flash whose lines were counted. Of a longer loop nothing is left for its next turn."""


def form_name(r: Rounding) -> str:
    """The name of the form in the parts' names."""
    return r.form.name.lower().replace("_", " ")


def bounds(low: int, high: int) -> int:
    """Clamps beside the saturation of int8."""
    return (low > -128) + (high < 127)


def outputs(parts: Parts, r: Rounding, count: int) -> None:
    """`count` sums that become outputs."""
    parts[f"output, {form_name(r)}"] = count
    parts["clamped output"] = count * bounds(r.low, r.high)


def form_of(parts: Parts, r: Rounding) -> None:
    """Of the code: which rounding it has, and how many bounds."""
    parts[form_name(r)] = 1
    parts["bound"] = bounds(r.low, r.high)


def widened(parts: Parts, channels: int, times: int) -> None:
    """tinyet_widen_dsp of so many channels; few are straight code."""
    quads, rest = divmod(channels, 4)
    parts["widening"] = times
    if quads:
        parts["short widening" if quads <= 4 else "long widening"] = times
        parts["four values"] = times * quads
    if rest:
        parts[f"last {rest} values"] = times


def blocks_of_four(size: int) -> list[int]:
    """The first of each four of `size` values in a row: the last four overlap those before."""
    return sorted({min(start, size - 4) for start in range(0, size, 4)})


def matrix(parts: Parts, g: conv2d.Geometry, r: Rounding, blocks: int, taps: int, of_lane: int) -> None:
    """tinyet_four_pixels_dsp, `blocks` times."""
    unroll, doubles = conv2d.unroll_of(taps, of_lane), blocks * -(-g.out_c // 2)
    parts["two channels"] = doubles
    parts["odd channel"] = blocks * (g.out_c % 2)
    parts["tap"] = doubles * taps
    if unroll * _TAP_BYTES + (_ENDS_BYTES if unroll == taps else 0) > KEPT_BYTES:
        parts["tap of a loop that is not kept"] = doubles * taps
    if unroll != taps:
        parts["two channels by a loop"] = doubles
        parts["turn"] = doubles * (taps // unroll)
    outputs(parts, r, blocks * 4 * g.out_c)


def rows_work(g: conv2d.Geometry, r: Rounding) -> Mapping[str, int]:
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    reach = (g.kernel_w - 1) * g.dilation_w
    runs = min(g.stride_w, reach + 1)
    columns = np.array(
        [f + i * g.stride_w for f in range(runs) for i in range((reach - f) // g.stride_w + 4)]
    )
    at = np.array(blocks_of_four(g.out_w))[:, None] * g.stride_w - g.pad_left + columns[None, :]
    inside = int(((at >= 0) & (at < g.in_w)).sum())
    blocks = g.batch * g.out_h * len(at)
    seen = g.batch * rows.in_image * inside
    blank = g.batch * (rows.inside.size * at.size) - seen
    parts: Parts = {
        "call": 1,
        "row": g.batch * g.out_h,
        "block": blocks,
        "kernel row": blocks * g.kernel_h,
        "run": blocks * g.kernel_h * runs,
        "blank": blank,
        "blank word": blank * len(lane_pairs(g.in_c)),
        "checked column": 0 if g.pointwise else seen,
    }
    widened(parts, g.in_c, seen)
    matrix(parts, g, r, blocks, len(conv2d.rows_order(g)), conv2d.turn_multiple(Stored.INT4, g.kernel_w))
    return parts


def patches(g: conv2d.Geometry) -> tuple[Parts, int]:
    """tinyet_im2col_dsp of all pixels, four of them in a row each time, and how often that is."""
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    columns = axis(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)
    starts = np.minimum(np.arange(0, g.out_h * g.out_w, 4), g.out_h * g.out_w - 4)
    which = (starts[:, None] + np.arange(4)).ravel()  # pixels
    blocks = g.batch * len(starts)
    seen = rows.inside.sum(axis=1)[which // g.out_w]  # kernel rows of each pixel
    together = g.in_c * (g.kernel_w if g.dilation_w == 1 else 1)
    words = len(lane_pairs(together)) * (1 if g.dilation_w == 1 else g.kernel_w)
    pixels = 4 * blocks
    parts: Parts = {
        "call": 1,
        "block": blocks,
        "pixel": pixels,
        ("kernel row" if g.dilation_w == 1 else "dilated kernel row"): pixels * g.kernel_h,
        "kernel row above or below": pixels * g.kernel_h * int(g.pad_top > 0),
        "row that may reach out": g.batch * int(seen.sum()) * int(not columns.whole.all()),
        "blank row": (hidden := g.batch * int((g.kernel_h - seen).sum())),
        "blank word": hidden * words,
    }
    whole = columns.whole[which % g.out_w]
    if g.dilation_w == 1:
        edge = g.batch * int(seen[~whole].sum())
        parts["edge"] = edge
        parts["edge byte"] = edge * together
        parts["copied edge byte"] = (
            g.batch * g.in_c * int((seen * columns.inside.sum(axis=1)[which % g.out_w])[~whole].sum())
        )
        widened(parts, together, g.batch * int(seen.sum()))
    else:
        there = g.batch * int((seen * columns.inside.sum(axis=1)[which % g.out_w]).sum())
        blank = g.batch * int(seen.sum()) * g.kernel_w - there
        parts["tap of a pixel"] = there
        parts["blank tap"] = blank
        parts["blank word"] += blank * len(lane_pairs(together))
        widened(parts, together, there)
    return parts, blocks


def patches_work(g: conv2d.Geometry, r: Rounding) -> Mapping[str, int]:
    parts, blocks = patches(g)
    matrix(parts, g, r, blocks, len(conv2d.patches_order(g)), conv2d.turn_multiple(Stored.INT4, 1))
    return parts


def matrix_code(g: conv2d.Geometry, r: Rounding, taps: int, of_lane: int) -> Parts:
    unroll = conv2d.unroll_of(taps, of_lane)
    copies = 1 + g.out_c % 2 if g.out_c > 1 else 1
    quads, rest = divmod(g.in_c, 4)
    parts: Parts = {
        "call": 1,
        "copy": copies,
        "straight tap": copies * unroll,
        "loop": copies if unroll != taps else 0,
        "padding": int(g.pad_top > 0 or g.pad_left > 0),
        "odd width": int(g.out_w % 4 != 0),
        "four values": min(quads, 4),
        f"last {rest} values": 1,
        "several images": int(g.batch > 1),
        "runs": min(g.stride_w, (g.kernel_w - 1) * g.dilation_w + 1),
    }
    form_of(parts, r)
    parts[f"copy, {form_name(r)}"] = copies
    return parts


def rows_code(g: conv2d.Geometry, r: Rounding) -> Mapping[str, int]:
    return matrix_code(g, r, len(conv2d.rows_order(g)), conv2d.turn_multiple(Stored.INT4, g.kernel_w))


def patches_code(g: conv2d.Geometry, r: Rounding) -> Mapping[str, int]:
    return matrix_code(g, r, len(conv2d.patches_order(g)), conv2d.turn_multiple(Stored.INT4, 1))


def over_pixels(node: Node) -> Mapping[str, int]:
    """Global pools and sums: the pixels of an image, four channels at a time; many pixels in parts."""
    channels = node.input(0).shape[-1]
    values, out = node.input(0).type.count, node.output.type.count
    images = out // channels
    pixels = values // out
    quads = images * -(-channels // 4)
    parts: Parts = {"call": 1, "image": images, "four channels": quads, "pixel": quads * pixels}
    whole, first = divmod(pixels, LEAST_PART) if pixels > MOST_PIXELS else (0, pixels)
    parts["part"] = quads * whole
    looped = first if first > 8 else 0
    parts["eight pixels"] = quads * (looped // 8 + whole * (LEAST_PART // 8))
    parts["last pixels"] = quads * int(looped % 8 != 0)
    parts["last pixel"] = quads * (looped % 8)
    return parts


def over_pixels_code(node: Node) -> Mapping[str, int]:
    channels = node.input(0).shape[-1]
    pixels = node.input(0).type.count // node.output.type.count
    first = pixels % LEAST_PART if pixels > MOST_PIXELS else pixels
    return {
        "call": 1,
        "pixel": min(first, 8),
        "loop": int(first > 8),
        "last pixels": int(first > 8 and first % 8 != 0),
        "parts": int(pixels > MOST_PIXELS),
        "odd channels": int(channels % 4 != 0),
        "several images": int(node.output.type.count > channels),
    }


COST_MODELS: Mapping[str, CostModel] = {
    "tinyet_average_s8_dsp": CostModel(over_pixels, over_pixels_code),
    "tinyet_sum_s8_dsp": CostModel(over_pixels, over_pixels_code),
}
"""By the kernels' names."""
