# SPDX-License-Identifier: Apache-2.0
"""Fully connected layer whose sums are rounded once, as LiteRT's reference kernel does:

    y = round(sum * factor) + zero point        factor = scale(x) * scale(weights) / scale(out)

in float64, halves away from zero. linear.py, which rounds as TFLM and CMSIS-NN, is the one for all other purposes.

The kernel has no float64: it multiplies by the 53 bits of the factor exactly, in integers. That differs from the
rounded product of float64 only where the latter is a half and the former is just below; then the multiplier is larger
by less than a bit, and it is proved for all sums within reach that the results are those of float64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.ir.memoize import memoize
from tinyet.numerics import NO_CLAMP, Int64, clamp_range
from tinyet.ops.shared import fully_connected, weighted
from tinyet.ops.shared.access_orders import by_vectors
from tinyet.ops.shared.clamped import clamp_fields, clamp_of
from tinyet.ops.shared.factors import channel_factors
from tinyet.ops.shared.integers import magnitudes, saturated
from tinyet.opset import ALONE, Call, Constant, FieldValue, Kernel, Op, Pointer, Struct, library_call

_MANTISSA = 53
_STORED = 63
"""Bits of the stored multiplier: those of the factor, and some behind."""
_SPARE = _STORED - _MANTISSA
_SHIFTS = range(1, 63)
"""The shifts of the kernel, behind the lowest word of the product."""


@dataclass(frozen=True)
class LinearSingleRounding(Attrs):
    """inputs: x (…, K) int8 or int16; weights (N, K) constant int8; bias (N,) constant or None. Output: (…, N).

    clamp: real bounds of the fused activation: (0, inf) is ReLU.
    """

    name: ClassVar[str] = "linear_single_rounding"
    clamp: tuple[float, float] = NO_CLAMP


def bounds_of_sums(node: Node) -> Int64:
    """Upper bounds of the absolute sums of the outputs, (N,)."""
    x = node.input(0).type
    low, high = x.dtype.range
    largest = max(abs(low - x.zero_point), abs(high - x.zero_point))
    return np.asarray(largest * magnitudes(node.input(1).array) + np.abs(weighted.int_bias(node)), np.int64)


def check(node: Node) -> str | None:
    if node.input(0).dtype is DType.FLOAT32:
        return "floats are not rounded: that is linear"
    if node.input(1).dtype is not DType.INT8:
        return "the weights must be int8"
    complaint = weighted.check_weighted(node)
    if complaint is not None:
        return complaint
    bounds = bounds_of_sums(node)
    if int(bounds.max(initial=0)) >= 2**31:
        return "sums could overflow 32 bits"
    return "the output's scale is too far from that of the sums" if None in factors(node) else None


def exact(factor: float) -> tuple[int, int]:
    """(multiplier, shift): the factor is exactly multiplier * 2**-(shift + 32), the multiplier has 63 bits."""
    mantissa, exponent = math.frexp(factor)
    return int(mantissa * 2.0**_MANTISSA) << _SPARE, _STORED - exponent - 32


def stored(factor: float, bound: int, dtype: DType) -> tuple[int, int] | None:
    """The same, the multiplier raised by less than the last bit of the factor where that makes sums up to `bound` reach
    halves that float64 says they reach. None where no such multiplier gives all the results of float64."""
    return _stored(factor, math.ceil(min(bound * factor, 2 * dtype.range[1] + 2)))


@functools.lru_cache(4096)  # channels often share a scale, and those of int16 reach all halves
def _stored(factor: float, most: int) -> tuple[int, int] | None:
    """`stored`, for products up to `most`."""
    multiplier, shift = exact(factor)
    if shift not in _SHIFTS:
        return None
    halves = np.arange(0, most + 1) + 0.5
    sums = np.rint(halves / factor)
    products = sums * factor
    (close,) = np.nonzero(np.abs(products - halves) <= 8 * np.spacing(halves))
    # Doubled, for a half is no integer.
    doubled = [
        (2 * int(sums[i]), (2 * int(i) + 1) << (shift + 32), bool(products[i] >= halves[i])) for i in close
    ]
    raised = max([multiplier, *(-(-half // number) for number, half, reached in doubled if reached)])
    if any((number * raised >= half) is not reached for number, half, reached in doubled):
        return None
    return (raised, shift) if raised - multiplier < 1 << _SPARE else None


@memoize
def factors(node: Node) -> tuple[tuple[int, int] | None, ...]:
    """`stored` of each output."""
    bounds, dtype = bounds_of_sums(node).tolist(), node.output.dtype
    return tuple(stored(f, b, dtype) for f, b in zip(channel_factors(node).tolist(), bounds, strict=True))


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, weights, bias = weighted.operands(inputs)
    numbers = x.astype(np.float64) - node.input(0).type.zero_point
    sums = fully_connected.exact_sums(node, numbers, weights)
    if bias is not None:
        sums = sums + bias.astype(np.float64)
    out = node.output.type
    products = np.clip(sums * channel_factors(node), -(2.0**20), 2.0**20)
    # Not floor(product + 0.5): that sum would be rounded, too.
    whole = np.trunc(products)
    values = (whole + np.copysign(np.abs(products - whole) >= 0.5, products)).astype(np.int64)
    limits = clamp_range(clamp_of(node), out)
    return (saturated(values + out.zero_point, out.dtype, limits).reshape(node.output.shape),)


def lower(node: Node, _target: Target) -> Call:
    found = [factor for factor in factors(node) if factor is not None]
    words = np.array([[multiplier >> 32, multiplier & 0xFFFFFFFF] for multiplier, _ in found], np.uint32)
    constants = (
        Constant("weights", node.input(1).array),
        Constant("bias", weighted.folded_bias(node).astype(np.int32)),
        Constant("multiplier", words, "high word, low word"),
        Constant("shift", np.array([shift for _, shift in found], np.int8)),
    )
    fields: dict[str, FieldValue] = {
        **fully_connected.size_fields(node),
        **{constant.name: Pointer(constant.name) for constant in constants},
        "out_zero_point": node.output.type.zero_point,
        **clamp_fields(node),
    }
    params = Struct("tinyet_linear_single_rounding_params", fields)
    symbol = f"tinyet_linear_{node.input(0).dtype.suffix}_single_rounding"
    return library_call(symbol, node, [0], params, constants)


HEADERS = ("tinyet_linear_single_rounding.h",)

OP = Op(
    attrs=LinearSingleRounding,
    summary="fully connected layer that rounds once, as LiteRT's own, fused clamp",
    infer=fully_connected.infer,
    inputs=(2, 3),
    reference=reference,
    iteration=fully_connected.iterate,
    check=check,
    bias=(2, 1),
    kernels=tuple(
        Kernel(
            f"tinyet_linear_{kind}_single_rounding",
            kind,
            lower,
            HEADERS,
            (f"tinyet_linear_{kind}_single_rounding.c",),
            no_cost_model=ALONE,
            access_order=by_vectors,
        )
        for kind in ("s8", "s16")
    ),
)
