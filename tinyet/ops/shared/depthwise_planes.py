# SPDX-License-Identifier: Apache-2.0
"""Constants of the depthwise kernels that go from channel to channel and round by one product (one_product.py), with
one shift for all channels: sums are multiplied ahead of time, in weights and bias."""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize
from tinyet.numerics import clamp_range
from tinyet.ops.shared import one_product
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.one_product import Rounding
from tinyet.ops.shared.packed_words import rows_of
from tinyet.opset import Constant, FieldValue, Pointer

SHIFT = 12
"""As in tinyet_depthwise_s8_chw_3x3_2x1.c."""


@memoize
def rounding(node: Node) -> Rounding | str:
    return one_product.rounding(node, shift=SHIFT)


def refuse(node: Node) -> str | None:
    found = rounding(node)
    return found if isinstance(found, str) else None


def stream(node: Node) -> Constant:
    """Of tinyet_depthwise_planes.h, int32 (channels, 13)."""
    r = rounding(node)
    assert isinstance(r, Rounding)
    before = r.before[:, None]
    start, weights = r.bias[:, None] << before, rows_of(node).astype(np.int64) << before
    behind = np.stack([r.multiplier, r.offset, r.away], axis=1)
    found = np.concatenate([start, behind, weights], axis=1).astype(np.int32)
    return Constant("stream", found, "as tinyet_depthwise_planes.h")


def fields(node: Node) -> dict[str, FieldValue]:
    """Of the params, behind the shape."""
    low, high = clamp_range(clamp_of(node), node.output.type)
    padding = node.input(0).type.zero_point
    return {"stream": Pointer("stream"), "padding": padding, "clamp_low": low, "clamp_high": high}
