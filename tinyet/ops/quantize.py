# SPDX-License-Identifier: Apache-2.0
"""float32 → int8 or int16, as LiteRT's QUANTIZE: a float32 division, halves away from zero, then the zero point,
saturated.

Beyond LiteRT, which leaves both undefined: infinities and large values saturate, NaN becomes the zero point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import quantize
from tinyet.ops.shared.integers import INTEGERS, check_activations
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class Quantize(Attrs):
    """inputs: x, float32 of any shape. The output is int8 or int16 with one scale a tensor."""

    name: ClassVar[str] = "quantize"


def infer(node: Node) -> tuple[Shape, ...]:
    return (node.input(0).shape,)


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if x.dtype is not DType.FLOAT32 or out.dtype not in INTEGERS:
        return f"quantizes float32 to int8 or int16, not {x.dtype.value} to {out.dtype.value}"
    return check_activations(out)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (quantize(inputs[0], node.output.type),)


def lower(node: Node, target: Target) -> Call:
    out = node.output.type
    params = Struct(
        "tinyet_quantize_params", {"scale": out.scale, "zero_point": out.zero_point, "count": out.count}
    )
    return library_call(f"tinyet_quantize_f32_{out.dtype.suffix}", node, [0], params)


def kernel(dtype: DType) -> Kernel:
    symbol = f"tinyet_quantize_f32_{dtype.suffix}"
    return Kernel(symbol, f"f32_{dtype.suffix}", lower, ("tinyet_quantize.h",), (f"{symbol}.c",))


OP = Op(
    attrs=Quantize,
    summary="float32 to int8 or int16",
    infer=infer,
    reference=reference,
    check=check,
    kernels=tuple(kernel(dtype) for dtype in INTEGERS),
)
