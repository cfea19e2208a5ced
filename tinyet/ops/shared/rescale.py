# SPDX-License-Identifier: Apache-2.0
"""Integers of another scale, zero point or size: what Requantize is, and what Clamp does on the way."""

from __future__ import annotations

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node
from tinyet.numerics import Multiplier, quantize_multiplier, requantize
from tinyet.ops.shared.counting import values
from tinyet.ops.shared.integers import check_activations, representable, saturated
from tinyet.opset import Call, Claim, Kernel, Lower, Struct, library_call, signature

# |q - zero_point| is at most 255 in int8, 2**15 in int16: with one left shift more it would leave int32.
MAX_LEFT_SHIFTS = {DType.INT8: 22, DType.INT16: 15}


def exact_factor(node: Node) -> Multiplier:
    """input scale / output scale, in float64."""
    return quantize_multiplier(node.input(0).type.scale / node.output.type.scale)


def check(node: Node) -> str | None:
    """The type rule: integers, and a factor that the kernels hold."""
    complaint = check_activations(node.input(0), node.output)
    if complaint is not None:
        return complaint
    fits = representable(lambda: exact_factor(node).shift <= MAX_LEFT_SHIFTS[node.input(0).dtype])
    return None if fits else "the output's scale is too small for the input's"


def rescale(node: Node, x: Array, multiplier: Multiplier, clamp: tuple[int, int]) -> Array:
    """x from the input's zero point to the output's by a factor, clamped, in the output's type."""
    values = x.astype(np.int64) - node.input(0).type.zero_point
    scaled = requantize(values, multiplier.multiplier, multiplier.shift) + node.output.type.zero_point
    return saturated(scaled, node.output.dtype, clamp)


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


def kernels_of(lower: Lower) -> tuple[Kernel, ...]:
    """One for each pair of integer types; `lower` makes a rescale_call."""
    sources = {"s8": "s8", "s16": "s16", "s8_s16": "s16", "s16_s8": "s16"}
    headers = ("tinyet_quantize.h",)
    return tuple(
        Kernel(symbol, dtypes, lower, headers, (f"tinyet_requantize_{file}.c",), claim=Claim(values))
        for dtypes, file in sources.items()
        for symbol in (f"tinyet_requantize_{dtypes}",)
    )
