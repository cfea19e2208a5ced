# SPDX-License-Identifier: Apache-2.0
"""A small int8 program and its float graph, made by hand: conv + relu, pooling, reshape, linear. No torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet import ops
from tinyet.ir import Array, DType, Graph, Node, Note, Origin, QuantParams, Tensor, TensorType, constant
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.reshape import Reshape
from tinyet.program import Program

FILE = "net.py"
LINES = {
    "conv": (11, "x = F.relu(self.conv(x))"),
    "pool": (12, "x = F.max_pool2d(x, 2)"),
    "flat": (13, "x = x.flatten(1)"),
    "head": (14, "return self.head(x)"),
}
_RELU = (0.0, float("inf"))


def origin(key: str) -> Origin:
    line, text = LINES[key]
    return Origin(f"aten.{key}", key, FILE, line, text, key)


def _tensor(name: str, shape: tuple[int, ...], scale: float, zero_point: int, *, real: bool) -> Tensor:
    quant = QuantParams.per_tensor(scale, zero_point)
    return Tensor(name, TensorType(shape, DType.FLOAT32) if real else TensorType(shape, DType.INT8, quant))


def _weights(name: str, values: Array, scale: float, *, real: bool) -> Tensor:
    """int8 values with one scale for each output channel, or the real numbers that they stand for."""
    if real:
        return constant(name, values.astype(np.float32) * np.float32(scale))
    count = values.shape[0]
    return constant(name, values, QuantParams((scale,) * count, (0,) * count, 0))


def _bias(name: str, values: Array, scale: float, *, real: bool) -> Tensor:
    return constant(name, values.astype(np.float32) * np.float32(scale) if real else values.astype(np.int32))


def graph(*, real: bool = False, size: int = 6, channels: int = 4, hidden: int = 0) -> Graph:
    """(1, size, size, 3) images → (1, 5); `hidden` adds a wide linear layer in front of the last."""
    rng = np.random.default_rng(0)
    half = size // 2
    x = _tensor("x", (1, size, size, 3), 0.05, 3, real=real)
    conv = _tensor("conv", (1, size, size, channels), 0.1, -128, real=real)
    pool = _tensor("pool", (1, half, half, channels), 0.1, -128, real=real)
    flat = _tensor("flat", (1, half * half * channels), 0.1, -128, real=real)
    conv_w = rng.integers(-127, 128, (channels, 3, 3, 3)).astype(np.int8)
    conv_b = rng.integers(-400, 400, channels)
    pads: dict[str, Any] = {"pad_top": 1, "pad_bottom": 1, "pad_left": 1, "pad_right": 1}
    nodes = [
        Node(
            Conv2d(clamp=_RELU, **pads),
            (
                x,
                _weights("conv_w", conv_w, 0.01, real=real),
                _bias("conv_b", conv_b, 0.05 * 0.01, real=real),
            ),
            (conv,),
            (origin("conv"),),
        ),
        Node(MaxPool2d(kernel_h=2, kernel_w=2, stride_h=2, stride_w=2), (conv,), (pool,), (origin("pool"),)),
        Node(Reshape(shape=flat.shape), (pool,), (flat,), (origin("flat"),)),
    ]
    last = flat
    widths = [hidden, 5] if hidden else [5]
    for i, width in enumerate(widths):
        name = "head" if i == len(widths) - 1 else "hidden"
        out = _tensor(name, (1, width), 0.2, -5, real=real)
        weights = rng.integers(-127, 128, (width, last.shape[1])).astype(np.int8)
        inputs = (last, _weights(f"{name}_w", weights, 0.02, real=real), None)
        nodes.append(Node(Linear(), inputs, (out,), (origin("head"),)))
        last = out
    return ops.check(Graph("small", (x,), (last,), tuple(nodes)), "building the small program")


def program(*, size: int = 6, channels: int = 4, hidden: int = 0) -> Program:
    return Program(
        "small",
        graph(size=size, channels=channels, hidden=hidden),
        graph(real=True, size=size, channels=channels, hidden=hidden),
        (Note("this is worth telling", origin("head")),),
    )


def images(count: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Float samples in the range of the program's input."""
    return np.random.default_rng(seed).uniform(-5, 5, (count, 6, 6, 3)).astype(np.float32)
