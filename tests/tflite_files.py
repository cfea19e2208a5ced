# SPDX-License-Identifier: Apache-2.0
"""Small .tflite files that tests write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinyet.ir import Array
from tinyet.tflite import Model, Operator, Quantization, Subgraph, TensorInfo
from tinyet.tflite.options import (
    AddOptions,
    Conv2DOptions,
    FullyConnectedOptions,
    Options,
    Pool2DOptions,
    SoftmaxOptions,
)
from tinyet.tflite.write import write_model


@dataclass
class Writer:
    """One subgraph, tensor by tensor and operator by operator; both are called by their indices."""

    tensors: list[TensorInfo] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)

    def value(
        self,
        shape: tuple[int, ...],
        kind: str = "int8",
        scale: float | None = 1.0,
        zero_point: int = 0,
        **more: Any,
    ) -> int:
        """A tensor that is computed or given; scale None: not quantized."""
        quant = None if scale is None else Quantization((float(np.float32(scale)),), (zero_point,))
        self.tensors.append(
            TensorInfo(f"model/layer_{len(self.tensors)}/Value", shape, kind, None, quant, **more)
        )
        return len(self.tensors) - 1

    def constant(
        self, data: Array, scales: tuple[float, ...] = (), axis: int = 0, zero_point: int = 0
    ) -> int:
        """A constant of the array's own type; no scales: not quantized."""
        single = tuple(float(np.float32(scale)) for scale in scales)
        quant = Quantization(single, (zero_point,) * len(scales), axis) if scales else None
        name = f"model/constant_{len(self.tensors)}"
        self.tensors.append(TensorInfo(name, data.shape, data.dtype.name, data.tobytes(), quant))
        return len(self.tensors) - 1

    def call(
        self,
        code: str,
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        options: Options | None = None,
        **more: Any,
    ) -> int:
        """An operator; the first of its outputs, -1 where it has none."""
        self.operators.append(Operator(code, inputs, outputs, options, **more))
        return outputs[0] if outputs else -1

    def model(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Model:
        return Model((Subgraph("main", tuple(self.tensors), inputs, outputs, tuple(self.operators)),))

    def file(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> bytes:
        return write_model(self.model(inputs, outputs))


def small_cnn(kind: str = "int8", seed: int = 0) -> Model:
    """Convolution, pool, fully connected, softmax: (1, 8, 8, 2) → (1, 3). kind: of the border: int8 or uint8."""
    rng, w = np.random.default_rng(seed), Writer()

    def integers(*shape: int) -> Array:
        return rng.integers(-127, 128, shape).astype(np.int8)

    outer = w.value((1, 8, 8, 2), kind, 0.02, -3 if kind == "int8" else 125)
    x = outer
    if kind == "uint8":
        x = w.call("QUANTIZE", (outer,), (w.value((1, 8, 8, 2), "int8", 0.02, -3),))
    scales = (0.01, 0.02, 0.015, 0.012)
    weights = w.constant(integers(4, 3, 3, 2), scales)
    bias = w.constant(rng.integers(-500, 500, 4).astype(np.int32), tuple(0.02 * s for s in scales))
    y = w.value((1, 8, 8, 4), "int8", 0.05, -128)
    w.call("CONV_2D", (x, weights, bias), (y,), Conv2DOptions(0, 1, 1, 1))
    p = w.value((1, 4, 4, 4), "int8", 0.05, -128)
    w.call("AVERAGE_POOL_2D", (y,), (p,), Pool2DOptions(1, 2, 2, 2, 2))
    twice = w.call("ADD", (p, p), (w.value((1, 4, 4, 4), "int8", 0.09, -120),), AddOptions())
    dense = w.constant(integers(3, 64), (0.01,))
    z = w.value((1, 3), "int8", 0.3, 7)
    w.call("FULLY_CONNECTED", (twice, dense, -1), (z,), FullyConnectedOptions())
    s = w.call("SOFTMAX", (z,), (w.value((1, 3), "int8", 1 / 256, -128),), SoftmaxOptions(1.0))
    if kind == "uint8":
        s = w.call("QUANTIZE", (s,), (w.value((1, 3), "uint8", 1 / 256, 0),))
    return w.model((outer,), (s,))
