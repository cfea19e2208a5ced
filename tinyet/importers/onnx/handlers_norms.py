# SPDX-License-Identifier: Apache-2.0
"""Handlers of softmax and of normalisations."""

from __future__ import annotations

import math

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context
from tinyet.importers.onnx.handlers_elements import last_bits
from tinyet.importers.onnx.handlers_layers import in_float, integer_target
from tinyet.importers.onnx.handlers_shape import moved, tensor_of
from tinyet.importers.onnx.values import Bytes, Value, axis_of, plain_reals, shape_of
from tinyet.ir import Tensor
from tinyet.numerics import Float64
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.softmax import Softmax

_LAST_OF_MATRICES = 12
"""The last opset whose softmax took all dimensions from `axis` on together; a QLinearSoftmax says of which it is."""


def softmax(ctx: Context) -> Value:
    """ONNX Runtime's QLinearSoftmax, where there is one; the logarithm has none."""
    x = ctx.value(0)
    shape = shape_of(x)
    axis = axis_of(ctx.attribute("axis", -1), len(shape))
    if ctx.attribute("opset", _LAST_OF_MATRICES + 1) <= _LAST_OF_MATRICES:
        flat = moved(x, ctx.reshape(tensor_of(ctx, x), (math.prod(shape[:axis]), math.prod(shape[axis:]))))
        y = along(ctx, flat, 1)
        return moved(y, ctx.reshape(tensor_of(ctx, y), shape))
    return along(ctx, x, axis)


def along(ctx: Context, x: Value, axis: int) -> Value:
    """Softmax, or its logarithm, of one axis."""
    target = integer_target(x, ctx.target())
    if ctx.node.op == "Softmax" and isinstance(x, Bytes) and target is not None:
        quant = target.per_tensor()
        y = ctx.emit(Softmax(axis, rounding="half_even"), [x.tensor], quant)
        return Bytes(y, target.dtype == "uint8", plain_reals(quant))
    in_float(ctx)
    return ctx.emit((Softmax if ctx.node.op == "Softmax" else LogSoftmax)(axis), [ctx.real(x)])


def by_channel(ctx: Context, x: Tensor, multiplier: Float64, offset: Float64) -> Tensor:
    """multiplier[c] * x + offset[c] along axis 1."""
    held = [
        ctx.held(name, np.asarray(data, np.float32))
        for name, data in (("multiplier", multiplier), ("offset", offset))
    ]
    return ctx.emit(BatchNorm(1), [x, *held])


def numbers_by_channel(ctx: Context, position: int, role: str) -> Float64:
    return ctx.weights(position, role).astype(np.float64).reshape(-1)


def batch_norm(ctx: Context) -> Value:
    """y = (x - mean) / sqrt(variance + epsilon) * scale + bias, as one multiplication and one addition."""
    last_bits(ctx)
    x = ctx.real(ctx.value(0))
    roles = ("weight", "bias", "mean", "variance")
    scale, bias, mean, variance = (numbers_by_channel(ctx, i, role) for i, role in enumerate(roles, 1))
    if ctx.attribute("training_mode", 0):
        raise RefusedError("is in training mode", "export in eval mode")
    if len({p.size for p in (scale, bias, mean, variance)}) != 1:
        raise RefusedError("has statistics of different sizes")
    with np.errstate(all="ignore"):
        multiplier = scale * (1 / np.sqrt(variance + ctx.attribute("epsilon", 1e-5)))
    return by_channel(ctx, x, multiplier, bias - mean * multiplier)


def layer_norm(ctx: Context) -> Value:
    """Over all dimensions from `axis` on."""
    last_bits(ctx)
    if len(ctx.node.outputs) > 1 and any(ctx.readers.get(name) for name in ctx.node.outputs[1:]):
        raise RefusedError("gives mean and deviation", "leave its other outputs away")
    x = ctx.real(ctx.value(0))
    axis = axis_of(ctx.attribute("axis", -1), len(x.shape))
    held: list[Tensor | None] = []
    for position, role in ((1, "scale"), (2, "bias")):
        if not ctx.has(position):
            held.append(None)
            continue
        data, wanted = ctx.weights(position, role), x.shape[axis:]
        padded = (1,) * (len(wanted) - data.ndim) + data.shape
        if len(padded) != len(wanted) or any(n not in (1, m) for n, m in zip(padded, wanted, strict=True)):
            raise RefusedError(f"has a {role} of shape {data.shape} for {wanted}")
        ctx.budget.hold(4 * math.prod(wanted))
        held.append(ctx.held(role, np.broadcast_to(data, wanted).copy()))
    return ctx.emit(LayerNorm(axis, ctx.attribute("epsilon", 1e-5)), [x, *held])


def group_norm(ctx: Context) -> Value:
    """A layer norm of each group of channels, then the scale and offset of each channel. Before opset 21 ONNX's
    GroupNormalization had a scale for each group."""
    last_bits(ctx)
    x = ctx.real(ctx.value(0))
    if len(x.shape) < 3:
        raise RefusedError(f"works on {len(x.shape)} dimensions", "images have 4, rows 3")
    batch, channels = x.shape[:2]
    groups = channels if ctx.node.op == "InstanceNormalization" else ctx.attribute("num_groups", 0)
    if groups < 1 or channels % groups:
        raise RefusedError(f"has {groups} groups of {channels} channels")
    scale, bias = (numbers_by_channel(ctx, i, role) for i, role in ((1, "scale"), (2, "bias")))
    if scale.size == bias.size == groups:
        scale, bias = (np.repeat(p, channels // groups) for p in (scale, bias))
    if not scale.size == bias.size == channels:
        raise RefusedError(f"has {scale.size} scales for {channels} channels")
    flat = ctx.reshape(x, (batch, groups, x.type.count // (batch * groups)))
    normed = ctx.emit(LayerNorm(2, ctx.attribute("epsilon", 1e-5)), [flat, None, None])
    return by_channel(ctx, ctx.reshape(normed, x.shape), scale, bias)
