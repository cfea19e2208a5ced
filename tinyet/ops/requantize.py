# SPDX-License-Identifier: Apache-2.0
"""int8 → int8 of another scale or zero point, as LiteRT's QUANTIZE between integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards import Target
from tinyet.errors import QuantizationError
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import Multiplier, quantize_multiplier, requantize
from tinyet.ops import table
from tinyet.opset import Call, Kernel, Op, Struct, library_call

# |q - zero_point| <= 255: with a left shift of 23 bits it would leave int32.
MAX_LEFT_SHIFT = 22


@dataclass(frozen=True)
class Requantize(Attrs):
    """inputs: x, int8 of any shape. Input and output have one scale a tensor each."""

    name: ClassVar[str] = "requantize"


def infer(node: Node) -> tuple[Shape, ...]:
    return (node.input(0).shape,)


def factor(node: Node) -> Multiplier:
    """input scale / output scale, in float64."""
    return quantize_multiplier(node.input(0).type.scale / node.output.type.scale)


def check(node: Node) -> str | None:
    for tensor in (node.input(0), node.output):
        if tensor.dtype is not DType.INT8:
            return f"{tensor.name} must be int8, is {tensor.dtype.value}"
        if tensor.type.quant is None or tensor.type.quant.axis is not None:
            return f"{tensor.name} must be quantized per tensor"
    try:
        fits = factor(node).shift <= MAX_LEFT_SHIFT
    except QuantizationError:
        fits = False
    return None if fits else "the output's scale is too small for the input's"


def rescale(
    x: Array, zero_points: tuple[int, int], multiplier: Multiplier, clamp: tuple[int, int] = (-128, 127)
) -> Array:
    """int8 → int8: from zero point `zero_points[0]` to `zero_points[1]` by a factor, clamped."""
    scaled = requantize(x.astype(np.int64) - zero_points[0], multiplier.multiplier, multiplier.shift)
    return np.clip(scaled + zero_points[1], *clamp).astype(np.int8)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (rescale(inputs[0], (node.input(0).type.zero_point, node.output.type.zero_point), factor(node)),)


def lower(node: Node, target: Target) -> Call:
    return rescale_call(node, factor(node), (-128, 127))


def rescale_call(node: Node, multiplier: Multiplier, clamp: tuple[int, int]) -> Call:
    """The C call of `rescale` on the node's input 0."""
    params = Struct(
        "tinyet_requantize_s8_params",
        {
            "in_zero_point": node.input(0).type.zero_point,
            "out_zero_point": node.output.type.zero_point,
            "multiplier": multiplier.multiplier,
            "shift": multiplier.shift,
            "clamp_low": clamp[0],
            "clamp_high": clamp[1],
            "count": node.output.type.count,
        },
    )
    return library_call("tinyet_requantize_s8", node, [0], params)


def refuse_table(node: Node, target: Target) -> str | None:
    """A table must be worth its 256 bytes."""
    return None if node.output.type.count >= 256 else "fewer elements than a table has"


HEADERS = ("tinyet_quantize.h",)
SOURCES = ("tinyet_requantize_s8.c",)

OP = Op(
    attrs=Requantize,
    summary="int8 to int8 of another scale or zero point",
    infer=infer,
    reference=reference,
    check=check,
    inplace=(0,),
    kernels=(
        table.table_kernel(reference, refuse_table),
        Kernel("tinyet_requantize_s8", "s8", lower, HEADERS, SOURCES),
    ),
)
