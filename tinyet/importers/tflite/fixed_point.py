# SPDX-License-Identifier: Apache-2.0
"""Functions of an int8 in the fixed-point arithmetic of the reference kernels, for tables of 256 values.

The formulas are those of tensorflow/lite/kernels/internal/reference/integer_ops/{logistic,tanh}.h, of
GetInvSqrtQuantizedMultiplierExp in kernels/internal/common.h, and gemmlowp's fixedpoint.h. `x` is an input less its
zero point, int64.
"""

from __future__ import annotations

import math

import numpy as np

from tinyet.numerics import Int64, high_mul, quantize_multiplier, requantize, round_shift
from tinyet.ops.shared.fixed_point import exp_on_negative, inverse_root, one_over_one_plus, saturating_shift

_ONE = 2**31 - 1
_INTEGER_BITS = 4


def _q4(x: Int64, scale: float) -> tuple[Int64, Int64]:
    """(x as Q4.27, on which side it is beyond that range: -1, 0, 1). scale: of the input, in float64."""
    fraction, shift = math.frexp(scale * 2.0 ** (31 - _INTEGER_BITS))
    multiplier = math.floor(fraction * 2.0**31 + 0.5)
    radius = math.floor((2**_INTEGER_BITS - 1) * 2.0 ** (31 - _INTEGER_BITS) / 2.0**shift)
    beyond = np.where(x >= radius, 1, np.where(x <= -radius, -1, 0))
    return requantize(np.where(beyond == 0, x, 0), multiplier, shift), np.asarray(beyond, np.int64)


def logistic(x: Int64, scale: float) -> Int64:
    """1 / (1 + exp(-x)) at scale 1/256 and zero point -128, not yet saturated."""
    value, beyond = _q4(x, scale)
    above = one_over_one_plus(exp_on_negative(-np.abs(value), 4))
    out = np.where(value > 0, above, np.where(value == 0, 1 << 30, _ONE - above))
    rounded = round_shift(out, 23) - 128
    return np.asarray(np.where(beyond > 0, 127, np.where(beyond < 0, -128, rounded)), np.int64)


def tanh(x: Int64, scale: float) -> Int64:
    """tanh(x) at scale 1/128 and zero point 0, not yet saturated."""
    value, beyond = _q4(x, scale)
    # Twice a Q4.27 is the same bits as Q5.26.
    positive = _one_minus_over_one_plus(exp_on_negative(-np.abs(value)))
    out = np.where(value < 0, -positive, np.where(value == 0, 0, positive))
    return np.asarray(np.where(beyond > 0, 127, np.where(beyond < 0, -128, round_shift(out, 24))), np.int64)


def _one_minus_over_one_plus(x: Int64) -> Int64:
    """(1 - x) / (1 + x) for x in [0, 1): Q0.31 → Q0.31; Newton's method for 2 / (1 + x), less 1."""
    half_denominator = (x + _ONE + 1) // 2
    y = 1515870810 + high_mul(half_denominator, -1010580540)
    for _ in range(3):
        y = y + saturating_shift(high_mul(y, (1 << 29) - high_mul(half_denominator, y)), 2)
    return saturating_shift(y - (1 << 29), 2)


def reciprocal_root(x: Int64, scale: float, out_scale: float) -> Int64:
    """1 / sqrt(x) in output steps, without their zero point; 127 and more where x is 0. x >= 0.

    scale, out_scale: float32 values; the factor is 1 / (sqrt in float32 of the one * the other)."""
    root = np.sqrt(np.float32(scale), dtype=np.float32) * np.float32(out_scale)
    factor = quantize_multiplier(1.0 / float(root))
    results = []
    for value in x.reshape(-1):
        multiplier, shift = inverse_root(int(value))
        data = requantize(1, multiplier, shift + 20)
        results.append(int(requantize(data, factor.multiplier, factor.shift - 20)))
    return np.asarray(np.where(x == 0, 1 << 20, np.array(results, np.int64).reshape(x.shape)), np.int64)
