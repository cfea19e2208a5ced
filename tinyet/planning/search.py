# SPDX-License-Identifier: Apache-2.0
"""The choice for one target: a kernel for every node, the memory that they need, and which of them work by rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.boards.cpus import Target
from tinyet.delegates import Delegate
from tinyet.errors import InternalError, UsageError
from tinyet.ir import Graph, Node
from tinyet.memory import MemoryPlan, course
from tinyet.memory.draft import StreamRefusedError
from tinyet.memory.streams import Stream
from tinyet.ops import op_of
from tinyet.ops.region import Region
from tinyet.planning.kernel_front import Frontier, Point
from tinyet.planning.kernel_selection import Choice, Selection, select
from tinyet.planning.layer_names import names_of
from tinyet.planning.layouts import Promises, agreements_of, arrangements, planned, saved_by
from tinyet.planning.objective import (
    Decision,
    Figures,
    Objective,
    Price,
    Variant,
    Whole,
    comparable,
    of_one_delegate,
    parts_of,
    pick,
    pinned,
    price,
    weighed,
)
from tinyet.planning.tiled_input import GIVE_WHOLE, taken_input
from tinyet.planning.tiling import FLASH_A_LAYER, INSTRUCTIONS_AN_ACTION, Search, Strips, moving, strips_of
from tinyet.stages import stage

_Price = tuple[Price, bool, Price, int]

_ROUNDS = 12
"""Choices of kernels for one way to compute the layers, each with less memory at its fullest calls than the last."""
_RUNGS = {"speed": 8, "balanced": 8, "size": 2}
"""Limits that are tried for layers by rows until half of the memory is left."""
_HALVES = 6
"""How often half of the memory is asked for."""
_LAST = 3
"""Plans, those with fewest bytes alive, that are made where nothing has room."""
_DEAR = 1.15
"""For "balanced" no saved flash is worth more than that many times the instructions of whole layers without a limit of
RAM."""


def decide(
    selection: Selection,
    target: Target,
    delegates: Sequence[Delegate],
    objective: Objective,
    *,
    require: bool = False,
) -> tuple[Decision, MemoryPlan]:
    """A variant for every node, and the memory plan, as the objective asks for them.

    delegates: who may be asked for kernels of strips; require: nobody else may compute any. Raises UsageError for a pin
    that no layer has.
    """
    return _Chooser(selection, target, delegates, objective, require=require).decide()


@dataclass(frozen=True, eq=False)
class _Way:
    """How layers are computed: as wholes, or those of streams by rows. It is the same whatever limits there are.

    variants: of every node; allowed: the indices of those that may be weighed. calls: the nodes that need a call, and
    needs: for each of them the bytes that are alive at it if a variant makes it, by that variant's index.
    """

    variants: Mapping[Node, tuple[Variant, ...]]
    allowed: Mapping[Node, Sequence[int]]
    streams: Sequence[Stream]
    needs: Mapping[Node, Mapping[int, int]]

    @property
    def least(self) -> int:
        """Bytes of the arena, whichever kernels are chosen."""
        return max((min(found.values()) for found in self.needs.values()), default=0)

    @property
    def choices(self) -> dict[Node, Mapping[int, int]]:
        """`needs`, where not all of a call's variants need the same."""
        return {node: found for node, found in self.needs.items() if len(set(found.values())) > 1}

    def within(self, limit: int) -> dict[Node, Sequence[int]]:
        """The allowed variants with which no more than `limit` bytes are alive at a call, or the one that needs the
        least; of several the fastest."""
        found = dict(self.allowed)
        for node, needs in self.needs.items():
            fitting = [i for i in self.allowed[node] if needs[i] <= limit]
            found[node] = fitting or [
                min(self.allowed[node], key=lambda i: (needs[i], _instructions(self.variants[node][i])))
            ]
        return found


@dataclass(frozen=True, eq=False)
class _Kernels:
    """A kernel for every node, of those that there are in a way; and a first plan of their memory, which is the last
    one where nothing better can be."""

    way: _Way
    allowed: Mapping[Node, Sequence[int]]
    chosen: Mapping[Node, Variant]
    found: Frontier
    point: Point
    first: MemoryPlan

    def index(self, node: Node) -> int:
        """Which of the way's variants of a node was chosen."""
        return self.way.variants[node].index(self.chosen[node])


@dataclass(frozen=True, eq=False)
class _Settled:
    """A plan as it would be printed: the variants, with values as they lie in the end, and what all of it takes."""

    kernels: _Kernels
    chosen: Mapping[Node, Variant]
    plan: MemoryPlan
    figures: Figures


class _Chooser:
    """Makes plans, and takes of those that no other beats in instructions, flash and RAM the one that the objective
    asks for.

    Which plans there are does not depend on the limits, only which of them are worth looking at: kernels of whole
    layers, with ever less memory at the calls that need most of it; and, where the best of those has no room, the same
    of layers by rows, for ever smaller arenas. So a wider limit never leads to a worse plan.
    """

    def __init__(
        self,
        selection: Selection,
        target: Target,
        delegates: Sequence[Delegate],
        objective: Objective,
        *,
        require: bool,
    ) -> None:
        self.selection, self.target, self.delegates = selection, target, delegates
        self.require = require
        self.objective = objective
        self.graph = selection.graph
        self.variants = self._offer(selection)
        self.promises = Promises()
        self.front: list[_Settled] = []
        self.left: list[_Kernels] = []
        self.whole: _Settled | None = None
        self.free = Figures(0, 0, 0)
        self._parts: dict[Variant, Mapping[Hashable, int]] = {}
        pins: dict[Node, int] = {}
        if objective.pins:
            calls = planned(
                self.graph, {n: found[0] for n, found in self.variants.items()}, self.promises, first=True
            ).calls
            layers = {name: node for node, name in names_of(self.graph, calls).items()}
            pins = pinned(self.variants, layers, objective.pins)
        self.pins = pins
        self.allowed = self.allowed_of(self.variants)
        self.most = of_one_delegate(self.variants, self.allowed)
        self.unstated = sum(
            op_of(node).macs(node) + sum(t.type.count for t in node.outputs)
            for node, found in self.variants.items()
            if found[0].cost is None
        )

    def decide(self) -> tuple[Decision, MemoryPlan]:
        free = self.way(self.variants, (), weighed(self.variants, self.allowed, self.target))
        self.free = self.figures(free.chosen, free.first)
        self.most = min(self.most, round(_DEAR * self.free.instructions))
        if not self.objective.input_rows:
            self.search(free)
        if self.by_rows_wanted(free):
            for kernels in self.rows(free):
                self.search(kernels)
        if self.objective.input_rows and not self.front and not self.left:
            raise UsageError(
                f"the first layers of {self.graph.name} cannot be computed from rows of their input as they come",
                hint=GIVE_WHOLE,
            )
        best = self.best()
        kernels, without = best.kernels, None
        if best.plan.streams:
            if self.whole is None:  # no limit leaves room for it
                without = Whole(free.chosen, planned(self.graph, free.chosen, self.promises).arena_bytes)
            else:
                without = Whole(self.whole.chosen, self.whole.plan.arena_bytes)
        plans = tuple(sorted((each.figures for each in self.front), key=lambda f: (f.ram, f.flash)))
        decision = Decision(
            self.objective,
            kernels.way.variants,
            best.chosen,
            kernels.found,
            kernels.point,
            plans,
            best.figures,
            self.price_of(best),
            without,
        )
        return decision, best.plan

    # ------------------------------------------------------------ whole layers, and layers by rows

    def by_rows_wanted(self, free: _Kernels) -> bool:
        """Whether layers by rows are worth a look: what whole layers would be without a limit has no room, or RAM
        counts as much as time."""
        if self.objective.input_rows:
            return True
        if self.objective.whole:
            return False
        return self.objective.optimize == "size" or self.over_ram(self.ram(free.chosen, free.first)) > 0

    def way(
        self,
        variants: Mapping[Node, tuple[Variant, ...]],
        streams: Sequence[Stream],
        found: Frontier,
    ) -> _Kernels:
        """A way to compute the layers, with the kernels that would be chosen for it without a limit.

        found: the frontier of its variants. Raises StreamRefusedError.
        """
        allowed = self.allowed_of(variants)
        point = self.pick(found, streams, None)
        chosen = _taken(variants, allowed, point)
        plan = planned(self.graph, chosen, self.promises, streams=streams, first=True)
        needs = {}
        for index, node in enumerate(plan.calls):
            own = {i: _own_bytes(node, variants[node][i], plan, index, self.promises) for i in allowed[node]}
            around = plan.alive[index + 1] - _own_bytes(node, chosen[node], plan, index, self.promises)
            needs[node] = {i: around + need for i, need in own.items()}
        return _Kernels(_Way(variants, allowed, tuple(streams), needs), allowed, chosen, found, point, plan)

    def allowed_of(self, variants: Mapping[Node, tuple[Variant, ...]]) -> dict[Node, Sequence[int]]:
        """The indices of each node's variants that may be weighed, within what the user has pinned."""
        return {n: [self.pins[n]] if n in self.pins else comparable(v) for n, v in variants.items()}

    def search(self, kernels: _Kernels) -> None:
        """Settle what is promising of a way: from the kernels that would be chosen without a limit, with ever less
        memory at the calls that need the most."""
        way, allowed, spare = kernels.way, kernels.way.allowed, self.objective.flash
        if spare is not None:
            spare -= _flash_of(way.streams, kernels.chosen)
        for _ in range(_ROUNDS):
            point = self.pick(kernels.found, way.streams, spare)
            if point != kernels.point:
                kernels = self.made(way, allowed, kernels.found, point)
            self.settle(kernels)
            if not self.promising(self.least(kernels), by_rows=bool(way.streams)):
                break
            limit = max((needs[kernels.index(n)] for n, needs in way.choices.items()), default=0) - 1
            if self.over_ram(self.ram(kernels.chosen, kernels.first, kernels.first.lower_bound)) > 0:
                # Below the least of all kernels nothing comes, so nothing need be given up for it.
                limit = min(limit, max(self.room(kernels), way.least))
            fewer = way.within(limit)
            if fewer == allowed:
                break
            allowed, found = fewer, weighed(way.variants, fewer, self.target)
            kernels = self.made(way, allowed, found, self.pick(found, way.streams, spare))

    def pick(self, found: Frontier, streams: Sequence[Stream], flash: int | None) -> Point:
        """The point of a frontier with the least price of those within `flash`, beside what streams take to go on."""
        return pick(found, self.objective.optimize, flash, self.most - moving(streams))

    def made(
        self, way: _Way, allowed: Mapping[Node, Sequence[int]], found: Frontier, point: Point
    ) -> _Kernels:
        chosen = _taken(way.variants, allowed, point)
        plan = planned(self.graph, chosen, self.promises, streams=way.streams, first=True)
        return _Kernels(way, allowed, chosen, found, point, plan)

    def rows(self, free: _Kernels) -> Iterator[_Kernels]:
        """Ways by rows, for ever smaller arenas: those that need hardly more than there is, until none is promising."""
        stage("planning memory by rows")
        frugal = _taken(self.variants, free.way.within(0), Point(0, 0, (0,) * len(self.variants)))
        least = planned(self.graph, frugal, self.promises, first=True)
        strips = self.strips(least.calls)
        if not strips and not self.objective.input_rows:
            return
        taken = None
        if self.objective.input_rows:
            taken = taken_input(self.graph, {n: s.rule for n, s in strips.items()})
        search = Search(self.graph, least, free.chosen, strips, taken=taken)
        room = None if self.objective.ram is None else self.room(free)
        known = set[tuple[tuple[Node, ...], ...]]()
        top = search.most_alive
        for rung in range(_HALVES * _RUNGS[self.objective.optimize]):
            limit = round(top / 2 ** (rung / _RUNGS[self.objective.optimize])) - 1
            if room is not None and 4 * limit > 5 * room:
                continue  # what is there in the end may be a little less than what was counted
            streams = search.streams(limit)
            if streams is None:
                break
            layers = tuple(s.nodes for s in streams)
            if layers and layers not in known:
                known.add(layers)
                variants, found, figures = self.by_strips(strips, streams)
                if not self.promising(replace(figures, ram=limit // 2), by_rows=True):
                    break
                yield from self.forms(search, variants, streams, found)
        if self.objective.optimize == "size" or not any(self.over(each.figures) <= 0 for each in self.front):
            streams = search.smallest()
            if streams and tuple(s.nodes for s in streams) not in known:
                variants, found, _ = self.by_strips(strips, streams)
                yield from self.forms(search, variants, streams, found)

    def by_strips(
        self, strips: Mapping[Node, Strips], streams: Sequence[Stream]
    ) -> tuple[dict[Node, tuple[Variant, ...]], Frontier, Figures]:
        """The variants of all nodes, strips' for those of streams; their frontier, and what its best takes but for
        RAM."""
        inside = {node for found in streams for node in found.nodes}
        variants = {n: strips[n].variants if n in inside else found for n, found in self.variants.items()}
        found = weighed(variants, self.allowed_of(variants), self.target)
        point = self.pick(found, streams, None)
        least = Figures(
            point.instructions + moving(streams),
            point.flash + _flash_of(streams, _taken(variants, self.allowed_of(variants), point)),
            0,
        )
        return variants, found, least

    def forms(
        self,
        search: Search,
        variants: Mapping[Node, tuple[Variant, ...]],
        streams: Sequence[Stream],
        found: Frontier,
    ) -> Iterator[_Kernels]:
        """The same streams with windows apart, and in piles."""
        for piled, beneath in ((False, False), (True, True), (True, False)):
            some = search.piled(streams, beneath=beneath) if piled else streams
            try:
                yield self.way(variants, some, found)
            except StreamRefusedError:
                continue

    def strips(self, calls: Sequence[Node]) -> dict[Node, Strips]:
        """What can be computed by rows: by kernels alone, not by regions."""
        nodes = [
            node
            for node in calls
            if not isinstance(node.attrs, Region)
            and node not in self.selection.pinned
            and node not in self.pins
        ]
        libraries = [delegate for delegate in self.delegates if delegate.claim is None]

        def offer(graph: Graph) -> Mapping[Node, tuple[Variant, ...]]:
            found = self._offer(select(graph, self.target, libraries))
            if not self.require:
                return found
            return {n: tuple(v for v in all_ if v.choice.delegate in libraries) for n, all_ in found.items()}

        return strips_of(nodes, offer)

    def _offer(self, selection: Selection) -> dict[Node, tuple[Variant, ...]]:
        candidates = selection.candidates
        return {node: _variants(node, candidates[node], self.target) for node in selection.graph.nodes}

    # ------------------------------------------------------------ plans, and what they take

    def settle(self, kernels: _Kernels) -> None:
        """Put what becomes of a choice of kernels into the front, with each way for its values to lie; unless it has no
        room whatever its addresses are, or something better is there."""
        agreements = agreements_of(self.graph, kernels.chosen, kernels.first, self.target)
        bound = self.ram(kernels.chosen, kernels.first, kernels.first.lower_bound)
        stated = self.figures(kernels.chosen, kernels.first)
        fastest = Figures(stated.instructions - saved_by(agreements), stated.flash, bound)
        if self.over_ram(bound) > 0:
            self.left.append(kernels)
        elif self.promising(fastest, by_rows=bool(kernels.way.streams)):
            self.settled(kernels)

    def settled(self, kernels: _Kernels) -> None:
        """The same without asking whether it is worth it."""
        plan, streams = kernels.first, kernels.way.streams
        if plan.arena_bytes > plan.lower_bound:
            plan = planned(self.graph, kernels.chosen, self.promises, streams=streams)
        agreements = agreements_of(self.graph, kernels.chosen, plan, self.target)
        # What is there is spent on speed only where that is all that is asked for.
        most: int | None = plan.arena_bytes
        if self.objective.optimize == "speed":
            most = None if self.objective.ram is None else max(self.room(kernels), plan.arena_bytes)
        for chosen, lying in arrangements(
            self.graph, kernels.chosen, plan, agreements, most, self.target, self.promises
        ):
            one = _Settled(kernels, chosen, lying, self.figures(chosen, lying))
            if not streams and (self.whole is None or self.price_of(one) < self.price_of(self.whole)):
                self.whole = one
            if not any(other.figures.no_more(one.figures) for other in self.front):
                self.front = [each for each in self.front if not one.figures.no_more(each.figures)]
                self.front.append(one)

    def best(self) -> _Settled:
        """What the objective asks for, of what has room; where nothing has, what takes the least beyond."""
        fitting = [each for each in self.front if self.over(each.figures) <= 0]
        if not fitting:

            def least(kernels: _Kernels) -> tuple[int, _Price]:
                ram = self.ram(kernels.chosen, kernels.first, kernels.first.lower_bound)
                figures = self.figures(kernels.chosen, kernels.first)
                return ram, self.price(figures, by_rows=bool(kernels.way.streams))

            for kernels in sorted(self.left, key=least)[:_LAST]:
                self.settled(kernels)
        return min(
            fitting or self.front,
            key=lambda each: (max(self.over(each.figures), 0), self.price_of(each)),
        )

    def figures(self, chosen: Mapping[Node, Variant], plan: MemoryPlan) -> Figures:
        """What a plan takes, as far as it is stated."""
        parts = {part: size for v in chosen.values() for part, size in self.parts(v).items()}
        counts = sum(_instructions(v) for v in chosen.values())
        # What states nothing is computed strip by strip all the same.
        silent = sum(plan.runs(n) for s in plan.streams for n in s.nodes if chosen[n].cost is None)
        return Figures(
            counts + moving(plan.streams) + INSTRUCTIONS_AN_ACTION * silent,
            sum(parts.values()) + _flash_of(plan.streams, chosen),
            self.ram(chosen, plan),
        )

    def parts(self, variant: Variant) -> Mapping[Hashable, int]:
        if variant not in self._parts:
            self._parts[variant] = parts_of(variant, self.target)
        return self._parts[variant]

    @staticmethod
    def ram(chosen: Mapping[Node, Variant], plan: MemoryPlan, arena: int | None = None) -> int:
        """Bytes of the arena, or of so many, and of state."""
        kept = sum(stream.kept_bytes for stream in plan.streams)
        state = sum(variant.call.state_bytes for variant in chosen.values())
        return (plan.arena_bytes if arena is None else arena) + state + kept

    def room(self, kernels: _Kernels) -> int:
        """Bytes that there are for the arena."""
        limit = self.objective.ram
        if limit is None:
            raise InternalError("no limit leaves no room", self.graph.name)
        return limit - self.ram(kernels.chosen, kernels.first, 0)

    def over_ram(self, ram: int) -> int:
        """Bytes more than the objective allows."""
        return 0 if self.objective.ram is None else ram - self.objective.ram

    def over(self, figures: Figures) -> int:
        """Bytes of RAM and flash more than the objective allows."""
        flash = 0 if self.objective.flash is None else max(figures.flash - self.objective.flash, 0)
        return max(self.over_ram(figures.ram), 0) + flash

    def least(self, kernels: _Kernels) -> Figures:
        """What kernels with less memory would take at least."""
        stated = self.figures(kernels.chosen, kernels.first)
        agreements = agreements_of(self.graph, kernels.chosen, kernels.first, self.target)
        ram = self.ram(kernels.chosen, kernels.first, kernels.way.least)
        return Figures(stated.instructions - saved_by(agreements), stated.flash, ram)

    def price(self, figures: Figures, *, by_rows: bool) -> _Price:
        """What a plan is compared by. But for "size", layers by rows are for those who limit RAM: by itself it is worth
        none of what they cost, and they are never better than whole layers without a limit, so that nobody need look at
        them where these have room."""
        if not by_rows or self.objective.optimize == "size":
            own = self.priced(figures)
            return own, False, own, figures.ram
        own = self.priced(replace(figures, ram=max(figures.ram, self.free.ram)))
        return max(own, self.priced(self.free)), True, own, figures.ram

    def priced(self, figures: Figures) -> Price:
        # What states no cost takes time, too: else nothing would be too much beside it.
        whole = replace(figures, instructions=figures.instructions + self.unstated)
        return price(whole, self.objective.optimize, self.most + self.unstated)

    def price_of(self, one: _Settled) -> _Price:
        return self.price(one.figures, by_rows=bool(one.plan.streams))

    def promising(self, figures: Figures, *, by_rows: bool) -> bool:
        """Whether a plan that takes no less than that can be better than all that are there, or beat the best."""
        fitting = [each for each in self.front if self.over(each.figures) <= 0]
        if not fitting:
            return True
        best = min(fitting, key=self.price_of)
        better = self.price(figures, by_rows=by_rows) < self.price_of(best) or figures.no_more(best.figures)
        return self.over(figures) <= 0 and better and figures != best.figures


def _taken(
    variants: Mapping[Node, Sequence[Variant]], allowed: Mapping[Node, Sequence[int]], point: Point
) -> dict[Node, Variant]:
    """The variants that a point of the frontier of the allowed ones stands for."""
    pairs = zip(allowed.items(), point.picks, strict=True)
    return {node: variants[node][indices[option]] for (node, indices), option in pairs}


def _flash_of(streams: Sequence[Stream], chosen: Mapping[Node, Variant]) -> int:
    """Bytes that streams take beside their kernels, where those state theirs."""
    return FLASH_A_LAYER * sum(chosen[n].cost is not None for s in streams for n in s.nodes)


def _instructions(variant: Variant) -> int:
    return 0 if variant.cost is None else variant.cost.instructions


def _variants(node: Node, candidates: Sequence[Choice], target: Target) -> tuple[Variant, ...]:
    found = []
    for choice in candidates:
        call = choice.kernel.lower(node, target)
        found.append(Variant(choice, call, choice.kernel.cost(node, target, call)))
    return tuple(found)


def _own_bytes(node: Node, variant: Variant, plan: MemoryPlan, index: int, promises: Promises) -> int:
    """Bytes that a call needs beside the blocks of a plan that are alive at it, if this variant makes it: scratch
    memory, less what it saves because its output may lie over an input that dies, partly or wholly."""
    kernel, need = variant.choice.kernel, variant.call.scratch_bytes
    variables = [(i, t) for i, t in enumerate(node.inputs) if t is not None and not t.is_constant]
    if plan.stream(node) is not None or len(node.outputs) != 1:
        return need
    if any(plan.form(t) for t in (*(t for _, t in variables), *node.outputs)):
        return need
    size, found = node.output.type.bytes, course(node, lambda n, i: promises.sweep(kernel, n, i))
    taken, saved = plan.overwrites.get(node, (None, 0))[0], 0
    for i, tensor in variables:
        life = plan.blocks[plan.storage[tensor].block].lifetime
        began = plan.blocks[plan.storage[node.output].block].lifetime.first
        if i != taken and (life.last != index or began != index):
            continue
        replaces = promises.replaces(kernel, node, i)
        if tensor.type.bytes == size and (replaces or (i == taken and i in op_of(node).inplace)):
            saved = size
        elif found is not None and tensor in found.needed:
            saved = max(saved, found.saved(tensor))
    # One block is that of both where the output is in place now.
    return need + (0 if taken is None else size) - saved
