# SPDX-License-Identifier: Apache-2.0
"""Groups of nodes as regions: making each one node, and undoing that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tinyet.delegates.regions import order_of
from tinyet.errors import InternalError
from tinyet.ir import Graph, Node, Tensor
from tinyet.ops.region import Region, without_key
from tinyet.opset import delegate_name


def contract(graph: Graph, groups: Iterable[Sequence[Node]], delegate: str) -> Graph:
    """The graph in which each group is one Region node. Raises InternalError when no order of them exists."""
    group_of = {node: tuple(group) for group in groups for node in group}
    order = order_of(graph, lambda node: group_of.get(node, node))
    if order is None:
        raise InternalError(f"the regions that {delegate} takes depend on each other in a circle")
    nodes = [
        region_node(graph, unit, delegate) if isinstance(unit, tuple) else unit
        for unit in order
        if isinstance(unit, (tuple, Node))
    ]
    return graph.replace(nodes=nodes)


def region_node(graph: Graph, group: Sequence[Node], delegate: str) -> Node:
    """One node for a group; it reads and gives the same tensors."""
    inside = set(group)
    made = {t for node in group for t in node.outputs}
    read = dict.fromkeys(
        t for n in group for t in n.inputs if t is not None and not t.is_constant and t not in made
    )
    given = [
        t
        for node in group
        for t in node.outputs
        if t in graph.outputs or not graph.consumers(t) or not inside.issuperset(graph.consumers(t))
    ]
    part = Graph(given[0].name, tuple(read), tuple(given), tuple(group))
    origins = tuple(dict.fromkeys(o for node in group for o in node.origins))
    return Node(Region(delegate_name(delegate), part), tuple(read), tuple(given), origins)


def inline(graph: Graph, regions: Collection[Node]) -> tuple[Graph, dict[Node, Node]]:
    """The graph with the given Region nodes replaced by what is in them, and for each new node its region.

    Tensors inside get new names; constants stay the same, so that two copies of a region share their weights.
    """
    names = {t.name for node in graph.nodes for t in (*node.inputs, *node.outputs) if t is not None}
    names |= {t.name for t in graph.inputs}
    nodes: list[Node] = []
    home: dict[Node, Node] = {}
    for node in graph.nodes:
        if node not in regions:
            nodes.append(node)
            continue
        assert isinstance(node.attrs, Region)
        part = node.attrs.graph
        values: dict[Tensor, Tensor] = {}
        for inner, outer in zip((*part.inputs, *part.outputs), (*node.inputs, *node.outputs), strict=True):
            assert outer is not None
            values[inner] = outer
        for inner_node in part.nodes:
            for tensor in inner_node.outputs:
                if tensor not in values:
                    values[tensor] = Tensor(
                        _fresh(f"{node.outputs[0].name}_{tensor.name}", names), tensor.type
                    )
            copy = inner_node.replace(
                inputs=[None if t is None else values.get(t, t) for t in inner_node.inputs],
                outputs=[values[t] for t in inner_node.outputs],
                origins=[without_key(o) for o in inner_node.origins],
            )
            nodes.append(copy)
            home[copy] = node
    return graph.replace(nodes=nodes), home


def _fresh(wanted: str, names: set[str]) -> str:
    candidate, count = wanted, 1
    while candidate in names:
        count += 1
        candidate = f"{wanted}_{count}"
    names.add(candidate)
    return candidate
