# SPDX-License-Identifier: Apache-2.0
"""float32 → int8, as LiteRT's QUANTIZE: a float32 division, halves away from zero, then the zero point,
saturated.

Beyond LiteRT, which leaves both undefined: infinities and large values saturate, NaN becomes the zero point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.boards import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import quantize
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class Quantize(Attrs):
    """inputs: x, float32 of any shape. The output is int8 with one scale a tensor."""

    name: ClassVar[str] = "quantize"


def infer(node: Node) -> tuple[Shape, ...]:
    return (node.input(0).shape,)


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if (x.dtype, out.dtype) != (DType.FLOAT32, DType.INT8):
        return f"quantizes float32 to int8, not {x.dtype.value} to {out.dtype.value}"
    return (
        None if out.type.quant and out.type.quant.axis is None else "the output must be quantized per tensor"
    )


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (quantize(inputs[0], node.output.type),)


def lower(node: Node, target: Target) -> Call:
    out = node.output.type
    params = Struct(
        "tinyet_quantize_params", {"scale": out.scale, "zero_point": out.zero_point, "count": out.count}
    )
    return library_call("tinyet_quantize_f32_s8", node, [0], params)


OP = Op(
    attrs=Quantize,
    summary="float32 to int8",
    infer=infer,
    reference=reference,
    check=check,
    kernels=(
        Kernel(
            "tinyet_quantize_f32_s8", "f32_s8", lower, ("tinyet_quantize.h",), ("tinyet_quantize_f32_s8.c",)
        ),
    ),
)
