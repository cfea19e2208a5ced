# SPDX-License-Identifier: Apache-2.0
"""Integers of another scale, zero point or size (int8, int16), as LiteRT's QUANTIZE between integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import QuantizationError
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import Multiplier, quantize_multiplier, requantize
from tinyet.ops.shared import table
from tinyet.ops.shared.integers import check_activations, saturated
from tinyet.opset import Call, Kernel, Op, Struct, library_call, signature

# |q - zero_point| is at most 255 in int8, 2**15 in int16: with one left shift more it would leave int32.
MAX_LEFT_SHIFTS = {DType.INT8: 22, DType.INT16: 15}


@dataclass(frozen=True)
class Requantize(Attrs):
    """inputs: x, int8 or int16 of any shape; the output is either, too. Each has one scale for the whole tensor."""

    name: ClassVar[str] = "requantize"


def infer(node: Node) -> tuple[Shape, ...]:
    return (node.input(0).shape,)


def factor(node: Node) -> Multiplier:
    """input scale / output scale, in float64."""
    return quantize_multiplier(node.input(0).type.scale / node.output.type.scale)


def check(node: Node) -> str | None:
    complaint = check_activations(node.input(0), node.output)
    if complaint is not None:
        return complaint
    try:
        fits = factor(node).shift <= MAX_LEFT_SHIFTS[node.input(0).dtype]
    except QuantizationError:
        fits = False
    return None if fits else "the output's scale is too small for the input's"


def rescale(node: Node, x: Array, multiplier: Multiplier, clamp: tuple[int, int]) -> Array:
    """x from the input's zero point to the output's by a factor, clamped, in the output's type."""
    values = x.astype(np.int64) - node.input(0).type.zero_point
    scaled = requantize(values, multiplier.multiplier, multiplier.shift) + node.output.type.zero_point
    return saturated(scaled, node.output.dtype, clamp)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (rescale(node, inputs[0], factor(node), node.output.dtype.range),)


def lower(node: Node, target: Target) -> Call:
    return rescale_call(node, factor(node), node.output.dtype.range)


def rescale_call(node: Node, multiplier: Multiplier, clamp: tuple[int, int]) -> Call:
    """The C call of `rescale` on the node's input 0."""
    params = Struct(
        "tinyet_requantize_params",
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
    return library_call(f"tinyet_requantize_{signature(node)}", node, [0], params)


def refuse_table(node: Node, target: Target) -> str | None:
    """A table must be worth its 256 bytes."""
    return None if node.output.type.count >= 256 else "fewer elements than a table has"


HEADERS = ("tinyet_quantize.h",)


def kernels_of(lower: Callable[[Node, Target], Call]) -> tuple[Kernel, ...]:
    """One for each pair of integer types; `lower` makes a rescale_call."""
    sources = {"s8": "s8", "s16": "s16", "s8_s16": "s16", "s16_s8": "s16"}
    return tuple(
        Kernel(f"tinyet_requantize_{dtypes}", dtypes, lower, HEADERS, (f"tinyet_requantize_{file}.c",))
        for dtypes, file in sources.items()
    )


OP = Op(
    attrs=Requantize,
    summary="int8 or int16 of another scale, zero point or size",
    infer=infer,
    reference=reference,
    check=check,
    inplace=(0,),
    kernels=(
        table.table_kernel(reference, refuse_table),
        *kernels_of(lower),
    ),
)
