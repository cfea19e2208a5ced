# SPDX-License-Identifier: Apache-2.0
"""int8 or int16 → float32: scale * (q - zero_point), one float32 multiplication, as LiteRT's DEQUANTIZE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import dequantize
from tinyet.ops.shared.integers import INTEGERS, check_activations
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class Dequantize(Attrs):
    """inputs: x, int8 or int16 of any shape with one scale a tensor. The output is float32."""

    name: ClassVar[str] = "dequantize"


def infer(node: Node) -> tuple[Shape, ...]:
    return (node.input(0).shape,)


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if x.dtype not in INTEGERS or out.dtype is not DType.FLOAT32:
        return f"dequantizes int8 or int16 to float32, not {x.dtype.value} to {out.dtype.value}"
    return check_activations(x)


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
    return library_call(f"tinyet_dequantize_{x.dtype.suffix}_f32", node, [0], params)


def kernel(dtype: DType) -> Kernel:
    symbol = f"tinyet_dequantize_{dtype.suffix}_f32"
    return Kernel(symbol, f"{dtype.suffix}_f32", lower, ("tinyet_quantize.h",), (f"{symbol}.c",))


OP = Op(
    attrs=Dequantize,
    summary="int8 or int16 to float32",
    infer=infer,
    reference=reference,
    check=check,
    kernels=tuple(kernel(dtype) for dtype in INTEGERS),
)
