# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one pixel, such as a convolution over time on one frame."""

from __future__ import annotations

import dataclasses

from tinyet.ir import Graph, Node, Origin, Tensor, TensorType
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.ops.reshape import Reshape
from tinyet.ops.slice import Slice
from tinyet.passes.rewrite import Names


def pointwise_to_linear(graph: Graph) -> Graph:
    """Exact, in float, too: a convolution of one group with one output pixel and no padding becomes a Linear of the
    values that its taps read, whose kernels do not compute pixels two or four at a time."""
    names = Names(graph)
    nodes = [new for node in graph.nodes for new in (_as_linear(node, names) or (node,))]
    return graph.replace(nodes=nodes)


def _as_linear(node: Node, names: Names) -> tuple[Node, ...] | None:
    attrs = node.attrs
    if not isinstance(attrs, Conv2d) or attrs.groups != 1 or node.output.shape[:3] != (1, 1, 1):
        return None
    if any((attrs.pad_top, attrs.pad_bottom, attrs.pad_left, attrs.pad_right)):
        return None
    if attrs.rounding == "int32_accumulator":
        return None
    weights, origins, made = node.input(1), without_keys(node.origins), []
    _, kernel_h, kernel_w, _ = weights.shape

    def add(attrs: Slice | Reshape | Linear, name: str, kind: TensorType, *inputs: Tensor | None) -> Tensor:
        out = Tensor(names.fresh(f"{node.output.name}_{name}"), kind)
        made.append(Node(attrs, inputs, (out,), node.origins if isinstance(attrs, Linear) else origins))
        return out

    taps = node.input(0)
    for axis, kernel, step in ((1, kernel_h, attrs.dilation_h), (2, kernel_w, attrs.dilation_w)):
        if taps.shape[axis] != kernel:
            shape = (*taps.shape[:axis], kernel, *taps.shape[axis + 1 :])
            read = Slice(axis, 0, (kernel - 1) * step + 1, step)
            taps = add(read, "taps", dataclasses.replace(taps.type, shape=shape), taps)
    row = 1, taps.type.count
    flat = add(Reshape(row), "row", dataclasses.replace(taps.type, shape=row), taps)
    data = weights.array.reshape(weights.shape[0], -1)
    matrix = Tensor(
        names.fresh(f"{weights.name}_rows"), dataclasses.replace(weights.type, shape=data.shape), data
    )
    out = 1, weights.shape[0]
    kind = dataclasses.replace(node.output.type, shape=out)
    value = add(Linear(attrs.clamp, attrs.rounding), "values", kind, flat, matrix, *node.inputs[2:])
    made.append(Node(Reshape(node.output.shape), (value,), node.outputs, node.origins))
    return tuple(made)


def without_keys(origins: tuple[Origin, ...]) -> tuple[Origin, ...]:
    """For nodes that only move values: the keys do not name them."""
    return tuple(dataclasses.replace(origin, key="") for origin in origins)
