# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose sums take all of 20 bits, for tinyet_conv2d_s8_paired_checked_8x1."""

from __future__ import annotations

import math

import numpy as np

from tests.ops import drawing
from tinyet.ir import Array, DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops.conv2d import Conv2d

OUT_C, PIXELS = 3, 21
ROOM = (2**20 - 20) // 255
"""Of the magnitudes of a channel's weights."""


def node(taps: int, seed: int) -> Node:
    """1x1 over rows of PIXELS pixels, ReLU behind it; of 64 taps the weights of the first channel have all the room."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-90, 91, (OUT_C, taps))
    while (excess := np.abs(weights).sum(axis=1) - ROOM).max() > 0:
        weights[excess > 0] = weights[excess > 0] * 9 // 10
    if taps == 64:
        weights[0] = rng.choice([-1, 1], taps) * (ROOM // taps)
    x = Tensor("x", TensorType((1, 1, PIXELS, taps), DType.INT8, QuantParams.per_tensor(1.0, 3)))
    w = constant("w", weights.reshape(OUT_C, 1, 1, taps).astype(np.int8), QuantParams.per_tensor(1.0, 0))
    b = constant("b", rng.integers(-20_000, 20_000, OUT_C).astype(np.int32))
    return drawing.node_of(
        Conv2d(clamp=(0.0, math.inf)), [x, w, b], QuantParams.per_tensor(2.0**20 / 255, -128)
    )


def windows(columns: int, dilation: int = 1) -> Node:
    """5x2 of two channels, of which the first column lies in the image and two rows at either end do not."""
    x = Tensor("x", TensorType((1, 9, columns, 2), DType.INT8, QuantParams.per_tensor(1.0, 3)))
    weights = np.arange(OUT_C * 20).reshape(OUT_C, 5, 2, 2) - 30
    w = constant("w", weights.astype(np.int8), QuantParams.per_tensor(1.0, 0))
    attrs = Conv2d(
        pad_top=2 * dilation,
        pad_bottom=2 * dilation,
        dilation_h=dilation,
        dilation_w=dilation,
        clamp=(0.0, math.inf),
    )
    b = constant("b", np.zeros(OUT_C, np.int32))
    return drawing.node_of(attrs, [x, w, b], QuantParams.per_tensor(1000.0, -128))


def farthest(node: Node) -> Array:
    """Inputs with which each pixel has the largest or the least sum of one channel, in many combinations."""
    signs = node.input(1).array.astype(np.int64).reshape(OUT_C, -1) > 0
    at = np.arange(PIXELS)
    up = (at * at // 3 + at // 8) % 2 == 1
    most = signs[at // 2 % OUT_C] == up[:, None]
    return np.where(most, 127, -128).astype(np.int8).reshape(node.input(0).shape)
