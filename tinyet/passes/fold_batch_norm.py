# SPDX-License-Identifier: Apache-2.0
"""Batch normalization behind a convolution or linear layer becomes part of its weights and bias."""

from __future__ import annotations

import dataclasses

import numpy as np

from tinyet.ir import Array, DType, Graph, Node, Tensor, TensorType
from tinyet.numerics import NO_CLAMP
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.passes.edit import Edit
from tinyet.passes.rewrite import Names, all_origins, only_consumer

Weighted = Conv2d | ConvTranspose2d | Linear


def fold_batch_norm(graph: Graph) -> Graph:
    """x * multiplier + offset on the output channels: weights * multiplier, bias * multiplier + offset.

    Computed in float64 and rounded once to float32, so results differ from the unfolded graph by float
    rounding. Only for constant float weights, a producer read by nothing else, and one without a clamp of its
    own.
    """
    names, edit = Names(graph), Edit(graph)
    for node in graph.nodes:
        producer = edit.producer(node.input(0)) if isinstance(node.attrs, BatchNorm) else None
        if producer is None or only_consumer(edit, producer.outputs[0]) is None:
            continue
        folded = _fold(names, producer, node)
        if folded is not None:
            edit.replace({producer: (folded,), node: ()})
    return edit.graph()


def _fold(names: Names, producer: Node, norm: Node) -> Node | None:
    attrs = producer.attrs
    assert isinstance(norm.attrs, BatchNorm)
    if not isinstance(attrs, Weighted) or attrs.clamp != NO_CLAMP:
        return None
    weights, bias = producer.input(1), producer.optional_input(2)
    multiplier, offset = norm.input(1), norm.input(2)
    parameters = [t for t in (weights, bias, multiplier, offset) if t is not None]
    if not all(t.is_constant and t.dtype is DType.FLOAT32 for t in parameters):
        return None
    if norm.attrs.axis != len(producer.output.shape) - 1:
        return None
    channels = weights.shape[0]
    factors = np.broadcast_to(multiplier.array.astype(np.float64).reshape(-1), (channels,))
    offsets = np.broadcast_to(offset.array.astype(np.float64).reshape(-1), (channels,))
    scaled = weights.array.astype(np.float64) * factors.reshape(-1, *(1,) * (len(weights.shape) - 1))
    moved = offsets if bias is None else bias.array.astype(np.float64) * factors + offsets
    inputs = (
        producer.input(0),
        _float(names.fresh(f"{weights.name}_folded"), scaled),
        _float(names.fresh(f"{weights.name}_bias" if bias is None else f"{bias.name}_folded"), moved),
    )
    return Node(
        dataclasses.replace(attrs, clamp=norm.attrs.clamp),
        inputs,
        norm.outputs,
        all_origins((producer, norm)),
    )


def _float(name: str, values: Array) -> Tensor:
    data = np.ascontiguousarray(values, np.float32)
    return Tensor(name, TensorType(tuple(data.shape), DType.FLOAT32), data)
