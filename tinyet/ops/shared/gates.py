# SPDX-License-Identifier: Apache-2.0
"""Gates of recurrent layers in int16: gemmlowp's logistic and tanh of 16-bit fixed point, as LiteRT's integer LSTM has
them. The C of it is firmware/include/tinyet_gates.h.

Qm.n is an int16 that stands for itself / 2**n, m + n = 15. Sums that a gate is made of are Q3.12, gates are Q0.15.
Everything is int64 here and within int16.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tinyet.ir import DType
from tinyet.numerics import Int64, round_shift
from tinyet.ops.shared.integers import saturated

ONE = 32767
"""1 in Q0.15, nearly."""

GATE_INTEGER_BITS = 3
GATE_SCALE = 2.0**-12

EXPONENTIALS = (25520, 19875, 12055, 4435, 600, 11)
"""exp(-1/4), exp(-1/2) … exp(-8) in Q0.15; that of -16 is 0."""


def multiplied(a: Int64 | int, b: Int64 | int) -> Int64:
    """The product of two fixed-point numbers, to nearest, ties upward."""
    return np.asarray((np.asarray(a, np.int64) * b + (1 << 14)) >> 15, np.int64)


def shifted(x: Int64, exponent: int) -> Int64:
    """x * 2**exponent, saturated."""
    return np.asarray(np.clip(x << exponent, -32768, 32767), np.int64)


def exp_on_negative(a: Int64, integer_bits: int) -> Int64:
    """exp(a) for a <= 0 of so many integer bits, 1 … 7: Q0.15; exp(0) is 1.

    A polynomial on [-1/4, 0), around -1/8, times a constant for each bit of the remaining multiple of 1/4; nothing
    below -32.
    """
    quarter = 1 << (13 - integer_bits)
    rest = (a & (quarter - 1)) - quarter
    x = (rest << integer_bits) + 4096
    x2 = multiplied(x, x)
    x3, x4 = multiplied(x2, x), multiplied(x2, x2)
    # 1/3 and exp(-1/8); the series to the fourth order.
    series = round_shift(multiplied(round_shift(x4, 2) + x3, 10923) + x2, 1)
    result = np.minimum(28918 + multiplied(28918, x + series), ONE)
    multiple = rest - a
    for power, factor in enumerate((*EXPONENTIALS, 0), start=13 - integer_bits):
        if power < 15:
            result = np.where((multiple >> power) & 1, multiplied(result, factor), result)
    if integer_bits > 5:
        result = np.where(a < -(32 << (15 - integer_bits)), 0, result)
    return np.asarray(np.where(a == 0, ONE, result), np.int64)


def reciprocal(x: Int64) -> Int64:
    """2 / (1 + x) for x in [0, 1), Q0.15: Q2.13. Newton's method from 48/17 - 32/17 d, three steps."""
    half_denominator = (x + ONE + 1) >> 1
    y = 23130 + multiplied(half_denominator, -15420)
    for _ in range(3):
        y = y + shifted(multiplied(y, (1 << 13) - multiplied(half_denominator, y)), 2)
    return y


def sigmoid_of(x: Int64) -> Int64:
    """Q3.12 → Q0.15."""
    positive = shifted(reciprocal(exp_on_negative(-np.abs(x), GATE_INTEGER_BITS)), 1)
    return np.asarray(np.where(x == 0, 16384, np.where(x > 0, positive, ONE - positive)), np.int64)


def tanh_of(x: Int64, integer_bits: int) -> Int64:
    """Of so many integer bits, 0 … 6, to Q0.15."""
    size = shifted(reciprocal(exp_on_negative(-np.abs(x), integer_bits + 1)) - (1 << 13), 2)
    return np.asarray(np.where(x < 0, -size, np.where(x == 0, 0, size)), np.int64)


@cache
def sigmoid_table() -> Int64:
    """sigmoid_of all int16, from -32768 on."""
    return sigmoid_of(np.arange(-32768, 32768, dtype=np.int64))


@cache
def tanh_table(integer_bits: int) -> Int64:
    """tanh_of all int16, from -32768 on."""
    return tanh_of(np.arange(-32768, 32768, dtype=np.int64), integer_bits)


def sigmoid(x: Int64) -> Int64:
    """sigmoid_of, looked up."""
    return np.asarray(sigmoid_table()[x + 32768], np.int64)


def tanh(x: Int64, integer_bits: int = GATE_INTEGER_BITS) -> Int64:
    """tanh_of, looked up."""
    return np.asarray(tanh_table(integer_bits)[x + 32768], np.int64)


def added(a: Int64, b: Int64 | int) -> Int64:
    """A sum, saturated to int16."""
    return saturated(a + b, DType.INT16).astype(np.int64)
