# SPDX-License-Identifier: Apache-2.0
"""Groups of nodes as regions: finding them, making each one node, and undoing that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from tinyet.delegates.delegate import Claims
from tinyet.errors import InternalError
from tinyet.ir import Graph, Node, Tensor
from tinyet.ops.region import Region, without_key
from tinyet.opset import delegate_name


def regions_of(
    graph: Graph, free: Collection[Node], refuse: Callable[[Node], str | None], *, at_least: int = 1
) -> Claims:
    """The usual partitioner: connected groups, as large as can be, of free nodes that `refuse` gives None for.

    Groups can be computed one after the other: none needs a value that depends on its own outputs. Those with fewer
    than `at_least` nodes are left to others.
    """
    refusals = {node: reason for node in graph.nodes if node in free and (reason := refuse(node)) is not None}
    groups: dict[Node, int] = {}  # node → the group it is in
    members: dict[int, list[Node]] = {}
    for index, node in enumerate(graph.nodes):
        if node not in free or node in refusals:
            continue
        groups[node] = index
        members[index] = [node]
        for tensor in node.inputs:
            producer = graph.producer(tensor) if tensor is not None else None
            if producer in groups and groups[producer] != groups[node]:
                joined = {n: groups[node] if g == groups[producer] else g for n, g in groups.items()}
                if _acyclic(graph, joined):
                    members[groups[node]] = members.pop(groups[producer]) + members[groups[node]]
                    groups = joined
    position = {node: i for i, node in enumerate(graph.nodes)}
    ordered = [tuple(sorted(group, key=position.__getitem__)) for group in members.values()]
    small = [group for group in ordered if len(group) < at_least]
    for group in small:
        refusals.update(dict.fromkeys(group, f"a group of {len(group)}, fewer than {at_least}"))
    return Claims(tuple(group for group in ordered if len(group) >= at_least), refusals)


def _acyclic(graph: Graph, groups: Mapping[Node, int]) -> bool:
    """Whether the graph in which each group is one node has an order."""
    return _order(graph, lambda node: groups.get(node, node)) is not None


def _order(graph: Graph, unit_of: Callable[[Node], object]) -> list[object] | None:
    """Units in an order in which each comes after what it reads, earliest node first; None when there is none."""
    needs: dict[object, set[object]] = {}
    for node in graph.nodes:
        unit = unit_of(node)
        wanted = needs.setdefault(unit, set())
        for tensor in node.inputs:
            producer = graph.producer(tensor) if tensor is not None else None
            if producer is not None and unit_of(producer) != unit:
                wanted.add(unit_of(producer))
    done: dict[object, None] = {}
    while len(done) < len(needs):
        ready = next((u for u, wanted in needs.items() if u not in done and wanted <= done.keys()), None)
        if ready is None:
            return None
        done[ready] = None
    return list(done)


def contract(graph: Graph, groups: Iterable[Sequence[Node]], delegate: str) -> Graph:
    """The graph in which each group is one Region node. Raises InternalError when no order of them exists."""
    group_of = {node: tuple(group) for group in groups for node in group}
    order = _order(graph, lambda node: group_of.get(node, node))
    if order is None:
        raise InternalError(f"the regions that {delegate} claims depend on each other in a circle")
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
