# SPDX-License-Identifier: Apache-2.0
"""Sums to outputs for Helium: VQRDMULH and VRSHL are the two roundings of the specification, exact for every sum of 32
bits where a factor is below one half, but for the correction of negative sums, which is added where it can be seen.
Sums that are rounded to even are multiplied by a float (tinyet_rne_mve.h)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.delegates.cortex_m.rounding import LIMIT, live_channels
from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.numerics import Int64, clamp_range
from tinyet.ops.shared.factors import half_even_factors, output_factors, rounds_half_even
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Struct

HEADERS_EVEN = ("tinyet_rne.h", "tinyet_rne_mve.h")
"""What kernels have beside others' whose sums are rounded to even."""


@dataclass(frozen=True)
class RoundingMve:
    """Of a layer's channels, int64. weights: (channels, depth); bias, with the input's zero point in it, multiplier,
    and shift, negative: (channels,). Of a channel whose output never changes the bias alone makes that.

    refused: why this form cannot be taken; the others are of no use then. even: sums are rounded to even; the
    multiplier is the bits of a float, the shift 0.
    """

    weights: Int64
    bias: Int64
    multiplier: Int64
    shift: Int64
    zero_point: int
    low: int
    high: int
    refused: str | None
    even: bool = False

    @property
    def corrects(self) -> bool:
        """Whether negative sums are corrected."""
        return not (self.even or self.one_sided)

    @property
    def one_sided(self) -> bool:
        return self.low >= self.zero_point

    @property
    def clamped(self) -> bool:
        """Beyond what saturation and the zero point do."""
        return (self.low > -128) or self.high < 127

    @property
    def struct(self) -> Struct:
        """The tinyet_rounding_mve."""
        return Struct(
            "tinyet_rounding_mve",
            {
                "one_sided": int(self.one_sided),
                "clamped": int(self.clamped),
                "zero_point": self.zero_point,
                "low": self.low,
                "high": self.high,
            },
        )


@memoize_by_weights
def rounding_mve(node: Node, clamp: tuple[float, float]) -> RoundingMve:
    """Of a node with weights (input 1), bias (input 2) and factors for each channel."""
    weights = node.input(1).array.astype(np.int64)
    weights, bias = weights.reshape(weights.shape[0], -1), folded_bias(node)
    zero_point, bounds = node.output.type.zero_point, clamp_range(clamp, node.output.type)
    if rounds_half_even(node):
        factors = half_even_factors(node).view(np.int32).astype(np.int64)
        refused = refused_sums(weights, bias)
        return RoundingMve(
            weights, bias, factors, np.zeros_like(factors), zero_point, *bounds, refused, even=True
        )
    return choose(weights, bias, *output_factors(node), zero_point, bounds)


def refused_sums(weights: Int64, bias: Int64) -> str | None:
    """Why sums cannot be taken."""
    bound = max(int(np.abs(end).max(initial=0)) for end in sum_range(weights, bias))
    return f"sums up to {bound}, needs fewer than 2**31" if bound >= LIMIT else None


def choose(
    weights: Int64, bias: Int64, multiplier: Int64, shift: Int64, zero_point: int, clamp: tuple[int, int]
) -> RoundingMve:
    """weights: (channels, depth); bias, with the input's zero point in it, multiplier, shift: (channels,)."""
    live, fixed = live_channels(weights, bias, multiplier, shift, zero_point, clamp)
    refused = refused_sums(weights, bias)
    if refused is None and (np.any(shift[live] > -1) or np.any(multiplier[live] < 2**30)):
        refused = "a factor of one half and more"
    if refused is None and np.any(shift[live] < -31):
        refused = "a factor below 2**-31"
    return RoundingMve(
        np.where(live[:, None], weights, 0),
        # Times 2**30 / 2**31, times 2**-1: the output.
        np.where(live, bias, 4 * (fixed - zero_point)),
        np.where(live, multiplier, 2**30),
        np.where(live, shift, -1),
        zero_point,
        *clamp,
        refused,
    )
