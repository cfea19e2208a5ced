# SPDX-License-Identifier: Apache-2.0
"""Nodes whose results are not read."""

from __future__ import annotations

from tinyet.ir import Graph, Node, Tensor


def eliminate_dead_code(graph: Graph) -> Graph:
    """Only what an output of the graph depends on stays. Inputs of the graph stay, they are its interface."""
    needed: set[Tensor] = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(t in needed for t in node.outputs):
            kept.append(node)
            needed.update(t for t in node.inputs if t is not None)
    return graph.replace(nodes=reversed(kept))
