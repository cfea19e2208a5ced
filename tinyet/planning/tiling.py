# SPDX-License-Identifier: Apache-2.0
"""Which layers are fused and computed by tiles: only as many as the requested arena needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tinyet.ir import Graph, Node, Tensor
from tinyet.ir.memoize import memoize
from tinyet.memory import MemoryPlan
from tinyet.memory.fusion import FusionGroup
from tinyet.memory.tile_records import TiledInput
from tinyet.ops import op_of
from tinyet.ops.state_write import StateWrite
from tinyet.opset import TileMap, tile_node
from tinyet.planning.candidates import Candidate, Candidates, Chosen
from tinyet.planning.fusion import FusionCache


@dataclass(frozen=True)
class Actions:
    """What fusion groups take beside their layers, on a core with 32 bits. a_byte: to move a byte within a line buffer,
    which memmove does a word at a time; an_action: for the loop in the generated C (emit/fusion.py) to find the next
    action, and to call it."""

    a_byte: float
    an_action: int


INSTRUCTIONS, CYCLES = Actions(0.4, 25), Actions(1.04, 26)
FLASH_A_LAYER = 160
"""Bytes of that loop and of its table, a layer: 90 in DS-CNN, 200 in ResNet8."""

_MOST_NEIGHBORS = 8
"""Number of calls before, and after, a call that needs too much that may be fused with it. The number of
trials grows with the square."""
_MOST_STEPS = 12
"""Halvings of the span in which the smallest arena is searched: it is found to 1/4096 of the untiled layers'
need."""


@dataclass(frozen=True, eq=False)
class TileCandidates:
    """A layer by tiles. candidates: of the node for one tile, with the cost of all tiles."""

    rule: TileMap
    candidates: tuple[Candidate, ...]

    @cached_property
    def time(self) -> int:
        """Of the fastest."""
        return min((c.cost.time for c in self.candidates if c.cost is not None), default=0)

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory of the candidate with the least."""
        return min(c.call.scratch_bytes for c in self.candidates)


def tile_candidates_of(
    nodes: Sequence[Node], found_rules: Mapping[Node, TileMap], offer: Callable[[Graph], Candidates]
) -> dict[Node, TileCandidates]:
    """The candidates of each node that can be tiled; a tile is one row, or the fewest possible.

    found_rules: of the nodes that have one. offer: the candidates of each node of a graph; none for a node that no
    kernel computes.
    """
    rules = {
        node: rule
        for node in nodes
        if (rule := found_rules.get(node)) is not None
        # A state is written in its place, at once: runs that are given up leave it as it was.
        and not isinstance(node.attrs, StateWrite)
    }
    made = {node: _tile_of(node, rule) for node, rule in rules.items()}
    inputs = (t for each in made.values() for t in each.inputs if t is not None and not t.is_constant)
    outputs = tuple(each.outputs[0] for each in made.values())
    offered = offer(Graph("tiles", tuple(dict.fromkeys(inputs)), outputs, tuple(made.values())))
    found = {}
    for node, rule in rules.items():
        times = rule.tiles(node)
        candidates = tuple(_repeated(c, times) for c in offered.get(made[node], ()) if not c.call.init)
        if candidates and all(c.call.state_bytes == 0 for c in candidates):
            found[node] = TileCandidates(rule, candidates)
    return found


@memoize
def _tile_of(node: Node, rule: TileMap) -> Node:
    """The node for one tile, the same one at each asking: calls and costs are kept with a node, for other ways to tile
    the graph, other aims and other targets."""
    return tile_node(node, rule)


def whole_first(graph: Graph, tiles: Mapping[Node, TileCandidates]) -> Graph | None:
    """The graph in another order: what a layer reads as a whole beside its rows, as an attention its keys and values,
    comes directly before it, but for what it reads by rows, which is between. None where the graph has such an order
    already."""
    levels: dict[Node, int] = {}  # how many times something was read as a whole beside rows

    def apart(node: Node, tensor: Tensor) -> bool:
        found = tiles.get(node)
        return found is not None and all(node.inputs[index] is not tensor for index in found.rule.inputs)

    def before(node: Node) -> Iterator[tuple[Node, bool]]:
        for tensor in node.inputs:
            if tensor is not None and (maker := graph.producer(tensor)) is not None:
                yield maker, apart(node, tensor)

    for node in graph.nodes:
        levels[node] = max((levels[maker] + whole for maker, whole in before(node)), default=0)
    for node in reversed(graph.nodes):
        readers = ((reader, t) for t in node.outputs for reader in graph.consumers(t))
        levels[node] = min((levels[reader] - apart(reader, t) for reader, t in readers), default=levels[node])
    for node in graph.nodes:
        # A part of a value is taken out at once, so that the value is not kept for it.
        makers = [maker for maker, _ in before(node)]
        if makers and op_of(node).same_scale and node.outputs[0].type.bytes < node.input(0).type.bytes:
            levels[node] = max(levels[maker] for maker in makers)
    order = tuple(sorted(graph.nodes, key=lambda node: levels[node]))
    return graph.replace(nodes=order) if order != graph.nodes else None


def _repeated(candidate: Candidate, times: int) -> Candidate:
    """A candidate whose call is made several times."""
    if candidate.cost is None:
        return candidate
    cost = candidate.cost.times(times, INSTRUCTIONS.an_action, CYCLES.an_action)
    return replace(candidate, cost=cost)


@dataclass(frozen=True, eq=False)
class _Segment:
    """Calls that are fused. bytes: alive at its worst moment, with the values that live on around it. cost:
    time beyond that of the same layers as a whole."""

    fusion_group: FusionGroup
    bytes: int
    cost: float


class TilingSearch:
    """The search for fusion groups with which a graph needs less memory than untiled layers do.

    plan: of the untiled layers; chosen: their candidates. actions: what moving rows takes, in the unit of time by which
    plans are compared. taken: the value whose rows come from the caller. cache: the fusion groups that have been made,
    of several searches.
    """

    def __init__(
        self,
        graph: Graph,
        plan: MemoryPlan,
        chosen: Chosen,
        tiles: Mapping[Node, TileCandidates],
        actions: Actions,
        align: int = 4,
        taken: TiledInput | None = None,
        cache: FusionCache | None = None,
    ) -> None:
        self.taken = taken
        self.cache = FusionCache() if cache is None else cache
        readers = graph.consumers(taken.tensor) if taken is not None else ()
        self.takes = frozenset(k for k, node in enumerate(plan.calls) if node in readers)
        self.graph, self.plan, self.tiles = graph, plan, tiles
        self.actions, self.align = actions, align
        self.calls = plan.calls
        self.alive = plan.alive[1:-1]
        called = {*self.calls}
        self.extra = {
            node: _more(chosen[node], found) if node in called else found.time
            for node, found in tiles.items()
        }
        self.blocks: dict[Tensor, int] = {t: place.block for t, place in plan.storage.items()}
        self._known: dict[tuple[int, int], _Segment | None] = {}

    @property
    def most_alive(self) -> int:
        """Bytes that are alive at once without fusion groups; twice as many where windows of a tiny image may be
        larger than the image."""
        return max(self.alive, default=0) * (2 if self.takes else 1)

    def smallest(self) -> list[FusionGroup]:
        """The segments with the smallest arena, by live bytes; none if fusion groups do not make it
        smaller."""
        most = self.most_alive
        low = max((n for k, n in enumerate(self.alive) if self.calls[k] not in self.tiles), default=0)
        best: list[FusionGroup] = []
        limit = most - 1
        for _ in range(_MOST_STEPS):
            found = self.within(limit)
            if found is None:
                low = limit + 1
            else:
                best, most = [s.fusion_group for s in found], min(limit, self._most(found))
            if low >= most:
                break
            limit = (low + most) // 2
        return best

    def _most(self, found: Sequence[_Segment]) -> int:
        inside = {node for s in found for node in s.fusion_group.nodes}
        outside = (n for node, n in zip(self.calls, self.alive, strict=True) if node not in inside)
        return max([*(s.bytes for s in found), *outside], default=0)

    def fusion_groups(self, limit: int) -> list[FusionGroup] | None:
        """The cheapest with no more than `limit` bytes alive; None where there are none."""
        found = self.within(limit)
        return None if found is None else [s.fusion_group for s in found]

    def within(self, limit: int) -> list[_Segment] | None:
        """The cheapest segments with no more than `limit` bytes alive at once; None where there are none."""
        needed = {k for k, n in enumerate(self.alive) if n > limit} | self.takes
        near = self._near(sorted(needed))
        # The cheapest way to have computed the calls before each: (cost, segments).
        ways: list[tuple[float, list[_Segment]] | None] = [(0.0, [])]
        for end in range(1, len(self.calls) + 1):
            best = ways[end - 1] if end - 1 not in needed else None
            for begin in range(end - 1, -1, -1):
                if begin not in near or end - 1 not in near:
                    break
                before = ways[begin]
                if before is None or needed.isdisjoint(range(begin, end)):
                    continue
                if best is not None and before[0] + self._least_cost(begin, end) >= best[0]:
                    continue  # its rows need not be looked at
                segment = self.segment(begin, end)
                if segment is None or segment.bytes > limit:
                    continue
                cost = before[0] + segment.cost
                if best is None or cost < best[0]:
                    best = cost, [*before[1], segment]
            ways.append(best)
        last = ways[-1]
        return None if last is None else last[1]

    def _near(self, needed: Sequence[int]) -> Collection[int]:
        """The calls that a segment may hold: of each that needs too much its neighbours, as far as these have tiles."""
        found = set[int]()
        for k in needed:
            for step in (-1, 1):
                at = k
                while (
                    abs(at - k) <= _MOST_NEIGHBORS
                    and 0 <= at < len(self.calls)
                    and self.calls[at] in self.tiles
                ):
                    found.add(at)
                    at += step
        return found

    def _least_cost(self, begin: int, end: int) -> float:
        """What the calls from one up to another cost as a fusion group before any row is moved."""
        return sum(self.extra[node] for node in self.calls[begin:end])

    def segment(self, begin: int, end: int) -> _Segment | None:
        """The calls from one up to another as a fusion group; None where they cannot be."""
        if (begin, end) not in self._known:
            self._known[begin, end] = self._segment(begin, end)
        return self._known[begin, end]

    def _segment(self, begin: int, end: int) -> _Segment | None:
        nodes: Sequence[Node] = self.calls[begin:end]
        takes = not self.takes.isdisjoint(range(begin, end))
        found = self._fused(nodes, takes=takes)
        if found is None:
            # What costs nothing where tensors are whole moves rows between layers.
            nodes = self._with_moves(nodes)
            found = self._fused(nodes, takes=takes) if len(nodes) > end - begin else None
        if found is None:
            return None
        alive = np.zeros(len(found.actions), np.int64)
        for tensor, rows in found.rows.items():
            if tensor in self.blocks and self.plan.is_callers(tensor):
                continue
            alive += (rows.behind - rows.first) * rows.row_bytes
        for node in nodes:
            alive[found.moments(node)] += self.tiles[node].scratch
        mine = {self.blocks[t] for t in found.rows if t in self.blocks}
        around = sum(
            block.bytes
            for number, block in enumerate(self.plan.blocks)
            if number not in mine
            and not self.plan.beside(block)
            and block.lifetime.first < end
            and block.lifetime.last >= begin
        )
        cost = sum(self.extra[node] for node in nodes) + moved(found, self.actions)
        return _Segment(found, int(alive.max()) + around, cost)

    def _fused(self, nodes: Sequence[Node], *, takes: bool) -> FusionGroup | None:
        rules = {node: self.tiles[node].rule for node in nodes}
        return self.cache.fused(
            self.graph, nodes, rules, align=self.align, take=self.taken if takes else None
        )

    def _with_moves(self, nodes: Sequence[Node]) -> list[Node]:
        """The calls, and the views and slices between them, which are no calls."""
        calls, made = {*self.calls}, {t for node in nodes for t in node.outputs}
        found: list[Node] = []
        for node in self.graph.nodes:
            if node in self.tiles and node not in calls and any(t in made for t in node.inputs):
                found.append(node)
                made.update(node.outputs)
        # Each before the first that reads it, behind those that it reads itself.
        order = dict[Node, None]()
        for node in nodes:
            read, ahead = {*node.inputs}, list[Node]()
            for move in reversed(found):
                if not read.isdisjoint(move.outputs):
                    ahead.append(move)
                    read.update(move.inputs)
            order.update(dict.fromkeys((*reversed(ahead), node)))
        return [*order]

    def with_stacks(self, fusion_groups: Sequence[FusionGroup], *, on_output: bool) -> list[FusionGroup]:
        """The same fusion groups with their line buffers stacked: less memory, for more that moves. on_output: on the
        output of their last layers."""
        made = [
            self.cache.fused(
                self.graph,
                s.nodes,
                s.rules,
                align=self.align,
                stacked=True,
                on_output=on_output,
                scratch={node: self.tiles[node].scratch for node in s.nodes},
                take=s.tiled_input,
            )
            for s in fusion_groups
        ]
        return [a if a is not None else s for a, s in zip(made, fusion_groups, strict=True)]


def _more(untiled: Candidate, tiles: TileCandidates) -> float:
    """Time of a layer's tiles beyond that of the layer."""
    return tiles.time - untiled.cost.time if untiled.cost is not None else 0.0


def moved(found: FusionGroup, actions: Actions) -> float:
    """What it takes to move rows: instructions or cycles, as `actions` are."""
    return actions.a_byte * sum(found.moved) + actions.an_action * len(found.moved)


def moving(fusion_groups: Sequence[FusionGroup], actions: Actions) -> int:
    """What it takes to move all rows, rounded."""
    return round(sum(moved(found, actions) for found in fusion_groups))


def added_macs(found: FusionGroup) -> int:
    """Multiply-accumulates that rows around images cost: padding that a layer as a whole would leave out."""
    tiles = {node: _tile_of(node, found.rules[node]) for node in found.nodes}
    more = (found.runs(n) * op_of(s).macs(s) - op_of(n).macs(n) for n, s in tiles.items())
    return sum(max(each, 0) for each in more)
