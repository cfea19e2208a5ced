# SPDX-License-Identifier: Apache-2.0
"""Layers with int8 weights and float activations, of dynamic-range files: LiteRT quantizes their input while it runs,
each row or image by itself. TFLM refuses them."""

from __future__ import annotations

from dataclasses import fields

from tinyet.errors import RefusedError
from tinyet.importers.tflite.context import Context
from tinyet.ir import Attrs, DType, Tensor, TensorType
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.linear import Linear
from tinyet.ops.shared.convolution import Convolution
from tinyet.ops.shared.dynamic import Rule
from tinyet.ops.slice import Slice

MOST_ROWS = 64
"""Each becomes a layer of its own."""


def is_hybrid(x: Tensor, weights: Tensor) -> bool:
    return x.dtype is DType.FLOAT32 and weights.dtype is not DType.FLOAT32


def widened(ctx: Context, weights: Tensor) -> Tensor:
    """Of int4 the same numbers in int8."""
    if weights.dtype is not DType.INT4:
        return weights
    return ctx.new_constant(weights.name, weights.array, weights.type.quant)


def emit_hybrid(
    ctx: Context,
    attrs: Conv2d | Linear,
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    made: TensorType,
    rule: Rule,
) -> Tensor:
    """The layer `attrs` with an output of type `made`, for each index of the first axis by itself. Raises
    RefusedError."""
    found: Attrs = DynamicLinear(attrs.clamp, rule=rule)
    if isinstance(attrs, Conv2d):
        shared = {each.name: getattr(attrs, each.name) for each in fields(Convolution)}
        found = DynamicConv2d(**shared, rule=rule)
    if ctx.runtime == "tflm":
        ctx.note(
            "TFLM has no layers with int8 weights and float activations: this one is computed as LiteRT does"
        )
    count, weights = x.shape[0], widened(ctx, weights)
    if count == 1:
        return ctx.emit_as(found, [x, weights, bias], made)
    if count > MOST_ROWS:
        raise RefusedError(
            f"quantizes {count} rows while it runs, each by itself", f"give at most {MOST_ROWS} at a time"
        )
    row, result = TensorType((1, *x.shape[1:]), x.dtype), TensorType((1, *made.shape[1:]), made.dtype)
    rows = [ctx.emit_as(Slice(0, i, i + 1), [x], row) for i in range(count)]
    return ctx.emit_as(Concat(0), [ctx.emit_as(found, [each, weights, bias], result) for each in rows], made)
