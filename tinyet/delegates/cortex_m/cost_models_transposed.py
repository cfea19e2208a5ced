# SPDX-License-Identifier: Apache-2.0
"""What instructions and code of transposed convolutions grow with (tinyet_conv_transpose2d_dsp.h)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.delegates.cortex_m import conv2d, conv_transpose2d
from tinyet.delegates.cortex_m.cost_models import blocks_of_four, matrix, matrix_code, widened
from tinyet.delegates.cortex_m.packing import lane_pairs
from tinyet.ir import Node
from tinyet.ops.conv_transpose2d import attrs_of
from tinyet.ops.shared.cost_models import Parts
from tinyet.opset import CostModel


def work(node: Node) -> Mapping[str, int]:
    a, p = attrs_of(node), conv_transpose2d.phases_of(node)
    g = p.one
    tops = (np.arange(g.out_h) + a.pad_top) // a.stride_h - (p.taps[0] - 1)
    rows = tops[:, None] + np.arange(p.taps[0])
    lefts = np.concatenate(
        [
            np.array(blocks_of_four(-(-(g.out_w - phase) // a.stride_w)))
            + (phase + a.pad_left) // a.stride_w
            - (p.taps[1] - 1)
            for phase in range(a.stride_w)
        ]
    )
    columns = lefts[:, None] + np.arange(p.taps[1] + 3)
    blocks = g.batch * g.out_h * len(lefts)
    seen = (
        g.batch
        * int(((rows >= 0) & (rows < g.in_h)).sum())
        * int(((columns >= 0) & (columns < g.in_w)).sum())
    )
    blank = g.batch * rows.size * columns.size - seen
    parts: Parts = {
        "call": 1,
        "row": g.batch * g.out_h,
        "phase": g.batch * g.out_h * a.stride_w,
        "block": blocks,
        "kernel row": blocks * p.taps[0],
        "blank": blank,
        "blank word": blank * len(lane_pairs(g.in_c)),
        "checked column": seen,
    }
    widened(parts, g.in_c, seen)
    matrix(parts, g, conv_transpose2d.rounding(node), blocks, len(conv2d.rows_order(g)), g.kernel_w)
    return parts


def code(node: Node) -> Mapping[str, int]:
    g = conv_transpose2d.phases_of(node).one
    return matrix_code(g, conv_transpose2d.rounding(node), len(conv2d.rows_order(g)), g.kernel_w)


COST_MODELS: Mapping[str, CostModel] = {conv_transpose2d.SYMBOL: CostModel(work, code)}
"""By the kernel's name."""
