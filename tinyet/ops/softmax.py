# SPDX-License-Identifier: Apache-2.0
"""exp(x) / sum(exp(x)) along an axis. In int8 and int16 as LiteRT's SOFTMAX, bit for bit: in int8 gemmlowp's
fixed-point arithmetic, in int16 two tables with interpolation.

LiteRT has the last axis only and fixes the output: int8 at scale 1/256 and zero point -128, int16 at scale 1/32768.
We have any axis, and any other scale by the same numbers with another last step: from the product of an exponential and
the reciprocal of the sum straight to output steps, instead of to 1/256 or 1/32768.

From int8 to int16, the int8 form has its last step at 1/65536 and zero point -32768 instead.

In int8 the exponential of a difference from the maximum takes at most 256 values, so the kernel looks it up.

Rounded to even, it is ONNX Runtime's QLinearSoftmax: exponentials of a table in float32, summed in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node, TensorType
from tinyet.numerics import (
    Int64,
    Multiplier,
    Rounding,
    float32,
    high_mul,
    quantize_multiplier,
    requantize,
    requantize_64,
    round_shift,
)
from tinyet.ops.shared import broadcast, factors, softmax, softmax_half_even, table_s16
from tinyet.ops.shared.cost_models import COST_MODELS
from tinyet.ops.shared.factors import rounds_half_even
from tinyet.ops.shared.fixed_point import SUM_INTEGER_BITS, differences, leading_zeros, one_over_one_plus
from tinyet.ops.shared.integers import check_activations, check_quantized, representable, saturated
from tinyet.opset import Call, Constant, Kernel, Op, Pointer, Struct, library_call, mixing, with_cost_models

OUT_SCALE, OUT_ZERO_POINT = 1 / 256, -128
LITERT_S8 = OUT_SCALE, OUT_ZERO_POINT
LITERT_S16 = 2.0**-15, 0
LITERT_S8_S16 = 2.0**-16, -32768
SCALE_TOLERANCE = 1e-3
"""Relative tolerance of the scale of int16 beside int8: files have 1/65535, too."""
LEAST_OUT_SCALE_S8 = 2.0**-30
"""Its inverse is a multiplier just not."""

MAX_DEPTH_S16 = (1 << 16) - 1
LEAST_S16 = 10.0
"""int16: exponentials below exp(-10) count as that."""


@dataclass(frozen=True)
class Softmax(softmax.AlongAxis):
    """exp(beta * x) / sum(exp(beta * x)); in float32, beta is 1. tflm: tables of int16 are computed in float32, as
    TensorFlow Lite Micro does, and LiteRT in float64. rounding: of int8; "half_even" is ONNX Runtime's."""

    name: ClassVar[str] = "softmax"
    beta: float = 1.0
    tflm: bool = False
    rounding: Rounding = "double"


def check(node: Node) -> str | None:
    assert isinstance(node.attrs, Softmax)
    if not 0 < node.attrs.beta < float("inf"):
        return f"a beta of {node.attrs.beta}"
    if node.output.dtype is DType.FLOAT32 and node.attrs.beta != 1.0:
        return "float32 values are multiplied by beta before"
    if rounds_half_even(node):
        return broadcast.check_elementwise(node, (DType.INT8,)) or softmax_half_even.check(node)
    if node.output.dtype is DType.INT16:
        return check_s16(node) if node.input(0).dtype is DType.INT16 else check_s8_s16(node)
    complaint = softmax.check(node)
    if complaint is not None or node.output.dtype is not DType.INT8:
        return complaint
    return None if node.output.type.scale > LEAST_OUT_SCALE_S8 else "the output's scale is too small"


def check_s16(node: Node) -> str | None:
    complaint = broadcast.check_elementwise(node, (DType.INT16,))
    if complaint is not None:
        return complaint
    if not 2.0**-29 <= node.output.type.scale < 2.0**-14:
        return f"an output scale of {node.output.type.scale}, from 2^-29 to 2^-14"
    if not representable(lambda: factor_s16(softmax.input_scale(node)).shift <= 15):
        return f"an input scale of {softmax.input_scale(node)} is too large"
    depth = node.input(0).shape[softmax.attrs_of(node).axis]
    return f"{depth} elements along the axis, at most {MAX_DEPTH_S16}" if depth > MAX_DEPTH_S16 else None


def check_s8_s16(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if x.dtype is not DType.INT8:
        return f"no form for {x.dtype.value}, {out.dtype.value}"
    complaint = check_activations(x) or check_quantized(out) or softmax.check_int8_input(node)
    if complaint is not None:
        return complaint
    scale, zero_point = LITERT_S8_S16
    if out.type.zero_point != zero_point or abs(out.type.scale - scale) > scale * SCALE_TOLERANCE:
        return f"int16 of int8 has a scale of {scale} and a zero point of {zero_point}"
    return None


def factor_s16(scale: float) -> Multiplier:
    """From input steps to 65535 steps over LEAST_S16; float64."""
    return quantize_multiplier(scale / (LEAST_S16 / 65535.0))


@lru_cache(maxsize=2)
def tables_s16(tflm: bool = False) -> tuple[Int64, Int64]:
    """exp over -10 … 0 and 1 / (1 + x) over 0 … 1, in Q0.15. tflm: as Softmax has it."""
    out, kind = (2.0 / 65535, 0), np.float32 if tflm else np.float64

    def exponential(x: table_s16.Float) -> table_s16.Float:
        return np.asarray(np.exp(x.astype(np.float64)), kind)

    def reciprocal(x: table_s16.Float) -> table_s16.Float:
        return np.asarray(kind(1) / (kind(1) + x), kind)

    exponentials = table_s16.populate(exponential, (LEAST_S16 / 65535, 32767), out, kind)
    return exponentials, table_s16.populate(reciprocal, (1.0 / 65535, -32768), out, kind)


def tflm_of(node: Node) -> bool:
    return isinstance(node.attrs, Softmax) and node.attrs.tflm


def softmax_s16(x: Array, scale: float, out: TensorType, tflm: bool = False) -> Array:
    """int16 (…, depth) → int16, along the last axis."""
    exponentials, reciprocals = tables_s16(tflm)
    factor = factor_s16(scale)
    diff = x.astype(np.int64) - x.max(axis=-1, keepdims=True).astype(np.int64)
    steps = requantize(diff, factor.multiplier, factor.shift) + 32767
    exps = table_s16.look_up(exponentials, np.clip(steps, -32768, 32767))
    total = exps.sum(axis=-1, keepdims=True)
    headroom = leading_zeros(total)
    fraction = (((total << (headroom - 1)) + (1 << 13)) >> 14) - (1 << 16) - (1 << 15)
    reciprocal = table_s16.look_up(reciprocals, np.clip(fraction, -32768, 32767))
    if (out.scale, out.zero_point) == LITERT_S16:
        shift = 31 - headroom
        result = (exps * reciprocal + (np.int64(1) << (shift - 1))) >> shift
    else:
        last = out_factor_s16(out.scale)
        result = requantize_64(exps * reciprocal, last.multiplier, last.shift + headroom - 31)
    return saturated(result, DType.INT16, (0, 32767))


def out_factor_s16(scale: float) -> Multiplier:
    """From Q0.15 to output steps; float64."""
    return quantize_multiplier(2.0**-15 / scale)


def softmax_s8(x: Array, scale: float, out: TensorType) -> Array:
    """int8 (…, depth) → int8 or int16, along the last axis. From a sum of 512 on LiteRT shifts by more than 31 bits for
    int8, which C leaves undefined; here the outputs are then the 0 that the formula gives."""
    table = differences(scale)
    exponentials = table.exponentials()
    diff = x.astype(np.int64) - x.max(axis=-1, keepdims=True).astype(np.int64)
    exps = exponentials[-diff]
    total = round_shift(exps, SUM_INTEGER_BITS).sum(axis=-1, keepdims=True)
    headroom = leading_zeros(total)
    reciprocal = one_over_one_plus((total << headroom) - 2**31)
    product = high_mul(reciprocal, exps)
    if out.dtype is DType.INT16 or (out.scale, out.zero_point) == LITERT_S8:
        value = round_shift(product, SUM_INTEGER_BITS - headroom + 31 - 8 * out.dtype.bytes)
    else:
        last = quantize_multiplier(1 / out.scale)
        value = round_shift(high_mul(product, last.multiplier), shift_s8(last) - headroom)
    return saturated(np.where(diff >= table.smallest, value, 0) + out.zero_point, out.dtype)


def shift_s8(last: Multiplier) -> int:
    """The right shift from a product in Q0.31 to output steps, 1 / scale being `last`; less the sum's leading zeros."""
    return SUM_INTEGER_BITS + 31 - last.shift


def softmax_f32(x: float32.Float32) -> float32.Float32:
    """float32 (…, depth) along the last axis: exp(x - max), summed in order, times the reciprocal of the
    sum."""
    with np.errstate(all="ignore"):
        exps = float32.exp(x - float32.maximum_in_order(x))
        return np.asarray(exps * (np.float32(1) / float32.sum_in_order(exps)), np.float32)


def along_last(node: Node, x: Array) -> Array:
    if node.output.dtype is DType.FLOAT32:
        return softmax_f32(x.astype(np.float32))
    scale = softmax.input_scale(node)
    if node.input(0).dtype is DType.INT16:
        return softmax_s16(x, scale, node.output.type, tflm_of(node))
    if rounds_half_even(node):
        return softmax_half_even.along_last(node, x)
    return softmax_s8(x, scale, node.output.type)


# ---------------------------------------------------------------- portable kernels

EXPONENTIALS = "Q0.31, of the maximum less 0, 1, 2 …"


def lower_s8(node: Node, target: Target) -> Call:
    return softmax.exponentials_call("tinyet_softmax_s8", node, EXPONENTIALS, {})


def lower_scaled_s8(node: Node, target: Target) -> Call:
    last = quantize_multiplier(1 / node.output.type.scale)
    fields = {
        "multiplier": last.multiplier,
        "shift": shift_s8(last),
        "out_zero_point": node.output.type.zero_point,
    }
    return softmax.exponentials_call("tinyet_softmax_scaled_s8", node, EXPONENTIALS, fields)


def lower_s8_s16(node: Node, target: Target) -> Call:
    return softmax.exponentials_call(
        "tinyet_softmax_s8_s16", node, EXPONENTIALS, {}, "tinyet_softmax_s8_params"
    )


def struct_s16(node: Node) -> tuple[Struct, list[Constant]]:
    """The parameters of LiteRT's arithmetic, and its tables."""
    factor = factor_s16(softmax.input_scale(node))
    params = Struct(
        "tinyet_softmax_s16_params",
        {
            "shape": softmax.axis_struct(node),
            "exponentials": Pointer("exponentials"),
            "reciprocals": Pointer("reciprocals"),
            "multiplier": factor.multiplier,
            "shift": factor.shift,
        },
    )
    exponentials, reciprocals = tables_s16(tflm_of(node))
    constants = [
        Constant("exponentials", exponentials.astype(np.int16), "Q0.15, over -10 ... 0"),
        Constant("reciprocals", reciprocals.astype(np.int16), "Q0.15, 1 / (1 + x) over 0 ... 1"),
    ]
    return params, constants


def lower_s16(node: Node, target: Target) -> Call:
    params, constants = struct_s16(node)
    return library_call("tinyet_softmax_s16", node, [0], params, constants)


def lower_scaled_s16(node: Node, target: Target) -> Call:
    inner, constants = struct_s16(node)
    last = factors.factor_fields(out_factor_s16(node.output.type.scale), DType.INT16)
    params = Struct(
        "tinyet_softmax_scaled_s16_params",
        {"softmax": inner, "out_multiplier": last["multiplier"], "out_shift": last["shift"] + 31},
    )
    return library_call("tinyet_softmax_scaled_s16", node, [0], params, constants)


def lower_half_even(node: Node, target: Target) -> Call:
    table = Constant("exponentials", softmax_half_even.exponentials(node), "of 0, -1, -2 ... input steps")
    params = Struct(
        "tinyet_softmax_s8_rne_params",
        {
            "shape": softmax.axis_struct(node),
            "exponentials": Pointer(table.name),
            "steps": float(softmax_half_even.steps(node)),
            "out_zero_point": node.output.type.zero_point,
        },
    )
    return library_call("tinyet_softmax_s8_rne", node, [0], params, [table])


TABLE_HEADERS = ("tinyet_softmax.h", "tinyet_lut.h")

OP = Op(
    attrs=Softmax,
    summary="exp(x) / sum(exp(x)) along an axis",
    infer=softmax.infer,
    reference=softmax.along_axis(along_last),
    iteration=mixing(lambda node: (softmax.attrs_of(node).axis,)),
    check=check,
    inplace=(0,),
    kernels=with_cost_models(
        (
            Kernel(
                "tinyet_softmax_s8",
                "s8",
                lower_s8,
                softmax.FIXED_HEADERS,
                ("tinyet_softmax_s8.c",),
                softmax.refuse_other_scales(LITERT_S8),
            ),
            Kernel(
                "tinyet_softmax_scaled_s8",
                "s8",
                lower_scaled_s8,
                softmax.FIXED_HEADERS,
                ("tinyet_softmax_scaled_s8.c",),
            ),
            Kernel(
                "tinyet_softmax_s8_rne",
                "s8_rne",
                lower_half_even,
                (*softmax.FIXED_HEADERS, "tinyet_rne.h"),
                ("tinyet_softmax_s8_rne.c",),
            ),
            Kernel(
                "tinyet_softmax_s8_s16",
                "s8_s16",
                lower_s8_s16,
                softmax.FIXED_HEADERS,
                ("tinyet_softmax_s8_s16.c",),
            ),
            Kernel(
                "tinyet_softmax_s16",
                "s16",
                lower_s16,
                TABLE_HEADERS,
                ("tinyet_softmax_s16.c",),
                softmax.refuse_other_scales(LITERT_S16),
            ),
            Kernel(
                "tinyet_softmax_scaled_s16",
                "s16",
                lower_scaled_s16,
                TABLE_HEADERS,
                ("tinyet_softmax_scaled_s16.c",),
            ),
            Kernel(
                "tinyet_softmax_f32",
                "f32",
                softmax.lower_f32,
                softmax.FLOAT_HEADERS,
                ("tinyet_softmax_f32.c",),
            ),
        ),
        COST_MODELS,
    ),
)
