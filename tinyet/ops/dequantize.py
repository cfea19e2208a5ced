# SPDX-License-Identifier: Apache-2.0
"""int8 or int16 → float32: scale * (q - zero_point), one float32 multiplication, as LiteRT's DEQUANTIZE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import dequantize
from tinyet.ops.shared import conversion
from tinyet.ops.shared.integers import INTEGERS, check_quantized
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import Op, elementwise


@dataclass(frozen=True)
class Dequantize(Attrs):
    """inputs: x, int8 or int16 of any shape with one scale a tensor. The output is float32."""

    name: ClassVar[str] = "dequantize"


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if x.dtype not in INTEGERS or out.dtype is not DType.FLOAT32:
        return f"dequantizes int8 or int16 to float32, not {x.dtype.value} to {out.dtype.value}"
    return check_quantized(x)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    quant = node.input(0).type.quant
    assert inputs[0] is not None
    assert quant is not None
    return (dequantize(inputs[0], quant),)


OP = Op(
    attrs=Dequantize,
    summary="int8 or int16 to float32",
    infer=same_shape,
    reference=reference,
    iteration=elementwise,
    check=check,
    kernels=conversion.kernels_of(
        "tinyet_dequantize", ("s8_f32", "s16_f32"), lambda node: node.input(0).type
    ),
)
