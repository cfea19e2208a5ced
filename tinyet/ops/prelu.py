# SPDX-License-Identifier: Apache-2.0
"""x where x >= 0, else slope * x. In int8 as LiteRT's PRELU, bit for bit; in int16,
which LiteRT lacks, by the same rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import Multiplier, quantize_multiplier, requantize
from tinyet.ops.shared import broadcast
from tinyet.ops.shared.integers import saturated
from tinyet.opset import Call, FieldValue, Op, Struct, elementwise, library_call

# x has 8 bits and a sign, x * slope has 16; of int16 they have 15 and 30.
MAX_LEFT_SHIFTS = {DType.INT8: (22, 14), DType.INT16: (15, 0)}


@dataclass(frozen=True)
class PRelu(Attrs):
    """inputs: x; slope, which broadcasts to x's shape. tflm: factors in float64, as TensorFlow Lite Micro has them, and
    LiteRT not."""

    name: ClassVar[str] = "prelu"
    tflm: bool = False


def infer(node: Node) -> tuple[Shape, ...]:
    (shape,) = broadcast.infer(node)
    if shape != node.input(0).shape:
        raise UnsupportedShape(
            f"prelu: a slope of shape {node.input(1).shape} does not broadcast to {node.input(0).shape}",
            node.where,
        )
    return (shape,)


def factors(node: Node) -> tuple[Multiplier, Multiplier]:
    """For x >= 0 and for x < 0; in float32 as in LiteRT, or in float64."""
    assert isinstance(node.attrs, PRelu)
    if node.attrs.tflm:
        wide, steep, last = (t.type.scale for t in (node.input(0), node.input(1), node.output))
        return quantize_multiplier(wide / last), quantize_multiplier(wide * steep / last)
    x, slope, out = broadcast.scales(node)
    with np.errstate(all="ignore"):
        ratios = x / out, np.float32(x * slope) / out
    return quantize_multiplier(float(ratios[0])), quantize_multiplier(float(ratios[1]))


def check(node: Node) -> str | None:
    def fits() -> bool:
        limits = MAX_LEFT_SHIFTS[node.output.dtype]
        return all(f.shift <= most for f, most in zip(factors(node), limits, strict=True))

    return broadcast.check_scaled(node, fits)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, slope = broadcast.operands(inputs)
    if node.output.dtype is DType.FLOAT32:
        real, steep = x.astype(np.float32), slope.astype(np.float32)
        with np.errstate(all="ignore"):
            return (np.where(real >= 0, real, steep * real),)
    value, steepness = broadcast.offset(node, 0, x), broadcast.offset(node, 1, slope)
    positive, negative = factors(node)
    out = np.where(
        value >= 0,
        requantize(value, positive.multiplier, positive.shift),
        requantize(value * steepness, negative.multiplier, negative.shift),
    )
    return (saturated(out + node.output.type.zero_point, node.output.dtype),)


def lower_integer(node: Node, _target: Target) -> Call:
    dtype, (positive, negative) = node.output.dtype, factors(node)
    fields: dict[str, FieldValue] = {"shape": broadcast.shape_struct(node)}
    if dtype is DType.INT8:
        zero_points = {"x": node.input(0), "slope": node.input(1), "out": node.output}
        fields |= {f"{name}_zero_point": t.type.zero_point for name, t in zero_points.items()}
    for name, factor in (("positive", positive), ("negative", negative)):
        fields |= {f"{name}_multiplier": factor.multiplier, f"{name}_shift": factor.shift}
    params = Struct(f"tinyet_prelu_{dtype.suffix}_params", fields)
    return library_call(f"tinyet_prelu_{dtype.suffix}", node, [0, 1], params)


def lower_f32(node: Node, target: Target) -> Call:
    return broadcast.plain_call("tinyet_prelu_f32", node)


OP = Op(
    attrs=PRelu,
    summary="x where x >= 0, else slope * x",
    infer=infer,
    inputs=(2, 2),
    reference=reference,
    iteration=elementwise,
    check=check,
    inplace=(0,),
    kernels=(
        broadcast.table_kernel(reference),
        broadcast.kernel("tinyet_prelu_s8", lower_integer, "tinyet_prelu_s8.c"),
        broadcast.kernel("tinyet_prelu_s16", lower_integer, "tinyet_prelu_s16.c"),
        broadcast.kernel("tinyet_prelu_f32", lower_f32, "tinyet_prelu_f32.c"),
    ),
)
