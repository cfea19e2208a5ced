# SPDX-License-Identifier: Apache-2.0
"""Operator → row: what a quantized ONNX graph may hold."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.errors import RefusedError
from tinyet.importers.onnx import rows_elements, rows_layers, rows_recurrent, rows_shape
from tinyet.importers.onnx.context import Context, Row
from tinyet.importers.onnx.values import Integers, Numbers, Value


def quantize(ctx: Context) -> Value:
    """Constants are quantized here; a byte becomes another by a table; what was computed in float32 by Quantize."""
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


TABLE: Mapping[str, Row] = {
    **dict.fromkeys(rows_elements.BINARY, rows_elements.binary),
    **dict.fromkeys(rows_elements.UNARY, rows_elements.unary),
    **dict.fromkeys(rows_recurrent.GATES, rows_recurrent.recurrent),
    "ArgMax": rows_shape.argmax,
    "AveragePool": rows_layers.average_pool,
    "BatchNormalization": rows_elements.batch_norm,
    "Cast": rows_shape.cast,
    "Clip": rows_elements.clip,
    "Concat": rows_shape.concat,
    "Conv": rows_layers.conv,
    "ConvTranspose": rows_layers.conv_transpose,
    "DepthToSpace": rows_shape.depth_to_space,
    "DequantizeLinear": dequantize,
    "Dropout": rows_shape.dropout,
    "Elu": rows_elements.elu,
    "Expand": rows_shape.expand,
    "Flatten": rows_shape.flatten,
    "Gather": rows_shape.gather,
    "Gemm": rows_layers.gemm,
    "GlobalAveragePool": rows_layers.global_average_pool,
    "HardSigmoid": rows_elements.hard_sigmoid,
    "Identity": rows_shape.identity,
    "LeakyRelu": rows_elements.leaky_relu,
    "LogSoftmax": rows_elements.softmax,
    "MatMul": rows_layers.matmul,
    "MaxPool": rows_layers.max_pool,
    "PRelu": rows_elements.prelu,
    "Pad": rows_shape.pad,
    "QuantizeLinear": quantize,
    "ReduceMax": rows_shape.reduced,
    "ReduceMean": rows_layers.reduce_mean,
    "ReduceMin": rows_shape.reduced,
    "ReduceSum": rows_shape.reduced,
    "Relu": rows_elements.relu,
    "Reshape": rows_shape.reshape,
    "Resize": rows_shape.resize,
    "Slice": rows_shape.slice_,
    "Softmax": rows_elements.softmax,
    "SpaceToDepth": rows_shape.space_to_depth,
    "Split": rows_shape.split,
    "Squeeze": rows_shape.squeeze,
    "Transpose": rows_shape.transpose,
    "Unsqueeze": rows_shape.unsqueeze,
}
