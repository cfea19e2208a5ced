# SPDX-License-Identifier: Apache-2.0
"""Handlers of layers that quantize their input at run time: DynamicLinear and DynamicConv2d by ONNX's rule. Sums are
exact, and what is computed of them in float32 is in ONNX Runtime's order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context
from tinyet.importers.onnx.dynamic import CONVOLUTION
from tinyet.importers.onnx.handlers_layers import (
    Weights,
    integer_weights,
    name_of,
    nhwc,
    read_for,
    window,
)
from tinyet.importers.onnx.values import Numbers, Scale, Value
from tinyet.ir import Tensor
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.shared.dynamic import LEAST_EPS

_WEIGHTS, _SCALE, _ZERO, _BIAS = range(1, 5)


def weights_of(ctx: Context, axis: int) -> Weights:
    """Symmetric weights, whose outputs lie along `axis`. Raises RefusedError for others."""
    data, scale = ctx.constant(_WEIGHTS, "weight"), ctx.weights(_SCALE, "scale").reshape(-1)
    if data.scale is not None or data.data.dtype.name not in ("int8", "uint8"):
        raise RefusedError(f"has weights of {data.data.dtype}", "quantize them to int8")
    zero = np.zeros(1, np.int64)
    if ctx.has(_ZERO):
        zero = ctx.constant(_ZERO, "zero point").data.reshape(-1).astype(np.int64)
    count = data.shape[axis]
    if scale.size not in (1, count) or zero.size not in (1, count):
        raise RefusedError(f"has {scale.size} scales and {zero.size} zero points for {count} outputs")
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        raise RefusedError("has a scale that is no positive float32")
    size = max(scale.size, zero.size)
    made = Scale(
        np.broadcast_to(scale, (size,)),
        np.broadcast_to(zero, (size,)),
        axis if size > 1 else None,
        data.data.dtype.name,
    )
    found = integer_weights(Numbers(data.data, made, data.name), axis)
    if found is None:
        raise RefusedError("has no weights")
    return found


def bias_of(ctx: Context, count: int) -> Tensor | None:
    if not ctx.has(_BIAS):
        return None
    data = ctx.weights(_BIAS, "bias").reshape(-1)
    if data.size != count:
        raise RefusedError(f"has a bias of {data.size} numbers for {count} outputs")
    return ctx.held(name_of(ctx, _BIAS, "bias"), data)


def layer(ctx: Context) -> Value:
    return convolution(ctx) if ctx.node.op == CONVOLUTION else linear(ctx)


def linear(ctx: Context) -> Value:
    x, shape = ctx.real(ctx.value(0)), ctx.constant(_WEIGHTS, "weight").shape
    if len(shape) != 2 or not x.shape:
        raise RefusedError(f"has weights of {len(shape)} dimensions", "matrices have 2")
    weights = weights_of(ctx, 1)
    held = ctx.held(name_of(ctx, _WEIGHTS, "weight"), weights.joined, weights.quant)
    rows = read_for(ctx, x, 1, weights)
    attrs = DynamicLinear(eps=LEAST_EPS, rule="onnx")
    return ctx.emit(attrs, [rows, held, bias_of(ctx, shape[1])])


def convolution(ctx: Context) -> Value:
    x, shape = ctx.real(ctx.value(0)), ctx.constant(_WEIGHTS, "weight").shape
    rank, groups = len(x.shape), ctx.attribute("group", 1)
    if len(shape) != rank or rank not in (3, 4) or groups < 1:
        raise RefusedError(f"has weights of {len(shape)} dimensions for {rank}, in {groups} groups")
    weights = weights_of(ctx, 0)
    held = ctx.held(name_of(ctx, _WEIGHTS, "weight"), nhwc(weights.joined), weights.quant)
    image = read_for(ctx, ctx.image(x), groups, weights)
    attrs = replace(
        DynamicConv2d(groups=groups, eps=LEAST_EPS, rule="onnx"),
        **window(ctx, shape[2:], rank, x.shape[2:]),  # type: ignore[arg-type]
    )
    return ctx.from_image(ctx.emit(attrs, [image, held, bias_of(ctx, shape[0])]), rank)
