# SPDX-License-Identifier: Apache-2.0
"""The one rounding rule: how real numbers become integers and how accumulators become outputs.

Follows the int8 specification of LiteRT (https://ai.google.dev/edge/litert/models/quantization_spec) with the double
rounding that TFLM and CMSIS-NN use by default. `firmware/include/tinyet_common.h` holds the same functions in C.
All integer arithmetic is done in int64 and is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from tinyet.errors import QuantizationError
from tinyet.ir import Array, DType, QuantParams, TensorType

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def round_half_away(values: npt.ArrayLike) -> Float64:
    """Nearest integer, halves away from zero, as C's `round`; float64 in and out."""
    x = np.asarray(values, np.float64)
    return np.asarray(np.copysign(np.floor(np.abs(x) + 0.5), x))


@dataclass(frozen=True)
class Multiplier:
    """A positive real number as multiplier * 2**(shift - 31), multiplier in [2**30, 2**31), or zero as (0, 0)."""

    multiplier: int
    shift: int


def quantize_multiplier(real: float) -> Multiplier:
    """The 31-bit form of a real factor, as LiteRT's QuantizeMultiplier. A factor too small to matter becomes zero.

    Raises QuantizationError when `real` is negative, not finite, or 2**30 and more.
    """
    if not math.isfinite(real) or real < 0:
        raise QuantizationError(f"a scale ratio of {real} cannot be used", hint="check the calibration data")
    if real == 0:
        return Multiplier(0, 0)
    fraction, shift = math.frexp(real)
    fixed = math.floor(fraction * 2**31 + 0.5)
    if fixed == 2**31:
        fixed //= 2
        shift += 1
    if shift < -31:
        return Multiplier(0, 0)
    if shift > 30:
        raise QuantizationError(
            f"a scale ratio of {real} is too large", hint="an output's scale is far too small"
        )
    return Multiplier(fixed, shift)


def quantize_multipliers(reals: npt.ArrayLike) -> tuple[Int64, Int64]:
    """quantize_multiplier for each element: (multipliers, shifts), both int64 of the same shape."""
    x = np.asarray(reals, np.float64)
    usable = np.isfinite(x) & (x >= 0)
    fraction, shift = np.frexp(np.where(usable, x, 0.0))
    fixed = np.floor(fraction * 2.0**31 + 0.5).astype(np.int64)
    full = fixed == 2**31
    multipliers, shifts = np.where(full, fixed >> 1, fixed), shift.astype(np.int64) + full
    for wrong in x[~usable | (shifts > 30)].ravel()[:1]:
        quantize_multiplier(float(wrong))  # says what is wrong with it
    nothing = (fixed == 0) | (shifts < -31)
    return np.where(nothing, 0, multipliers), np.where(nothing, 0, shifts)


def high_mul(a: npt.ArrayLike, b: npt.ArrayLike) -> Int64:
    """a * b / 2**31 to nearest, ties upward, saturated: gemmlowp's SaturatingRoundingDoublingHighMul, whose truncating
    division after a nudge of the product's sign is the same number. a, b within int32."""
    # In its place: a new array a step is most of the time that a large tensor takes.
    product = np.asarray(np.asarray(a, np.int64) * np.asarray(b, np.int64))
    product += 1 << 30
    product >>= 31
    return np.minimum(product, INT32_MAX, out=product)


def round_shift(x: npt.ArrayLike, exponent: npt.ArrayLike) -> Int64:
    """x / 2**exponent, halves away from zero: gemmlowp's RoundingDivideByPOT. exponent in 0…31."""
    x, exponent = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    # A half, and for negative numbers, whose sign's bits are -1, one less; nothing where nothing is shifted.
    half, shifts = (np.int64(1) << exponent) >> 1, -(exponent > 0).astype(np.int64)
    rounded = np.asarray((x >> 63) & shifts)
    rounded += x
    rounded += half
    rounded >>= exponent
    return rounded


def wrap_int32(x: npt.ArrayLike) -> Int64:
    """Two's complement wrap to 32 bits, the way a C unsigned shift does it."""
    return np.asarray(((np.asarray(x, np.int64) + 2**31) & 0xFFFFFFFF) - 2**31, np.int64)


def requantize(acc: npt.ArrayLike, multiplier: npt.ArrayLike, shift: npt.ArrayLike) -> Int64:
    """acc * multiplier * 2**(shift - 31), rounded twice: LiteRT's MultiplyByQuantizedMultiplier.

    acc: int32 values, any shape; multiplier, shift: scalars or broadcastable (per channel: the last axis).
    """
    shift = np.asarray(shift, np.int64)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    acc = np.asarray(acc, np.int64)
    shifted = wrap_int32(acc << left) if np.any(left) else acc
    return round_shift(high_mul(shifted, multiplier), right)


Rounding = Literal["double", "half_even"]
"""Rounding of an exact sum to an output: `double`, by `requantize` (or `requantize_64`), the specification of LiteRT;
or `half_even`, by `requantize_half_even`, as the integer operators of ONNX Runtime round."""

LayerRounding = Literal["double", "half_even", "int32_accumulator"]
"""Of a convolution. `int32_accumulator`: sums of int16 values have 32 bits, and are rounded as those of int8."""

ElementRounding = Literal["double", "half_even", "half_even_u8"]
"""Of a sum or product of two elements. ONNX Runtime adds the output's zero point in float32, before it rounds; so there
is another result for int8 and, with values and zero points larger by 128, for uint8 (`half_even_u8`)."""

QuantizeRounding = Literal["half_away", "half_even", "half_even_sum", "half_even_sum_u8"]
"""Rounding of a real number to an int8. `half_away`: halves away from zero, then the zero point; the specification of
LiteRT. `half_even`: halves to even, then the zero point; ONNX's QuantizeLinear. `half_even_sum`, and of uint8
`half_even_sum_u8`: the zero point is added in float32, and the sum rounded to even; inside ONNX Runtime's integer
operators."""


def round_half_even(values: npt.ArrayLike) -> Int64:
    """The nearest integers of float32 values, halves to even, cut off at -1024 and 1024: what lies beyond saturates
    every int8, from any zero point on. `tinyet_round_half_even` in C."""
    return np.rint(np.clip(np.asarray(values, np.float32), -1024, 1024)).astype(np.int64)


def requantize_half_even(acc: npt.ArrayLike, factor: npt.ArrayLike) -> Int64:
    """acc * factor in float32, to nearest, halves to even: ONNX Runtime's MlasRequantizeOutput, and before it rounds an
    integer of more than 24 bits to float32.

    acc: int32 values, any shape; factor: float32, a scalar or broadcastable (per channel: the last axis).
    """
    with np.errstate(over="ignore"):
        return round_half_even(np.asarray(acc, np.int64).astype(np.float32) * np.asarray(factor, np.float32))


MAX_SHIFT_64 = 7
"""The longest left shift of requantize_64: LiteRT's precondition."""

SUM_BITS_64 = 47
"""requantize_64 takes sums of magnitude below 2**47, so that the product with 15 bits fits in 64."""


def reduced_multiplier(multiplier: npt.ArrayLike) -> Int64:
    """A 31-bit multiplier as a 15-bit one: nearest, halves upward, saturated to 32767."""
    wide = np.asarray(multiplier, np.int64)
    return np.asarray(np.minimum((wide + (1 << 15)) >> 16, 0x7FFF), np.int64)


def requantize_64(acc: npt.ArrayLike, multiplier: npt.ArrayLike, shift: npt.ArrayLike) -> Int64:
    """acc * multiplier * 2**(shift - 31) of a sum with more than 32 bits: the multiplier is shortened to 15 bits, and
    the product rounded once, halves upward. LiteRT's MultiplyByQuantizedMultiplier(int64_t, …).

    acc: below 2**SUM_BITS_64 in magnitude; multiplier, shift: as requantize has them, shift at most MAX_SHIFT_64.
    """
    total = 15 - np.asarray(shift, np.int64)
    product = np.asarray(acc, np.int64) * reduced_multiplier(multiplier)
    return np.asarray((product + (np.int64(1) << (total - 1))) >> total, np.int64)


def quantize(values: npt.ArrayLike, type_: TensorType) -> Array:
    """float32 → the integers of `type_`: zero_point + round(x / scale), halves away from zero, in float32, saturated.

    NaN becomes the zero point, as in tinyet's C.
    """
    assert type_.quant is not None
    x = np.asarray(values, np.float32)
    scale, zero_point = broadcast_params(type_.quant, x.ndim)
    low, high = type_.dtype.range
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (x / scale.astype(np.float32)).astype(np.float32)
    rounded = np.clip(round_half_away(np.nan_to_num(scaled, nan=0.0)), -(2.0**31), 2.0**31)
    return np.clip(rounded + zero_point, low, high).astype(type_.dtype.numpy)


def dequantize(values: Array, quant: QuantParams) -> npt.NDArray[np.float32]:
    """scale * (q - zero_point), computed in float32."""
    scale, zero_point = broadcast_params(quant, values.ndim)
    return np.asarray(
        scale.astype(np.float32) * (values.astype(np.int64) - zero_point).astype(np.float32), np.float32
    )


def broadcast_params(quant: QuantParams, ndim: int) -> tuple[Float64, Int64]:
    """(scales, zero points) shaped so that they broadcast against a tensor of `ndim` dimensions."""
    shape = [1] * ndim
    if quant.axis is not None:
        shape[quant.axis] = len(quant.scale)
    elif ndim == 0:
        shape = []
    return np.array(quant.scale, np.float64).reshape(shape), np.array(quant.zero_point, np.int64).reshape(
        shape
    )


def clamp_range(clamp: tuple[float, float], type_: TensorType) -> tuple[int, int]:
    """The integer bounds of a fused clamp (ReLU is (0, inf)): LiteRT's CalculateActivationRangeQuantized."""
    low, high = type_.dtype.range
    for_low, for_high = (zero_or_round(c, type_.scale) for c in clamp)
    if for_low is not None:
        low = min(max(low, for_low + type_.zero_point), high)
    if for_high is not None:
        high = max(min(high, for_high + type_.zero_point), low)
    return low, high


# Of a layer it is asked by each kernel, and for each block of the reference: arrays of one number take their time.
@lru_cache(maxsize=1024)
def zero_or_round(bound: float, scale: float) -> int | None:
    """round(bound / scale) in float32, or None for an infinite bound."""
    if math.isinf(bound):
        return None
    with np.errstate(over="ignore"):
        steps = np.float32(bound) / np.float32(scale)
    # Beyond every integer type, where all is the same.
    return int(round_half_away(np.clip(steps, -(2.0**33), 2.0**33)))


NO_CLAMP = (-math.inf, math.inf)


def bias_type(count: int, input_type: TensorType, weight: QuantParams) -> TensorType:
    """The type of an integer bias: scale = input scale * weight scale, zero point 0, per channel where weights are.

    int32, but int64 beside int16 activations, whose sums need more than 32 bits.
    """
    if weight.axis is None:
        quant = QuantParams((input_type.scale * weight.scale[0],), (0,))
    else:
        quant = QuantParams(tuple(input_type.scale * s for s in weight.scale), (0,) * count, 0)
    return TensorType((count,), DType.INT64 if input_type.dtype is DType.INT16 else DType.INT32, quant)
