# SPDX-License-Identifier: Apache-2.0
"""Shared parts of Sum and Mean: exact sums that are requantized, float sums in order, and their C functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import QuantizationError
from tinyet.ir import Array, DType, Node
from tinyet.ir.limits import SMALLEST_SCALE
from tinyet.numerics import Multiplier, quantize_multiplier, requantize, requantize_half_even
from tinyet.ops.shared import factors, reduction, row_sums
from tinyet.ops.shared.integers import representable, saturated
from tinyet.opset import (
    Call,
    FieldValue,
    Kernel,
    ReduceTiles,
    Reference,
    Struct,
    TileMap,
    library_call,
    library_kernels,
)


def sum_multiplier(node: Node) -> Multiplier:
    """scale(input) / scale(output), in float64."""
    return quantize_multiplier(node.input(0).type.scale / node.output.type.scale)


def mean_multiplier(node: Node) -> Multiplier:
    """The same divided by the number of elements as LiteRT does it: the integer multiplier, truncated.

    multiplier << floor(log2 count) keeps the quotient's precision; the shift is kept at -31 or more.
    """
    whole, elements = sum_multiplier(node), reduction.count(node)
    extra = min(elements.bit_length() - 1, 32, 31 + whole.shift)
    return Multiplier((whole.multiplier << extra) // elements, whole.shift - extra)


def half_even_factor(node: Node) -> np.float32:
    """scale(input) / (scale(output) * count) in float32, as ONNX Runtime's global average pool divides. Raises
    QuantizationError where that is no normal float32."""
    with np.errstate(over="ignore", under="ignore"):
        elements = np.float32(node.output.type.scale) * np.float32(reduction.count(node))
        factor = np.float32(node.input(0).type.scale) / elements
    if not SMALLEST_SCALE <= factor < np.inf:
        raise QuantizationError(f"the factor of the mean is {factor:.6g}, no normal float32")
    return np.float32(factor)


def half_even_bits(node: Node) -> int:
    """The same as C has it where other roundings have a multiplier."""
    return int(half_even_factor(node).view(np.int32))


def check_of(multiplier: Callable[[Node], Multiplier]) -> Callable[[Node], str | None]:
    """|x - zero point| <= 255 (int16: 2**15), and the sum must not leave int32, nor when it is requantized."""

    def check(node: Node) -> str | None:
        largest = {DType.INT8: 255, DType.INT16: 1 << 15}.get(node.input(0).dtype, 0) * reduction.count(node)
        if largest >= 2**31:
            return "sums could overflow 32 bits"
        complaint = reduction.check(node)
        if complaint is not None or node.output.dtype is DType.FLOAT32:
            return complaint
        if factors.rounds_half_even(node):
            if node.input(0).dtype is not DType.INT8:
                return "only sums of int8 are rounded to even"
            return (
                None
                if representable(lambda: bool(half_even_factor(node) > 0))
                else "the factor is no float32"
            )
        fits = representable(lambda: factors.shifts_fit(largest, multiplier(node).shift))
        return None if fits else "the output's scale is too small for the sums"

    return check


def reference_of(multiplier: Callable[[Node], Multiplier], divisor: Callable[[Node], float]) -> Reference:
    """Sums requantized by `multiplier` (integers) or divided by `divisor` (float32)."""

    def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        x = inputs[0]
        assert x is not None
        if node.input(0).dtype is DType.FLOAT32:
            total = np.zeros(node.output.shape, np.float32)
            for part in reduction.slices(node, x):
                total = total + part.astype(np.float32)
            return (np.asarray(total / np.float32(divisor(node)), np.float32),)
        offset = node.input(0).type.zero_point * reduction.count(node)
        sums = x.astype(np.int64).sum(axis=reduction.attrs_of(node).axes).reshape(node.output.shape) - offset
        if factors.rounds_half_even(node):
            even = requantize_half_even(sums, half_even_factor(node)) + node.output.type.zero_point
            return (saturated(even, node.output.dtype),)
        factor = multiplier(node)
        out = requantize(sums, factor.multiplier, factor.shift) + node.output.type.zero_point
        return (saturated(out, node.output.dtype),)

    return reference


def reduce_tiles(multiplier: Callable[[Node], Multiplier]) -> ReduceTiles:
    """Of a sum over height and width of an image, or over all positions of a sequence."""

    def tiles(node: Node, rows: int) -> TileMap | None:
        x, axes = node.input(0), reduction.attrs_of(node).axes
        last = len(x.shape) - 1
        summed = all(axis in axes for axis in range(last) if x.shape[axis] > 1)
        if not summed or last in axes or x.dtype is DType.FLOAT32:
            return None
        if factors.rounds_half_even(node):
            return None
        return row_sums.rule(node, rows, -x.type.zero_point * reduction.count(node), multiplier(node))

    return tiles


def kernels_of(
    multiplier: Callable[[Node], Multiplier],
    divisor: Callable[[Node], float],
    *,
    half_even: bool = False,
) -> tuple[Kernel, ...]:
    """The C functions of Sum, for the same two; one more for an operator that may round to even."""

    def lower(node: Node, _target: Target) -> Call:
        dtype = node.input(0).dtype
        fields: dict[str, FieldValue] = {"shape": reduction.shape_struct(node)}
        if dtype is DType.FLOAT32:
            fields["divisor"] = divisor(node)
        else:
            even = factors.rounds_half_even(node)
            factor = Multiplier(half_even_bits(node), 0) if even else multiplier(node)
            numbers = {"multiplier": factor.multiplier, "shift": factor.shift}
            bias = -node.input(0).type.zero_point * reduction.count(node)
            zero_point = {"out_zero_point": node.output.type.zero_point}
            fields |= {"bias": bias, **numbers, **zero_point} if dtype is DType.INT8 else numbers
        params = Struct(f"tinyet_sum_{dtype.suffix}_params", fields)
        behind = "_rne" if factors.rounds_half_even(node) else ""
        return library_call(f"tinyet_sum_{dtype.suffix}{behind}", node, [0], params)

    headers = ("tinyet_reduce.h",)
    even = Kernel(
        "tinyet_sum_s8_rne",
        "s8_rne",
        lower,
        (*headers, "tinyet_rne.h"),
        ("tinyet_sum_s8_rne.c",),
        reduction.refuse,
    )
    plain = library_kernels("tinyet_sum", ("s8", "s16", "f32"), lower, headers, reduction.refuse)
    return (*plain, even) if half_even else plain
