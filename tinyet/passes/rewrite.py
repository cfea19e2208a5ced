# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the passes: replacing nodes, looking upstream, free names, surviving origins."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Protocol

from tinyet import opset
from tinyet.ir import Graph, Node, Origin, QuantParams, Tensor, TensorType
from tinyet.ops import op_of
from tinyet.ops.quantize import Quantize


def is_monotone(node: Node) -> bool:
    """Whether a clamp or a change of scale may stand before the node as well as behind it."""
    return opset.monotone(op_of(node), node)


class Lookup(Protocol):
    """The queries that both a Graph and an Edit of one answer."""

    @property
    def outputs(self) -> Container[Tensor]: ...

    def producer(self, tensor: Tensor) -> Node | None: ...

    def consumers(self, tensor: Tensor) -> tuple[Node, ...]: ...


class Names:
    """Names that no tensor of the graph has."""

    def __init__(self, graph: Graph) -> None:
        tensors = (t for node in graph.nodes for t in (*node.inputs, *node.outputs) if t is not None)
        self._taken = {t.name for t in (*graph.inputs, *graph.outputs, *tensors)}
        # For each name requested before, the number up to which all are taken.
        self._last: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        count = self._last.get(wanted, 1)
        name = wanted if count == 1 else f"{wanted}_{count}"
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        self._last[wanted] = count
        return name


def replace_nodes(graph: Graph, replacements: Mapping[Node, Sequence[Node]]) -> Graph:
    """Each key gives way to its nodes (none: it is removed)."""
    return graph.replace(nodes=[new for node in graph.nodes for new in replacements.get(node, (node,))])


def all_origins(nodes: Iterable[Node]) -> tuple[Origin, ...]:
    """The origins of all, in order, each once."""
    return tuple(dict.fromkeys(origin for node in nodes for origin in node.origins))


def only_consumer(graph: Lookup, tensor: Tensor) -> Node | None:
    """The one node that reads the tensor; None when there are several or it leaves the graph."""
    consumers = graph.consumers(tensor)
    return consumers[0] if len(consumers) == 1 and tensor not in graph.outputs else None


def common_quantize(graph: Lookup, tensor: Tensor) -> tuple[Node, ...] | None:
    """The consumers of a tensor when all of them are Quantize nodes of one and the same type, else None."""
    consumers = graph.consumers(tensor)
    if not consumers or tensor in graph.outputs:
        return None
    if any(not isinstance(n.attrs, Quantize) or n.output.type != consumers[0].output.type for n in consumers):
        return None
    return consumers


def chain_above(graph: Lookup, node: Node) -> tuple[Node, ...] | None:
    """The node that computes the first input of `node`, and the monotone operators between them, in order.

    None unless each of them is read by the next one only.
    """
    chain: list[Node] = []
    tensor = node.input(0)
    while True:
        producer = graph.producer(tensor)
        if producer is None or only_consumer(graph, tensor) is None or len(producer.outputs) != 1:
            return None
        chain.append(producer)
        if not is_monotone(producer):
            return tuple(reversed(chain))
        tensor = producer.input(0)


def with_quant(tensor: Tensor, quant: QuantParams | None) -> Tensor:
    """The tensor under the same name, quantized otherwise."""
    return Tensor(tensor.name, TensorType(tensor.shape, tensor.dtype, quant))
