# SPDX-License-Identifier: Apache-2.0
"""Batch normalization that no convolution absorbed: out = multiplier[c] * x + offset[c] along one axis.

int8: a depthwise 1x1 convolution whose weights are -127, 127 or 0: sum = weight * (x - zero_point) + bias,
requantized per channel with scale |multiplier| / 127 (in float64). Where the offset is so large beside the
multiplier that the bias would leave 23 bits, the channel's scale grows and its weight shrinks accordingly.
int16: the same with weights of 16 bits (up to 32767), biases of 31 and sums of 64 (numerics.requantize_64).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import NO_CLAMP, Int64, float32, quantize_multipliers, round_half_away
from tinyet.ops.shared import factors, weighted_s16
from tinyet.ops.shared.clamped import clamp_complaint, clamp_fields
from tinyet.ops.shared.cost_models import Parts, outputs
from tinyet.ops.shared.integers import check_activations
from tinyet.ops.shared.shapes import around_axis
from tinyet.opset import (
    AXIS,
    Call,
    Constant,
    CostModel,
    FieldValue,
    Iteration,
    Nest,
    Op,
    Pointer,
    Struct,
    library_call,
    library_kernels,
    operand,
)

BIAS_LIMITS = {DType.INT8: 2**22, DType.INT16: 2**30}
"""Largest magnitude of a bias: in int8, with 8 bits of left shift the sum still fits 32 bits."""

LARGEST_FACTOR = 2.0**8


@dataclass(frozen=True)
class BatchNorm(Attrs):
    """inputs: x of any shape; multiplier (C,) and offset (C,), float32 constants in the integer form, too.

    axis: the dimension of x that has C elements. clamp: real bounds of the fused activation.
    """

    name: ClassVar[str] = "batch_norm"
    axis: int = field(metadata=AXIS)
    clamp: tuple[float, float] = NO_CLAMP


@dataclass(frozen=True, eq=False)
class Channels:
    """The integer form, all int64 (C,): sum = weight * (x - zero_point) + bias, requantized."""

    weight: Int64
    bias: Int64
    multiplier: Int64
    shift: Int64


def attrs_of(node: Node) -> BatchNorm:
    assert isinstance(node.attrs, BatchNorm)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape, axis = node.input(0).shape, attrs_of(node).axis
    if not 0 <= axis < len(shape):
        raise UnsupportedShape(f"batch_norm: axis {axis} of {len(shape)} dimensions", node.where)
    for index in (1, 2):
        if node.input(index).shape != (shape[axis],):
            what = f"{node.input(index).shape} factors for {shape[axis]} channels"
            raise UnsupportedShape(f"batch_norm: {what}", node.where)
    return (shape,)


def iterate(node: Node) -> Iteration:
    nest = Nest()
    out = nest.all_parallel(node.output.shape)
    channel = operand(out[attrs_of(node).axis])
    return nest.iteration([operand(*out), channel, channel], [operand(*out)])


def check(node: Node) -> str | None:
    for constant in (node.input(1), node.input(2)):
        if not constant.is_constant or constant.dtype is not DType.FLOAT32:
            return "multiplier and offset must be float32 constants"
        if not np.isfinite(constant.array.astype(np.float64)).all():
            return "multiplier and offset must be finite"
    complaint = clamp_complaint(node)
    if complaint is not None:
        return complaint
    if node.input(0).dtype is not node.output.dtype:
        return f"no {node.input(0).dtype.value} to {node.output.dtype.value} form"
    if node.input(0).dtype is DType.FLOAT32:
        return None
    complaint = check_activations(node.input(0), node.output)
    if complaint is not None:
        return complaint
    factors = channel_scales(node) / node.output.type.scale
    if node.output.dtype is DType.INT16:
        bound = weighted_s16.LARGEST * 32767 + int(np.abs(channels(node).bias).max(initial=0))
        return weighted_s16.rescaling(float(factors.max(initial=0)), bound)
    return "the output's scale is far too small" if factors.max(initial=0) >= LARGEST_FACTOR else None


def channel_scales(node: Node) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The real value of one unit of each channel's sum: float64 (C,)."""
    factor = np.abs(node.input(1).array.astype(np.float64)) * node.input(0).type.scale
    offset = np.abs(node.input(2).array.astype(np.float64))
    dtype = node.output.dtype
    unit = np.maximum(factor / dtype.range[1], offset / BIAS_LIMITS[dtype])
    return np.where(unit > 0, unit, node.output.type.scale)


def channels(node: Node) -> Channels:
    unit = channel_scales(node)
    weight = round_half_away(node.input(1).array.astype(np.float64) * node.input(0).type.scale / unit)
    bias = round_half_away(node.input(2).array.astype(np.float64) / unit)
    multiplier, shift = quantize_multipliers(unit / node.output.type.scale)
    return Channels(weight.astype(np.int64), bias.astype(np.int64), multiplier, shift)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    attrs, x = attrs_of(node), inputs[0]
    assert x is not None
    across = [1] * x.ndim
    across[attrs.axis] = -1
    if node.input(0).dtype is DType.FLOAT32:
        multiplier, offset = (node.input(i).array.astype(np.float32).reshape(across) for i in (1, 2))
        with np.errstate(over="ignore", invalid="ignore"):
            return (float32.clamp(x.astype(np.float32) * multiplier + offset, *attrs.clamp),)
    c = channels(node)
    sums = (x.astype(np.int64) - node.input(0).type.zero_point) * c.weight.reshape(across) + c.bias.reshape(
        across
    )
    return (factors.rescaled(node, sums, c.multiplier.reshape(across), c.shift.reshape(across)),)


# ---------------------------------------------------------------- portable kernels


def size_fields(node: Node) -> dict[str, FieldValue]:
    outer, count, inner = around_axis(node.input(0).shape, attrs_of(node).axis)
    return {"outer": outer, "channels": count, "inner": inner}


def lower_integer(node: Node, _target: Target) -> Call:
    c, out = channels(node), node.output.type
    constants = (
        Constant("weights", c.weight.astype(out.dtype.numpy)),
        factors.bias_constant(c.bias - node.input(0).type.zero_point * c.weight, out.dtype),
        *factors.factor_constants(c.multiplier, c.shift, out.dtype),
    )
    fields = size_fields(node)
    fields |= {constant.name: Pointer(constant.name) for constant in constants}
    if out.dtype is DType.INT8:
        fields["out_zero_point"] = out.zero_point
    params = Struct(f"tinyet_batch_norm_{out.dtype.suffix}_params", {**fields, **clamp_fields(node)})
    return library_call(f"tinyet_batch_norm_{out.dtype.suffix}", node, [0], params, constants)


def lower_f32(node: Node, _target: Target) -> Call:
    params = Struct("tinyet_batch_norm_f32_params", {**size_fields(node), **clamp_fields(node)})
    return library_call("tinyet_batch_norm_f32", node, [0, 1, 2], params)


def normalized(node: Node) -> Parts:
    """One channel's values after another's."""
    outer, count, _ = around_axis(node.input(0).shape, attrs_of(node).axis)
    return {"call": 1, "row": outer, "channel": outer * count, **outputs(node, node.output.type.count)}


HEADERS = ("tinyet_batch_norm.h",)

OP = Op(
    attrs=BatchNorm,
    summary="a factor and an offset for each channel, fused clamp",
    infer=infer,
    inputs=(3, 3),
    reference=reference,
    iteration=iterate,
    check=check,
    inplace=(0,),
    kernels=(
        *library_kernels(
            "tinyet_batch_norm", ("s8", "s16"), lower_integer, HEADERS, cost_model=CostModel(normalized)
        ),
        *library_kernels("tinyet_batch_norm", ("f32",), lower_f32, HEADERS, cost_model=CostModel(normalized)),
    ),
)
