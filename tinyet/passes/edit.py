# SPDX-License-Identifier: Apache-2.0
"""A graph while a pass changes it in many places: each change costs what it concerns, not the whole graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyet.ir import Graph, Node, Tensor

Key = tuple[int, ...]


class Edit:
    """Answers what a Graph answers, and changes. `nodes` are those it began with."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.outputs = list(graph.outputs)
        # Keys sort like the nodes; a node that becomes several passes its key on, one number longer.
        self._nodes: dict[Key, Node] = {}
        self._key: dict[Node, Key] = {}
        self._producer: dict[Tensor, Node] = {}
        self._consumers: dict[Tensor, dict[Node, None]] = {}
        for number, node in enumerate(graph.nodes):
            self._insert((number,), node)

    def producer(self, tensor: Tensor) -> Node | None:
        return self._producer.get(tensor)

    def consumers(self, tensor: Tensor) -> tuple[Node, ...]:
        """In the order of the nodes."""
        return tuple(sorted(self._consumers.get(tensor, ()), key=self._key.__getitem__))

    def key(self, node: Node) -> Key | None:
        """Where the node stands; None when it is no longer there."""
        return self._key.get(node)

    def replace(self, replacements: Mapping[Node, Sequence[Node]]) -> None:
        """Each node gives way to others (none: it is removed)."""
        keys = {node: self._key[node] for node in replacements}
        for node, key in keys.items():
            del self._nodes[key], self._key[node]
            for tensor in node.outputs:
                del self._producer[tensor]
            for used in set(node.inputs):
                if used is not None:
                    del self._consumers[used][node]
        for node, new in replacements.items():
            for number, other in enumerate(new):
                self._insert(keys[node] if len(new) == 1 else (*keys[node], number), other)

    def substitute(self, old: Tensor, new: Tensor) -> None:
        """Every read of one tensor becomes a read of the other."""
        for reader in self.consumers(old):
            inputs = [new if t is old else t for t in reader.inputs]
            self.replace({reader: (reader.replace(inputs=inputs),)})
        self.outputs = [new if t is old else t for t in self.outputs]

    def graph(self) -> Graph:
        """The graph as it is now."""
        nodes = [self._nodes[key] for key in sorted(self._nodes)]
        return self._graph.replace(nodes=nodes, outputs=self.outputs)

    def _insert(self, key: Key, node: Node) -> None:
        self._nodes[key], self._key[node] = node, key
        for tensor in node.outputs:
            self._producer[tensor] = node
        for used in node.inputs:
            if used is not None:
                self._consumers.setdefault(used, {})[node] = None
