# SPDX-License-Identifier: Apache-2.0
"""Region: a part of the graph that one delegate computes as a whole. Its meaning is that of the nodes in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.ir import Array, Attrs, Graph, Node, Origin, Shape
from tinyet.opset import DelegateName, Op

MAX_VALUES = 4096
"""Most values in a region."""


@dataclass(frozen=True)
class Region(Attrs):
    """delegate: the name of who takes it. graph: what it computes, inputs and outputs in the node's order."""

    name: ClassVar[str] = "region"
    delegate: DelegateName
    graph: Graph

    def __str__(self) -> str:
        return f"delegate={self.delegate}, nodes={'+'.join(n.op for n in self.graph.nodes)}"


def without_key(origin: Origin) -> Origin:
    """The origin of a node in a graph that was exported apart: its key would find a float node in another export."""
    return Origin(origin.aten, origin.module, origin.file, origin.line, origin.text)


def attrs_of(node: Node) -> Region:
    assert isinstance(node.attrs, Region)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    return tuple(t.shape for t in attrs_of(node).graph.outputs)


def check(node: Node) -> str | None:
    graph = attrs_of(node).graph
    inside = (*graph.inputs, *graph.outputs)
    outside = (*node.inputs, *node.outputs)
    if len(inside) != len(outside) or any(
        o is None or i.type != o.type for i, o in zip(inside, outside, strict=True)
    ):
        return "its inputs and outputs are not those of the graph in it"
    if len(set(inside)) != len(inside):
        return "the graph in it gives an input, or one value twice"
    return None


def operator(op_of: Callable[[Node], Op]) -> Op:
    """The operator. op_of: the operator of a node in a region; whoever knows them all gives it."""

    def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        """The nodes one after the other, each by its own reference."""
        graph = attrs_of(node).graph
        values = dict(zip(graph.inputs, inputs, strict=True)) | {t: t.array for t in graph.constants}
        for inner in graph.nodes:
            results = op_of(inner).reference(inner, [None if t is None else values[t] for t in inner.inputs])
            values.update(zip(inner.outputs, results, strict=True))
        outputs = [values[t] for t in graph.outputs]
        return tuple(o for o in outputs if o is not None)

    def macs(node: Node) -> int:
        return sum(op_of(inner).macs(inner) for inner in attrs_of(node).graph.nodes)

    return Op(
        attrs=Region,
        summary="a part of the graph that a delegate computes as a whole",
        infer=infer,
        inputs=(0, MAX_VALUES),
        reference=reference,
        check=check,
        products=macs,
        kernels=(),
    )
