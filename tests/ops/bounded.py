# SPDX-License-Identifier: Apache-2.0
"""A pointwise convolution whose inputs have narrow bounds, because another layer computes them, and that reach them."""

from __future__ import annotations

import math

import numpy as np

from tinyet.ir import Array, DType, Graph, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import Int64
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import bounds

OUT_C, SIDE = 5, 5


def scaled(name: str, attrs: Conv2d, x: Tensor, weights: Int64, bias: Int64, out: QuantParams) -> Node:
    """Without a change of the image's size."""
    w = constant(f"w{name}", weights.astype(np.int8), QuantParams.per_tensor(1.0, 0))
    shape = (*x.shape[:3], len(weights))
    return Node(
        attrs,
        (x, w, constant(f"b{name}", bias.astype(np.int32))),
        (Tensor(name, TensorType(shape, DType.INT8, out)),),
    )


def network(channels: int, seed: int) -> Graph:
    """Each channel by itself, scaled and clamped at zero, then a pointwise layer of an odd number of channels."""
    rng = np.random.default_rng(seed)
    x = Tensor("x", TensorType((1, SIDE, SIDE, channels), DType.INT8, QuantParams.per_tensor(1.0, 3)))
    own = Conv2d(groups=channels, clamp=(0.0, math.inf))
    own_weights = rng.integers(-127, 128, (channels, 1, 1, 1))
    first = scaled(
        "y", own, x, own_weights, rng.integers(-4000, 4000, channels), QuantParams.per_tensor(100.0, -128)
    )
    weights = rng.integers(-127, 128, (OUT_C, 1, 1, channels)) // rng.integers(1, 3, (OUT_C, 1, 1, 1))
    second = scaled(
        "z",
        Conv2d(clamp=(0.0, math.inf)),
        first.output,
        weights,
        rng.integers(-900, 900, OUT_C),
        QuantParams.per_tensor(20_000.0, -128),
    )
    return Graph("bounded", (x,), (first.output, second.output), (first, second))


def farthest(graph: Graph) -> Array:
    """Inputs for which one channel after the other of the pointwise layer has its largest sum in one pixel of a pair,
    its least in the other."""
    first, second = graph.nodes
    sign = np.sign(first.input(1).array.reshape(-1).astype(np.int64))
    rows = np.sign(second.input(1).array.reshape(OUT_C, -1).astype(np.int64))
    pixels = [(1 - 2 * (k % 2)) * rows[k // 2 % OUT_C] * sign for k in range(SIDE * SIDE)]
    x = np.where(np.array(pixels) >= 0, 127, -128)
    return np.asarray(x.reshape(first.input(0).shape).astype(np.int8))


def bounds_of(node: Node) -> bounds.Bounds:
    found = bounds.of_input(node)
    assert found is not None
    return found
