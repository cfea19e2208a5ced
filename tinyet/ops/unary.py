# SPDX-License-Identifier: Apache-2.0
"""A function of one number, element by element: sigmoid, exp, gelu, pow …

int8 is a table of 256 bytes made ahead of time. Its rule is that of LiteRT's lookup tables (LOGISTIC, TANH,
EXP, LOG, ELU, GELU: bit for bit): the input as float32, the function in float64, its value rounded to
float32, times 1 / scale in float32, halves away from zero. abs, hardswish and leaky_relu are LiteRT's own
integer arithmetic, bit for bit, evaluated for the table (hardswish as far as LiteRT takes the scales).
In int8, LiteRT's SQRT and RSQRT are less accurate than a table and can differ by 1. Where a function is not defined
the table holds the limit, saturated, and the zero point where there is none.

int16 is in unary_s16.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import QuantizationError
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.ir.limits import SMALLEST_SCALE
from tinyet.numerics import Int64, quantize_multiplier, requantize, round_half_away, round_shift
from tinyet.ops.shared import broadcast, table, table_s16, unary_s16
from tinyet.ops.shared.counting import Parts, values
from tinyet.ops.shared.integers import INTEGERS
from tinyet.ops.shared.shapes import same_shape
from tinyet.ops.shared.unary_functions import FUNCTIONS, FunctionName
from tinyet.opset import Call, CostModel, Kernel, Op, Struct, elementwise, library_call


@dataclass(frozen=True)
class Unary(Attrs):
    """inputs: x of any shape. function: a key of unary_functions.FUNCTIONS.

    alpha: slope of leaky_relu, factor of elu and celu, exponent of pow, beta of softplus, bound of hardshrink
    and softshrink, threshold of threshold. beta: threshold of softplus, value of threshold. tflm: abs and leaky_relu
    have factors in float64, as TensorFlow Lite Micro, and LiteRT not.
    """

    name: ClassVar[str] = "unary"
    function: FunctionName
    alpha: float = 0.0
    beta: float = 0.0
    tflm: bool = False


def attrs_of(node: Node) -> Unary:
    assert isinstance(node.attrs, Unary)
    return node.attrs


def check(node: Node) -> str | None:
    attrs = attrs_of(node)
    if not (math.isfinite(attrs.alpha) and math.isfinite(attrs.beta)):
        return f"{attrs.function} with parameters {attrs.alpha} and {attrs.beta}"
    if attrs.function in ("celu", "softplus") and abs(attrs.alpha) < SMALLEST_SCALE:
        return f"{attrs.function} divides by its parameter, which is 0"
    complaint = broadcast.check_elementwise(node, INTEGERS)
    if complaint is None and node.output.dtype is DType.INT16:
        return unary_s16.check(quantization_s16(node))
    return complaint


def quantization_s16(node: Node) -> unary_s16.Form:
    """The quantization of the int16 form."""
    attrs = attrs_of(node)
    return unary_s16.Form(
        attrs.function,
        attrs.alpha,
        attrs.beta,
        node.input(0).type.scale,
        node.output.type.scale,
        attrs.tflm,
    )


# ---------------------------------------------------------------- int8


@dataclass(frozen=True)
class Scales:
    """Quantization of input and output; scales as float32."""

    x: np.float32
    out: np.float32
    x_zero_point: int
    out_zero_point: int


def from_real(values: Array, attrs: Unary, scales: Scales) -> Int64:
    """LiteRT's rule for lookup tables; int8 inputs of any shape → int64 outputs, not yet saturated."""
    with np.errstate(all="ignore"):
        x = scales.x * (values.astype(np.int64) - scales.x_zero_point).astype(np.float32)
        real = FUNCTIONS[attrs.function].exact(x.astype(np.float64), attrs.alpha, attrs.beta)
        scaled = real.astype(np.float32) * (np.float32(1) / scales.out)
    bounded = np.clip(np.nan_to_num(scaled, nan=0.0), -1000, 1000)
    return round_half_away(bounded).astype(np.int64) + scales.out_zero_point


def leaky_relu(values: Array, attrs: Unary, scales: Scales) -> Int64:
    """LiteRT's LEAKY_RELU: a factor for each side."""
    x = values.astype(np.int64) - scales.x_zero_point
    ratio, slope = unary_s16.ratios(float(scales.x), float(scales.out), attrs.alpha, attrs.tflm)
    above = quantize_multiplier(ratio)
    below, sign = quantize_multiplier(abs(slope)), 1 if slope >= 0 else -1
    scaled = np.where(
        x >= 0,
        requantize(x, above.multiplier, above.shift),
        requantize(x, sign * below.multiplier, below.shift),
    )
    return np.asarray(scaled + scales.out_zero_point, np.int64)


def absolute(values: Array, attrs: Unary, scales: Scales) -> Int64:
    """LiteRT's ABS: the size, rescaled."""
    ratio, _ = unary_s16.ratios(float(scales.x), float(scales.out), attrs.alpha, attrs.tflm)
    factor = quantize_multiplier(ratio)
    size = np.abs(values.astype(np.int64) - scales.x_zero_point)
    return requantize(size, factor.multiplier, factor.shift) + scales.out_zero_point


def hardswish(values: Array, attrs: Unary, scales: Scales) -> Int64:
    """LiteRT's HARD_SWISH in 16-bit fixed point; the general table for scales which LiteRT refuses."""
    fine = np.float32(scales.x * np.float32(1 / 128))
    out = quantize_multiplier(float(fine / scales.out))
    ramp = quantize_multiplier(float(fine / np.float32(3 / 32768)))
    if out.shift > 0:
        return from_real(values, attrs, scales)
    x = (values.astype(np.int64) - scales.x_zero_point) * 128
    scaled = high_mul16(x, to_16_bits(out.multiplier))
    # x / 3 as Q0.15: shifted left in two steps, of which only the last one may saturate the result.
    part = clip16(x << max(ramp.shift - 1, 0))
    part = high_mul16(part, to_16_bits(ramp.multiplier))
    part = clip16(part << min(max(ramp.shift, 0), 1))
    part = round_shift(part, max(-ramp.shift, 0))
    share = (part + 32768) >> 1  # 0 … 1, from -3 to 3
    product = share * scaled
    towards_zero = np.sign(product) * (np.abs(product) >> 15)
    return round_shift(towards_zero, -out.shift) + scales.out_zero_point


def clip16(x: Int64) -> Int64:
    return np.asarray(np.clip(x, -32768, 32767), np.int64)


def high_mul16(a: Int64, b: int) -> Int64:
    """a * b / 2**15 to nearest, ties upward, saturated to 16 bits."""
    return clip16((a * b + (1 << 14)) >> 15)


def to_16_bits(multiplier: int) -> int:
    """A 31-bit multiplier as a 15-bit one, halves upward."""
    return min((multiplier + (1 << 15)) >> 16, 32767)


# What LiteRT computes in a way of its own.
INTEGER: Mapping[FunctionName, Callable[[Array, Unary, Scales], Int64]] = {
    "abs": absolute,
    "hardswish": hardswish,
    "leaky_relu": leaky_relu,
}


def reference_s8(node: Node, values: Array) -> Array:
    attrs, x, out = attrs_of(node), node.input(0).type, node.output.type
    scales = Scales(np.float32(x.scale), np.float32(out.scale), x.zero_point, out.zero_point)
    rule = INTEGER.get(attrs.function, from_real)
    try:
        result = rule(values, attrs, scales)
    except QuantizationError:
        # A ratio of scales outside what a multiplier holds: everything saturates, or is the zero point.
        result = from_real(values, attrs, scales)
    return np.clip(result, -128, 127).astype(np.int8)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, attrs = inputs[0], attrs_of(node)
    assert x is not None
    if node.output.dtype is DType.INT8:
        return (reference_s8(node, x),)
    if node.output.dtype is DType.INT16:
        return (unary_s16.reference(quantization_s16(node), x),)
    with np.errstate(all="ignore"):
        alpha, beta = np.float32(attrs.alpha), np.float32(attrs.beta)
        return (np.asarray(FUNCTIONS[attrs.function].single(x.astype(np.float32), alpha, beta), np.float32),)


def lower_s16(node: Node, target: Target) -> Call:
    return unary_s16.lower(node, quantization_s16(node))


def refuse_kind(kind: str) -> Callable[[Node, Target], str | None]:
    def refuse(node: Node, target: Target) -> str | None:
        own = unary_s16.kind(quantization_s16(node))
        return None if own == kind else f"{attrs_of(node).function} is computed by {own}"

    return refuse


def lower_f32(node: Node, target: Target) -> Call:
    attrs = attrs_of(node)
    params = Struct(
        "tinyet_unary_f32_params", {"alpha": attrs.alpha, "beta": attrs.beta, "count": node.output.type.count}
    )
    return library_call(f"tinyet_{attrs.function}_f32", node, [0], params)


def computed(node: Node) -> Parts:
    """Each function has instructions of its own, some of them as many as its values ask for."""
    return {"call": 1, attrs_of(node).function: node.output.type.count}


OP = Op(
    attrs=Unary,
    summary="a function of each element: " + ", ".join(FUNCTIONS),
    infer=same_shape,
    reference=reference,
    iteration=elementwise,
    check=check,
    inplace=(0,),
    kernels=(
        table.table_kernel(reference),
        *(
            Kernel(
                f"tinyet_{kind}_s16",
                "s16",
                lower_s16,
                table_s16.HEADERS,
                (source,),
                refuse_kind(kind),
                cost_model=CostModel(values),
            )
            for kind, source in unary_s16.KINDS.items()
        ),
        Kernel(
            "tinyet_unary_f32",
            "f32",
            lower_f32,
            ("tinyet_unary.h", "tinyet_math.h"),
            ("tinyet_unary_f32.c",),
            cost_model=CostModel(computed, kind=lambda node: attrs_of(node).function, apart=True),
        ),
    ),
)
