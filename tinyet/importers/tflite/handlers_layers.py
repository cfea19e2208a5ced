# SPDX-License-Identifier: Apache-2.0
"""Handlers of layers with weights: convolutions, fully connected ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.activation import bounds_of
from tinyet.importers.tflite.context import Context, Handler
from tinyet.importers.tflite.hybrid import emit_hybrid, is_hybrid, widened
from tinyet.importers.tflite.values import Constant
from tinyet.ir import Attrs, DType, QuantParams, Shape, Tensor, TensorType
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.embedding import Embedding
from tinyet.ops.linear import Linear
from tinyet.ops.linear_single_rounding import LinearSingleRounding
from tinyet.ops.matmul import MatMul
from tinyet.ops.permute import Permute
from tinyet.ops.shared.dynamic import Rule
from tinyet.tflite.enumerations import SAME, TYPES, VALID
from tinyet.tflite.options import (
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    TransposeConvOptions,
)


def same_pads(size: int, out: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """(before, after) of TensorFlow's SAME padding: the odd one is behind."""
    total = max((out - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def pads_of(
    padding: int,
    image: Shape,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
) -> dict[str, Any]:
    """pad_top, pad_bottom, pad_left and pad_right of a window over an image (N, H, W, C). Raises RefusedError."""
    if padding not in (SAME, VALID):
        raise RefusedError(f"has a padding {padding}")
    if min(*kernel, *stride, *dilation) < 1:
        raise RefusedError(f"has a window {kernel} of stride {stride} and dilation {dilation}")
    found: dict[str, Any] = {}
    for (first, second), n, k, s, d in zip(
        (("pad_top", "pad_bottom"), ("pad_left", "pad_right")),
        image[1:3],
        kernel,
        stride,
        dilation,
        strict=True,
    ):
        before, after = same_pads(n, math.ceil(n / s), k, s, d) if padding == SAME else (0, 0)
        found |= {first: before, second: after}
    return found


def image_of(ctx: Context, position: int = 0) -> Tensor:
    """An input that must be (N, H, W, C)."""
    x = ctx.x(position)
    if len(x.shape) != 4:
        raise RefusedError(f"has an image of {len(x.shape)} dimensions")
    return x


def has_int32_accumulator(ctx: Context, bias: int, bias_type: int = 0, image: int = 0) -> bool:
    """Whether sums of int16 values have 32 bits, which a file asks for by an int32 bias or by `bias_type`: their
    rounding differs from that of 64. bias, image: positions of the inputs."""
    short = (
        ctx.info(bias).type == "int32" if ctx.has(bias) else TYPES[bias_type : bias_type + 1] == ("int32",)
    )
    return short and ctx.x(image).dtype is DType.INT16


def refuse_int32_accumulator(ctx: Context, bias: int, bias_type: int = 0, image: int = 0) -> None:
    """Raises RefusedError for them where the original kernels add up in 64 bits only."""
    if has_int32_accumulator(ctx, bias, bias_type, image):
        raise RefusedError(
            "adds an int32 bias to int16 values, which the original takes for int64",
            "convert the model with biases of 64 bits, the default",
        )


def bias_of(ctx: Context, position: int, count: int, image: int = 0) -> Tensor | None:
    """The bias as the layer's integers or floats; None where there is none, or an integer one of nothing but zeros
    stands for none."""
    if not ctx.has(position):
        return None
    found = ctx.constant(position, "bias")
    if found.data.size != count:
        raise RefusedError(f"has {found.data.size} biases for {count} outputs")
    flat = replace(found, data=found.data.reshape(count))
    flat = replace(flat, name=ctx.parameter_name("bias"))
    if flat.data.dtype == np.float32:
        return ctx.hold(flat)
    x, weights = ctx.x(image), ctx.constant(1, "weights")
    wide = x.dtype is DType.INT16
    dtype = DType.INT64 if wide else DType.INT32
    if weights.quant is None or x.type.quant is None:
        raise RefusedError("adds an integer bias to sums that have no scale")
    scales = tuple(x.type.scale * s for s in weights.quant.scale)
    quant = QuantParams(scales, (0,) * len(scales), None if len(scales) == 1 else 0)
    return ctx.hold(replace(flat, data=flat.data.astype(dtype.numpy), quant=quant), dtype)


def weights_of(ctx: Context, position: int, order: tuple[int, ...]) -> Tensor:
    """Constant weights with their dimensions in another order, the output's channels first. Raises RefusedError where
    their scales are along another axis."""
    found = ctx.constant(position, "weights")
    if found.data.ndim != len(order):
        raise RefusedError(f"has weights of {found.data.ndim} dimensions")
    quant, data = found.quant, np.ascontiguousarray(found.data.transpose(order))
    if quant is not None and any(quant.zero_point):
        raise RefusedError(
            "has weights with a zero point: they are not symmetric",
            "files of TensorFlow 1 are so: convert the model again, with TensorFlow 2",
        )
    if quant is not None and quant.axis is not None:
        if order[0] != quant.axis:
            raise RefusedError(f"has weights with a scale for each index of axis {quant.axis}")
        quant = replace(quant, axis=0)
    return ctx.hold(Constant(ctx.parameter_name("weight"), data, quant, found.dtype))


def _scales(weights: Tensor) -> tuple[float, ...]:
    return weights.type.quant.scale if weights.type.quant is not None else ()


def _emit_convolution(ctx: Context, attrs: Conv2d, x: Tensor, weights: Tensor, rule: Rule) -> None:
    """rule: how LiteRT quantizes floats beside integer weights."""
    bias = bias_of(ctx, 2, weights.shape[0])
    if is_hybrid(x, weights):
        ctx.alias(emit_hybrid(ctx, attrs, x, weights, bias, ctx.out_type(), rule))
    else:
        ctx.emit(attrs, [x, weights, bias])


def conv2d(ctx: Context) -> None:
    ctx.expect_inputs(2, 3)
    options, x = ctx.options(Conv2DOptions), image_of(ctx)
    weights = weights_of(ctx, 1, (0, 1, 2, 3))
    _, kernel_h, kernel_w, depth = weights.shape
    if depth < 1 or x.shape[3] % depth:
        raise RefusedError(f"has weights for {depth} channels, the image {x.shape[3]}")
    stride = options.stride_h, options.stride_w
    dilation = options.dilation_h_factor, options.dilation_w_factor
    attrs = Conv2d(
        *stride,
        *dilation,
        **pads_of(options.padding, x.shape, (kernel_h, kernel_w), stride, dilation),
        groups=x.shape[3] // depth,
        clamp=bounds_of(options.fused_activation_function),
        rounding="int32_accumulator"
        if has_int32_accumulator(ctx, 2, options.quantized_bias_type)
        else "double",
    )
    # LiteRT has no zero point if all of the weights have one scale.
    _emit_convolution(ctx, attrs, x, weights, "symmetric" if len(_scales(weights)) == 1 else "asymmetric")


def depthwise_conv2d(ctx: Context) -> None:
    ctx.expect_inputs(2, 3)
    options, x = ctx.options(DepthwiseConv2DOptions), image_of(ctx)
    refuse_int32_accumulator(ctx, 2)
    # (1, kernel_h, kernel_w, channels * multiplier)
    weights = weights_of(ctx, 1, (3, 1, 2, 0))
    count, kernel_h, kernel_w, one = weights.shape
    if one != 1 or count % x.shape[3]:
        raise RefusedError(f"has weights {ctx.info(1).shape} for {x.shape[3]} channels")
    # LiteRT takes it from the shapes.
    if ctx.runtime == "tflm" and options.depth_multiplier != count // x.shape[3]:
        raise RefusedError(
            f"has a depth multiplier of {options.depth_multiplier} for weights {ctx.info(1).shape}"
        )
    stride = options.stride_h, options.stride_w
    dilation = options.dilation_h_factor, options.dilation_w_factor
    attrs = Conv2d(
        *stride,
        *dilation,
        **pads_of(options.padding, x.shape, (kernel_h, kernel_w), stride, dilation),
        groups=x.shape[3],
        clamp=bounds_of(options.fused_activation_function),
    )
    _emit_convolution(ctx, attrs, x, weights, "asymmetric")


def _computed_weights(ctx: Context, options: FullyConnectedOptions, x: Tensor) -> None:
    """A layer whose weights are a value is a product of matrices: its rounding is TFLM's."""
    weights = ctx.x(1)
    if ctx.runtime == "litert" and x.dtype is not DType.FLOAT32:
        raise RefusedError(
            "computes its weights", 'make them constants, or take the bits of TFLM: runtime="tflm"'
        )
    if ctx.has(2) and np.any(ctx.constant(2, "bias").data):
        raise RefusedError("computes its weights, and has a bias", "add the bias behind it")
    if len(weights.shape) != 2 or x.type.count % max(weights.shape[1], 1):
        raise RefusedError(f"has weights of shape {list(weights.shape)} for {x.type.count} values")
    count, depth = weights.shape
    out, rows = ctx.out_type(), x.type.count // depth
    made = TensorType((rows, count), out.dtype, out.quant)
    operands = [ctx.reshape(x, (rows, depth)), transposed(ctx, weights)]
    y = ctx.emit_as(MatMul(bounds_of(options.fused_activation_function)), operands, made)
    ctx.alias(ctx.reshape(y, out.shape))


def fully_connected(ctx: Context) -> None:
    """TFLite flattens all dimensions but as many as the depth takes; the output has the file's shape."""
    ctx.expect_inputs(2, 3)
    options, x = ctx.options(FullyConnectedOptions), ctx.x(0)
    if options.weights_format:
        raise RefusedError("has shuffled weights", shape=False)
    if ctx.find_constant(1) is None:
        _computed_weights(ctx, options, x)
        return
    weights = weights_of(ctx, 1, (0, 1))
    count, depth = weights.shape
    if depth < 1 or x.type.count % depth:
        raise RefusedError(f"has weights for {depth} inputs, and {x.type.count} values")
    rows = x.type.count // depth
    out = ctx.out_type()
    if out.count != rows * count:
        raise RefusedError(f"gives {rows} x {count} values, the file says {list(out.shape)}")
    flat = ctx.reshape(x, (rows, depth))
    clamp, bias = bounds_of(options.fused_activation_function), bias_of(ctx, 2, count)
    made = TensorType((rows, count), out.dtype, out.quant)
    attrs: Attrs = Linear(clamp)
    if ctx.runtime == "litert" and x.dtype is not DType.FLOAT32:
        attrs, weights = LinearSingleRounding(clamp), widened(ctx, weights)
    if is_hybrid(x, weights):
        rule: Rule = "asymmetric" if options.asymmetric_quantize_inputs else "symmetric"
        y = emit_hybrid(ctx, Linear(clamp), flat, weights, bias, made, rule)
    elif ctx.runtime == "tflm" and has_int32_accumulator(ctx, 2, options.quantized_bias_type):
        y = _pixels(ctx, flat, weights, bias, made, clamp)
    else:
        y = ctx.emit_as(attrs, [flat, weights, bias], made)
    ctx.alias(ctx.reshape(y, out.shape))


def _pixels(
    ctx: Context,
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    made: TensorType,
    clamp: tuple[float, float],
) -> Tensor:
    """A fully connected layer of short sums is a convolution whose pixels are the rows of x."""
    rows, depth = x.shape
    taps = ctx.hold(
        Constant(weights.name, weights.array.reshape(-1, 1, 1, depth), weights.type.quant), weights.dtype
    )
    image = ctx.reshape(x, (1, 1, rows, depth))
    return ctx.emit_as(
        Conv2d(clamp=clamp, rounding="int32_accumulator"),
        [image, taps, bias],
        replace(made, shape=(1, 1, *made.shape)),
    )


def transpose_conv(ctx: Context) -> None:
    """The output's shape stands in the file; pads are those of the convolution that goes the other way."""
    ctx.expect_inputs(3, 4)
    options, x = ctx.options(TransposeConvOptions), image_of(ctx, 2)
    refuse_int32_accumulator(ctx, 3, options.quantized_bias_type, 2)
    weights = weights_of(ctx, 1, (0, 1, 2, 3))
    count, kernel_h, kernel_w, _ = weights.shape
    out = ctx.out_type()
    if len(out.shape) != 4:
        raise RefusedError(f"gives an image of {len(out.shape)} dimensions")
    stride = options.stride_h, options.stride_w
    pads = pads_of(options.padding, out.shape, (kernel_h, kernel_w), stride, (1, 1))
    more = {}
    for size, given, kernel, step, before, after, rest in (
        (x.shape[1], out.shape[1], kernel_h, stride[0], "pad_top", "pad_bottom", "out_pad_h"),
        (x.shape[2], out.shape[2], kernel_w, stride[1], "pad_left", "pad_right", "out_pad_w"),
    ):
        over = (size - 1) * step + kernel - pads[before] - given
        pads[after], more[rest] = max(over, 0), max(-over, 0)
    if is_hybrid(x, weights):
        raise RefusedError(
            "has int8 weights and float activations", "quantize the model as a whole, or not at all"
        )
    attrs = ConvTranspose2d(*stride, **pads, clamp=bounds_of(options.fused_activation_function), **more)  # type: ignore[misc]
    ctx.emit(attrs, [x, weights, bias_of(ctx, 3, count, 2)])


def batch_matmul(ctx: Context) -> None:
    ctx.expect_inputs(2)
    options = ctx.options(BatchMatMulOptions)
    a, b = ctx.x(0), ctx.x(1)
    if a.dtype is not b.dtype:
        raise RefusedError(f"multiplies {a.dtype.value} by {b.dtype.value}")
    a = transposed(ctx, a) if options.adj_x else a
    b = transposed(ctx, b) if options.adj_y else b
    ctx.emit(MatMul(), [a, b])


def transposed(ctx: Context, x: Tensor) -> Tensor:
    """The last two dimensions change places."""
    rank = len(x.shape)
    if rank < 2:
        raise RefusedError(f"has a matrix of {rank} dimensions")
    order = (*range(rank - 2), rank - 1, rank - 2)
    shape = tuple(x.shape[axis] for axis in order)
    if 1 in shape[-2:]:
        return ctx.reshape(x, shape)
    return ctx.emit_as(Permute(order), [x], TensorType(shape, x.dtype, x.type.quant))


def embedding_lookup(ctx: Context) -> None:
    """Handlers of a constant table."""
    ctx.expect_inputs(2)
    table = ctx.constant(1, "table")
    if table.data.ndim < 2 or not table.data.size:
        raise RefusedError(f"has a table of shape {list(table.shape)}")
    if (table.data.dtype == np.float32) != (ctx.out_type().dtype is DType.FLOAT32):
        raise RefusedError("has an int8 table and float results", "dequantize behind the table")
    flat = ctx.hold(replace(table, data=table.data.reshape(table.shape[0], -1)))
    ids, out = ctx.x(0), ctx.out_type()
    made = TensorType((*ids.shape, flat.shape[1]), flat.dtype, flat.type.quant)
    ctx.alias(ctx.reshape(ctx.emit_as(Embedding(), [ids, flat], made), out.shape))


HANDLERS: Mapping[str, Handler] = {
    "CONV_2D": conv2d,
    "DEPTHWISE_CONV_2D": depthwise_conv2d,
    "FULLY_CONNECTED": fully_connected,
    "TRANSPOSE_CONV": transpose_conv,
    "BATCH_MATMUL": batch_matmul,
    "EMBEDDING_LOOKUP": embedding_lookup,
}
