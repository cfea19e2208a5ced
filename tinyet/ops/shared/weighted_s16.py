# SPDX-License-Identifier: Apache-2.0
"""Shared parts of layers with int16 activations and int8 weights ("16x8"): type rule, rounding, constants of kernels.

LiteRT's rule: zero points are 0, the bias is int64 at scale(x) * scale(weights), sums are exact, and each is
rescaled by numerics.requantize_64. Kernels add up in 32 bits as far as the weights, which are known, allow. Where a
layer's rounding is `int32_accumulator`, the sums have to fit in 32 bits, and numerics.requantize rescales them.
"""

from __future__ import annotations

import numpy as np

from tinyet.errors import QuantizationError
from tinyet.ir import Array, DType, Node
from tinyet.numerics import MAX_SHIFT_64, SUM_BITS_64, quantize_multipliers
from tinyet.ops.shared.clamped import clamp_fields
from tinyet.ops.shared.factors import (
    bias_constant,
    channel_factors,
    factor_constants,
    has_int32_accumulator,
    output_factors,
    shifts_fit,
)
from tinyet.ops.shared.integers import magnitudes, representable
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


def check(node: Node) -> str | None:
    """The rule for a node whose input 0 and output are int16 and whose weights are int8, symmetric."""
    x, weights, bias = node.input(0), node.input(1), node.optional_input(2)
    if (x.type.zero_point, node.output.type.zero_point) != (0, 0):
        return "int16 has no zero points but 0"
    if bias is not None and bias.dtype is not DType.INT64:
        return "the bias must be int64"
    rows = magnitudes(weights.array)
    offsets = [0] * len(rows) if bias is None else [abs(int(b)) for b in bias.array]
    if has_int32_accumulator(node):
        return check_int32_accumulator(
            node, max(LARGEST * int(row) + b for row, b in zip(rows, offsets, strict=True))
        )
    for row, offset, factor in zip(rows, offsets, channel_factors(node), strict=True):
        complaint = rescaling(float(factor), LARGEST * int(row) + offset)
        if complaint is not None:
            return complaint
    return None


def check_int32_accumulator(node: Node, bound: int) -> str | None:
    """The rule for sums of magnitude up to `bound` that have 32 bits."""
    if node.input(1).dtype is DType.INT4:
        return "sums of int4 weights are not short"
    if bound >= 2**31:
        return "sums could overflow 32 bits"
    fits = representable(lambda: shifts_fit(bound, output_factors(node)[1]))
    return None if fits else "the output's scale is too small for the sums"


# ---------------------------------------------------------------- kernels


def fits_32(weights: Array) -> bool:
    """Whether every channel's whole sum of products, without bias, fits in 32 bits. weights: (channels, …)."""
    return int(magnitudes(weights).max(initial=0)) * LARGEST < 2**31


def block_pairs(weights: Array) -> int:
    """Number of product pairs that fit a 32-bit sum: all of them where the weights prove it, else 254, which holds
    for any weights. weights: (channels, …)."""
    return (weights[0].size + 1) // 2 if fits_32(weights) else 254


def constants(node: Node, weights: Constant, round_to: int = 1) -> tuple[Constant, ...]:
    """The four arrays of a kernel, those of short sums as in int8; the bias is filled up with zeros to a multiple of
    `round_to`."""
    bias, channels = node.optional_input(2), node.input(1).shape[0]
    values = np.zeros(channels, np.int64) if bias is None else bias.array.astype(np.int64)
    form = DType.INT8 if has_int32_accumulator(node) else DType.INT16
    stored = bias_constant(np.pad(values, (0, -channels % round_to)), form)
    return weights, stored, *factor_constants(*output_factors(node), form)


def fields(node: Node) -> dict[str, FieldValue]:
    """The fields of a kernel's quantization, in the order of the C structs."""
    pointers = {name: Pointer(name) for name in ("weights", "bias", "multiplier", "shift")}
    return {**pointers, "block": block_pairs(node.input(1).array), **clamp_fields(node)}
