# SPDX-License-Identifier: Apache-2.0
"""Conversion of sums of int16 inputs and int8 weights to int16 outputs in the fewest instructions, proved equal to
numerics.requantize_64.

That is floor((acc * m + 2**(t - 1)) / 2**t), with m the multiplier shortened to 15 bits and t = 15 - shift. With one
exponent E for all channels and M = m << (32 + E - t), the upper word of a product is enough:

    E = 0: (acc * M + 2**31) >> 32            E > 0: ((acc * M >> 32) + 2**(E - 1)) >> E

The second is the first, since floor(floor(p / q) / r) = floor(p / (q * r)) for integers. M is below 2**31 where
t >= 16 + E, and whole where t <= 32 + E. What sums need so that no step leaves its register is checked here, channel by
channel, with the smallest and largest sum that int16 inputs can give.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.numerics import Int64, clamp_range, reduced_multiplier, requantize_64
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.weighted import int_bias
from tinyet.tiles import int16
from tinyet.tiles.form import Form

LIMIT = 2**31
UPPER = 32
"""Bits of a product below the word that an SMMUL gives."""
LARGEST = 2**15
"""The greatest magnitude of an input."""

MOST_EXPONENT = int16.MOST_EXPONENT
"""Of E, so that a constant output q can be made of a sum q << 15 with a multiplier of 1 << (17 + E)."""


@dataclass(frozen=True)
class Rounding16:
    """Sums to outputs. Arrays are int64, one element a channel.

    weights: (channels, depth), and `bias`: those of the node, but for channels whose output is the same for every
    input: these have no weights, and bias and multiplier that give it. multiplier: M; refusal: why there is none.
    """

    exponent: int
    low: int
    high: int
    weights: Int64
    bias: Int64
    multiplier: Int64
    refusal: str | None

    @property
    def form(self) -> Form:
        """One side, since the exponent is that of all channels."""
        return Form.ONE_SIDED

    @property
    def literal(self) -> str:
        """The tinyet_rounding_s16_dsp as a C initialiser."""
        return f"{{/* exponent */ {self.exponent}, /* clamp */ {self.low}, {self.high}}}"


INPUTS = -LARGEST, LARGEST - 1
"""The least and the greatest."""


@memoize_by_weights
def rounding(node: Node, upper: int = UPPER) -> Rounding16:
    """The rounding of a node with weights (input 1), bias (input 2) and per-channel factors."""
    weights = node.input(1).array.astype(np.int64)
    clamp = clamp_range(clamp_of(node), node.output.type)
    return choose(weights.reshape(len(weights), -1), int_bias(node), *output_factors(node), clamp, upper)


def choose(
    weights: Int64,
    bias: Int64,
    multiplier: Int64,
    shift: Int64,
    clamp: tuple[int, int],
    upper: int = UPPER,
) -> Rounding16:
    """weights: (channels, depth); bias, multiplier, shift: (channels,); with a refusal where the factors do not fit.
    upper: bits of a product that are rounded away where E is 0, 32, or 31 as VQRDMULH has them."""
    low, high = clamp
    smallest, largest = sum_range(weights, bias, INPUTS)
    ends = (np.clip(requantize_64(sums, multiplier, shift), low, high) for sums in (smallest, largest))
    first, last = ends
    live = first != last  # rounding is monotonic
    total = 15 - shift[live]
    exponent = max(int(total.max(initial=0)) - upper, 0)
    refusal = None
    if np.any(total < 16):
        refusal = "a factor of one half or more"
    elif exponent > min(int(total.min(initial=32)) - 16, MOST_EXPONENT):
        refusal = "the factors of its channels are too far apart"
    left = np.clip(upper + exponent - (15 - shift), 0, 16)
    return Rounding16(
        exponent,
        low,
        high,
        np.where(live[:, None], weights, 0),
        np.where(live, bias, first << 15),
        np.where(
            live,
            reduced_multiplier(multiplier) << left,
            1 << (upper - 15 + min(exponent, MOST_EXPONENT)),
        ),
        refusal,
    )


def parts_refusal(r: Rounding16, parts: list[Int64]) -> str | None:
    """Why sums in 32 bits of each part, added up as products with M in 64 bits where there are several, are not exact;
    None where they are. parts: (channels, columns) each, all weights together; the bias is in the first."""
    bounds = [
        LARGEST * np.abs(part).sum(axis=1) + (np.abs(r.bias) if i == 0 else 0) for i, part in enumerate(parts)
    ]
    if any(np.any(bound >= LIMIT) for bound in bounds):
        return f"sums up to {max(int(b.max()) for b in bounds)} in 32 bits"
    products = np.stack(bounds).sum(axis=0).astype(object) * r.multiplier
    rounds = 2 ** (31 + r.exponent)
    return (
        None
        if len(parts) == 1 or max(products, default=0) + rounds < 2**63
        else "products of more than 64 bits"
    )
