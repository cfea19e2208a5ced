# SPDX-License-Identifier: Apache-2.0
"""Small float .tflite files: of float32 weights, of int8 weights (dynamic range), of float16 weights."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tests.tflite_files import Writer
from tinyet.ir import Array
from tinyet.tflite import Model, TensorInfo
from tinyet.tflite.options import (
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Pool2DOptions,
    ReducerOptions,
    SoftmaxOptions,
)

Weights = Literal["float32", "int8", "float16"]
SAME, VALID, RELU, RELU6 = 0, 1, 1, 3


class FloatWriter(Writer):
    """Values are float32, and called after their layers; weights are as they are said to be."""

    weights: Weights = "float32"

    def made(self, name: str, *shape: int) -> int:
        self.tensors.append(TensorInfo(f"net/{name}/Value", shape, "float32"))
        return len(self.tensors) - 1

    def held(self, data: Array, axis: int = 0) -> int:
        """Weights, whose channels are along an axis."""
        if self.weights == "float16":
            half = self.constant(data.astype(np.float16))
            wide = self.made("wide", *data.shape)
            return self.call("DEQUANTIZE", (half,), (wide,))
        if self.weights == "int8":
            rest = tuple(at for at in range(data.ndim) if at != axis)
            scales = np.abs(data).max(rest, keepdims=True) / 127
            whole = np.rint(data / scales).astype(np.int8)
            return self.constant(whole, tuple(float(s) for s in scales.reshape(-1)), axis)
        return self.constant(data)


def network(weights: Weights = "float32", seed: int = 0) -> Model:
    """Images (1, 16, 16, 3) → 5 classes: a convolution with a padding that is not symmetric, a depthwise one, a
    pointwise one behind which a skip is added, a pool, a mean, a fully connected layer."""
    rng, w = np.random.default_rng(seed), FloatWriter()
    w.weights = weights

    def some(*shape: int) -> Array:
        return np.asarray(rng.normal(0, 0.4, shape), np.float32)

    x = w.made("image", 1, 16, 16, 3)
    a = w.made("stem", 1, 8, 8, 8)
    w.call(
        "CONV_2D", (x, w.held(some(8, 3, 3, 3)), w.constant(some(8))), (a,), Conv2DOptions(SAME, 2, 2, RELU)
    )
    d = w.made("block/depthwise", 1, 8, 8, 8)
    taps = w.held(some(1, 3, 3, 8), 3)
    w.call(
        "DEPTHWISE_CONV_2D",
        (a, taps, w.constant(some(8))),
        (d,),
        DepthwiseConv2DOptions(SAME, 1, 1, 1, RELU6),
    )
    p = w.made("block/pointwise", 1, 8, 8, 8)
    w.call("CONV_2D", (d, w.held(some(8, 1, 1, 8)), w.constant(some(8))), (p,), Conv2DOptions(SAME, 1, 1, 0))
    s = w.call("ADD", (p, a), (w.made("skip", 1, 8, 8, 8),), AddOptions(RELU))
    q = w.call("MAX_POOL_2D", (s,), (w.made("pool", 1, 4, 4, 8),), Pool2DOptions(VALID, 2, 2, 2, 2))
    axes = w.constant(np.array([1, 2], np.int32))
    m = w.call("MEAN", (q, axes), (w.made("mean", 1, 8),), ReducerOptions(False))
    z = w.made("head", 1, 5)
    w.call("FULLY_CONNECTED", (m, w.held(some(5, 8)), w.constant(some(5))), (z,), FullyConnectedOptions())
    y = w.call("SOFTMAX", (z,), (w.made("classes", 1, 5),), SoftmaxOptions(1.0))
    return w.model((x,), (y,))
