# SPDX-License-Identifier: Apache-2.0
"""min(max(x, low), high): ReLU, ReLU6, hardtanh. In integers as LiteRT's RELU, which may change the scale on the
way.

LiteRT takes the factor input scale / output scale in float32 here (and in float64 for QUANTIZE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import NO_CLAMP, Multiplier, clamp_range, float32, quantize_multiplier
from tinyet.ops import requantize
from tinyet.ops.shared import table
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class Clamp(Attrs):
    """inputs: x of any shape. low, high: real bounds; either may be infinite. NaN stays NaN."""

    name: ClassVar[str] = "clamp"
    low: float = NO_CLAMP[0]
    high: float = NO_CLAMP[1]


def attrs_of(node: Node) -> Clamp:
    assert isinstance(node.attrs, Clamp)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    return (node.input(0).shape,)


def check(node: Node) -> str | None:
    if not attrs_of(node).low <= attrs_of(node).high:
        return f"an empty range from {attrs_of(node).low} to {attrs_of(node).high}"
    if (node.input(0).dtype, node.output.dtype) == (DType.FLOAT32, DType.FLOAT32):
        return None
    return requantize.check(node)


def factor(node: Node) -> Multiplier:
    """input scale / output scale, rounded to float32."""
    return quantize_multiplier(
        float(np.float32(node.input(0).type.scale) / np.float32(node.output.type.scale))
    )


def integer_range(node: Node) -> tuple[int, int]:
    return clamp_range((attrs_of(node).low, attrs_of(node).high), node.output.type)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    if node.output.dtype is DType.FLOAT32:
        return (float32.clamp(x.astype(np.float32), attrs_of(node).low, attrs_of(node).high),)
    return (requantize.rescale(node, x, factor(node), integer_range(node)),)


def refuse_clip(node: Node, target: Target) -> str | None:
    return None if node.input(0).type.quant == node.output.type.quant else "only where the scale stays"


def lower_clip(node: Node, target: Target) -> Call:
    low, high = integer_range(node)
    params = Struct("tinyet_clip_params", {"low": low, "high": high, "count": node.output.type.count})
    return library_call(f"tinyet_clip_{node.output.dtype.suffix}", node, [0], params)


def clip_kernel(dtypes: str) -> Kernel:
    symbol = f"tinyet_clip_{dtypes}"
    return Kernel(symbol, dtypes, lower_clip, ("tinyet_clip.h",), (f"{symbol}.c",), refuse_clip)


def lower_rescale(node: Node, target: Target) -> Call:
    return requantize.rescale_call(node, factor(node), integer_range(node))


def lower_f32(node: Node, target: Target) -> Call:
    attrs = attrs_of(node)
    params = Struct(
        "tinyet_clip_f32_params", {"low": attrs.low, "high": attrs.high, "count": node.output.type.count}
    )
    return library_call("tinyet_clip_f32", node, [0], params)


OP = Op(
    attrs=Clamp,
    summary="min(max(x, low), high): ReLU, ReLU6, hardtanh, clamp",
    infer=infer,
    reference=reference,
    check=check,
    inplace=(0,),
    kernels=(
        clip_kernel("s8"),
        clip_kernel("s16"),
        table.table_kernel(reference, requantize.refuse_table),
        *requantize.kernels_of(lower_rescale),
        Kernel("tinyet_clip_f32", "f32", lower_f32, ("tinyet_clip.h",), ("tinyet_clip_f32.c",)),
    ),
)
