# SPDX-License-Identifier: Apache-2.0
"""The same computation on the same values is done once."""

from __future__ import annotations

from tinyet.ir import Attrs, Graph, Node, Tensor, TensorType, substitute
from tinyet.passes.rewrite import all_origins, replace_nodes

Key = tuple[Attrs, tuple[Tensor | None, ...], tuple[TensorType, ...]]


def share_common_subexpressions(graph: Graph) -> Graph:
    """Equal constants become one; then of nodes with equal attributes, inputs and types the first stays, with
    all origins. A node that computes an output of the graph stays: each output has bytes of its own."""
    shared: dict[Tensor, Tensor] = {}
    constants: dict[tuple[TensorType, bytes], Tensor] = {}
    for tensor in graph.constants:
        first = constants.setdefault((tensor.type, tensor.array.tobytes()), tensor)
        if first is not tensor:
            shared[tensor] = first
    seen: dict[Key, Node] = {}
    same: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        inputs = tuple(None if t is None else shared.get(t, t) for t in node.inputs)
        kept = seen.setdefault((node.attrs, inputs, tuple(t.type for t in node.outputs)), node)
        if kept is not node and not any(t in graph.outputs for t in node.outputs):
            shared.update(zip(node.outputs, kept.outputs, strict=True))
            same.setdefault(kept, [kept]).append(node)
    replacements: dict[Node, tuple[Node, ...]] = {}
    for kept, nodes in same.items():
        replacements.update((node, ()) for node in nodes)
        replacements[kept] = (kept.replace(origins=all_origins(nodes)),)
    return substitute(replace_nodes(graph, replacements), shared)
