# SPDX-License-Identifier: Apache-2.0
"""Handlers of layers with weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tinyet.exporters.tflite.clip import emit_clamped, emit_then_clip
from tinyet.exporters.tflite.context import Context, Handler, RefusedError
from tinyet.exporters.tflite.moves import crop, reshaped, windowed
from tinyet.ir import Attrs, DType, Tensor
from tinyet.numerics import bias_type
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul
from tinyet.ops.shared.window import zero_of
from tinyet.tflite.enumerations import VALID
from tinyet.tflite.options import (
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    TransposeConvOptions,
)


def bias_of(ctx: Context) -> int:
    """The bias with the scales that the runtimes check; zeros where the node has none, which LiteRT wants to see."""
    x, weights, bias = ctx.node.input(0), ctx.node.input(1), ctx.node.optional_input(2)
    count = weights.shape[0]
    if x.dtype is DType.FLOAT32:
        data = np.zeros(count, np.float32) if bias is None else bias.array
        return ctx.constant(data, "bias")
    assert weights.type.quant is not None
    type_ = bias_type(count, x.type, weights.type.quant)
    data = np.zeros(count, np.int64) if bias is None else bias.array
    return ctx.constant(data.astype(type_.dtype.numpy), "bias", type_.quant)


def reordered(ctx: Context, weights: Tensor, order: tuple[int, ...]) -> int:
    """Constant weights with their dimensions in another order."""
    quant = weights.type.quant
    if quant is not None and quant.axis is not None:
        quant = replace(quant, axis=order.index(quant.axis))
    return ctx.constant(np.ascontiguousarray(weights.array.transpose(order)), "weights", quant)


def conv2d(ctx: Context) -> None:
    """Of one channel a group a depthwise convolution, else CONV_2D, which takes groups by the depth of its weights."""
    node, attrs = ctx.node, ctx.node.attrs
    assert isinstance(attrs, Conv2d)
    if node.output.dtype is DType.FLOAT32:
        ctx.in_float()
    x, weights = node.input(0), node.input(1)
    channels, (count, kernel_h, kernel_w, depth) = x.shape[3], weights.shape
    image, padding = windowed(ctx, x, attrs, (kernel_h, kernel_w), zero_of(x.type))
    stride, dilation = (attrs.stride_w, attrs.stride_h), (attrs.dilation_w, attrs.dilation_h)
    if attrs.groups == channels > 1:
        held = reordered(ctx, weights, (3, 1, 2, 0))
        emit_clamped(
            ctx,
            "DEPTHWISE_CONV_2D",
            [image, held, bias_of(ctx)],
            lambda number: DepthwiseConv2DOptions(padding, *stride, count // channels, number, *dilation),
        )
        return
    if attrs.groups > 1 and x.dtype is not DType.INT8:
        ctx.unlike("tflm", f"has groups of {depth} channels in int8 convolutions only")
    emit_clamped(
        ctx,
        "CONV_2D",
        [image, ctx.of(weights), bias_of(ctx)],
        lambda number: Conv2DOptions(padding, *stride, number, *dilation),
    )


def linear(ctx: Context) -> None:
    """LiteRT rounds an int8 FULLY_CONNECTED once and a convolution twice, so for LiteRT it is a convolution of pixels,
    which TFLM computes to the same bits, too."""
    node = ctx.node
    x, weights, out = node.input(0), node.input(1), node.output
    if out.dtype is DType.FLOAT32:
        ctx.in_float()
    if ctx.runtime == "tflm" or out.dtype is DType.FLOAT32:
        if out.dtype is not DType.FLOAT32:
            ctx.unlike("litert", "rounds FULLY_CONNECTED otherwise: its answers can differ by 1")
        keep = len(x.shape) != 2
        emit_clamped(
            ctx,
            "FULLY_CONNECTED",
            [ctx.x(), ctx.of(weights), bias_of(ctx)],
            lambda number: FullyConnectedOptions(number, keep_num_dims=keep),
        )
        return
    count, depth = weights.shape
    rows = math.prod(x.shape[:-1])
    pixels = reshaped(ctx, ctx.x(), (rows, 1, 1, depth))
    held = ctx.like(ctx.of(weights), (count, 1, 1, depth))
    ctx.tensors[held] = replace(ctx.tensors[held], data=ctx.tensors[ctx.of(weights)].data)
    made = ctx.like(ctx.out, (rows, 1, 1, count))
    emit_clamped(
        ctx,
        "CONV_2D",
        [pixels, held, bias_of(ctx)],
        lambda number: Conv2DOptions(VALID, 1, 1, number),
        out=made,
    )
    reshaped(ctx, made, out.shape, ctx.out)


def conv_transpose2d(ctx: Context) -> None:
    """All pixels that any tap reaches, and then what the node's pads leave."""
    node, attrs = ctx.node, ctx.node.attrs
    assert isinstance(attrs, ConvTranspose2d)
    if attrs.groups != 1 or (attrs.dilation_h, attrs.dilation_w) != (1, 1):
        raise RefusedError(
            "TRANSPOSE_CONV has neither groups nor dilation", "a transposed convolution without"
        )
    if node.output.dtype is DType.FLOAT32:
        ctx.in_float()
    x, weights, out = node.input(0), node.input(1), node.output
    (batch, height, width, _), (count, kernel_h, kernel_w, _) = x.shape, weights.shape
    # The window needs room for every tap, whatever is cropped.
    full = (
        batch,
        max((height - 1) * attrs.stride_h + kernel_h, attrs.pad_top + out.shape[1]),
        max((width - 1) * attrs.stride_w + kernel_w, attrs.pad_left + out.shape[2]),
        count,
    )
    inputs = [ctx.numbers(full, "shape"), ctx.of(weights), ctx.x(), bias_of(ctx)]
    options = TransposeConvOptions(VALID, attrs.stride_w, attrs.stride_h)
    if full == out.shape:
        emit_then_clip(ctx, "TRANSPOSE_CONV", inputs, options)
        return
    whole = ctx.like(ctx.out, full)
    emit_then_clip(ctx, "TRANSPOSE_CONV", inputs, options, out=whole)
    begin = (0, attrs.pad_top, attrs.pad_left, 0)
    crop(ctx, whole, begin, [a + n for a, n in zip(begin, out.shape, strict=True)], ctx.out)


def matmul(ctx: Context) -> None:
    if ctx.node.output.dtype is DType.FLOAT32:
        ctx.in_float()
    emit_then_clip(ctx, "BATCH_MATMUL", [ctx.x(0), ctx.x(1)], BatchMatMulOptions())


HANDLERS: Mapping[type[Attrs], Handler] = {
    Conv2d: conv2d,
    Linear: linear,
    ConvTranspose2d: conv_transpose2d,
    MatMul: matmul,
}
