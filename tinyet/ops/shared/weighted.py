# SPDX-License-Identifier: Apache-2.0
"""Shared parts of layers with constant weights (input 1) and a bias (input 2): type rule, rounding, constants of
kernels.

int8 is LiteRT's per-channel rule, int16 is in weighted_s16.py. The C structs are those of tinyet_conv2d.h.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node
from tinyet.numerics import Int64
from tinyet.ops.shared import factors, weighted_s16
from tinyet.ops.shared.clamped import clamp_complaint, clamp_fields
from tinyet.ops.shared.factors import half_even_factors, output_factors
from tinyet.ops.shared.integers import check_activations, magnitudes, representable
from tinyet.ops.shared.packing import requantize_form
from tinyet.opset import Constant, FieldValue, Pointer, Struct

WEIGHTED_FORMS = tuple((x, w, x) for x in (DType.INT8, DType.INT16) for w in (DType.INT8, DType.INT4))
"""Integer types of x, weights and output. int4 weights are int8 ones of a smaller range."""


def expect_bias(node: Node, count: int, what: str) -> None:
    """Raises UnsupportedShape for a bias that is not one number for each of `count` outputs, called `what`."""
    bias = node.optional_input(2)
    if bias is not None and bias.shape != (count,):
        raise UnsupportedShape(f"{node.op}: bias of shape {bias.shape} for {count} {what}", node.where)


def check_weighted(node: Node) -> str | None:
    """The type rule."""
    x, weights, bias, out = node.input(0), node.input(1), node.optional_input(2), node.output
    if not weights.is_constant or (bias is not None and not bias.is_constant):
        return "weights and bias must be constants"
    complaint = clamp_complaint(node)
    if complaint is not None:
        return complaint
    if x.dtype is DType.FLOAT32:
        if weights.dtype is not DType.FLOAT32 or out.dtype is not DType.FLOAT32:
            return "a float input needs float weights and a float output"
        return None if bias is None or bias.dtype is DType.FLOAT32 else "a float input needs a float bias"
    dtypes = x.dtype, weights.dtype, out.dtype
    if dtypes not in WEIGHTED_FORMS:
        return f"no {x.dtype.value} by {weights.dtype.value} to {out.dtype.value} form"
    complaint = check_activations(x, out)
    if complaint is not None:
        return complaint
    quant = weights.type.quant
    if quant is None or any(quant.zero_point):
        return "weights must be quantized symmetrically (zero point 0)"
    if quant.axis not in (None, 0):
        return f"weights are quantized along axis {quant.axis}, not along the output channels"
    if x.dtype is DType.INT16:
        return (
            "sums of int16 are not rounded to even"
            if factors.rounds_half_even(node)
            else weighted_s16.check(node)
        )
    if factors.has_int32_accumulator(node):
        return f"sums of {x.dtype.value} are short as they are"
    if bias is not None and bias.dtype is not DType.INT32:
        return "the bias must be int32"
    # |x - zero_point| <= 255 and |weight| <= 128: the sum must not leave int32.
    magnitude = 255 * magnitudes(weights.array) + np.abs(int_bias(node))
    if int(magnitude.max(initial=0)) >= 2**31:
        return "sums could overflow 32 bits"
    if factors.rounds_half_even(node):
        if weights.dtype is DType.INT4:
            return "sums of int4 weights are not rounded to even"
        return (
            None
            if representable(lambda: half_even_factors(node).size > 0)
            else "a factor is no normal float32"
        )
    fits = representable(lambda: factors.shifts_fit(magnitude, output_factors(node)[1]))
    return None if fits else "the output's scale is too small for the sums"


def operands(inputs: Sequence[Array | None]) -> tuple[Array, Array, Array | None]:
    """x, weights and bias of a node."""
    x, weights, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    assert x is not None
    assert weights is not None
    return x, weights, bias


def rescaled(node: Node, sums: Int64) -> Array:
    """The integer output of exact sums (…, channels), bias and all."""
    if factors.rounds_half_even(node):
        return factors.rescaled_half_even(node, sums, half_even_factors(node))
    return factors.rescaled(node, sums, *output_factors(node))


# ---------------------------------------------------------------- constants


def int_bias(node: Node) -> Int64:
    """The integer bias (channels,), zeros where the node has none; int64 here."""
    bias = node.optional_input(2)
    count = node.input(1).shape[0]
    return np.zeros(count, np.int64) if bias is None else bias.array.astype(np.int64)


def float_bias(node: Node) -> npt.NDArray[np.float32]:
    """The float bias (channels,), zeros where the node has none."""
    bias, channels = node.optional_input(2), node.input(1).shape[0]
    return np.zeros(channels, np.float32) if bias is None else bias.array.astype(np.float32)


def folded_bias(node: Node) -> Int64:
    """bias - zero_point * sum(weights): with it, padding that reads as the zero point contributes nothing."""
    weights = node.input(1).array.astype(np.int64)
    sums = weights.reshape(weights.shape[0], -1).sum(axis=1)
    return np.asarray(int_bias(node) - node.input(0).type.zero_point * sums, np.int64)


def constants(node: Node, weights: Constant) -> tuple[Constant, ...]:
    """The arrays of a kernel that takes zero points and bias as they are: weights, bias, and in integers multiplier
    and shift of each channel."""
    dtype = node.input(0).dtype
    if dtype is DType.FLOAT32:
        return weights, Constant("bias", float_bias(node))
    if dtype is DType.INT16:
        return weighted_s16.constants(node, weights)
    bias = factors.bias_constant(int_bias(node), dtype)
    if factors.rounds_half_even(node):
        return weights, bias, *factors.half_even_constants(half_even_factors(node))
    return weights, bias, *factors.factor_constants(*output_factors(node), dtype)


def folded_constants(node: Node, weights: Constant, round_to: int = 1) -> tuple[Constant, ...]:
    """The four arrays of an integer kernel that folds the zero point into the bias and, in int8, has forms instead of
    shifts; the bias is filled up with zeros to a multiple of `round_to`."""
    if node.input(0).dtype is DType.INT16:
        return weighted_s16.constants(node, weights, round_to)
    bias = folded_bias(node)
    if factors.rounds_half_even(node):
        padded = np.pad(bias, (0, -len(bias) % round_to)).astype(np.int32)
        return weights, Constant("bias", padded), *factors.half_even_constants(half_even_factors(node))
    multiplier, shift = output_factors(node)
    form = requantize_form(node.input(1).array, bias, shift)
    return (
        weights,
        Constant("bias", np.pad(bias, (0, -len(bias) % round_to)).astype(np.int32)),
        Constant("multiplier", multiplier.astype(np.int32)),
        Constant("shift", form.astype(np.int8), "as tinyet_requantize_form"),
    )


# ---------------------------------------------------------------- parameters


def number_fields(node: Node) -> dict[str, FieldValue]:
    """All of a kernel's parameters but shapes, in the order of the C structs."""
    dtype = node.input(0).dtype
    if dtype is DType.INT16:
        return weighted_s16.fields(node)
    arrays = ("weights", "bias") if dtype is DType.FLOAT32 else ("weights", "bias", "multiplier", "shift")
    fields: dict[str, FieldValue] = {name: Pointer(name) for name in arrays}
    if dtype is DType.INT8:
        fields["in_zero_point"] = node.input(0).type.zero_point
        fields["out_zero_point"] = node.output.type.zero_point
    return {**fields, **clamp_fields(node)}


def layer_params(node: Node, name: str, shape: Struct) -> Struct:
    """`<name>_<dtype>_params`: the shape, and number_fields in the struct that all convolutions have."""
    dtype = node.input(0).dtype
    role = "values" if dtype is DType.FLOAT32 else "quant"
    numbers = Struct(f"tinyet_conv2d_{dtype.suffix}_{role}", number_fields(node))
    return Struct(f"{name}_{dtype.suffix}_params", {"shape": shape, role: numbers})
