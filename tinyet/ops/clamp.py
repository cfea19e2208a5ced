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
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import NO_CLAMP, Multiplier, clamp_range, float32, quantize_multiplier
from tinyet.ops.shared import rescale, table
from tinyet.ops.shared.clip import clip_call, clip_kernels
from tinyet.ops.shared.counting import values
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import Call, CostModel, Kernel, Op, Struct, elementwise, library_call


@dataclass(frozen=True)
class Clamp(Attrs):
    """inputs: x of any shape. low, high: real bounds; either may be infinite. NaN stays NaN. tflm: the factor in
    float64, as TensorFlow Lite Micro has it."""

    name: ClassVar[str] = "clamp"
    low: float = NO_CLAMP[0]
    high: float = NO_CLAMP[1]
    tflm: bool = False


def attrs_of(node: Node) -> Clamp:
    assert isinstance(node.attrs, Clamp)
    return node.attrs


def check(node: Node) -> str | None:
    if not attrs_of(node).low <= attrs_of(node).high:
        return f"an empty range from {attrs_of(node).low} to {attrs_of(node).high}"
    if (node.input(0).dtype, node.output.dtype) == (DType.FLOAT32, DType.FLOAT32):
        return None
    return rescale.check(node)


def factor(node: Node) -> Multiplier:
    """input scale / output scale, rounded to float32, or in float64."""
    if attrs_of(node).tflm:
        return rescale.exact_factor(node)
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
    return (rescale.rescale(node, x, factor(node), integer_range(node)),)


def refuse_clip(node: Node, target: Target) -> str | None:
    return None if node.input(0).type.quant == node.output.type.quant else "only where the scale stays"


def lower_clip(node: Node, target: Target) -> Call:
    return clip_call(node, 0, integer_range(node))


def lower_rescale(node: Node, target: Target) -> Call:
    return rescale.rescale_call(node, factor(node), integer_range(node))


def lower_f32(node: Node, target: Target) -> Call:
    attrs = attrs_of(node)
    params = Struct(
        "tinyet_clip_f32_params", {"low": attrs.low, "high": attrs.high, "count": node.output.type.count}
    )
    return library_call("tinyet_clip_f32", node, [0], params)


OP = Op(
    attrs=Clamp,
    summary="min(max(x, low), high): ReLU, ReLU6, hardtanh, clamp",
    infer=same_shape,
    reference=reference,
    iteration=elementwise,
    check=check,
    inplace=(0,),
    kernels=(
        *clip_kernels(lower_clip, refuse_clip),
        table.table_kernel(reference, rescale.refuse_table),
        *rescale.kernels_of(lower_rescale),
        Kernel(
            "tinyet_clip_f32",
            "f32",
            lower_f32,
            ("tinyet_clip.h",),
            ("tinyet_clip_f32.c",),
            cost_model=CostModel(values),
        ),
    ),
)
