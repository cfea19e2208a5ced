# SPDX-License-Identifier: Apache-2.0
"""a * b with numpy's broadcasting and a fused clamp. In int8 and int16 as LiteRT's MUL, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import QuantizationError
from tinyet.ir import Array, DType, Node
from tinyet.numerics import (
    ElementRounding,
    Multiplier,
    clamp_range,
    quantize_multiplier,
    requantize,
    round_half_even,
)
from tinyet.ops.shared import broadcast
from tinyet.ops.shared.clamped import clamp_fields, clamp_of
from tinyet.ops.shared.cost_models import COST_MODELS
from tinyet.ops.shared.factors import above_int8, rounds_half_even, scale_product
from tinyet.ops.shared.integers import saturated
from tinyet.opset import Call, Kernel, Op, Struct, elementwise, library_call, with_cost_models

# An int8 product has 16 bits and a sign; the kernel shifts it left by one bit more than the factor asks for.
# An int16 product has 30 and a sign.
MAX_LEFT_SHIFTS = {DType.INT8: 13, DType.INT16: 0}
MAX_RIGHT_SHIFT = 22


@dataclass(frozen=True)
class Mul(broadcast.Arithmetic):
    """a * b

    tflm: the factor in float64, as TensorFlow Lite Micro has it, and LiteRT not. rounding: of the product of int8
    values; "half_even" and "half_even_u8" are ONNX Runtime's QLinearMul (on x86-64), whose factor is float32.
    """

    name: ClassVar[str] = "mul"
    tflm: bool = False
    rounding: ElementRounding = "double"


def factor(node: Node) -> Multiplier:
    """a's scale * b's scale / output scale, in float32 as in LiteRT, or in float64."""
    assert isinstance(node.attrs, Mul)
    if node.attrs.tflm:
        first, second, last = (t.type.scale for t in (node.input(0), node.input(1), node.output))
        return quantize_multiplier(first * second / last)
    a, b, out = broadcast.scales(node)
    product = np.float32(scale_product(float(a), float(b)))
    with np.errstate(all="ignore"):
        return quantize_multiplier(float(product / out))


def half_even_factor(node: Node) -> np.float32:
    """a's scale * b's scale / output scale in float32."""
    a, b, out = broadcast.scales(node)
    with np.errstate(all="ignore"):
        factor = np.float32(scale_product(float(a), float(b))) / out
    if not np.isfinite(factor):
        raise QuantizationError(f"the product's scale over the output's is {factor}")
    return np.float32(factor)


def half_even_product(node: Node, a: Array, b: Array) -> Array:
    """The exact product times the factor plus the zero point, each step in float32, then to nearest, halves to even;
    of uint8 with the zero point that it has there."""
    exact = broadcast.offset(node, 0, a) * broadcast.offset(node, 1, b)
    above = above_int8(node)
    zero_point = np.float32(node.output.type.zero_point + above)
    with np.errstate(over="ignore"):
        value = round_half_even(exact.astype(np.float32) * half_even_factor(node) + zero_point) - above
    return saturated(value, node.output.dtype, clamp_range(clamp_of(node), node.output.type))


def check(node: Node) -> str | None:
    if rounds_half_even(node):
        return broadcast.check_scaled(node, lambda: bool(half_even_factor(node) > 0), (DType.INT8,))
    return broadcast.check_scaled(node, lambda: factor(node).shift <= MAX_LEFT_SHIFTS[node.output.dtype])


def product(node: Node, a: Array, b: Array) -> Array:
    """The integer form."""
    if rounds_half_even(node):
        return half_even_product(node, a, b)
    exact = broadcast.offset(node, 0, a) * broadcast.offset(node, 1, b)
    value = requantize(exact, factor(node).multiplier, factor(node).shift) + node.output.type.zero_point
    return saturated(value, node.output.dtype, clamp_range(clamp_of(node), node.output.type))


def lower_s8(node: Node, target: Target) -> Call:
    """The two roundings of a requantization, with all that depends on the shift worked out."""
    scale, zero_point = factor(node), node.output.type.zero_point
    right = scale.shift < 0
    # The first rounding leaves 16 bits, of which any longer shift leaves nothing either.
    shift = min(-scale.shift, MAX_RIGHT_SHIFT) if right else scale.shift + 1
    params = Struct(
        "tinyet_mul_s8_params",
        {
            "shape": broadcast.shape_struct(node),
            "a_zero_point": node.input(0).type.zero_point,
            "b_zero_point": node.input(1).type.zero_point,
            "multiplier": scale.multiplier,
            "shift": shift,
            "offset": (1 << (shift - 1)) + zero_point * (1 << shift) if right else zero_point,
            **clamp_fields(node),
        },
    )
    return library_call(f"tinyet_mul_{'right' if right else 'left'}_s8", node, [0, 1], params)


def lower_s16(node: Node, target: Target) -> Call:
    params = Struct(
        "tinyet_mul_s16_params",
        {
            "shape": broadcast.shape_struct(node),
            "multiplier": factor(node).multiplier,
            "shift": -factor(node).shift,
            **clamp_fields(node),
        },
    )
    return library_call("tinyet_mul_s16", node, [0, 1], params)


def lower_half_even(node: Node, target: Target) -> Call:
    params = Struct(
        "tinyet_mul_s8_rne_params",
        {
            "shape": broadcast.shape_struct(node),
            "a_zero_point": node.input(0).type.zero_point,
            "b_zero_point": node.input(1).type.zero_point,
            "factor": float(half_even_factor(node)),
            "out_zero_point": float(node.output.type.zero_point + above_int8(node)),
            "above": above_int8(node),
            **clamp_fields(node),
        },
    )
    return library_call("tinyet_mul_s8_rne", node, [0, 1], params)


reference = broadcast.arithmetic(np.multiply, product)

OP = Op(
    attrs=Mul,
    summary="a * b, broadcasting, with fused clamp",
    infer=broadcast.infer,
    inputs=(2, 2),
    reference=reference,
    iteration=elementwise,
    check=check,
    inplace=(0, 1),
    kernels=with_cost_models(
        (
            broadcast.table_kernel(reference),
            broadcast.table_kernel(reference, "s8_rne"),
            Kernel(
                "tinyet_mul_s8_rne",
                "s8_rne",
                lower_half_even,
                (*broadcast.HEADERS, "tinyet_rne.h"),
                ("tinyet_mul_s8_rne.c",),
                broadcast.refuse_loops,
            ),
            broadcast.kernel("tinyet_mul_s8", lower_s8, "tinyet_mul_s8.c"),
            broadcast.kernel("tinyet_mul_s16", lower_s16, "tinyet_mul_s16.c"),
            broadcast.kernel("tinyet_mul_f32", broadcast.lower_f32, "tinyet_binary_f32.c"),
        ),
        COST_MODELS,
    ),
)
