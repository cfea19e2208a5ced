# SPDX-License-Identifier: Apache-2.0
"""The factor between an exact sum and an integer output, and how the kernels of each integer type store it.

int8: a multiplier of 31 bits and a left shift (numerics.requantize). int16: sums have up to 47 bits, so the multiplier
is shortened to 15 and the shift is to the right (numerics.requantize_64).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tinyet.errors import QuantizationError
from tinyet.ir import Array, DType, Node
from tinyet.ir.limits import SMALLEST_SCALE
from tinyet.ir.memoize import memoize
from tinyet.numerics import (
    Float64,
    Int64,
    Multiplier,
    clamp_range,
    quantize_multipliers,
    reduced_multiplier,
    requantize,
    requantize_64,
    requantize_half_even,
)
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.integers import saturated
from tinyet.opset import Constant

# Sums that are rescaled at a time, so that the arrays in between stay in a cache.
_BLOCK = 1 << 14


def channel_factors(node: Node) -> Float64:
    """scale(x) * scale(weights) / scale(out) of each output channel, in float64; weights are input 1."""
    quant, channels = node.input(1).type.quant, node.input(1).shape[0]
    assert quant is not None
    scales = np.broadcast_to(np.array(quant.scale, np.float64), (channels,))
    return np.asarray(node.input(0).type.scale * scales / node.output.type.scale, np.float64)


def scale_product(a: float, b: float) -> float:
    """Of two scales, rounded to float32 as LiteRT does. Raises QuantizationError where that is no normal number."""
    with np.errstate(over="ignore", under="ignore"):
        product = np.float32(a) * np.float32(b)
    if not SMALLEST_SCALE <= product < np.inf:
        raise QuantizationError(f"the product of the scales {a:.6g} and {b:.6g} is no normal float32")
    return float(product)


def shifts_fit(bound: Int64 | int, shift: Int64 | int) -> bool:
    """Whether sums of such magnitudes stay within int32 when `requantize` shifts them to the left."""
    return bool(np.all(np.asarray(bound, np.int64) << np.maximum(shift, 0) < 2**31))


@memoize
def output_factors(node: Node) -> tuple[Int64, Int64]:
    """(multiplier, shift), each int64 (channels,), of channel_factors."""
    return quantize_multipliers(channel_factors(node))


def rounds_half_even(node: Node) -> bool:
    """Whether sums are rounded to even: the attribute `rounding`, of operators that have it."""
    return getattr(node.attrs, "rounding", "double").startswith("half_even")


def has_int32_accumulator(node: Node) -> bool:
    """Whether sums of int16 values have 32 bits, and are rounded as those of int8."""
    return getattr(node.attrs, "rounding", "double") == "int32_accumulator"


def above_int8(node: Node) -> int:
    """By how much the values of the node were larger where it comes from: 128 for uint8 (`half_even_u8`), else 0."""
    return 128 if getattr(node.attrs, "rounding", "double").endswith("_u8") else 0


@memoize
def half_even_factors(node: Node) -> npt.NDArray[np.float32]:
    """scale(x) * scale(weights) / scale(out) of each output channel, in float32 as ONNX Runtime multiplies and divides;
    weights are input 1. Raises QuantizationError where one is no normal float32."""
    quant, channels = node.input(1).type.quant, node.input(1).shape[0]
    assert quant is not None
    scales = np.broadcast_to(np.array(quant.scale, np.float32), (channels,))
    with np.errstate(over="ignore", under="ignore"):
        found = np.float32(node.input(0).type.scale) * scales / np.float32(node.output.type.scale)
    if not (np.isfinite(found).all() and found.min() >= SMALLEST_SCALE):
        raise QuantizationError(
            f"a ratio of scales is {found.min():.6g} … {found.max():.6g}, no normal float32"
        )
    return np.asarray(found, np.float32)


def rescaled_half_even(node: Node, sums: Int64, factor: npt.NDArray[np.float32] | np.float32) -> Array:
    """Like `rescaled`, by a factor in float32 and rounded to even."""
    out = node.output.type
    values = requantize_half_even(sums, factor) + out.zero_point
    return saturated(values, out.dtype, clamp_range(clamp_of(node), out))


def half_even_constants(factor: npt.NDArray[np.float32]) -> tuple[Constant, Constant]:
    """The arrays `multiplier`, the bits of each channel's factor, and `shift`, which nobody reads."""
    bits = np.asarray(factor, np.float32).view(np.int32)
    return Constant("multiplier", bits, "as floats"), Constant("shift", np.zeros(1, np.int8), "not read")


def rescaled(node: Node, sums: Int64, multiplier: Int64 | int, shift: Int64 | int) -> Array:
    """The integer output of exact sums: rescaled, from its zero point on, within the node's clamp."""
    out = node.output.type
    rule = requantize_64 if out.dtype is DType.INT16 and not has_int32_accumulator(node) else requantize
    clamp = clamp_range(clamp_of(node), out)

    def rounded(part: Int64) -> Array:
        return saturated(rule(part, multiplier, shift) + out.zero_point, out.dtype, clamp)

    if sums.ndim == 0 or max(np.ndim(multiplier), np.ndim(shift)) > 1:
        return rounded(sums)
    rows = sums.reshape(-1, sums.shape[-1])
    step = max(1, _BLOCK // sums.shape[-1])
    found = [rounded(rows[at : at + step]) for at in range(0, len(rows), step)]
    return np.concatenate(found).reshape(sums.shape)


def factor_constants(multiplier: Int64, shift: Int64, dtype: DType) -> tuple[Constant, Constant]:
    """The arrays `multiplier` and `shift` of each channel."""
    if dtype is DType.INT16:
        short = reduced_multiplier(multiplier).astype(np.int16)
        return Constant("multiplier", short), Constant("shift", (15 - shift).astype(np.int8))
    return Constant("multiplier", multiplier.astype(np.int32)), Constant("shift", shift.astype(np.int8))


def factor_fields(factor: Multiplier, dtype: DType) -> dict[str, int]:
    """The fields `multiplier` and `shift` of a tensor."""
    if dtype is DType.INT16:
        return {"multiplier": int(reduced_multiplier(factor.multiplier)), "shift": 15 - factor.shift}
    return {"multiplier": factor.multiplier, "shift": factor.shift}


def bias_constant(bias: Int64, dtype: DType) -> Constant:
    """The bias, one a channel, in units of the sums."""
    return (
        Constant("bias", bias, align=8) if dtype is DType.INT16 else Constant("bias", bias.astype(np.int32))
    )
