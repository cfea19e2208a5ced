# SPDX-License-Identifier: Apache-2.0
"""Small graphs for tests of passes, and whether two of them compute the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet import ops
from tinyet.ir import (
    Array,
    Attrs,
    DType,
    Graph,
    Node,
    Origin,
    QuantParams,
    Shape,
    Tensor,
    TensorType,
    to_text,
)
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.linear import Linear
from tinyet.ops.permute import Permute
from tinyet.ops.quantize import Quantize
from tinyet.ops.reshape import Reshape
from tinyet.reference import run_graph


def per_tensor(scale: float, zero_point: int = 0) -> QuantParams:
    return QuantParams.per_tensor(scale, zero_point)


class Builder:
    """Emits nodes with inferred shapes; a node's origin is keyed by the name of its value.

    checked: each node must be one that kernels can compute. An imported graph need not be: its weights are
    dequantized.
    """

    def __init__(self, seed: int = 0, *, checked: bool = True) -> None:
        self.rng = np.random.default_rng(seed)
        self.checked = checked
        self.inputs: list[Tensor] = []
        self.nodes: list[Node] = []
        self._count = 0

    def input(self, *shape: int, quant: QuantParams | None = None) -> Tensor:
        dtype = DType.FLOAT32 if quant is None else DType.INT8
        self.inputs.append(Tensor(f"x{len(self.inputs)}", TensorType(shape, dtype, quant)))
        return self.inputs[-1]

    def const(self, data: npt.ArrayLike, quant: QuantParams | None = None) -> Tensor:
        array = np.asarray(data, np.float32 if quant is None else np.int8)
        self._count += 1
        return Tensor(f"c{self._count}", TensorType(array.shape, DType(array.dtype.name), quant), array)

    def random(self, *shape: int) -> Tensor:
        """Small whole numbers, so that float sums are exact in any order."""
        return self.const(self.rng.integers(-3, 4, shape))

    def emit(
        self,
        attrs: Attrs,
        *inputs: Tensor | None,
        quant: QuantParams | None = None,
        dtype: DType | None = None,
        name: str | None = None,
    ) -> Tensor:
        """Dtype and quantization are those of the first input unless given."""
        first = next(t for t in inputs if t is not None)
        self._count += 1
        name = name or f"{attrs.name}{self._count}"
        dtype = dtype or first.dtype
        if quant is None and dtype is DType.INT8:
            quant = first.type.quant
        draft = Node(
            attrs, inputs, (Tensor(name, TensorType((), dtype, quant)),), (Origin(attrs.name, key=name),)
        )
        (shape,) = ops.infer(draft)
        node = draft.replace(outputs=[Tensor(name, TensorType(shape, dtype, quant))])
        complaint = ops.op_of(node).check(node)
        assert complaint is None or not self.checked, complaint
        self.nodes.append(node)
        return node.output

    def quantize(self, x: Tensor, quant: QuantParams) -> Tensor:
        return self.emit(Quantize(), x, quant=quant, dtype=DType.INT8)

    def dequantize(self, x: Tensor) -> Tensor:
        return self.emit(Dequantize(), x, dtype=DType.FLOAT32)

    def permute(self, x: Tensor, *order: int) -> Tensor:
        return self.emit(Permute(order), x)

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        return self.emit(Reshape(shape), x)

    def conv(self, x: Tensor, channels: int, kernel: int = 1, **attrs: Any) -> Tensor:
        """On an NHWC value, weights random."""
        weights = self.random(channels, kernel, kernel, x.shape[3] // attrs.get("groups", 1))
        return self.emit(Conv2d(**attrs), x, weights, self.random(channels))

    def torch_conv(self, x: Tensor, channels: int, kernel: int = 1, **attrs: Any) -> Tensor:
        """On an NCHW value, wrapped in permutes as the importer does it."""
        return self.permute(self.conv(self.permute(x, 0, 2, 3, 1), channels, kernel, **attrs), 0, 3, 1, 2)

    def linear(self, x: Tensor, width: int) -> Tensor:
        return self.emit(Linear(), x, self.random(width, x.shape[-1]), self.random(width))

    def graph(self, *outputs: Tensor) -> Graph:
        return ops.check(Graph("test", tuple(self.inputs), outputs, tuple(self.nodes)), "building")


def random_inputs(graph: Graph, seed: int = 1) -> list[Array]:
    """Whole numbers for float inputs, so that sums are exact; anything for int8."""
    rng = np.random.default_rng(seed)
    arrays: list[Array] = []
    for tensor in graph.inputs:
        low, high = (-4, 5) if tensor.dtype is DType.FLOAT32 else (-128, 128)
        arrays.append(rng.integers(low, high, tensor.shape).astype(tensor.dtype.numpy).reshape(tensor.shape))
    return arrays


def assert_same(before: Graph, after: Graph, *, atol: float = 0.0) -> None:
    """Both compute the same outputs (within `atol`) for some random inputs; `after` is a valid graph."""
    ops.check(after, "the pass")
    for node in after.nodes:
        assert ops.op_of(node).check(node) is None, f"{node.op}: {ops.op_of(node).check(node)}"
    for seed in range(3):
        arrays = random_inputs(before, seed)
        for x, y in zip(run_graph(before, arrays), run_graph(after, arrays), strict=True):
            assert x.shape == y.shape
            assert x.dtype == y.dtype
            difference = np.abs(x.astype(np.float64) - y.astype(np.float64))
            assert difference.max(initial=0) <= atol


def ops_of(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def permuted_bytes(graph: Graph) -> int:
    return sum(node.output.type.bytes for node in graph.nodes if isinstance(node.attrs, Permute))


def lines(graph: Graph) -> list[str]:
    """A line a node, `op(shape, …) -> shape`, for comparing whole graphs."""

    def shape(tensor: Tensor | None) -> str:
        return "-" if tensor is None else shape_text(tensor.shape)

    return [f"{n.op}({', '.join(map(shape, n.inputs))}) -> {shape_text(n.output.shape)}" for n in graph.nodes]


def before_and_after(before: Graph, after: Graph) -> str:
    """Both graphs, whole."""
    return f"{to_text(before)}\n---- after\n\n{to_text(after)}"


def shape_text(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "scalar"


def origins_of(graph: Graph, op: str) -> list[Sequence[str]]:
    """The keys of the origins of each node of an operator."""
    return [[origin.key for origin in node.origins] for node in graph.nodes if node.op == op]
