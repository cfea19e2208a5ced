# SPDX-License-Identifier: Apache-2.0
"""The quantizer's knowledge of each ATen operator: which values share parameters, which are fixed, which are
observed."""

from __future__ import annotations

import math
import operator

import torch
from torch import fx
from torch._ops import OpOverload

from tinyet.fx.origins import origin_of
from tinyet.fx.recurrent_ops import RECURRENT
from tinyet.quantization.observers import Known

aten = torch.ops.aten

WEIGHTED: dict[object, int] = {
    aten.conv1d.default: 0,
    aten.conv2d.default: 0,
    aten.conv_transpose1d.default: 1,
    aten.conv_transpose2d.input: 1,
    aten.linear.default: 0,
}
"""Operators with a weight as second argument and a bias as third → the weight's output channel axis."""

LAYERS: frozenset[object] = frozenset(WEIGHTED) | RECURRENT
"""Layers with weights."""

DYNAMIC: frozenset[object] = frozenset({aten.conv1d.default, aten.conv2d.default, aten.linear.default})
"""Operators that can quantize their input at run time."""

BINARY: frozenset[object] = frozenset({
    aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor,
    aten.matmul.default, aten.bmm.default, aten.mm.default,
})  # fmt: skip
"""Each operand and the result have parameters of their own."""

CLAMPS: frozenset[object] = frozenset({
    aten.relu.default, aten.hardtanh.default, aten.clamp.default, aten.clamp_min.default,
    aten.clamp_max.default,
})  # fmt: skip
"""Fused into the WEIGHTED or BINARY operator in front of them when nothing else reads its result."""

AVERAGING: frozenset[object] = frozenset({
    aten.avg_pool1d.default, aten.avg_pool2d.default, aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool2d.default,
})  # fmt: skip
"""The result lies within the input's range, and often in a small part of it."""

SELECTING: frozenset[object] = frozenset({
    aten.max_pool1d.default, aten.max_pool2d.default, aten.amax.default, aten.amin.default, aten.view.default,
    aten._unsafe_view.default, aten.reshape.default, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default, aten.expand.default, aten.slice.Tensor,
    aten.select.int, aten.clone.default, aten.split.Tensor, aten.split_with_sizes.default, aten.chunk.default,
    aten.unbind.int, operator.getitem,
})  # fmt: skip
"""Operators that a clamp behind them passes on its way to the operator before them (`opset.monotone`)."""

SAME_AS_INPUT: frozenset[object] = CLAMPS | {
    aten.max_pool1d.default, aten.max_pool2d.default, aten.avg_pool1d.default, aten.avg_pool2d.default,
    aten.adaptive_avg_pool1d.default, aten.adaptive_avg_pool2d.default, aten.amax.default, aten.amin.default,
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.permute.default,
    aten.transpose.int, aten.t.default, aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default,
    aten.expand.default, aten.repeat.default, aten.slice.Tensor, aten.select.int, aten.flip.default,
    aten.roll.default, aten.index_select.default, aten.clone.default, aten.constant_pad_nd.default,
    aten.pad.default, aten.reflection_pad1d.default, aten.reflection_pad2d.default,
    aten.replication_pad1d.default, aten.replication_pad2d.default, aten.upsample_nearest1d.vec,
    aten.upsample_nearest2d.vec, aten.upsample_bilinear2d.vec,
    aten._upsample_nearest_exact1d.vec, aten._upsample_nearest_exact2d.vec, aten.upsample_linear1d.vec,
    aten.pixel_shuffle.default,
    aten.pixel_unshuffle.default, aten.channel_shuffle.default,
    aten.unfold.default, aten.im2col.default, aten.gather.default, aten.index.Tensor,
}  # fmt: skip
"""One data input; the result lies in the input's range and has the input's parameters, as TFLite wants it."""

SEVERAL_OUTPUTS: frozenset[object] = frozenset({
    aten.split.Tensor, aten.split_with_sizes.default, aten.chunk.default, aten.unbind.int,
    aten.max_pool2d_with_indices.default, aten.adaptive_max_pool2d.default, aten.max.dim, aten.min.dim,
})  # fmt: skip
"""Like SAME_AS_INPUT, but results are read through getitem nodes."""

ALL_SAME: frozenset[object] = frozenset({
    aten.cat.default, aten.stack.default, aten.minimum.default, aten.maximum.default, aten.where.self,
    aten.select_scatter.default, aten.slice_scatter.default,
})  # fmt: skip
"""Every float input and the result share one set of parameters."""

FIXED: dict[object, Known] = {
    aten.softmax.int: Known(1 / 256, -128, slack=1),
    aten.sigmoid.default: Known(1 / 256, -128),
    aten.hardsigmoid.default: Known(1 / 256, -128),
    aten.tanh.default: Known(1 / 128, 0),
    aten.log_softmax.int: Known(16 / 256, 127),
}
"""Result with a range known in advance → its parameters in TFLite's int8 specification. A probability of 1 lies a step
beyond them: LiteRT's and CMSIS-NN's kernels give 255/256, and so do we. For the others any scale is a table."""

FIXED_INT16: dict[object, Known] = {
    aten.softmax.int: Known(1 / 32768, 0, slack=1),
    aten.sigmoid.default: Known(1 / 32768, 0, slack=1),
    aten.hardsigmoid.default: Known(1 / 32768, 0, slack=1),
    aten.tanh.default: Known(1 / 32768, 0, slack=1),
}
"""The same for int16, from TFLite's 16x8 kernels."""

UNARY: frozenset[object] = frozenset({
    aten.hardswish.default, aten.silu.default, aten.mish.default, aten.gelu.default, aten.elu.default,
    aten.selu.default, aten.celu.default, aten.softplus.default, aten.leaky_relu.default, aten.prelu.default,
    aten.log_sigmoid.default, aten.exp.default, aten.log.default, aten.sqrt.default, aten.rsqrt.default,
    aten.abs.default, aten.neg.default, aten.sin.default, aten.cos.default, aten.erf.default,
    aten.reciprocal.default, aten.pow.Tensor_Scalar, aten.mean.dim, aten.sum.dim_IntList,
    aten.cumsum.default,
    aten.layer_norm.default,
})  # fmt: skip
"""First input and result have parameters of their own; further arguments stay as they are."""

MAX_POOLS: frozenset[object] = frozenset({
    aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool2d_with_indices.default,
    aten.adaptive_max_pool2d.default, aten.amax.default,
})  # fmt: skip
"""Results are the greatest values of windows."""

INPUT_ONLY: frozenset[object] = frozenset({
    aten.argmax.default, aten.argmin.default, aten.topk.default,
})  # fmt: skip
"""The result that is read is an index: only the input is quantized."""

KNOWN: frozenset[object] = (
    frozenset(WEIGHTED)
    | BINARY
    | SAME_AS_INPUT
    | SEVERAL_OUTPUTS
    | ALL_SAME
    | frozenset(FIXED)
    | UNARY
    | INPUT_ONLY
)


def is_float(value: object) -> bool:
    """Whether this is a node whose value is one float32 tensor."""
    return (
        isinstance(value, fx.Node)
        and isinstance(value.meta.get("val"), torch.Tensor)
        and value.meta["val"].dtype is torch.float32
    )


def float_inputs(node: fx.Node) -> list[fx.Node]:
    """The node's float32 tensor arguments in order, those inside lists too, each once."""
    return [source for source in node.all_input_nodes if is_float(source)]


def bounds(node: fx.Node) -> tuple[float, float]:
    """Of a node of CLAMPS: what its result lies between; infinite where it is not bounded, or by a computed value."""
    if node.target is aten.relu.default:
        return 0.0, math.inf
    given = list[object]([*node.args[1:], None, None])[:2]
    if node.target is aten.clamp_max.default:
        given.reverse()
    both = node.target is aten.hardtanh.default  # from -1 to 1 where nothing else is said
    low = given[0] if given[0] is not None else node.kwargs.get("min", -1 if both else None)
    high = given[1] if given[1] is not None else node.kwargs.get("max", 1 if both else None)
    return (
        float(low) if isinstance(low, int | float) else -math.inf,
        float(high) if isinstance(high, int | float) else math.inf,
    )


def op_names(node: fx.Node) -> set[str]:
    """The names by which a user may mean the node's operator: aten.relu.default, aten.relu, relu."""
    target = node.target
    if not isinstance(target, OpOverload):
        return set()
    names = set()
    for full in {str(target), origin_of(node).aten} if target in RECURRENT else {str(target)}:
        packet = full.rsplit(".", 1)[0]
        names |= {full, packet, packet.split(".")[-1]}
    return names


def padded_with(node: fx.Node) -> float:
    """The number that the node pads with; 0 for a node that does not pad, or repeats values of its input."""
    value: object = 0.0
    if node.target is aten.constant_pad_nd.default:
        value = node.args[2] if len(node.args) > 2 else node.kwargs.get("value", 0.0)
    elif node.target is aten.pad.default:
        mode = node.args[2] if len(node.args) > 2 else node.kwargs.get("mode", "constant")
        given = node.args[3] if len(node.args) > 3 else node.kwargs.get("value")
        value = given if mode == "constant" else 0.0
    return float(value) if isinstance(value, (int, float)) else 0.0
