# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the integer forms of operators: the types of activations, and their type rule.

int8 is affine, with any zero point. int16 is symmetric: its zero point is 0, as LiteRT and CMSIS-NN demand. Conversions
take others, which TFLM has behind a softmax of int8.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyet.errors import QuantizationError
from tinyet.ir import Array, DType, Tensor
from tinyet.numerics import Float64, Int64

INTEGERS = (DType.INT8, DType.INT16)
"""Types of quantized activations."""


def check_activations(*tensors: Tensor) -> str | None:
    """The error in the types of quantized activations; each may have an integer type of its own."""
    for tensor in tensors:
        complaint = check_quantized(tensor)
        if complaint is not None:
            return complaint
        if tensor.dtype is DType.INT16 and tensor.type.zero_point != 0:
            return f"{tensor.name} is int16, so its zero point must be 0"
    return None


def check_quantized(*tensors: Tensor) -> str | None:
    """The same where int16 may have any zero point."""
    for tensor in tensors:
        if tensor.dtype not in INTEGERS:
            return f"{tensor.name} must be int8 or int16, is {tensor.dtype.value}"
        quant = tensor.type.quant
        if quant is None or quant.axis is not None:
            return f"{tensor.name} must be quantized per tensor"
    return None


def representable(fits: Callable[[], bool]) -> bool:
    """Whether factors suit a kernel, by `fits`, and are factors that a multiplier holds at all."""
    try:
        return fits()
    except QuantizationError:
        return False


def magnitudes(weights: Array) -> Int64:
    """The sum of absolute weights of each output channel (the first axis), int64 (channels,)."""
    rows = np.abs(weights.astype(np.int64)).reshape(weights.shape[0], -1)
    return np.asarray(rows.sum(axis=1), np.int64)


def sum_range(weights: Int64, bias: Int64, inputs: tuple[int, int] = DType.INT8.range) -> tuple[Int64, Int64]:
    """The smallest and the largest sum of each channel, int64 (channels,). weights: (channels, taps); inputs: the least
    and the greatest that there may be."""
    positive, negative = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
    low, high = inputs
    return bias + low * positive + high * negative, bias + high * positive + low * negative


def exact_dtype(numbers: Float64, weights: Array) -> type[np.float32] | type[np.float64]:
    """The shorter type of real numbers that holds all sums of products of integers, the partial ones, too, whatever the
    order: float32 up to 2**24, else float64, whose 2**53 the type rules keep out of reach.

    numbers: any shape; weights: those of an output lie along the first axis.
    """
    largest = int(max(numbers.max(initial=0), -numbers.min(initial=0)))
    return np.float32 if largest * int(magnitudes(weights).max(initial=0)) <= 1 << 24 else np.float64


def saturated(values: Int64, dtype: DType, clamp: tuple[int, int] | None = None) -> Array:
    """The values within the bounds, or the type's own range, as that type."""
    low, high = clamp or dtype.range
    return np.clip(values, low, high).astype(dtype.numpy)
