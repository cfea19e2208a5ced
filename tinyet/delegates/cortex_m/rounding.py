# SPDX-License-Identifier: Apache-2.0
"""Conversion of a layer's sums to its outputs in the fewest instructions, proved equal to numerics.requantize.

With high_mul(a, m) = floor((a * m + 2**30) / 2**31), with
round_shift(x, e) = floor((x + 2**(e-1) - [x < 0]) / 2**e) for e >= 1, and with
floor(floor(p / q) / r) = floor(p / (q * r)) for integers, the double rounding of a sum `acc` is one division:

    floor((acc * m + 2**30 + 2**(30 + e) - [acc < 0] * 2**31) / 2**(31 + e))    (m in [2**30, 2**31), e >= 1)

([x < 0] and [acc < 0] differ only for acc = -1 and m = 2**30, where both give 0.) Two forms compute it, see
firmware/include/tinyet_dsp.h; what each needs so that no step leaves int32 is checked here, channel by
channel, with the smallest and largest sum that int8 inputs can give.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.numerics import Int64, clamp_range, requantize
from tinyet.ops.shared.factors import output_factors
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.weighted import folded_bias
from tinyet.tiles.form import Form

__all__ = (
    "LIMIT",
    "Alike",
    "Form",
    "Rounding",
    "alike",
    "choose",
    "live_channels",
    "max_of_sums",
    "one_sided_exponent",
    "rounding",
    "two_sided",
)
LIMIT = 2**31
_OFFSETS = (0, *(sign * by for by in (1, 2) for sign in (1, -1)))
"""Differences of an offset that are tried where sums have no shifts of their own."""


@dataclass(frozen=True)
class Alike:
    """A rounding of sums that all have the same factor, 256, before their multiplication: none has a shift.

    exponent: of all; multiplier, offset: int64, one element a channel.
    """

    exponent: int
    multiplier: Int64
    offset: Int64


@dataclass(frozen=True)
class Rounding:
    """Sums to outputs. Arrays are int64, one element a channel.

    weights: (channels, depth), and `bias`: those of the node, but zero where a channel's output is the same
    for every input; there the multiplier is zero, too, and the offset alone is the output.
    """

    form: Form
    exponent: int
    low: int
    high: int
    weights: Int64
    bias: Int64
    multiplier: Int64
    offset: Int64
    shift: Int64

    @property
    def before(self) -> Int64:
        """tinyet_before_dsp of each channel."""
        fixed = {Form.TWO_SIDED: 1, Form.PLAIN: 0}.get(self.form)
        return self.shift if fixed is None else np.full_like(self.shift, fixed)

    @cached_property
    def alike(self) -> Alike | None:
        """The same outputs of 256 times each sum; None where there is no such rounding."""
        return alike(self) if self.form is Form.ONE_SIDED else None

    @property
    def literal(self) -> str:
        """The tinyet_rounding_dsp as a C initialiser."""
        return f"{{{self.form.value}, /* exponent */ {self.exponent}, /* clamp */ {self.low}, {self.high}}}"


def max_of_sums(r: Rounding) -> Int64:
    """The largest magnitude of each channel's sums."""
    smallest, largest = sum_range(r.weights, r.bias)
    return np.maximum(np.abs(smallest), np.abs(largest))


@memoize_by_weights
def rounding(
    node: Node, clamp: tuple[float, float], most_before: int = 30, least_before: int = 2
) -> Rounding:
    """The rounding of a node with weights (input 1), bias (input 2) and per-channel factors.

    The input's zero point is folded into the bias, so that sums are of raw int8 values.
    least_before, most_before: the shifts that sums may have before their multiplication where it is one-sided;
    at least 2.
    """
    low, high = clamp_range(clamp, node.output.type)
    weights = node.input(1).array.astype(np.int64)
    multiplier, shift = output_factors(node)
    return choose(
        weights.reshape(weights.shape[0], -1),
        folded_bias(node),
        multiplier,
        shift,
        node.output.type.zero_point,
        (low, high),
        most_before,
        least_before,
    )


def choose(
    weights: Int64,
    bias: Int64,
    multiplier: Int64,
    shift: Int64,
    zero_point: int,
    clamp: tuple[int, int],
    most_before: int = 30,
    least_before: int = 2,
) -> Rounding:
    """The cheapest form that is exact for every channel.

    weights: (channels, depth); bias, multiplier and shift (as numerics.requantize takes them): (channels,).
    """
    low, high = clamp
    smallest, largest = sum_range(weights, bias)
    bound = np.maximum(np.abs(smallest), np.abs(largest))
    live, fixed = live_channels(weights, bias, multiplier, shift, zero_point, clamp)
    exponents = -shift
    fast = bool(np.all(exponents[live] >= 1) and np.all(multiplier[live] >= 2**30))
    form = Form.PLAIN
    exponent = 0
    found = (
        one_sided_exponent(exponents[live], bound[live], most_before, least_before)
        if fast and low >= zero_point
        else None
    )
    if found is not None:
        form, exponent = Form.ONE_SIDED, found
        shifts = np.where(live, 1 + exponent - exponents, least_before)
        offset = (1 << (exponent - 1)) + (np.int64(1) << (shifts - 2)) + (zero_point << exponent)
        offset = np.where(live, offset, fixed << exponent)
    elif fast and two_sided(exponents[live], bound[live]):
        form = Form.TWO_SIDED
        shifts = np.where(live, exponents, 1)
        offset = (np.int64(1) << (shifts - 1)) + (zero_point << shifts)
        # A channel without weights and bias has the sum 0: no correction for negative sums.
        offset = np.where(live, offset, fixed << shifts)
    else:
        shifts = np.where(live, shift, 0)
        offset = np.where(live, zero_point, fixed)
    return Rounding(
        form,
        exponent,
        low,
        high,
        np.where(live[:, None], weights, 0),
        np.where(live, bias, 0),
        np.where(live, multiplier, 0),
        np.asarray(offset, np.int64),
        np.asarray(shifts, np.int64),
    )


def live_channels(
    weights: Int64, bias: Int64, multiplier: Int64, shift: Int64, zero_point: int, clamp: tuple[int, int]
) -> tuple[NDArray[np.bool_], Int64]:
    """Whether each channel's output depends on the input, and the output of those where it does not."""
    smallest, largest = sum_range(weights, bias)
    if max(int(np.abs(end).max(initial=0)) for end in (smallest, largest)) >= LIMIT:
        return np.ones(len(bias), np.bool_), np.zeros(len(bias), np.int64)
    # Requantization is monotonic (but for left shifts, which can wrap), so equal outputs at both ends are one output
    # everywhere.
    ends = [np.clip(requantize(s, multiplier, shift) + zero_point, *clamp) for s in (smallest, largest)]
    return (ends[0] != ends[1]) | (shift > 0), ends[0]


def one_sided_exponent(exponents: Int64, bound: Int64, most_before: int, least_before: int = 2) -> int | None:
    """E for channels of right shifts `exponents` and sums up to `bound`, or None.

    A multiple of 4 where one fits, so that more layers have equal constants and share their code.
    """
    least = int(exponents.max(initial=1)) + least_before - 1
    for exponent in (least + -least % 4, least):
        shift = 1 + exponent - exponents
        # acc << s must fit 32 bits. Then |hi(acc << s, m)| < 2**30, and so is the offset, which is at most
        # 2**(E+7) + 2**(E-1) + 2**(s-2).
        if exponent <= 21 and np.all(shift <= most_before) and np.all(bound << np.minimum(shift, 31) < LIMIT):
            return exponent
    return None


def two_sided(exponents: Int64, bound: Int64) -> bool:
    """Whether acc << 1 fits 32 bits, and the offset beside a product below 2**30, too."""
    return bool(np.all(bound < LIMIT // 2) and np.all(exponents <= 21))


def alike(r: Rounding) -> Alike | None:
    """(hi(256 * acc, multiplier) + offset) >> exponent that is each channel's output, for every sum that there can be;
    None where a channel has none. r: one-sided, with shifts of up to 8.

    An output is at least v from one sum on, t. So the multiplier m and the offset have to lead to a value of at least
    v there, and not at t - 1:

        (t - 1) * 256 * m < (v * 2**exponent - offset) * 2**32 <= t * 256 * m

    for all v above the lower clamp up to the upper one: of an offset, each v leaves a range of multipliers. The larger
    the exponent, the finer multipliers are.
    """
    smallest, largest = (end[:, None] for end in sum_range(r.weights, r.bias))
    values = np.arange(max(r.low, -128) + 1, min(r.high, 127) + 1, dtype=np.int64)[None]
    live = r.multiplier > 0
    most = int(r.shift[live].max(initial=2))
    scale, shift = np.where(live, r.multiplier, 1), np.where(live, r.shift, 2)
    # ceil(x * 2**32 / (multiplier * 2**shift))
    distance = (values << r.exponent) - r.offset[:, None]
    first = np.clip(-((-distance << (32 - shift[:, None])) // scale[:, None]), smallest, largest + 1)
    for finer in range(min(8 - most, 21 - r.exponent) + 1):
        multiplier, offset = np.zeros_like(r.multiplier), r.offset << finer
        missing = live.copy()
        for more in _OFFSETS:
            needed = ((distance << finer) - more) << 24
            low, high = _factors(first, needed, first <= largest)
            below_low, below_high = _factors(1 - first, 1 - needed, first > smallest)
            low = np.maximum(low, below_low).max(axis=1, initial=1)
            high = np.minimum(high, below_high).min(axis=1, initial=LIMIT - 1)
            found = missing & (low <= high)
            multiplier[found] = ((low + high) // 2)[found]
            offset[found] += more
            missing &= ~found
            if not missing.any():
                return Alike(r.exponent + finer, multiplier, offset)
    return None


def _factors(sums: Int64, needed: Int64, asked: NDArray[np.bool_]) -> tuple[Int64, Int64]:
    """The least and the greatest m, of 1 … 2**31 - 1, with sums * m >= needed, element by element; where nothing is
    asked, all of them."""
    apart = np.where(sums == 0, 1, np.abs(sums))
    least = np.where(sums > 0, -(-needed // apart), np.where((sums == 0) & (needed > 0), LIMIT, 1))
    greatest = np.where(sums < 0, -needed // apart, LIMIT - 1)
    return np.where(asked, least, 1), np.where(asked, greatest, LIMIT - 1)
