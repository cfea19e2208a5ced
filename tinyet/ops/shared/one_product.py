# SPDX-License-Identifier: Apache-2.0
"""The rounding rule by the high half of one product of 64 bits, for cores that have it.

With the rule as one division (m in [2**30, 2**31), e >= 1; see numerics.requantize), and the sum multiplied by 2**k
before, k >= 2,

    floor((sum * m + 2**30 + 2**(30 + e) - [sum < 0] * 2**31) / 2**(31 + e)) + zero
        = (floor(2**k * sum * m / 2**32) + 2**(k - 2) + 2**(k - 2 + e) - [sum < 0] * 2**(k - 1) + zero * 2**s) >> s

where s = e + k - 1, since all but the product are multiples of 2**(32 - k). With |2**k * sum| < 2**31 the product's
high half is below 2**30, and with s <= 22 so is what is added to it: nothing leaves 32 bits. [sum < 0] matters only
where the clamp lets outputs below the zero point be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.ir import Node
from tinyet.numerics import Int64, clamp_range, requantize
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import FieldValue, Pointer, Struct

MOST_SHIFT = 22
LEAST_BEFORE = 2


@dataclass(frozen=True)
class Rounding:
    """Arrays are (channels,). bias: of sums of raw inputs; before: k; away: what is less for sums below zero, where
    that is seen (two_sided), else zero; shift: s. A channel whose output is the same for all inputs has the multiplier
    zero."""

    bias: Int64
    before: Int64
    multiplier: Int64
    offset: Int64
    away: Int64
    shift: Int64
    two_sided: bool


def rounding(node: Node, *, before: int | None = None, shift: int | None = None) -> Rounding | str:
    """Of a node with weights and per-channel factors, with this k or this s for all channels; why there is none
    otherwise."""
    weights, bias = rows_of(node).astype(np.int64), folded_bias(node)
    multiplier, left = output_factors(node)
    zero_point, (low, high) = node.output.type.zero_point, clamp_range(clamp_of(node), node.output.type)
    least, most = sum_range(weights, bias)
    if int(np.abs(bias).max() + 128 * np.abs(weights).sum(axis=1).max()) >= 2**31:
        return "sums do not fit 32 bits"
    ends = [np.clip(requantize(s, multiplier, left) + zero_point, low, high) for s in (least, most)]
    # Requantization is monotone: equal outputs at both ends are one output everywhere.
    live = ends[0] != ends[1]
    right = np.where(live, -left, 1)
    if np.any(live & ((right < 1) | (multiplier < 2**30))):
        return "a factor is not below a half"
    k = np.full_like(right, before) if before is not None else (shift or 0) + 1 - right
    s = right + k - 1
    if np.any((k < LEAST_BEFORE) | (s > MOST_SHIFT)):
        return "factors of the channels are too far apart, or too small"
    # Of every part of a sum, too: what a C compiler adds up must not overflow.
    bound = np.abs(bias) + 128 * np.abs(weights).sum(axis=1)
    if np.any(bound >= np.int64(1) << 31 - k):
        return f"sums do not fit {31 - int(k.max())} bits"
    offset = (np.int64(1) << k - 2) + (np.int64(1) << k - 2 + right) + (np.int64(zero_point) << s)
    two_sided = low < zero_point
    return Rounding(
        bias,
        k,
        np.where(live, multiplier, 0),
        np.where(live, offset, ends[0] << s),
        np.where(live, np.int64(two_sided) << k - 1, 0),
        s,
        two_sided,
    )


def fields(node: Node, found: Rounding | str) -> dict[str, FieldValue]:
    """Of the params of convolutions whose outputs are rounded so, behind the shape. found: of `rounding`, and none that
    is refused."""
    assert isinstance(found, Rounding)
    return fields_of(node, two_sided=found.two_sided)


def fields_of(node: Node, *, two_sided: bool) -> dict[str, FieldValue]:
    """two_sided: whether outputs of sums below zero are seen."""
    low, high = clamp_range(clamp_of(node), node.output.type)
    outputs = Struct(
        "tinyet_one_product_outputs",
        {
            "stream": Pointer("stream"),
            "padding": node.input(0).type.zero_point,
            "two_sided": int(two_sided),
            "clamp_low": low,
            "clamp_high": high,
        },
    )
    return {"outputs": outputs, "weights": Pointer("weights")}
