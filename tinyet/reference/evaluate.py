# SPDX-License-Identifier: Apache-2.0
"""The host reference: a graph evaluated node by node with the operators' numpy definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyet import ops
from tinyet.errors import DataError, InternalError
from tinyet.ir import Array, Graph, Tensor


def refuse_misfits(tensors: Sequence[Tensor], arrays: Sequence[Array], name: str) -> None:
    """Raise DataError unless there is one array for each input, of exactly its shape and dtype. name: the graph's."""
    if len(arrays) != len(tensors):
        raise DataError(f"{name} has {len(tensors)} inputs, {len(arrays)} arrays were given")
    for tensor, array in zip(tensors, arrays, strict=True):
        if tuple(array.shape) != tensor.shape or array.dtype != tensor.dtype.numpy:
            raise DataError(
                f"input {tensor.name} is {tensor.type}, the array is {array.dtype}{list(array.shape)}"
            )


def evaluate(graph: Graph, inputs: Sequence[Array]) -> Mapping[Tensor, Array]:
    """Every value of the graph for one set of inputs, constants included; a graph with states is run by a `Session`.

    inputs: one array per graph input, the states' among them, of exactly its shape and dtype. Raises DataError when
    they are not.
    """
    refuse_misfits(graph.inputs, inputs, graph.name)
    values: dict[Tensor, Array] = dict(zip(graph.inputs, inputs, strict=True))
    for tensor in graph.constants:
        values[tensor] = tensor.array
    for node in graph.nodes:
        results = ops.evaluate(node, [None if t is None else values[t] for t in node.inputs])
        for tensor, result in zip(node.outputs, results, strict=True):
            if tuple(result.shape) != tensor.shape or result.dtype != tensor.dtype.numpy:
                raise InternalError(
                    f"the reference of {node.op} gave {result.dtype}{list(result.shape)} for {tensor.type}",
                    node.where,
                )
            values[tensor] = result
    return values


def run_graph(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """All outputs of the graph, what states become among them, for all of its inputs."""
    values = evaluate(graph, inputs)
    return [values[t] for t in graph.outputs]
