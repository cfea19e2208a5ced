# SPDX-License-Identifier: Apache-2.0
"""A finished graph with more nodes behind it, whose results are further outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tinyet.ir import Attrs, DType, Graph, Node, Origin, QuantParams, Tensor, TensorType
from tinyet.messages.text import unused
from tinyet.ops import infer
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.reshape import Reshape


class Extension:
    """Collects nodes behind a graph's. word: what they compute, of which their names are made."""

    def __init__(self, graph: Graph, word: str) -> None:
        self.graph = graph
        self.word = word
        self.nodes: list[Node] = []
        values = [*graph.inputs, *graph.constants, *(t for node in graph.nodes for t in node.outputs)]
        self._names = {tensor.name for tensor in values}

    def name(self, wanted: str) -> str:
        return unused(wanted, self._names)

    def held(self, data: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> Tensor:
        made = np.ascontiguousarray(np.asarray(data).astype(dtype))
        kind = TensorType(tuple(made.shape), DType(made.dtype.name))
        return Tensor(self.name(f"{self.word}_constant"), kind, made)

    def emit(
        self,
        attrs: Attrs,
        inputs: Sequence[Tensor],
        dtype: DType = DType.FLOAT32,
        quant: QuantParams | None = None,
        name: str = "",
    ) -> Tensor:
        origin = Origin(self.word, self.word, text=self.word)
        draft = Node(attrs, tuple(inputs), (Tensor("draft", TensorType((1,), dtype, quant)),), (origin,))
        (shape,) = infer(draft)
        out = Tensor(self.name(name or f"{self.word}_{attrs.name}"), TensorType(tuple(shape), dtype, quant))
        self.nodes.append(draft.replace(outputs=[out]))
        return out

    def real(self, x: Tensor) -> Tensor:
        """In float32, of which all else is computed."""
        return x if x.dtype is DType.FLOAT32 else self.emit(Dequantize(), [x])

    def reshaped(self, x: Tensor, shape: Sequence[int], name: str = "") -> Tensor:
        """Always a node of its own, so that it may have a name."""
        return self.emit(Reshape(tuple(shape)), [x], x.dtype, name=name)

    def whole(self, output: Tensor) -> Graph:
        """The graph with another output, behind its own and before what states become."""
        own = len(self.graph.user_outputs)
        outputs = (*self.graph.outputs[:own], output, *self.graph.outputs[own:])
        return replace(self.graph, outputs=outputs, nodes=(*self.graph.nodes, *self.nodes))

    def alone(self, output: Tensor) -> Graph:
        """The new nodes as a graph of their own, of the same inputs."""
        inputs = self.graph.user_inputs
        return Graph(self.word, inputs, (output,), tuple(self.nodes))
