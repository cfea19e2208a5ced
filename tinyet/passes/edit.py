# SPDX-License-Identifier: Apache-2.0
"""A graph while a pass changes it in many places: the cost of a change depends on its surroundings, not on the whole
graph."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence

from tinyet.ir import Graph, Node, Tensor

Key = tuple[int, ...]


class Edit:
    """Has a Graph's queries, and changes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.outputs = list(graph.outputs)
        # Tensors whose producers have changed, and tensors whose readers have, since `changed` was last asked.
        self._made: dict[Tensor, None] = {}
        self._read: dict[Tensor, None] = {}
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
        """The node's position; None where it is no longer there."""
        return self._key.get(node)

    def replace(self, replacements: Mapping[Node, Sequence[Node]]) -> None:
        """Each node gives way to others (none: it is removed)."""
        keys = {node: self._key[node] for node in replacements}
        for node, key in keys.items():
            self._touch(node)
            del self._nodes[key], self._key[node]
            for tensor in node.outputs:
                del self._producer[tensor]
            for used in set(node.inputs):
                if used is not None:
                    del self._consumers[used][node]
        for node, new in replacements.items():
            for number, other in enumerate(new):
                self._insert(keys[node] if len(new) == 1 else (*keys[node], number), other)
                self._touch(other)

    def substitute(self, old: Tensor, new: Tensor) -> None:
        """Every read of one tensor becomes a read of the other."""
        for reader in self.consumers(old):
            inputs = [new if t is old else t for t in reader.inputs]
            self.replace({reader: (reader.replace(inputs=inputs),)})
        self.outputs = [new if t is old else t for t in self.outputs]
        self._read.update({old: None, new: None})

    def graph(self) -> Graph:
        """The graph as it is now."""
        return self._graph.replace(nodes=self.nodes(), outputs=self.outputs)

    def nodes(self) -> list[Node]:
        """The nodes as they are now, in order."""
        return [self._nodes[key] for key in sorted(self._nodes)]

    def changed(self, through: Callable[[Node], bool]) -> list[Node]:
        """The nodes for which there may be more to do than when this was last asked: new ones; producers of tensors
        whose readers have changed, and their only reader now; readers of tensors whose producers have changed.
        Readers behind nodes that `through` holds of count as readers of such a tensor."""
        found: dict[Node, None] = {}
        for tensor in (*self._made, *self._read):
            if tensor in self._producer:
                found[self._producer[tensor]] = None
        tensors = [*self._made, *(t for t in self._read if len(self._consumers.get(t, ())) == 1)]
        seen = set(tensors)
        while tensors:
            for reader in self._consumers.get(tensors.pop(), ()):
                found[reader] = None
                if through(reader):
                    tensors += [t for t in reader.outputs if t not in seen]
                    seen.update(reader.outputs)
        self._made.clear()
        self._read.clear()
        return list(found)

    def _touch(self, node: Node) -> None:
        self._made.update(dict.fromkeys(node.outputs))
        self._read.update(dict.fromkeys(t for t in node.inputs if t is not None))

    def _insert(self, key: Key, node: Node) -> None:
        self._nodes[key], self._key[node] = node, key
        for tensor in node.outputs:
            self._producer[tensor] = node
        for used in node.inputs:
            if used is not None:
                self._consumers.setdefault(used, {})[node] = None


Step = Callable[[Edit, Node], bool]
"""Changes the graph at a node, or says that there is nothing to do."""


def settle(edit: Edit, *rounds: Sequence[Step], through: Callable[[Node], bool] = lambda _: False) -> None:
    """Apply the steps until none has anything to do: always the first step that has, at the first node where one has,
    as if each search began anew at the top; steps of a later round only when nothing is left for the earlier ones.

    A node is visited again when a change comes near (`Edit.changed`). So a step's work at a node may depend on the
    producers of its inputs, on the readers of its outputs, on whether it is the only reader of an input, and, for
    these, on the nodes above it behind nodes that `through` holds of.
    """
    # The number only keeps nodes from being compared: no two that are there have one key.
    numbers = itertools.count()
    waiting: list[list[tuple[Key, int, Node]]] = [[] for _ in rounds]

    def look_at(node: Node) -> None:
        key = edit.key(node)
        if key is not None:
            for queue in waiting:
                heapq.heappush(queue, (key, next(numbers), node))

    for node in edit.nodes():
        look_at(node)
    while (found := next(((s, q) for s, q in zip(rounds, waiting, strict=True) if q), None)) is not None:
        steps, queue = found
        key, _, node = heapq.heappop(queue)
        if edit.key(node) == key and any(step(edit, node) for step in steps):
            for near in edit.changed(through):
                look_at(near)
