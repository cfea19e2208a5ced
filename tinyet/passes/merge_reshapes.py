# SPDX-License-Identifier: Apache-2.0
"""Redundant reshapes and copies."""

from __future__ import annotations

from tinyet.ir import Graph, Node, Tensor, substitute
from tinyet.ops.copy import Copy
from tinyet.ops.reshape import Reshape
from tinyet.passes.dead_code import eliminate_dead_code
from tinyet.passes.rewrite import all_origins


def merge_reshapes(graph: Graph) -> Graph:
    """A Reshape of a Reshape reads the first one's input. Copies and Reshapes to the same shape disappear.

    A Copy that makes an output of the graph out of an input or a constant stays.
    """
    same: dict[Tensor, Tensor] = {}
    shaped: dict[Tensor, Node] = {}
    nodes: list[Node] = []
    for old in graph.nodes:
        node = old.replace(inputs=[t if t is None else same.get(t, t) for t in old.inputs])
        if isinstance(node.attrs, Reshape):
            above = shaped.get(node.input(0))
            if above is not None:
                node = node.replace(inputs=above.inputs, origins=all_origins((above, node)))
            shaped[node.output] = node
        source = None if len(node.inputs) != 1 else node.inputs[0]
        if source is not None and _is_identity(graph, node, source):
            same[node.output] = source
        else:
            nodes.append(node)
    return eliminate_dead_code(substitute(graph.replace(nodes=nodes), same))


def _is_identity(graph: Graph, node: Node, source: Tensor) -> bool:
    if isinstance(node.attrs, Reshape):
        if node.output.shape != source.shape:
            return False
    elif not isinstance(node.attrs, Copy):
        return False
    return node.output not in graph.outputs or graph.producer(source) is not None
