# SPDX-License-Identifier: Apache-2.0
"""The rounding rule by the high half of one product and a shift, with nothing added: outputs are counted from a place
of their own.

    x = floor((sum + start) * multiplier / 2**32)
    output = clamp(x - [x < zero] >> shift, place - 128, place + 127) - place

where the clamp's bounds are those of int8 and [x < zero], if it is there, is [sum < 0]: halves of negative sums are
rounded away from zero, which is one unit of x where multiplier and shift are those of the rule (numerics.requantize),
the multiplier doubled. A place is a multiple of 256, so that the byte that is stored is the output's without a
subtraction. What a place moves the start by has a fraction of its own for each of them, so that among some hundreds
there is one where the start, an integer, lies as closely as the steps of the output demand: both sides are monotone in
the sum, and agree for all sums if they do on both sides of each step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.numerics import Int64, clamp_range
from tinyet.ops.shared import two_products
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.weighted import folded_bias

MOST_SHIFT = 20
_TRIALS = sorted(range(-12, 13, 2), key=abs)
"""Even, as the multiplier is."""
_FAR = 2**62
_ROOM = 2**30
"""No sum with its start is beyond it: nothing leaves 32 bits in between."""
_PLACES = np.arange(-2048, 2048)[np.argsort(np.abs(np.arange(-2048, 2048)), kind="stable")]


@dataclass(frozen=True)
class Straight:
    """Arrays are (channels,). bias: of sums of raw inputs; start: what is added to it; multiplier: below 2**32 and
    even, so that cores without a product of a signed and an unsigned number multiply the doubled sum by its half;
    zero: the x of a sum of zero, which the rule has where two_sided."""

    bias: Int64
    start: Int64
    multiplier: Int64
    shift: Int64
    place: Int64
    zero: Int64
    two_sided: bool


@memoize_by_weights
def straight(node: Node) -> Straight | str:
    """Of a node with weights and per-channel factors; why there is none otherwise."""
    weights, bias = rows_of(node).astype(np.int64), folded_bias(node)
    multiplier, left = output_factors(node)
    zero_point, clamp = node.output.type.zero_point, clamp_range(clamp_of(node), node.output.type)
    least, most = sum_range(weights, bias)
    bound = np.abs(bias) + 128 * np.abs(weights).sum(axis=1)
    if int(bound.max()) >= _ROOM // 2:
        return "sums do not fit 29 bits"
    steps = two_products.steps_of(multiplier, left, zero_point, clamp, (least, most))
    if steps is None:
        return "an output changes where real numbers have it otherwise"
    shift = np.clip(-left, 1, MOST_SHIFT)
    two_sided = clamp[0] < zero_point
    values = np.arange(clamp[0] + 1, clamp[1] + 1, dtype=np.int64)
    # A step that no sum comes to is beyond all, one that is behind every sum is below: one side is to be right then.
    reached, left_behind = steps.at <= most[:, None], steps.at > least[:, None]
    # From a sum below zero on, a step is a unit of x further.
    further = (steps.at < 0) & two_sided, (steps.at <= 0) & two_sided
    size = np.int64(1) << shift + 32
    # Only then it matters whether x tells a sum of -1 from zero.
    at_zero = np.asarray(((steps.at >= -1) & (steps.at <= 0) & reached & left_behind).any(axis=1))
    places, found = np.zeros_like(bias), np.zeros(len(bias), np.bool_)
    start, factor = np.zeros_like(bias), np.zeros_like(bias)
    near = 2 * np.rint(np.ldexp(multiplier.astype(np.float64), left + shift)).astype(np.int64)
    for trial in _TRIALS:
        m = np.clip(near + trial, 2, 2**32 - 2)
        at = values * size[:, None] - steps.at * m[:, None]
        low = np.where(reached, at + (further[0].astype(np.int64) << 32), -_FAR).max(axis=1, initial=-_FAR)
        high = np.where(left_behind, at + (further[1].astype(np.int64) << 32) + m[:, None], _FAR)
        high = high.min(axis=1, initial=_FAR)
        for channel in np.flatnonzero(~found & (low < high)):
            chosen = _placed(
                int(m[channel]),
                int(shift[channel]),
                int(low[channel]),
                int(high[channel]),
                int(bound[channel]),
                two_sided and bool(at_zero[channel]),
            )
            if chosen is not None:
                found[channel], factor[channel] = True, m[channel]
                places[channel], start[channel] = chosen
        if found.all():
            break
    else:
        return "no straight line has all steps of the output"
    return Straight(bias, start, factor, shift, places, (start * factor) >> 32, two_sided)


def _placed(m: int, shift: int, low: int, high: int, bound: int, apart: bool) -> tuple[int, int] | None:
    """(place, start) of the place next to zero that has a start with

        low <= m * start - place * 2**(32 + shift) < high.

    bound: of sums' magnitudes; apart: x has to tell a sum of -1 from zero."""
    if low <= -_FAR or high >= _FAR:
        low, high = (low, low + m) if low > -_FAR else (high - m, high) if high < _FAR else (0, m)
    size = 256 << shift + 32
    within = np.abs(_PLACES) <= min((_ROOM - bound) * m // size, 2**62 // size)
    at = _PLACES[within] * np.int64(size)
    start = -(-(at + low) // m)
    fits = (start * m < at + high) & (np.abs(start) + bound < _ROOM)
    if apart:
        fits &= start * m >> 32 != (start - 1) * m >> 32
    chosen = np.flatnonzero(fits)
    return None if not len(chosen) else (256 * int(_PLACES[within][chosen[0]]), int(start[chosen[0]]))
