# SPDX-License-Identifier: Apache-2.0
"""a / b with numpy's broadcasting and a fused clamp. In int8 as LiteRT's DIV, bit for bit.

LiteRT leaves two things undefined. Where b is zero, the output is the largest or smallest by the sign of a,
and the zero point for 0 / 0. Where a quotient is so small that it is shifted right by more than 31 bits, it
is 0. In float, IEEE division.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node
from tinyet.numerics import (
    Int64,
    Multiplier,
    clamp_range,
    high_mul,
    quantize_multiplier,
    round_shift,
)
from tinyet.ops.shared import broadcast
from tinyet.ops.shared.clamped import clamp_fields, clamp_of
from tinyet.ops.shared.factors import scale_product
from tinyet.ops.shared.fixed_point import leading_zeros, one_over_one_plus
from tinyet.ops.shared.table import every_int8
from tinyet.opset import Call, Constant, Op, Pointer, Struct, elementwise, library_call

# The quotient of the numbers 1 … 255 is shifted right by 23 bits or more before this.
MAX_SHIFT = 23


@dataclass(frozen=True)
class Div(broadcast.Arithmetic):
    """a / b"""

    name: ClassVar[str] = "div"


def factor(node: Node) -> Multiplier:
    """a's scale / (b's scale * output scale), in float32 as in LiteRT."""
    a, b, out = broadcast.scales(node)
    product = np.float32(scale_product(float(b), float(out)))
    with np.errstate(all="ignore"):
        return quantize_multiplier(float(a / product))


def check(node: Node) -> str | None:
    return broadcast.check_scaled(node, lambda: factor(node).shift <= MAX_SHIFT, (DType.INT8,))


def reciprocals(b: Int64) -> tuple[Int64, Int64]:
    """1 / |b| for b != 0 as (Q0.31, right shift); anything where b is 0."""
    size = np.where(b == 0, 1, np.abs(b))
    headroom = leading_zeros(size)
    return one_over_one_plus((size << headroom) - 2**31), 31 - headroom


def sign_headroom(a: Int64) -> Int64:
    """By how many bits `a` can be shifted left within int32: 31 for 0 and -1."""
    positive = np.where(a == 0, 31, leading_zeros(np.maximum(a, 1)) - 1)
    return np.where(a >= 0, positive, leading_zeros(np.maximum(-2 * a - 1, 1)))


def divide(a: Int64, b: Int64, scale: Multiplier) -> Int64:
    """a / b * scale for operands without their zero points, b != 0."""
    inverse, shift = reciprocals(b)
    a = np.where(b < 0, -a, a)
    headroom = sign_headroom(a)
    quotient = high_mul(high_mul(a << headroom, inverse), scale.multiplier)
    # Below 2**31 in size, so that 33 bits leave nothing; more would be too many for int64.
    return round_shift(quotient, np.minimum(shift + headroom - scale.shift, 33))


def quotient(node: Node, a: Array, b: Array) -> Array:
    """The integer form."""
    x, y = np.broadcast_arrays(broadcast.offset(node, 0, a), broadcast.offset(node, 1, b))
    low, high = clamp_range(clamp_of(node), node.output.type)
    value = divide(x, y, factor(node)) + node.output.type.zero_point
    by_zero = np.where(x == 0, node.output.type.zero_point, np.where(x > 0, high, low))
    return np.clip(np.where(y == 0, by_zero, value), low, high).astype(np.int8)


def lower_s8(node: Node, target: Target) -> Call:
    scale = factor(node)
    inverse, _ = reciprocals(every_int8().astype(np.int64) - node.input(1).type.zero_point)
    params = Struct(
        "tinyet_div_s8_params",
        {
            "shape": broadcast.shape_struct(node),
            "reciprocals": Pointer("reciprocals"),
            "a_zero_point": node.input(0).type.zero_point,
            "b_zero_point": node.input(1).type.zero_point,
            "out_zero_point": node.output.type.zero_point,
            "multiplier": scale.multiplier,
            "shift": scale.shift,
            **clamp_fields(node),
        },
    )
    constants = [
        Constant("reciprocals", inverse.astype(np.int32), "Q0.31, of the raw divisors 0 … 127, -128 … -1")
    ]
    return library_call("tinyet_div_s8", node, [0, 1], params, constants)


reference = broadcast.arithmetic(np.divide, quotient)

OP = Op(
    attrs=Div,
    summary="a / b, broadcasting, with fused clamp",
    infer=broadcast.infer,
    inputs=(2, 2),
    reference=reference,
    iteration=elementwise,
    check=check,
    inplace=(0, 1),
    kernels=(
        broadcast.table_kernel(reference),
        broadcast.kernel("tinyet_div_s8", lower_s8, "tinyet_div_s8.c"),
        broadcast.kernel("tinyet_div_f32", broadcast.lower_f32, "tinyet_binary_f32.c"),
    ),
)
