# SPDX-License-Identifier: Apache-2.0
"""a * b with numpy's broadcasting and a fused clamp. In int8 and int16 as LiteRT's MUL, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import QuantizationError
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import NO_CLAMP, Multiplier, clamp_range, quantize_multiplier, requantize
from tinyet.ops.shared import broadcast
from tinyet.ops.shared.integers import INTEGERS, saturated
from tinyet.opset import Call, Op, Struct, library_call

# An int8 product has 16 bits and a sign; the kernel shifts it left by one bit more than the factor asks for.
# An int16 product has 30 and a sign.
MAX_LEFT_SHIFTS = {DType.INT8: 13, DType.INT16: 0}
MAX_RIGHT_SHIFT = 22


@dataclass(frozen=True)
class Mul(Attrs):
    """inputs: a, b, which broadcast; either may be a constant. clamp: real bounds of the fused activation."""

    name: ClassVar[str] = "mul"
    clamp: tuple[float, float] = NO_CLAMP


def attrs_of(node: Node) -> Mul:
    assert isinstance(node.attrs, Mul)
    return node.attrs


def factor(node: Node) -> Multiplier:
    """a's scale * b's scale / output scale, in float32 as in LiteRT."""
    a, b, out = (np.float32(t.type.scale) for t in (node.input(0), node.input(1), node.output))
    with np.errstate(all="ignore"):
        return quantize_multiplier(float(np.float32(a * b) / out))


def check(node: Node) -> str | None:
    complaint = broadcast.check_elementwise(node, INTEGERS)
    if complaint is None and node.output.dtype is not DType.FLOAT32:
        try:
            fits = factor(node).shift <= MAX_LEFT_SHIFTS[node.output.dtype]
        except QuantizationError:
            fits = False
        return None if fits else "the output's scale is too small for the inputs'"
    return complaint


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    a, b = broadcast.operands(inputs)
    clamp = attrs_of(node).clamp
    if node.output.dtype is DType.FLOAT32:
        return (broadcast.float_reference(np.multiply, a, b, clamp),)
    product = broadcast.offset(node, 0, a) * broadcast.offset(node, 1, b)
    value = requantize(product, factor(node).multiplier, factor(node).shift) + node.output.type.zero_point
    return (saturated(value, node.output.dtype, clamp_range(clamp, node.output.type)),)


def lower_s8(node: Node, target: Target) -> Call:
    """The two roundings of a requantization, with all that depends on the shift worked out."""
    scale, zero_point = factor(node), node.output.type.zero_point
    low, high = clamp_range(attrs_of(node).clamp, node.output.type)
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
            "clamp_low": low,
            "clamp_high": high,
        },
    )
    return library_call(f"tinyet_mul_{'right' if right else 'left'}_s8", node, [0, 1], params)


def lower_s16(node: Node, target: Target) -> Call:
    low, high = clamp_range(attrs_of(node).clamp, node.output.type)
    params = Struct(
        "tinyet_mul_s16_params",
        {
            "shape": broadcast.shape_struct(node),
            "multiplier": factor(node).multiplier,
            "shift": -factor(node).shift,
            "clamp_low": low,
            "clamp_high": high,
        },
    )
    return library_call("tinyet_mul_s16", node, [0, 1], params)


def lower_f32(node: Node, target: Target) -> Call:
    return broadcast.float_call("tinyet_mul_f32", node, attrs_of(node).clamp)


OP = Op(
    attrs=Mul,
    summary="a * b, broadcasting, with fused clamp",
    infer=broadcast.infer,
    reference=reference,
    check=check,
    inplace=(0, 1),
    kernels=(
        broadcast.table_kernel(reference),
        broadcast.kernel("tinyet_mul_s8", lower_s8, "tinyet_mul_s8.c"),
        broadcast.kernel("tinyet_mul_s16", lower_s16, "tinyet_mul_s16.c"),
        broadcast.kernel("tinyet_mul_f32", lower_f32, "tinyet_binary_f32.c"),
    ),
)
