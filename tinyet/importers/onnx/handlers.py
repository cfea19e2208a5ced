# SPDX-License-Identifier: Apache-2.0
"""Operator → handler: the operators that a quantized ONNX graph may hold."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.errors import RefusedError
from tinyet.importers.onnx import handlers_elements, handlers_layers, handlers_recurrent, handlers_shape
from tinyet.importers.onnx.context import Context, Handler
from tinyet.importers.onnx.values import Integers, Numbers, Value


def quantize(ctx: Context) -> Value:
    """Constants are quantized here; a byte becomes another by a table; a float32 result is quantized by Quantize."""
    value, scale = ctx.value(0), ctx.scale_of(ctx.node)
    if isinstance(value, Numbers):
        data = scale.quantized(value.real)
        return Numbers(data, None, value.name or ctx.node.outputs[0])
    if isinstance(value, Integers):
        return value  # an input of the model that is in integers at the border
    return ctx.to_scale(value, scale, ctx.node.outputs[0])


def dequantize(ctx: Context) -> Value:
    value, scale = ctx.value(0), ctx.scale_of(ctx.node)
    if isinstance(value, Numbers):
        if value.data.dtype.kind not in "iu" or value.scale is not None:
            raise RefusedError(f"dequantizes {value.data.dtype}", shape=False)
        axis = scale.axis
        sizes = () if axis is None else value.shape[axis : axis + 1] if 0 <= axis < len(value.shape) else (0,)
        if axis is not None and sizes != (scale.scale.size,):
            raise RefusedError(f"has {scale.scale.size} scales for axis {axis} of {value.shape}")
        return Numbers(value.data, scale, value.name or ctx.node.outputs[0])
    if not isinstance(value, Integers):
        raise RefusedError("dequantizes what is not quantized", shape=False)
    return ctx.meaning(value, scale)


TABLE: Mapping[str, Handler] = {
    **dict.fromkeys(handlers_elements.BINARY, handlers_elements.binary),
    **dict.fromkeys(handlers_elements.UNARY, handlers_elements.unary),
    **dict.fromkeys(handlers_recurrent.GATES, handlers_recurrent.recurrent),
    "ArgMax": handlers_shape.argmax,
    "AveragePool": handlers_layers.average_pool,
    "BatchNormalization": handlers_elements.batch_norm,
    "Cast": handlers_shape.cast,
    "Clip": handlers_elements.clip,
    "Concat": handlers_shape.concat,
    "Conv": handlers_layers.conv,
    "ConvTranspose": handlers_layers.conv_transpose,
    "DepthToSpace": handlers_shape.depth_to_space,
    "DequantizeLinear": dequantize,
    "Dropout": handlers_shape.dropout,
    "Elu": handlers_elements.elu,
    "Expand": handlers_shape.expand,
    "Flatten": handlers_shape.flatten,
    "Gather": handlers_shape.gather,
    "Gemm": handlers_layers.gemm,
    "GlobalAveragePool": handlers_layers.global_average_pool,
    "HardSigmoid": handlers_elements.hard_sigmoid,
    "Identity": handlers_shape.identity,
    "LeakyRelu": handlers_elements.leaky_relu,
    "LogSoftmax": handlers_elements.softmax,
    "MatMul": handlers_layers.matmul,
    "MaxPool": handlers_layers.max_pool,
    "PRelu": handlers_elements.prelu,
    "Pad": handlers_shape.pad,
    "QuantizeLinear": quantize,
    "ReduceMax": handlers_shape.reduced,
    "ReduceMean": handlers_layers.reduce_mean,
    "ReduceMin": handlers_shape.reduced,
    "ReduceSum": handlers_shape.reduced,
    "Relu": handlers_elements.relu,
    "Reshape": handlers_shape.reshape,
    "Resize": handlers_shape.resize,
    "Slice": handlers_shape.slice_,
    "Softmax": handlers_elements.softmax,
    "SpaceToDepth": handlers_shape.space_to_depth,
    "Split": handlers_shape.split,
    "Squeeze": handlers_shape.squeeze,
    "Transpose": handlers_shape.transpose,
    "Unsqueeze": handlers_shape.unsqueeze,
}
