# SPDX-License-Identifier: Apache-2.0
"""Integers of another scale, zero point or size: what Requantize is, and what Clamp does on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Tensor
from tinyet.numerics import Multiplier, quantize_multiplier, requantize
from tinyet.ops.shared.counting import values
from tinyet.ops.shared.integers import check_activations, check_quantized, representable, saturated
from tinyet.opset import ALONE, Call, CostModel, Kernel, Lower, Struct, library_call, signature

# |q - zero_point| is at most 255 in int8, 2**15 in int16: with one left shift more it would leave int32.
# An int32 leaves it whenever there is one: what is then lost is the same in C.
MAX_LEFT_SHIFTS = {DType.INT8: 22, DType.INT16: 15, DType.INT32: 0}


@dataclass(frozen=True)
class Rescaling(Attrs):
    """wide_scale: of the input or output that is int32, which has no quantization of its own; its zero point is 0."""

    wide_scale: float = 0.0


def scaling(node: Node, tensor: Tensor) -> tuple[float, int]:
    """Scale and zero point of an input or output."""
    if tensor.dtype is DType.INT32 and isinstance(node.attrs, Rescaling):
        return float(np.float32(node.attrs.wide_scale)), 0
    return tensor.type.scale, tensor.type.zero_point


def exact_factor(node: Node) -> Multiplier:
    """input scale / output scale, in float64."""
    return quantize_multiplier(scaling(node, node.input(0))[0] / scaling(node, node.output)[0])


def check(node: Node) -> str | None:
    """The type rule: integers, of which one may be int32 where there is a scale for it, and a factor that the kernels
    hold."""
    tensors = node.input(0), node.output
    wide = [t for t in tensors if t.dtype is DType.INT32]
    scale = node.attrs.wide_scale if isinstance(node.attrs, Rescaling) else 0.0
    if len(wide) != int(scale != 0) or not 0 <= scale < math.inf or any(t.type.quant for t in wide):
        return "an int32 side has a scale as attribute, and no other side has"
    rule = check_quantized if isinstance(node.attrs, Rescaling) else check_activations
    complaint = rule(*(t for t in tensors if t not in wide))
    if complaint is not None:
        return complaint
    x = node.input(0)
    # A zero point beside int16 takes a bit more.
    most = MAX_LEFT_SHIFTS[x.dtype] - int(x.dtype is DType.INT16 and x.type.zero_point != 0)
    fits = representable(lambda: exact_factor(node).shift <= most)
    return None if fits else "the output's scale is too small for the input's"


def rescale(node: Node, x: Array, multiplier: Multiplier, clamp: tuple[int, int]) -> Array:
    """x from the input's zero point to the output's by a factor, clamped, in the output's type."""
    values = x.astype(np.int64) - scaling(node, node.input(0))[1]
    scaled = requantize(values, multiplier.multiplier, multiplier.shift) + scaling(node, node.output)[1]
    return saturated(scaled, node.output.dtype, clamp)


def rescale_call(node: Node, multiplier: Multiplier, clamp: tuple[int, int], symbol: str = "") -> Call:
    """The C call of `rescale` on the node's input 0. symbol: of the function, where it is not the portable one."""
    params = Struct(
        "tinyet_requantize_params",
        {
            "in_zero_point": scaling(node, node.input(0))[1],
            "out_zero_point": scaling(node, node.output)[1],
            "multiplier": multiplier.multiplier,
            "shift": multiplier.shift,
            "clamp_low": clamp[0],
            "clamp_high": clamp[1],
            "count": node.output.type.count,
        },
    )
    return library_call(symbol or f"tinyet_requantize_{signature(node)}", node, [0], params)


def refuse_table(node: Node, target: Target) -> str | None:
    """A table must be worth its 256 bytes."""
    return None if node.output.type.count >= 256 else "fewer elements than a table has"


def wide_kernels_of(lower: Lower) -> tuple[Kernel, ...]:
    """The kernels from and to int32."""
    headers, sources = ("tinyet_quantize.h",), ("tinyet_requantize_s32.c",)
    signatures = ("s32_s8", "s32_s16", "s8_s32", "s16_s32")
    return tuple(
        Kernel(f"tinyet_requantize_{dtypes}", dtypes, lower, headers, sources, no_cost_model=ALONE)
        for dtypes in signatures
    )


def kernels_of(lower: Lower) -> tuple[Kernel, ...]:
    """One for each pair of integer types; `lower` makes a rescale_call."""
    sources = {"s8": "s8", "s16": "s16", "s8_s16": "s16", "s16_s8": "s16"}
    headers = ("tinyet_quantize.h",)
    return tuple(
        Kernel(symbol, dtypes, lower, headers, (f"tinyet_requantize_{file}.c",), cost_model=CostModel(values))
        for dtypes, file in sources.items()
        for symbol in (f"tinyet_requantize_{dtypes}",)
    )
