# SPDX-License-Identifier: Apache-2.0
"""a * b with numpy's broadcasting and a fused clamp. In int8 and int16 as LiteRT's MUL, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node
from tinyet.numerics import Multiplier, clamp_range, quantize_multiplier, requantize
from tinyet.ops.shared import broadcast
from tinyet.ops.shared.claims import CLAIMS
from tinyet.ops.shared.clamped import clamp_fields, clamp_of
from tinyet.ops.shared.factors import scale_product
from tinyet.ops.shared.integers import saturated
from tinyet.opset import Call, Op, Struct, claimed, each_row, each_step, library_call

# An int8 product has 16 bits and a sign; the kernel shifts it left by one bit more than the factor asks for.
# An int16 product has 30 and a sign.
MAX_LEFT_SHIFTS = {DType.INT8: 13, DType.INT16: 0}
MAX_RIGHT_SHIFT = 22


@dataclass(frozen=True)
class Mul(broadcast.Arithmetic):
    """a * b"""

    name: ClassVar[str] = "mul"


def factor(node: Node) -> Multiplier:
    """a's scale * b's scale / output scale, in float32 as in LiteRT."""
    a, b, out = broadcast.scales(node)
    product = np.float32(scale_product(float(a), float(b)))
    with np.errstate(all="ignore"):
        return quantize_multiplier(float(product / out))


def check(node: Node) -> str | None:
    return broadcast.check_scaled(node, lambda: factor(node).shift <= MAX_LEFT_SHIFTS[node.output.dtype])


def product(node: Node, a: Array, b: Array) -> Array:
    """The integer form."""
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


reference = broadcast.arithmetic(np.multiply, product)

OP = Op(
    attrs=Mul,
    summary="a * b, broadcasting, with fused clamp",
    infer=broadcast.infer,
    inputs=(2, 2),
    reference=reference,
    rows=each_row,
    over_time=each_step,
    check=check,
    inplace=(0, 1),
    kernels=claimed(
        (
            broadcast.table_kernel(reference),
            broadcast.kernel("tinyet_mul_s8", lower_s8, "tinyet_mul_s8.c"),
            broadcast.kernel("tinyet_mul_s16", lower_s16, "tinyet_mul_s16.c"),
            broadcast.kernel("tinyet_mul_f32", broadcast.lower_f32, "tinyet_binary_f32.c"),
        ),
        CLAIMS,
    ),
)
