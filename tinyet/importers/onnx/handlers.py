# SPDX-License-Identifier: Apache-2.0
"""Operator → handler: the operators that an ONNX graph may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyet.errors import RefusedError
from tinyet.importers.onnx import (
    handlers_dynamic,
    handlers_einsum,
    handlers_elements,
    handlers_layers,
    handlers_norms,
    handlers_pools,
    handlers_recurrent,
    handlers_resize,
    handlers_select,
    handlers_shape,
    handlers_whole,
)
from tinyet.importers.onnx.context import Context, Handler
from tinyet.importers.onnx.dynamic import CONVOLUTION, LINEAR
from tinyet.importers.onnx.handlers_ml import ML_HANDLERS
from tinyet.importers.onnx.handlers_svm import SVM_HANDLERS
from tinyet.importers.onnx.values import Integers, Numbers, Value
from tinyet.ir import DType


def quantize(ctx: Context) -> Value:
    """Constants are quantized here; a byte becomes another by a table; a float32 result is quantized by Quantize."""
    value, scale = ctx.value(0), ctx.scale_of(ctx.node)
    if isinstance(value, Numbers):
        data = scale.quantized(value.real)
        return Numbers(data, None, value.name or ctx.node.outputs[0])
    if isinstance(value, Integers):
        return value  # an input of the model that is in integers at the border
    if scale.is_wide:
        return ctx.to_wide(value, scale, ctx.node.outputs[0])
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
    if scale.is_wide or value.tensor.dtype is DType.INT16:
        quant = scale.per_tensor()
        if value.tensor.type.quant != quant or not scale.is_wide:
            raise RefusedError("dequantizes with another scale than it was quantized with", shape=False)
        return ctx.dequantized(value.tensor)
    return ctx.meaning(value, scale)


TABLE: Mapping[str, Handler] = {
    **ML_HANDLERS,
    **SVM_HANDLERS,
    **dict.fromkeys((LINEAR, CONVOLUTION), handlers_dynamic.layer),
    **dict.fromkeys(handlers_elements.BINARY, handlers_elements.binary),
    **dict.fromkeys(handlers_elements.UNARY, handlers_elements.unary),
    **dict.fromkeys(handlers_pools.EXTREMES, handlers_pools.extreme),
    **dict.fromkeys(handlers_pools.SUMS, handlers_pools.summed),
    **dict.fromkeys(handlers_recurrent.GATES, handlers_recurrent.recurrent),
    **dict.fromkeys(handlers_whole.LOGIC, handlers_whole.logic),
    **dict.fromkeys(handlers_whole.RELATIONS, handlers_whole.compare),
    "ArgMax": handlers_pools.argmax,
    "ArgMin": handlers_pools.argmax,
    "AveragePool": handlers_pools.average_pool,
    "BatchNormalization": handlers_norms.batch_norm,
    "Cast": handlers_whole.cast,
    "Celu": handlers_elements.celu,
    "Clip": handlers_elements.clip,
    "Concat": handlers_shape.concat,
    "Conv": handlers_layers.conv,
    "ConvTranspose": handlers_layers.conv_transpose,
    "CumSum": handlers_pools.running_sum,
    "DepthToSpace": handlers_shape.depth_to_space,
    "DequantizeLinear": dequantize,
    "Dropout": handlers_shape.dropout,
    "Einsum": handlers_einsum.einsum,
    "Elu": handlers_elements.elu,
    "Expand": handlers_shape.expand,
    "Flatten": handlers_shape.flatten,
    "Gather": handlers_select.gather,
    "GatherElements": handlers_select.gather_elements,
    "Gelu": handlers_elements.gelu,
    "Gemm": handlers_layers.gemm,
    "GlobalAveragePool": handlers_pools.global_average_pool,
    "GlobalMaxPool": handlers_pools.global_max_pool,
    "GroupNormalization": handlers_norms.group_norm,
    "HardSigmoid": handlers_elements.hard_sigmoid,
    "Identity": handlers_shape.identity,
    "InstanceNormalization": handlers_norms.group_norm,
    "LayerNormalization": handlers_norms.layer_norm,
    "LeakyRelu": handlers_elements.leaky_relu,
    "LogSoftmax": handlers_norms.softmax,
    "MatMul": handlers_layers.matmul,
    "MaxPool": handlers_pools.max_pool,
    "Mean": handlers_elements.summed,
    "PRelu": handlers_elements.prelu,
    "Pad": handlers_shape.pad,
    "Pow": handlers_elements.power,
    "QuantizeLinear": quantize,
    "ReduceMean": handlers_pools.reduce_mean,
    "Relu": handlers_elements.relu,
    "Reshape": handlers_shape.reshape,
    "Resize": handlers_resize.resize,
    "ScatterND": handlers_select.scatter_nd,
    "Slice": handlers_shape.slice_,
    "Softmax": handlers_norms.softmax,
    "SpaceToDepth": handlers_shape.space_to_depth,
    "Split": handlers_shape.split,
    "Squeeze": handlers_shape.squeeze,
    "Sum": handlers_elements.summed,
    "ThresholdedRelu": handlers_elements.thresholded_relu,
    "Tile": handlers_select.tile,
    "Transpose": handlers_shape.transpose,
    "Unsqueeze": handlers_shape.unsqueeze,
    "Where": handlers_select.where,
}


ALL = frozenset({*TABLE, *handlers_whole.TABLE})
"""Operators with a handler, if only for whole numbers."""


def handler_of(op: str, values: Sequence[Value | None]) -> Handler | None:
    """The handler of an operator: of whole numbers, where it has one and the model computes them."""
    if op in handlers_whole.TABLE and any(handlers_whole.is_whole(v) for v in values):
        return handlers_whole.TABLE[op]
    return TABLE.get(op)
