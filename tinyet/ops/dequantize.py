# SPDX-License-Identifier: Apache-2.0
"""int8 → float32: scale * (q - zero_point), one float32 multiplication, as LiteRT's DEQUANTIZE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.boards import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import dequantize
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class Dequantize(Attrs):
    """inputs: x, int8 of any shape with one scale a tensor. The output is float32."""

    name: ClassVar[str] = "dequantize"


def infer(node: Node) -> tuple[Shape, ...]:
    return (node.input(0).shape,)


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if (x.dtype, out.dtype) != (DType.INT8, DType.FLOAT32):
        return f"dequantizes int8 to float32, not {x.dtype.value} to {out.dtype.value}"
    return None if x.type.quant and x.type.quant.axis is None else "the input must be quantized per tensor"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    quant = node.input(0).type.quant
    assert inputs[0] is not None
    assert quant is not None
    return (dequantize(inputs[0], quant),)


def lower(node: Node, target: Target) -> Call:
    x = node.input(0).type
    params = Struct(
        "tinyet_quantize_params", {"scale": x.scale, "zero_point": x.zero_point, "count": x.count}
    )
    return library_call("tinyet_dequantize_s8_f32", node, [0], params)


OP = Op(
    attrs=Dequantize,
    summary="int8 to float32",
    infer=infer,
    reference=reference,
    check=check,
    kernels=(
        Kernel(
            "tinyet_dequantize_s8_f32",
            "s8_f32",
            lower,
            ("tinyet_quantize.h",),
            ("tinyet_dequantize_s8_f32.c",),
        ),
    ),
)
