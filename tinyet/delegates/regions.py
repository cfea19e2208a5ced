# SPDX-License-Identifier: Apache-2.0
"""The usual partitioner of a delegate: connected groups of the nodes that it supports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from tinyet.delegates.delegate import Partition
from tinyet.ir import Graph, Node


def regions_of(
    graph: Graph, free: Collection[Node], refuse: Callable[[Node], str | None], *, at_least: int = 1
) -> Partition:
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
    return Partition(tuple(group for group in ordered if len(group) >= at_least), refusals)


def _acyclic(graph: Graph, groups: Mapping[Node, int]) -> bool:
    """Whether the graph in which each group is one node has an order."""
    return order_of(graph, lambda node: groups.get(node, node)) is not None


def order_of(graph: Graph, unit_of: Callable[[Node], object]) -> list[object] | None:
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
