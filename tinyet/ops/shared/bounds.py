# SPDX-License-Identifier: Apache-2.0
"""What the channels of a layer's input can be at all, where a convolution computes it: its outputs for the inputs at
their extremes, rounded and clamped as the reference does. Rounding is monotone, so that no output is beyond these.

A node does not know its graph. So each graph's nodes are gone through before their kernels are asked for (`learn`); a
node of several graphs has what it can read in any of them, one of none the range of its type. A kernel that relies on
these bounds is right as long as the producer's kernel is bit-exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from tinyet.ir import DType, Graph, Node, Tensor
from tinyet.numerics import Int64
from tinyet.ops.shared import weighted
from tinyet.ops.shared.convolution import attrs_of


@dataclass(frozen=True, eq=False)
class Bounds:
    """low, high: the least and the largest value of each channel, (channels,)."""

    low: Int64
    high: Int64


_OF_INPUTS: WeakKeyDictionary[Node, Bounds] = WeakKeyDictionary()
_LEARNED: WeakSet[Graph] = WeakSet()


def learn(graph: Graph) -> None:
    """What the inputs of the graph's int8 convolutions can be."""
    if graph in _LEARNED:
        return
    known: dict[Tensor, Bounds] = {}
    for node in graph.nodes:
        if node.op != "conv2d" or (node.input(0).dtype, node.input(1).dtype) != (DType.INT8, DType.INT8):
            continue
        found, before = known.get(node.input(0), of_type(node)), _OF_INPUTS.get(node)
        if before is None:
            _OF_INPUTS[node] = found
        elif np.any(found.low < before.low) or np.any(found.high > before.high):
            _OF_INPUTS[node] = Bounds(np.minimum(found.low, before.low), np.maximum(found.high, before.high))
        known[node.output] = of_output(node, found)
    _LEARNED.add(graph)


def of_type(node: Node) -> Bounds:
    """Of an int8 input of which nothing is known."""
    channels = node.input(0).shape[-1]
    return Bounds(np.full(channels, -128, np.int64), np.full(channels, 127, np.int64))


def of_input(node: Node) -> Bounds | None:
    """None where no graph with the node has been gone through."""
    return _OF_INPUTS.get(node)


def of_output(node: Node, x: Bounds) -> Bounds:
    """Of an int8 convolution whose input is within such bounds, or padding."""
    groups, zero_point = attrs_of(node).groups, node.input(0).type.zero_point
    weights = node.input(1).array.astype(np.int64)
    channels = len(weights)
    weights = weights.reshape(channels, -1, weights.shape[-1])
    # (channels, 1, channels of a group), relative to the zero point; padding is zero.
    low, high = (
        np.repeat(bound.reshape(groups, 1, -1), channels // groups, axis=0) - zero_point
        for bound in (np.minimum(x.low, zero_point), np.maximum(x.high, zero_point))
    )
    above, below, bias = np.maximum(weights, 0), np.minimum(weights, 0), weighted.int_bias(node)
    least = bias + (above * low + below * high).sum(axis=(1, 2))
    most = bias + (above * high + below * low).sum(axis=(1, 2))
    ends = (weighted.rescaled(node, sums).astype(np.int64) for sums in (least, most))
    return Bounds(*ends)
