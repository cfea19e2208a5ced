# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of the specialised kernels grow with, loop by loop as firmware/include/tinyet_*_dsp.h have
them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.delegates.cortex_m import conv2d, conv2d_s8, linear
from tinyet.delegates.cortex_m.packing import lane_pairs
from tinyet.delegates.cortex_m.pool import LEAST_PART, MOST_PIXELS
from tinyet.delegates.cortex_m.rounding import Form, Rounding, rounding
from tinyet.delegates.cortex_m.wrapper import largest_divisor
from tinyet.ir import Node
from tinyet.ops.shared.clamped import clamp_of
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
    """tinyet_channels_dsp of all channels of four pixels, `blocks` times."""
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


def shared_work(node: Node) -> Mapping[str, int]:
    g, r = conv2d.geometry(node), conv2d_s8.chosen_rounding(node)
    rows = axis(g.in_h, g.out_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    columns = axis(g.in_w, g.out_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)
    count = g.out_h * g.out_w
    starts = np.minimum(np.arange(0, count, 3), count - 3)
    which = (starts[:, None] + np.arange(3)).ravel()  # pixels
    blocks, values = g.batch * len(starts), g.in_c * g.kernel_w
    seen = rows.inside.sum(axis=1)[which // g.out_w]  # kernel rows of each pixel
    apart = ~columns.whole[which % g.out_w] | (g.dilation_w > 1)
    taps = columns.inside.sum(axis=1)[which % g.out_w]  # of each pixel's kernel rows
    hidden, edges = g.batch * int((g.kernel_h - seen).sum()), g.batch * int(seen[apart].sum())
    widened = g.batch * int(seen.sum())
    # Bytes that a row copies at once, and how often each pixel does.
    length = np.where(g.dilation_w > 1, g.in_c, taps * g.in_c)
    times = seen * apart * (taps if g.dilation_w > 1 else 1)
    steps, pairs = len(conv2d_s8.even_order(g)) // 2, blocks * -(-g.out_c // 2)
    return {
        "call": 1,
        "block": blocks,
        "pixel": 3 * blocks,
        "row above or below": hidden,
        "blank word": hidden * len(lane_pairs(values)),
        "pixel at an edge": g.batch * int(apart.sum()),
        "word of a pixel at an edge": g.batch * int(apart.sum()) * (values // 4),
        "edge": edges,
        "dilated tap": edges * g.kernel_w * (g.dilation_w > 1),
        "copy": g.batch * int(times.sum()),
        "copied word": g.batch * int((times * (length // 4)).sum()),
        "copied byte": g.batch * int((times * (length % 4)).sum()),
        "row": widened,
        "four values": widened * (values // 4),
        "sixteen values": widened * -(-(values // 4) // 4),
        f"last {values % 4} values": widened,
        "two channels": pairs,
        "two channels, two-sided": pairs * (r.form is Form.TWO_SIDED),
        "odd channel": blocks * (g.out_c % 2),
        "four inputs": pairs * steps,
        "turn": pairs * -(-steps // 8),
        "clamped output": g.batch * count * g.out_c * (bounds(r.low, r.high) > 0),
    }


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


def linear_work(node: Node) -> Mapping[str, int]:
    (count, depth), rows = node.input(1).shape, linear.row_count(node)
    pairs = len(lane_pairs(depth))
    unroll = largest_divisor(pairs, linear.LOOP_PAIRS)
    groups = rows * -(-count // 4)
    parts: Parts = {
        "call": 1,
        "row": rows,
        "four outputs": groups,
        "pair": groups * pairs,
        "turn": groups * (pairs // unroll),
        "last outputs": rows * int(count % 4 != 0),
    }
    widened(parts, depth, rows)
    outputs(parts, rounding(node, clamp_of(node)), rows * count)
    return parts


def linear_code(node: Node) -> Mapping[str, int]:
    (count, depth), rows = node.input(1).shape, linear.row_count(node)
    parts: Parts = {
        "call": 1,
        "pair": largest_divisor(len(lane_pairs(depth)), linear.LOOP_PAIRS),
        "last outputs": int(count % 4 != 0),
        "several rows": int(rows > 1),
        "four values": min(depth // 4, 4),
        f"last {depth % 4} values": 1,
    }
    form_of(parts, rounding(node, clamp_of(node)))
    return parts


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
    "tinyet_conv2d_s8_packed_3x2_dsp": CostModel(shared_work),
    "tinyet_linear_s8_1x4_dsp": CostModel(linear_work, linear_code),
    "tinyet_average_s8_dsp": CostModel(over_pixels, over_pixels_code),
    "tinyet_sum_s8_dsp": CostModel(over_pixels, over_pixels_code),
}
"""By the kernels' names."""
