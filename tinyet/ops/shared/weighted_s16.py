# SPDX-License-Identifier: Apache-2.0
"""What layers with int16 activations and int8 weights ("16x8") share: type rule, rounding, constants of kernels.

LiteRT's rule: zero points are 0, the bias is int64 at scale(x) * scale(weights), sums are exact, and each is
rescaled by numerics.requantize_64. Kernels add up in 32 bits as far as the weights, which are known, allow.
"""

from __future__ import annotations

import numpy as np

from tinyet.errors import QuantizationError
from tinyet.ir import Array, DType, Node
from tinyet.numerics import (
    MAX_SHIFT_64,
    SUM_BITS_64,
    Int64,
    clamp_range,
    quantize_multipliers,
    requantize_64,
    short_multiplier,
)
from tinyet.opset import Constant, FieldValue, Pointer

LARGEST = 1 << 15
"""The greatest magnitude of an input."""


def rescaling(factor: float, bound: int) -> str | None:
    """Why sums of magnitude up to `bound` cannot be rescaled by `factor` with requantize_64, or None."""
    try:
        _, shift = quantize_multipliers(factor)
    except QuantizationError:
        shift = np.array(MAX_SHIFT_64 + 1)
    if int(shift) > MAX_SHIFT_64 or bound * factor >= 2**29:
        return "the output's scale is too small for the sums"
    return "sums could overflow 47 bits" if bound >= 2**SUM_BITS_64 else None


def factors(node: Node) -> tuple[float, ...]:
    """scale(x) * scale(weights) / scale(out) of each output channel, in float64."""
    quant, channels = node.input(1).type.quant, node.input(1).shape[0]
    assert quant is not None
    scales = np.broadcast_to(np.array(quant.scale, np.float64), (channels,))
    return tuple((node.input(0).type.scale * scales / node.output.type.scale).tolist())


def check(node: Node) -> str | None:
    """The rule for a node whose input 0 and output are int16 and whose weights are int8, symmetric."""
    x, weights, bias = node.input(0), node.input(1), node.optional_input(2)
    if (x.type.zero_point, node.output.type.zero_point) != (0, 0):
        return "int16 has no zero points but 0"
    if bias is not None and bias.dtype is not DType.INT64:
        return "the bias must be int64"
    rows = np.abs(weights.array.astype(np.int64)).reshape(weights.shape[0], -1).sum(axis=1)
    offsets = [0] * len(rows) if bias is None else [abs(int(b)) for b in bias.array]
    for row, offset, factor in zip(rows, offsets, factors(node), strict=True):
        complaint = rescaling(factor, LARGEST * int(row) + offset)
        if complaint is not None:
            return complaint
    return None


def rescaled(node: Node, sums: Int64, clamp: tuple[float, float]) -> Array:
    """int16 of the exact sums (…, channels), bias and all."""
    multiplier, shift = quantize_multipliers(factors(node))
    low, high = clamp_range(clamp, node.output.type)
    return np.clip(requantize_64(sums, multiplier, shift), low, high).astype(np.int16)


# ---------------------------------------------------------------- kernels


def fits_32(weights: Array) -> bool:
    """Whether every channel's whole sum of products, without bias, fits in 32 bits. weights: (channels, …)."""
    rows = np.abs(weights.astype(np.int64)).reshape(weights.shape[0], -1).sum(axis=1)
    return int(rows.max(initial=0)) * LARGEST < 2**31


def block_pairs(weights: Array) -> int:
    """How many pairs of products a sum of 32 bits holds: all of them where the weights prove it, else 254, which
    holds for any weights. weights: (channels, …)."""
    return (weights[0].size + 1) // 2 if fits_32(weights) else 254


def constants(node: Node, weights: Constant, round_to: int = 1) -> tuple[Constant, ...]:
    """The four arrays of a kernel; the bias is filled up with zeros to a multiple of `round_to`."""
    bias, channels = node.optional_input(2), node.input(1).shape[0]
    values = np.zeros(channels, np.int64) if bias is None else bias.array.astype(np.int64)
    multiplier, shift = quantize_multipliers(factors(node))
    return (
        weights,
        Constant("bias", np.pad(values, (0, -channels % round_to)), align=8),
        Constant("multiplier", short_multiplier(multiplier).astype(np.int16)),
        Constant("shift", (15 - shift).astype(np.int8)),
    )


def fields(node: Node, clamp: tuple[float, float]) -> dict[str, FieldValue]:
    """The fields of a kernel's quantization, in the order of the C structs."""
    low, high = clamp_range(clamp, node.output.type)
    return {
        "weights": Pointer("weights"),
        "bias": Pointer("bias"),
        "multiplier": Pointer("multiplier"),
        "shift": Pointer("shift"),
        "block": block_pairs(node.input(1).array),
        "clamp_low": low,
        "clamp_high": high,
    }
