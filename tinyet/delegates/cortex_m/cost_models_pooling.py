# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of pools with sliding windows grow with (tinyet_pool_dsp.h)."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.delegates.cortex_m.pool import STRAIGHT
from tinyet.ir import Node
from tinyet.ops.shared import pooling
from tinyet.ops.shared.cost_models import axes
from tinyet.opset import CostModel

FEW = 12
"""Channels whose loop GCC unrolls."""


def work(node: Node) -> Mapping[str, int]:
    """Small windows that lie in the image are straight code; of others the taps in the image are walked."""
    a, batch, channels = pooling.attrs_of(node), node.output.shape[0], node.output.shape[3]
    rows, columns = axes(node, a, a.kernel_h, a.kernel_w)
    quads = -(-channels // 4)
    pixels = batch * rows.positions * columns.positions
    inside = batch * int(rows.whole.sum()) * int(columns.whole.sum())
    whole = inside if rows.taps * columns.taps <= STRAIGHT else 0
    empty = pixels - batch * int(rows.inside.any(axis=1).sum()) * int(columns.inside.any(axis=1).sum())
    walked = pixels - whole - empty
    own, own_h = whole * rows.taps * columns.taps, whole * rows.taps
    padded = int(inside < pixels)
    # Loops over a window whose size is known are other code than those over what lies in the image.
    kind = "at a border" if padded else "of a large window"
    tap_rows = batch * rows.in_image * int(columns.inside.any(axis=1).sum()) - own_h
    return {
        "call": 1,
        "image": batch,
        "row": batch * rows.positions,
        "pixel": pixels,
        "row, padded": batch * rows.positions * padded,
        "pixel, padded": pixels * padded,
        "four channels": whole * quads,
        "next four channels": whole * (quads - 1),
        "tap": own * quads,
        "row outside": batch * rows.outside,
        "column outside": batch * rows.positions * columns.outside,
        f"window {kind}": walked,
        f"four channels {kind}": walked * quads,
        f"next four channels {kind}": walked * (quads - 1),
        f"row of taps {kind}": tap_rows * quads,
        f"tap {kind}": (batch * rows.in_image * columns.in_image - own) * quads,
        "odd channels": pixels * int(channels % 4 != 0),
        "odd four channels": pixels * quads * int(channels % 4 != 0),
    }


def code(node: Node) -> Mapping[str, int]:
    a, channels = pooling.attrs_of(node), node.output.shape[3]
    rows, columns = axes(node, a, a.kernel_h, a.kernel_w)
    taps, padded = rows.taps * columns.taps, not (rows.whole.all() and columns.whole.all())
    return {
        "call": 1,
        "tap": taps if taps <= STRAIGHT else 0,
        "walk": int(padded or taps > STRAIGHT),
        "rows": int(rows.positions > 1),
        "columns": int(columns.positions > 1),
        "channels": int(channels > 4),
        "odd channels": int(channels % 4 != 0),
        "padded": int(padded),
    }


def kind(node: Node) -> str:
    """By what decides how GCC unrolls and what it keeps in registers: whether the window is straight code and all of it
    lies in the image, its size, its stride where it has a border, and the loop over channels."""
    a, channels = pooling.attrs_of(node), node.output.shape[3]
    rows, columns = axes(node, a, a.kernel_h, a.kernel_w)
    padded = not (rows.whole.all() and columns.whole.all())
    quads = "one" if channels == 4 else "odd" if channels % 4 else "few" if channels <= FEW else "many"
    straight = rows.taps * columns.taps <= STRAIGHT
    size = f"{rows.taps}x{columns.taps}" if straight and rows.taps == columns.taps else "other"
    return f"{size}{f', padded, stride {a.stride_w}' if padded else ''}, {quads}"


COST_MODELS: Mapping[str, CostModel] = {
    "tinyet_max_pool2d_s8_dsp": CostModel(work, code, kind=kind),
    "tinyet_avg_pool2d_s8_dsp": CostModel(work, code, kind=kind),
}
"""By the kernels' names."""
