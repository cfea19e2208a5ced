# SPDX-License-Identifier: Apache-2.0
"""Squares that are only added up along the last axis, such as powers of complex numbers: one operator, which stores
none of them. No bit changes."""

from __future__ import annotations

from tinyet.ir import DType, Graph, Node, Tensor
from tinyet.ops.mul import Mul
from tinyet.ops.sum import Sum
from tinyet.ops.sum_of_squares import SumOfSquares
from tinyet.ops.unary import Unary
from tinyet.passes.dead_code import eliminate_dead_code


def sum_of_squares(graph: Graph) -> Graph:
    squared = {node.output: node for node in graph.nodes if _squares(node)}
    nodes = [_joined(graph, node, squared) for node in graph.nodes]
    return eliminate_dead_code(graph.replace(nodes=nodes))


def _squares(node: Node) -> bool:
    if len(node.outputs) != 1 or node.output.dtype is not DType.FLOAT32:
        return False
    by_itself = node.attrs == Mul() and node.input(0) is node.input(1)
    return by_itself or node.attrs == Unary("square")


def _joined(graph: Graph, node: Node, squared: dict[Tensor, Node]) -> Node:
    if not isinstance(node.attrs, Sum):
        return node
    x = node.input(0)
    if node.attrs.keepdims or node.attrs.axes != (len(x.shape) - 1,) or x not in squared:
        return node
    if len(graph.consumers(x)) > 1 or x in graph.outputs:
        return node  # the squares are there all the same
    before = squared[x]
    return Node(SumOfSquares(), (before.input(0),), node.outputs, (*before.origins, *node.origins))
