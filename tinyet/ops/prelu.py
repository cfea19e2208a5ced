# SPDX-License-Identifier: Apache-2.0
"""x where x >= 0, else slope * x. In int8 as LiteRT's PRELU, bit for bit; in int16,
which LiteRT lacks, by the same rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import QuantizationError, UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import Multiplier, quantize_multiplier, requantize
from tinyet.ops.shared import broadcast
from tinyet.ops.shared.integers import INTEGERS, saturated
from tinyet.opset import Call, FieldValue, Op, Struct, library_call

# x has 8 bits and a sign, x * slope has 16; of int16 they have 15 and 30.
MAX_LEFT_SHIFTS = {DType.INT8: (22, 14), DType.INT16: (15, 0)}


@dataclass(frozen=True)
class PRelu(Attrs):
    """inputs: x; slope, which broadcasts to x's shape."""

    name: ClassVar[str] = "prelu"


def infer(node: Node) -> tuple[Shape, ...]:
    (shape,) = broadcast.infer(node)
    if shape != node.input(0).shape:
        raise UnsupportedShape(
            f"prelu: a slope of shape {node.input(1).shape} does not broadcast to {node.input(0).shape}",
            node.where,
        )
    return (shape,)


def factors(node: Node) -> tuple[Multiplier, Multiplier]:
    """For x >= 0 and for x < 0; in float32 as in LiteRT."""
    x, slope, out = (np.float32(t.type.scale) for t in (node.input(0), node.input(1), node.output))
    with np.errstate(all="ignore"):
        ratios = x / out, np.float32(x * slope) / out
    return quantize_multiplier(float(ratios[0])), quantize_multiplier(float(ratios[1]))


def check(node: Node) -> str | None:
    complaint = broadcast.check_elementwise(node, INTEGERS)
    if complaint is None and node.output.dtype is not DType.FLOAT32:
        try:
            limits = MAX_LEFT_SHIFTS[node.output.dtype]
            fits = all(f.shift <= most for f, most in zip(factors(node), limits, strict=True))
        except QuantizationError:
            fits = False
        return None if fits else "the output's scale is too small for the inputs'"
    return complaint


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    if node.output.dtype is DType.FLOAT32:
        real, steep = broadcast.float_operands(inputs)
        with np.errstate(all="ignore"):
            return (np.where(real >= 0, real, steep * real),)
    x, slope = broadcast.operands(inputs)
    value, steepness = broadcast.offset(node, 0, x), broadcast.offset(node, 1, slope)
    positive, negative = factors(node)
    out = np.where(
        value >= 0,
        requantize(value, positive.multiplier, positive.shift),
        requantize(value * steepness, negative.multiplier, negative.shift),
    )
    return (saturated(out + node.output.type.zero_point, node.output.dtype),)


def factor_fields(node: Node) -> dict[str, FieldValue]:
    positive, negative = factors(node)
    return {
        "positive_multiplier": positive.multiplier,
        "positive_shift": positive.shift,
        "negative_multiplier": negative.multiplier,
        "negative_shift": negative.shift,
    }


def lower_s8(node: Node, target: Target) -> Call:
    params = Struct(
        "tinyet_prelu_s8_params",
        {
            "shape": broadcast.shape_struct(node),
            "x_zero_point": node.input(0).type.zero_point,
            "slope_zero_point": node.input(1).type.zero_point,
            "out_zero_point": node.output.type.zero_point,
            **factor_fields(node),
        },
    )
    return library_call("tinyet_prelu_s8", node, [0, 1], params)


def lower_s16(node: Node, target: Target) -> Call:
    params = Struct("tinyet_prelu_s16_params", {"shape": broadcast.shape_struct(node), **factor_fields(node)})
    return library_call("tinyet_prelu_s16", node, [0, 1], params)


def lower_f32(node: Node, target: Target) -> Call:
    return broadcast.plain_call("tinyet_prelu_f32", node)


OP = Op(
    attrs=PRelu,
    summary="x where x >= 0, else slope * x",
    infer=infer,
    reference=reference,
    check=check,
    inplace=(0,),
    kernels=(
        broadcast.table_kernel(reference),
        broadcast.kernel("tinyet_prelu_s8", lower_s8, "tinyet_prelu_s8.c"),
        broadcast.kernel("tinyet_prelu_s16", lower_s16, "tinyet_prelu_s16.c"),
        broadcast.kernel("tinyet_prelu_f32", lower_f32, "tinyet_prelu_f32.c"),
    ),
)
