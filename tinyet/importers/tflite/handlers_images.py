# SPDX-License-Identifier: Apache-2.0
"""Handlers of operators on images without weights: pools."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.errors import RefusedError
from tinyet.importers.tflite.activation import bounds_of
from tinyet.importers.tflite.context import Context, Handler
from tinyet.importers.tflite.handlers_layers import image_of, pads_of
from tinyet.ir import Attrs, DType
from tinyet.numerics import NO_CLAMP
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.clamp import Clamp
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mul import Mul
from tinyet.ops.unary import Unary
from tinyet.tflite.options import Pool2DOptions


def _pool(ctx: Context, kind: type[AvgPool2d | MaxPool2d]) -> None:
    ctx.expect_inputs(1)
    options, x = ctx.options(Pool2DOptions), image_of(ctx)
    stride, kernel = (options.stride_h, options.stride_w), (options.filter_height, options.filter_width)
    pads = pads_of(options.padding, x.shape, kernel, stride, (1, 1))
    attrs: Attrs = (
        AvgPool2d(*stride, **pads, kernel_h=kernel[0], kernel_w=kernel[1], count_include_pad=False)
        if kind is AvgPool2d
        else MaxPool2d(*stride, **pads, kernel_h=kernel[0], kernel_w=kernel[1])
    )
    bounds = bounds_of(options.fused_activation_function)
    if bounds == NO_CLAMP:
        ctx.emit(attrs, [x])
    else:
        ctx.emit(Clamp(*bounds), [ctx.emit_as(attrs, [x], ctx.out_type())])


def average_pool(ctx: Context) -> None:
    _pool(ctx, AvgPool2d)


def max_pool(ctx: Context) -> None:
    _pool(ctx, MaxPool2d)


def l2_pool(ctx: Context) -> None:
    """The root of the average of squares, in float32."""
    ctx.expect_inputs(1)
    options, x = ctx.options(Pool2DOptions), image_of(ctx)
    if x.dtype is not DType.FLOAT32:
        raise RefusedError(f"pools {x.dtype.value}", "TFLM has float32 only")
    stride, kernel = (options.stride_h, options.stride_w), (options.filter_height, options.filter_width)
    pads = pads_of(options.padding, x.shape, kernel, stride, (1, 1))
    pool = AvgPool2d(*stride, **pads, kernel_h=kernel[0], kernel_w=kernel[1], count_include_pad=False)
    squares, out = ctx.emit_as(Mul(), [x, x], x.type), ctx.out_type()
    root = ctx.emit_as(Unary("sqrt"), [ctx.emit_as(pool, [squares], out)], out)
    bounds = bounds_of(options.fused_activation_function)
    if bounds == NO_CLAMP:
        ctx.alias(root)
    else:
        ctx.emit(Clamp(*bounds), [root])


HANDLERS: Mapping[str, Handler] = {
    "AVERAGE_POOL_2D": average_pool,
    "MAX_POOL_2D": max_pool,
    "L2_POOL_2D": l2_pool,
}
