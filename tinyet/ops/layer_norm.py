# SPDX-License-Identifier: Apache-2.0
"""Normalisation of the last dimensions to mean 0 and variance 1, then weight * x + bias.

int8 is defined here, in integers. With n elements x (less the zero point), S their sum and Q the sum of their
squares,

    (x_i - mean) / sqrt(variance + epsilon) = (n x_i - S) / sqrt(n Q - S² + E),   E = epsilon n² / scale²

so the zero point and the scale of the input cancel and nothing is rounded before the root. The root is an
integer one of a number shifted to 64 bits, its reciprocal has 31 bits, the normalised value 20 fraction bits;
weight and bias, divided by the output's scale, are integers of up to 30 bits. With weights around 1 and an
ordinary output scale the output is within half a step and 2**-9 of the real value; the error grows with the
largest weight, by 2**-20 of it.

float: mean, then the mean of squared differences, each summed in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape, Tensor
from tinyet.numerics import Float64, Int64, dequantize, float32, requantize
from tinyet.ops.shared import broadcast
from tinyet.ops.shared.counting import Parts
from tinyet.opset import (
    AXIS,
    Call,
    Constant,
    CostModel,
    Iteration,
    Kernel,
    Nest,
    Op,
    Pointer,
    Struct,
    library_call,
    operand,
)

# n² times the squares of two int8 differences must fit in 64 bits, and the sum of squares in unsigned 32
# bits.
MAX_COUNT = 65535
NORMAL_BITS = 20
ROUND_NORMAL = 1 << (NORMAL_BITS - 1)
LARGEST_EPSILON = 2.0**61
FINEST_OUTPUT = 2.0 ** (3 - NORMAL_BITS)
"""Output scale for a weight of 1: with finer ones the normalised value's rounding shows."""


@dataclass(frozen=True)
class LayerNorm(Attrs):
    """inputs: x; weight and bias of shape x.shape[axis:], float32 or int8 constants, or None.

    axis: the first normalised axis. epsilon: added to the variance.
    """

    name: ClassVar[str] = "layer_norm"
    axis: int = field(metadata=AXIS)
    epsilon: float = 1e-5


def attrs_of(node: Node) -> LayerNorm:
    assert isinstance(node.attrs, LayerNorm)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape, axis = node.input(0).shape, attrs_of(node).axis
    if not 0 <= axis < max(len(shape), 1):
        raise UnsupportedShape(f"layer_norm: no axis {axis} in {len(shape)} dimensions", node.where)
    for tensor in (node.optional_input(1), node.optional_input(2)):
        if tensor is not None and tensor.shape != shape[axis:]:
            raise UnsupportedShape(
                f"layer_norm: {tensor.name} has shape {tensor.shape}, not {shape[axis:]}", node.where
            )
    # The kernels read weight and bias: what the model does not bring is made, and would be as large as it likes.
    if count_of(node) > MAX_COUNT and (node.optional_input(1) is None or node.optional_input(2) is None):
        raise UnsupportedShape(
            f"layer_norm: {count_of(node)} normalised elements without weight and bias, at most {MAX_COUNT}",
            node.where,
        )
    return (shape,)


def iterate(node: Node) -> Iteration:
    nest, axis = Nest(), attrs_of(node).axis
    out = nest.all_parallel(node.output.shape)
    read = (*out[:axis], *nest.all_reduced(node.output.shape[axis:]))
    scales = [None if t is None else operand(*out[axis:]) for t in node.inputs[1:]]
    return nest.iteration([operand(*read), *scales], [operand(*out)])


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    complaint = broadcast.check_elementwise(node.replace(inputs=[x]))
    if complaint is not None:
        return complaint
    if not 0 <= attrs_of(node).epsilon < math.inf:
        return f"an epsilon of {attrs_of(node).epsilon}"
    for tensor in (node.optional_input(1), node.optional_input(2)):
        if tensor is None:
            continue
        if not tensor.is_constant:
            return "weight and bias must be constants"
        if tensor.dtype is not DType.FLOAT32 and (
            tensor.dtype is not DType.INT8 or tensor.type.quant is None
        ):
            return f"{tensor.name} must be float32 or quantized to int8"
        if out.dtype is DType.FLOAT32 and tensor.dtype is not DType.FLOAT32:
            return "a float input needs float weights"
        if out.dtype is DType.INT8 and not np.isfinite(tensor.array.astype(np.float64)).all():
            return f"{tensor.name} must be finite"
    if out.dtype is DType.INT8 and count_of(node) > MAX_COUNT:
        return f"{count_of(node)} normalised elements, at most {MAX_COUNT}"
    if out.dtype is DType.INT8:
        if real_epsilon(node) >= LARGEST_EPSILON:
            return (
                f"an input scale of {x.type.scale} is too small beside an epsilon of {attrs_of(node).epsilon}"
            )
        weight = parameter(node.optional_input(1), count_of(node), 1)
        if out.type.scale < FINEST_OUTPUT * float(np.abs(weight).max()):
            return f"an output scale of {out.type.scale} is finer than the normalised values"
    return None


def count_of(node: Node) -> int:
    return math.prod(node.input(0).shape[attrs_of(node).axis :])


def parameter(tensor: Tensor | None, count: int, missing: float) -> Float64:
    """A weight or bias as real numbers, float64 (count,)."""
    if tensor is None:
        return np.full(count, missing)
    values = tensor.array
    if tensor.type.quant is not None:
        values = dequantize(values, tensor.type.quant)
    return values.astype(np.float64).reshape(count)


# ---------------------------------------------------------------- int8


@dataclass(frozen=True, eq=False)
class Integers:
    """The constants of the int8 form. weight, bias: int64 (n,), in units of 2**-shift output steps. epsilon:
    E with 2 * half_fraction fraction bits, which matter for few elements that hardly differ."""

    weight: Int64
    bias: Int64
    shift: int
    epsilon: int
    half_fraction: int


def integers(node: Node) -> Integers:
    count, out_scale = count_of(node), node.output.type.scale
    weight = parameter(node.optional_input(1), count, 1) / out_scale
    bias = parameter(node.optional_input(2), count, 0) / out_scale
    # |normalised value| <= sqrt(n); everything that is summed stays below 2**30.
    reach = float(np.abs(weight).max()) * math.sqrt(count) + float(np.abs(bias).max()) + 1
    shift = min(max(29 - math.ceil(math.log2(reach)), 0), 22)
    limit = 2.0**29
    # n Q - S² is at most (n * 255 / 2)²; with the fraction bits it stays below 2**61.
    half_fraction = min((61 - 2 * (count * 128).bit_length()) // 2, 15)
    epsilon = real_epsilon(node)
    # So does E.
    half_fraction = min(half_fraction, (61 - math.frexp(max(epsilon, 1.0))[1]) // 2)
    epsilon *= 4.0**half_fraction
    return Integers(
        np.rint(np.clip(weight * 2.0**shift, -limit / math.sqrt(count), limit / math.sqrt(count))).astype(
            np.int64
        ),
        np.rint(np.clip(bias * 2.0**shift, -limit, limit)).astype(np.int64),
        shift,
        round(epsilon),
        half_fraction,
    )


def real_epsilon(node: Node) -> float:
    """E, a real number."""
    return attrs_of(node).epsilon * count_of(node) ** 2 / node.input(0).type.scale ** 2


def reciprocal_root(x: int) -> tuple[int, int]:
    """1 / sqrt(x) for 1 <= x < 2**63 as (multiplier, shift): multiplier * 2**(shift - 31), multiplier <
    2**31."""
    pairs = (64 - x.bit_length()) // 2
    root = math.isqrt(x << (2 * pairs))  # 2**31 <= root < 2**32
    return min((1 << 62) // root, 2**31 - 1), pairs


def normalise(x: Int64, constants: Integers) -> Int64:
    """int64 (rows, n) less the zero point → output steps without the output's zero point."""
    count = x.shape[1]
    sums, squares = x.sum(axis=1), (x * x).sum(axis=1)
    result = np.empty_like(x)
    for i in range(x.shape[0]):
        spread = count * int(squares[i]) - int(sums[i]) ** 2
        spread = (spread << (2 * constants.half_fraction)) + constants.epsilon
        # Equal elements give 0 whatever the root; one unit keeps its shift within 31 bits.
        multiplier, pairs = reciprocal_root(max(spread, 1 << (2 * constants.half_fraction)))
        # multiplier * 2**(pairs - 62) is the reciprocal root; twenty bits of the quotient are fraction.
        shift = pairs + constants.half_fraction - 31 + NORMAL_BITS
        normal = requantize(count * x[i] - sums[i], multiplier, shift)
        scaled = (normal * constants.weight + ROUND_NORMAL) >> NORMAL_BITS
        result[i] = (scaled + constants.bias + ((1 << constants.shift) >> 1)) >> constants.shift
    return result


def reference_s8(node: Node, x: Array) -> Array:
    rows = x.astype(np.int64).reshape(-1, count_of(node)) - node.input(0).type.zero_point
    out = normalise(rows, integers(node)) + node.output.type.zero_point
    return np.clip(out, -128, 127).astype(np.int8).reshape(x.shape)


def reference_f32(node: Node, x: float32.Float32) -> float32.Float32:
    count = count_of(node)
    rows = x.reshape(-1, count)
    share = np.float32(1) / np.float32(count)
    with np.errstate(all="ignore"):
        shifted = np.asarray(rows - float32.sum_in_order(rows) * share, np.float32)
        variance = np.asarray(float32.sum_in_order(shifted * shifted) * share, np.float32)
        scale = np.float32(1) / float32.sqrt(variance + np.float32(attrs_of(node).epsilon))
        weight, bias = (
            parameter(node.optional_input(i), count, missing).astype(np.float32)
            for i, missing in ((1, 1), (2, 0))
        )
        return np.asarray(shifted * scale * weight + bias, np.float32).reshape(x.shape)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    if node.output.dtype is DType.FLOAT32:
        return (reference_f32(node, x.astype(np.float32)),)
    return (reference_s8(node, x),)


# ---------------------------------------------------------------- portable kernels


def lower_s8(node: Node, target: Target) -> Call:
    count, constants = count_of(node), integers(node)
    params = Struct(
        "tinyet_layer_norm_s8_params",
        {
            "weight": Pointer("weight"),
            "bias": Pointer("bias"),
            "epsilon": constants.epsilon,
            "rows": node.output.type.count // count,
            "count": count,
            "half_fraction": constants.half_fraction,
            "shift": constants.shift,
            "in_zero_point": node.input(0).type.zero_point,
            "out_zero_point": node.output.type.zero_point,
        },
    )
    arrays = (
        Constant("weight", constants.weight.astype(np.int32)),
        Constant("bias", constants.bias.astype(np.int32)),
    )
    return library_call("tinyet_layer_norm_s8", node, [0], params, arrays)


def lower_f32(node: Node, target: Target) -> Call:
    count = count_of(node)
    params = Struct(
        "tinyet_layer_norm_f32_params",
        {
            "weight": Pointer("weight"),
            "bias": Pointer("bias"),
            "epsilon": attrs_of(node).epsilon,
            "rows": node.output.type.count // count,
            "count": count,
        },
    )
    arrays = (
        Constant("weight", parameter(node.optional_input(1), count, 1).astype(np.float32)),
        Constant("bias", parameter(node.optional_input(2), count, 0).astype(np.float32)),
    )
    return library_call("tinyet_layer_norm_f32", node, [0], params, arrays)


def normalized(node: Node) -> Parts:
    """The root of a row's variance takes as many steps whatever it is, the branches in them do not."""
    count = node.output.type.count
    return {"call": 1, "row": count // count_of(node), "value": count}


HEADERS = ("tinyet_layer_norm.h",)

OP = Op(
    attrs=LayerNorm,
    summary="normalisation of the last dimensions, with weight and bias",
    infer=infer,
    inputs=(1, 3),
    reference=reference,
    iteration=iterate,
    check=check,
    inplace=(0,),
    kernels=(
        Kernel(
            "tinyet_layer_norm_s8",
            "s8",
            lower_s8,
            HEADERS,
            ("tinyet_layer_norm_s8.c",),
            cost_model=CostModel(normalized),
        ),
        Kernel(
            "tinyet_layer_norm_f32",
            "f32",
            lower_f32,
            (*HEADERS, "tinyet_math.h"),
            ("tinyet_layer_norm_f32.c",),
            cost_model=CostModel(normalized),
        ),
    ),
)
