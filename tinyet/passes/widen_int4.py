# SPDX-License-Identifier: Apache-2.0
"""int4 weights become int8 if the operator that reads them has no portable kernel for them."""

from __future__ import annotations

from collections.abc import Iterator

from tinyet.ir import DType, Graph, Node, Note, Tensor, TensorType, substitute
from tinyet.ops import op_of
from tinyet.ops.dequantize import Dequantize
from tinyet.opset import signature


def widen_int4(graph: Graph) -> tuple[Graph, tuple[Note, ...]]:
    """Exact: the same numbers in twice the bytes, and a note for each operator on whose account.

    Before integer operators are formed, weights stand behind a Dequantize; then it is enough that the operator has a
    kernel for some node with int4 weights.
    """
    wider: dict[Tensor, Tensor] = {}
    notes: list[Note] = []
    for tensor in graph.constants:
        if tensor.dtype is not DType.INT4:
            continue
        for reader in _without_kernel(graph, tensor):
            type_ = TensorType(tensor.shape, DType.INT8, tensor.type.quant)
            wider[tensor] = Tensor(tensor.name, type_, tensor.array)
            text = f"{reader.op} has no kernel for int4 weights: {tensor.name} is held in int8, {type_.bytes} bytes"
            notes.append(Note(text, reader.origins[-1] if reader.origins else None))
    return substitute(graph, wider), tuple(notes)


def _without_kernel(graph: Graph, tensor: Tensor) -> Iterator[Node]:
    """The operators that read an int4 constant and cannot be computed with it."""
    for node in graph.consumers(tensor):
        if not isinstance(node.attrs, Dequantize):
            if not any(kernel.dtypes == signature(node) for kernel in op_of(node).kernels):
                yield node
            continue
        for reader in graph.consumers(node.output):
            if not any(kernel.dtypes.endswith("w4") for kernel in op_of(reader).kernels):
                yield reader
