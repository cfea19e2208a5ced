# SPDX-License-Identifier: Apache-2.0
"""Gates of recurrent layers in int16 by table, as TFLM's LSTM has them (tensorflow/lite/micro/kernels/lstm_eval.cc):
the int16 sigmoid and tanh of table_s16.py, and products that are requantized with two roundings. The C of it is
firmware/include/tinyet_gates_lut.h and tinyet_gates_pwl.h; what the numbers stand for is told in gates.py."""

from __future__ import annotations

import numpy as np

from tinyet.numerics import Int64, requantize
from tinyet.ops.shared.gates import GATE_INTEGER_BITS
from tinyet.ops.shared.table_s16 import sigmoid_or_tanh, sigmoid_table
from tinyet.opset import Constant


def sigmoid(x: Int64) -> Int64:
    """Q3.12 to Q0.15."""
    return sigmoid_or_tanh(x, (3, 0), tanh=False)


def tanh(x: Int64, integer_bits: int = GATE_INTEGER_BITS) -> Int64:
    """Of so many integer bits to Q0.15."""
    shift = integer_bits - GATE_INTEGER_BITS
    return sigmoid_or_tanh(x, (3 << max(shift, 0), max(-shift, 0)), tanh=True)


def shortened(product: Int64, bits: int) -> Int64:
    """A product within 2**30 over 2**bits: halved, halves upward; then over the rest, halves away from zero."""
    return requantize(product, 1 << 30, 1 - bits)


def lut_constant() -> Constant:
    return Constant(
        "table", sigmoid_table().astype(np.uint16), "sigmoid(i / 24), Q0.16, raised for interpolation"
    )


def pieces() -> Int64:
    """The straight pieces of the table and of what it is mirrored to, (512,), as tinyet_gates_pwl.h has them."""
    upper = sigmoid_table()  # its last value is what is beyond it, too
    ends = np.concatenate([[1], 2**16 - upper[:0:-1], upper, upper[-1:]])
    return np.asarray((ends[:-1] - 2**15) * 2**16 + 2 * np.diff(ends), np.int64)


def pwl_constant() -> Constant:
    return Constant(
        "pieces", pieces().astype(np.int32), "sigmoid((i - 256) / 24): start, Q0.16 - 2^15; twice the rise"
    )
