# SPDX-License-Identifier: Apache-2.0
"""A candidate plan of memory: every decision except the offsets."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from tinyet.ir import Graph, Node, Tensor
from tinyet.memory import offsets as packing
from tinyet.memory import schedule as ordering
from tinyet.memory.aliases import NEVER, AliasSets
from tinyet.memory.concat_elision import Group
from tinyet.memory.live_ranges import LiveRange
from tinyet.memory.plan import Lifetime
from tinyet.memory.timeline import Timeline


class FusionRefusedError(Exception):
    """A fusion group that cannot be planned: around one of its whole tensors there is no room."""


@dataclass(frozen=True)
class Moments:
    """Calls (-1: before the first, their number: after the last) at which a tensor's bytes are written by their
    owner, and at which each tensor is last used under its own name."""

    written: dict[Tensor, int]
    used: dict[Tensor, int]


@dataclass(frozen=True)
class CandidatePlan:
    """One complete set of decisions but the offsets."""

    copied: frozenset[Node]  # moves that are computed although they need not be
    apart: frozenset[Node]  # calls that do not work in place although they could
    aliases: AliasSets
    strided: dict[Tensor, Group]  # tensors whose pixels lie apart
    elided: frozenset[Node]
    calls: tuple[Node, ...]
    overwrites: dict[Node, tuple[int, int]]
    schedule: ordering.Schedule
    buffers: list[packing.Buffer]
    inside: Collection[str]  # buffers, by name, that stand for those inside fusion groups
    timeline: Timeline
    bound: int  # bytes alive at the worst moment, or a little more
    fullest: tuple[int, int]  # the first and the last of the moments at which most bytes are alive
    used: dict[Tensor, int]

    def lying(self, tensor: Tensor) -> tuple[Tensor, int, int]:
        """A tensor, its first byte in the group's pixel, and the pixel stride; 0 for all
        others."""
        group = self.strided.get(tensor)
        return (tensor, 0, 0) if group is None else (tensor, group.at[tensor], group.pixel_stride)

    def matters(self, node: Node) -> bool:
        """Is the block of the node's output alive whenever memory is at its fullest? If not, that moment stays as
        full without the block."""
        own = self.blocks[self.aliases.root(node.outputs[0])]
        return own.first <= self.fullest[0] and self.fullest[1] <= own.last

    @cached_property
    def blocks(self) -> dict[Tensor, packing.Buffer]:
        """The buffer of each block, by the tensor that stands for it."""
        return dict(zip(self.aliases.roots(), self.buffers, strict=False))

    @cached_property
    def live_ranges(self) -> list[LiveRange]:
        """Of each buffer, but for those that stand for others."""
        buffers = [b for b in self.buffers if b.name not in self.inside]
        return self.timeline.live_ranges(self.aliases, buffers)

    @cached_property
    def last_used(self) -> dict[Tensor, list[tuple[int, Tensor]]]:
        """For each block, its tensors and when they are last used, the latest first."""
        found: dict[Tensor, list[tuple[int, Tensor]]] = {root: [] for root in self.blocks}
        for tensor, used in sorted(self.used.items(), key=lambda item: -item[1]):
            found[self.aliases.root(tensor)].append((used, tensor))
        return found

    def may_pay(self, graph: Graph, node: Node) -> bool:
        """Would a copy help if the order of the calls stayed? Not when the block without the copied part is as large
        as before and still alive whenever memory is at its fullest. When in doubt, it would."""
        variables = variables_of(node)
        if len(variables) != 1:
            return True
        aliases, root = self.aliases, self.aliases.root(variables[0])
        low, high = aliases.extent(variables[0])
        part = list(node.outputs)
        for tensor in part:
            start, end = aliases.extent(tensor)
            if start < low or high < end:
                return True
            part += (
                t
                for reader in graph.consumers(tensor)
                if reader in self.elided or reader in self.overwrites
                for t in reader.outputs
                if aliases.root(t) is root
            )
        copied = set(part)
        last = next((used for used, t in self.last_used[root] if t not in copied), NEVER)
        return not (self.blocks[root].first <= self.fullest[0] and self.fullest[1] <= last)


def block_of(aliases: AliasSets, root: Tensor, moments: Moments) -> packing.Buffer:
    """The buffer of a block, alive from its first write to its last use."""
    members = aliases.members(root)
    first = min(moments.written[t] for t in members if aliases.owns(t))
    last = max(moments.used[t] for t in members)
    return packing.Buffer(root.name, aliases.size(root), first, last, aliases.strictest(root))


def moments_of(graph: Graph, tensors: Sequence[Tensor], calls: Sequence[Node]) -> Moments:
    """The moments of a graph's tensors for this order of the calls."""
    written = dict.fromkeys(graph.inputs, -1)
    used = dict.fromkeys(tensors, -1)
    for position, node in enumerate(calls):
        for tensor in node.outputs:
            written[tensor] = used[tensor] = position
        for tensor in variables_of(node):
            used[tensor] = max(used[tensor], position)
    used.update(dict.fromkeys(graph.outputs, len(calls)))
    return Moments(written, used)


def lifetimes(candidate: CandidatePlan, order: Sequence[Node], moments: Moments) -> dict[Tensor, Lifetime]:
    """From the call that completes a value to the last one that reads its bytes under any name."""
    complete, used = moments.written, moments.used
    for node in order:
        if node in candidate.elided:
            ready = max(complete[t] for t in variables_of(node))
            complete.update(dict.fromkeys(node.outputs, ready))
    for node in reversed(order):
        if node in candidate.elided:
            last = max(used[t] for t in node.outputs)
            used.update((t, max(used[t], last)) for t in variables_of(node))
    return {t: Lifetime(complete[t], max(complete[t], used[t])) for t in used}


def order_of(graph: Graph, candidate: CandidatePlan) -> tuple[Node, ...]:
    """The calls, each elided node standing where the last of its inputs is there."""
    missing: dict[Node, int] = {}
    readers: dict[Tensor, list[tuple[int, Node]]] = {}
    ready: list[tuple[int, Node]] = []
    for number, node in enumerate(graph.nodes):
        if node in candidate.elided:
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
    for node in candidate.calls:
        run(node)
        settle()
    return tuple(order)


def variables_of(node: Node) -> list[Tensor]:
    """The node's inputs that stand in the arena, each once."""
    return [t for t in dict.fromkeys(node.inputs) if t is not None and not t.is_constant]
