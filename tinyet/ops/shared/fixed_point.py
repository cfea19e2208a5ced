# SPDX-License-Identifier: Apache-2.0
"""Exponentials and reciprocals in 32-bit fixed point, as gemmlowp defines them: what int8 softmax is
specified with.

Qm.n is an int32 that stands for itself / 2**n; m + n = 31. Everything is int64 here and within int32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tinyet.numerics import (
    INT32_MAX,
    INT32_MIN,
    Int64,
    Multiplier,
    high_mul,
    quantize_multiplier,
    round_shift,
)

# Differences have 5 integer bits (Q5.26), the sum of exponentials has 12 (Q12.19).
DIFF_INTEGER_BITS = 5
SUM_INTEGER_BITS = 12


def exp_on_negative(a: Int64, integer_bits: int = DIFF_INTEGER_BITS) -> Int64:
    """exp(a) for a <= 0: Q5.26 (Q4.27) → Q0.31, as gemmlowp's exp_on_negative_values; exp(0) is 2**31 - 1.

    A polynomial on [-1/4, 0), around -1/8, times a constant for each bit of the remaining multiple of 1/4.
    """
    quarter_bit = 29 - integer_bits
    quarter = 1 << quarter_bit
    rest = (a & (quarter - 1)) - quarter
    x = saturating_shift(rest, integer_bits) + (1 << 28)
    x2 = high_mul(x, x)
    x3, x4 = high_mul(x2, x), high_mul(x2, x2)
    # exp(-1/8) and 1/3 in Q0.31; the series to the fourth order.
    series = round_shift(high_mul(round_shift(x4, 2) + x3, 715827883) + x2, 1)
    result = 1895147668 + high_mul(1895147668, x + series)
    multiple = rest - a
    factors = (
        1672461947,
        1302514674,
        790015084,
        290630308,
        39332535,
        720401,
        242,
    )  # exp(-1/4), exp(-1/2) … exp(-16), of which a value below 16 does not ask for the last
    for bit, factor in enumerate(factors[: integer_bits + 2], start=quarter_bit):
        result = np.where((multiple >> bit) & 1, high_mul(result, factor), result)
    return np.asarray(np.where(a == 0, INT32_MAX, result), np.int64)


def saturating_shift(x: Int64, exponent: int) -> Int64:
    """x * 2**exponent, saturated to int32."""
    return np.asarray(np.clip(x << exponent, INT32_MIN, INT32_MAX), np.int64)


def one_over_one_plus(x: Int64) -> Int64:
    """1 / (1 + x) for x in [0, 1): Q0.31 → Q0.31. Newton's method from 48/17 - 32/17 d, three steps in
    Q2.29."""
    half_denominator = (x + INT32_MAX + 1) // 2
    y = 1515870810 + high_mul(half_denominator, -1010580540)
    for _ in range(3):
        y = y + saturating_shift(high_mul(y, (1 << 29) - high_mul(half_denominator, y)), 2)
    return saturating_shift(y, 1)


@dataclass(frozen=True)
class Differences:
    """The conversion of a difference from the maximum, 0 … -255, to Q5.26; those below `smallest` count as nothing."""

    factor: Multiplier
    smallest: int

    def q5(self, diff: Int64) -> Int64:
        return high_mul(diff << self.factor.shift, self.factor.multiplier)

    def exponentials(self) -> Int64:
        """Q0.31 exponentials of the differences 0, -1 … -255: int64 (256,), zeros where they count as
        nothing."""
        diff = -np.arange(256, dtype=np.int64)
        live = diff >= self.smallest
        return np.asarray(np.where(live, exp_on_negative(self.q5(np.where(live, diff, 0))), 0), np.int64)


def differences(scale: float) -> Differences:
    """For an input scale above 2**-26; float64 as in LiteRT."""
    factor = quantize_multiplier(min(scale * 2.0 ** (31 - DIFF_INTEGER_BITS), 2.0**31 - 1))
    radius = math.floor((2**DIFF_INTEGER_BITS - 1) * 2.0 ** (31 - DIFF_INTEGER_BITS) / 2.0**factor.shift)
    return Differences(factor, -radius)


def leading_zeros(x: Int64) -> Int64:
    """Of 32-bit values above zero."""
    return np.asarray(32 - np.frexp(x.astype(np.float64))[1], np.int64)


def log_of_sum(x: Int64) -> Int64:
    """log(x) for x >= 1: Q12.19 → Q5.26, as LiteRT's log_x_for_x_greater_than_or_equal_to_1.

    x = r * 2**e where r is the nearer to 2**-0.25 of two mantissas half a power of two apart; log(r) is a
    rational function.
    """
    half_root = 1518500250  # sqrt(1/2) in Q0.31
    centre = 1805811301  # 2**-0.25
    headroom = leading_zeros(x)
    mantissa_a = saturating_shift(high_mul(x << (headroom - 1), half_root), 1)
    power_a = saturating_shift(SUM_INTEGER_BITS - headroom, 25) + (1 << 23)  # Q6.25; a quarter more
    headroom_b = leading_zeros(high_mul(x, half_root)) - 1
    mantissa_b = np.minimum(x << headroom_b, INT32_MAX)
    power_b = saturating_shift(SUM_INTEGER_BITS - headroom_b, 25) - (1 << 23)
    r = np.minimum(mantissa_a, mantissa_b)
    power = np.maximum(power_a, power_b)
    p = (r + centre + 1) >> 1
    q = 2 * (r - centre)
    square = high_mul(q, q)
    numerator = high_mul(q, r) + high_mul(high_mul(q, square), 117049297)
    slope = 1057819769 + q + high_mul(127690142, square)
    reciprocal = one_over_one_plus(high_mul(p, slope) + high_mul(638450708, q))
    log2 = 1488522236  # log(2) in Q0.31
    return saturating_shift(high_mul(power, log2) + high_mul(round_shift(numerator, 6), reciprocal), 1)


def inverse_root(x: int) -> tuple[int, int]:
    """(multiplier, shift) of 1 / sqrt(x) for an int32 x >= 0, by Newton's method from 1 in Q3.28; of 0 as of 1:
    GetInvSqrtQuantizedMultiplierExp of TFLite's reference kernels."""
    if x <= 1:
        return INT32_MAX, 0
    right = 11
    while x >= 1 << 29:
        x //= 4
        right += 1
    pairs = (32 - x.bit_length() - 1) // 2 - 1
    right -= pairs
    x <<= 2 * pairs
    # Values in Q3.28; a product of three has nine integer bits, a product of four or two with one of nine likewise.
    half = int(round_shift(x >> 1, 1))
    y = 1 << 28
    for _ in range(5):
        cube = int(saturating_shift(high_mul(high_mul(y, y), y), 6))
        first = int(high_mul((1 << 28) + (1 << 27), y))
        y = int(saturating_shift(np.asarray(first - int(high_mul(half, cube))), 3))
    y = int(high_mul(y, 1518500250))
    if right < 0:
        y, right = y << -right, 0
    return y, -right
