# SPDX-License-Identifier: Apache-2.0
"""ReLU and similar operators become the clamp that the operator before them applies anyway."""

from __future__ import annotations

import dataclasses
from typing import Any

from tinyet.ir import DType, Graph, Node, TensorType
from tinyet.numerics import clamp_range
from tinyet.ops.clamp import Clamp
from tinyet.passes.edit import Edit
from tinyet.passes.rewrite import all_origins, chain_above

Bounds = tuple[float, float]


def fuse_clamp(graph: Graph) -> Graph:
    """Each Clamp goes into the operator that computes its input, also across monotone operators.

    Exact: in int8 it is done only where the scale stays, and then one range of integers inside another is
    again a range of integers. An int8 Clamp that keeps the scale and cuts nothing off disappears wherever it
    stands.
    """
    edit = Edit(graph)
    for node in graph.nodes:
        if isinstance(node.attrs, Clamp):
            _remove(edit, node, node.attrs)
    return edit.graph()


def _remove(graph: Edit, stale: Node, attrs: Clamp) -> None:
    """Take this Clamp out if that can be. `stale` may have been replaced since, its output not."""
    node = graph.producer(stale.output)
    assert node is not None
    x, out = node.input(0), node.output
    bounds = attrs.low, attrs.high
    if x.type.quant != out.type.quant or x.dtype is not out.dtype:
        return
    if out.dtype is not DType.FLOAT32 and clamp_range(bounds, out.type) == out.dtype.range:
        # An output of the graph needs a node that computes it.
        if out in graph.outputs and graph.producer(x) is None:
            return
        graph.replace({node: ()})
        graph.substitute(out, x)
        return
    chain = chain_above(graph, node)
    if chain is None:
        return
    own = clamp_of(chain[0])
    if own is None:
        return
    first = with_clamp(chain[0], compose(own, bounds)).replace(origins=all_origins((chain[0], node)))
    if out.dtype is not DType.FLOAT32 and _range(first, out.type) != _both(chain[0], bounds, out.type):
        return
    links = [first, *chain[1:]]
    links[-1] = links[-1].replace(outputs=node.outputs)
    replacements: dict[Node, tuple[Node, ...]] = {old: (new,) for old, new in zip(chain, links, strict=True)}
    graph.replace({**replacements, node: ()})


def compose(first: Bounds, second: Bounds) -> Bounds:
    """Clamping by `first` and then by `second` is clamping by the result."""
    low, high = second
    return min(max(first[0], low), high), min(max(first[1], low), high)


def clamp_of(node: Node) -> Bounds | None:
    """The fused clamp of an operator that has one."""
    clamp: Bounds | None = getattr(node.attrs, "clamp", None)
    return clamp


def with_clamp(node: Node, bounds: Bounds) -> Node:
    attrs: Any = node.attrs
    return node.replace(attrs=dataclasses.replace(attrs, clamp=bounds))


def _range(node: Node, type_: TensorType) -> tuple[int, int]:
    bounds = clamp_of(node)
    assert bounds is not None
    return clamp_range(bounds, type_)


def _both(node: Node, bounds: Bounds, type_: TensorType) -> tuple[int, int]:
    """The integers that a node's own clamp and then `bounds` leave."""
    own, (low, high) = _range(node, type_), clamp_range(bounds, type_)
    return min(max(own[0], low), high), min(max(own[1], low), high)
