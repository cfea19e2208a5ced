# SPDX-License-Identifier: Apache-2.0
"""What the planner of memory decides on the way to a plan: everything but the offsets."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

from tinyet.ir import Graph, Node, Tensor
from tinyet.memory import offsets as packing
from tinyet.memory import schedule as ordering
from tinyet.memory.layout import Layout
from tinyet.memory.sweeping import Sweeping
from tinyet.memory.weave import Group


class StreamRefusedError(Exception):
    """A stream that cannot be planned: around one of its whole tensors there is no room."""


@dataclass(frozen=True)
class Moments:
    """Calls (-1: before the first, their number: after the last) at which a tensor's bytes are written by
    whatever owns them, and at which each tensor is last used under its own name."""

    written: dict[Tensor, int]
    used: dict[Tensor, int]


@dataclass(frozen=True)
class Draft:
    """One complete set of decisions but the offsets."""

    copied: frozenset[Node]  # moves that are computed although they need not be
    apart: frozenset[Node]  # calls that do not work in place although they could
    layout: Layout
    woven: dict[Tensor, Group]  # of the tensors whose pixels lie apart
    elided: frozenset[Node]
    calls: tuple[Node, ...]
    overwrites: dict[Node, tuple[int, int]]
    schedule: ordering.Schedule
    buffers: list[packing.Buffer]
    sweeping: Sweeping
    bound: int  # bytes alive at the worst moment, or a little more
    fullest: tuple[int, int]  # the first and the last of the moments at which most bytes are alive
    used: dict[Tensor, int]

    def lying(self, tensor: Tensor) -> tuple[Tensor, int, int]:
        """A tensor, the byte of a woven pixel at which its own begins, and the pixels' pitch; 0 for all others."""
        group = self.woven.get(tensor)
        return (tensor, 0, 0) if group is None else (tensor, group.at[tensor], group.pitch)

    @cached_property
    def blocks(self) -> dict[Tensor, packing.Buffer]:
        """The buffer of each block, by the tensor that stands for it."""
        return dict(zip(self.layout.roots(), self.buffers, strict=False))

    @cached_property
    def last_used(self) -> dict[Tensor, list[tuple[int, Tensor]]]:
        """For each block, its tensors and when they are last used, the latest first."""
        found: dict[Tensor, list[tuple[int, Tensor]]] = {root: [] for root in self.blocks}
        for tensor, used in sorted(self.used.items(), key=lambda item: -item[1]):
            found[self.layout.root(tensor)].append((used, tensor))
        return found


def order_of(graph: Graph, draft: Draft) -> tuple[Node, ...]:
    """The calls, each elided node standing where the last of its inputs is there."""
    missing: dict[Node, int] = {}
    readers: dict[Tensor, list[tuple[int, Node]]] = {}
    ready: list[tuple[int, Node]] = []
    for number, node in enumerate(graph.nodes):
        if node in draft.elided:
            variables = [t for t in variables_of(node) if t not in graph.inputs]
            missing[node] = len(variables)
            for tensor in variables:
                readers.setdefault(tensor, []).append((number, node))
            if not variables:
                ready.append((number, node))
    order: list[Node] = []

    def run(node: Node) -> None:
        order.append(node)
        for tensor in node.outputs:
            for number, reader in readers.get(tensor, ()):
                missing[reader] -= 1
                if not missing[reader]:
                    heapq.heappush(ready, (number, reader))

    def settle() -> None:
        # In the graph's order, which is that of the chains among them, too.
        while ready:
            run(heapq.heappop(ready)[1])

    settle()
    for node in draft.calls:
        run(node)
        settle()
    return tuple(order)


def variables_of(node: Node) -> list[Tensor]:
    """The node's inputs that stand in the arena, each once."""
    return [t for t in dict.fromkeys(node.inputs) if t is not None and not t.is_constant]
