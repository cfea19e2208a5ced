# SPDX-License-Identifier: Apache-2.0
"""The choice for one target: a kernel for every node, the memory that they need, and which of them work by rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.boards.cpus import Target
from tinyet.delegates import Delegate
from tinyet.delegates.decide import (
    Decision,
    Objective,
    Variant,
    Whole,
    choose,
    comparable,
    pick,
    pinned,
    weighed,
)
from tinyet.delegates.frontier import Frontier, Point
from tinyet.delegates.select import Choice, Selection, select
from tinyet.errors import UsageError
from tinyet.input_rows import GIVE_WHOLE, taken_input
from tinyet.ir import Graph, Node
from tinyet.layers import names_of
from tinyet.memory import MemoryPlan, course
from tinyet.memory.draft import StreamRefusedError
from tinyet.memory.streams import Stream
from tinyet.ops import op_of
from tinyet.ops.region import Region
from tinyet.rows import Search, Strips, moved, strips_of
from tinyet.stages import stage
from tinyet.storage import Promises, arranged, planned


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


class _Chooser:
    """Chooses a variant for every node, and plans the memory that they need.

    Where the arena is larger than the objective allows, the variants that cannot be there are taken away, because of
    their scratch memory or because their output lies over too little of their input, and the choice is made again; and
    where that is not enough, layers are computed by rows. What flash and instructions alone would choose gives way to
    a choice with less RAM that costs nothing (`leaner`).
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
        self._free: dict[tuple[Stream, ...], _Chosen] = {}
        self._settled: dict[_Chosen, tuple[int, int]] = {}
        self.pins: dict[Node, int] = {}
        if objective.pins:
            calls = planned(
                self.graph, {n: found[0] for n, found in self.variants.items()}, self.promises
            ).calls
            layers = {name: node for node, name in names_of(self.graph, calls).items()}
            self.pins = pinned(self.variants, layers, objective.pins)

    def decide(self) -> tuple[Decision, MemoryPlan]:
        best = self.whole_layers()
        if self.objective.input_rows:
            best = self.taking_rows()
        elif not self.objective.whole and (self.objective.optimize == "size" or self.dear(best)):
            by_rows = self.by_rows()
            if by_rows is not None and self.better(by_rows, best):
                best = by_rows
        chosen, plan = self.arranged(best)
        free = self._free[()]
        whole = Whole(free.chosen, self.arena(free)) if plan.streams else None
        return Decision(self.objective, best.variants, chosen, best.found, best.point, whole), plan

    def arranged(self, best: _Chosen) -> tuple[dict[Node, Variant], MemoryPlan]:
        """A choice with its values as they lie in the end, as far as RAM allows that."""
        most = None if self.objective.ram is None else self.objective.ram - _state_bytes(best.chosen)
        if self.objective.optimize != "speed":
            # What is there is spent on speed only where that is all that is asked for.
            most = min(best.plan.arena_bytes, best.plan.arena_bytes if most is None else most)
        return arranged(self.graph, best.chosen, best.plan, most, self.target, self.promises)

    def whole_layers(self) -> _Chosen:
        """No layer by rows."""
        return self.choose(self.variants, ())

    def dear(self, whole: _Chosen) -> bool:
        """Whether whole layers need more RAM than there is, or many more instructions because of it."""
        return self.over(whole) > 0 or whole.instructions > _DEAR * self.free(whole).instructions

    def better(self, by_rows: _Chosen, whole: _Chosen) -> bool:
        if self.objective.optimize == "size" or self.over(whole) > 0:
            return self.arena(by_rows) < self.arena(whole)
        return self.over(by_rows) <= 0 and by_rows.instructions < whole.instructions

    def free(self, chosen: _Chosen) -> _Chosen:
        """What would be chosen of the same variants if there were no limit."""
        return self._free.get(tuple(chosen.plan.streams), chosen)

    def choose(self, variants: Mapping[Node, tuple[Variant, ...]], streams: Sequence[Stream]) -> _Chosen:
        """The variants that the objective asks for, of those whose memory there is room for; where there is no room
        whatever is chosen, those that need the least."""
        allowed = self.allowed(variants)
        result = self.chosen(variants, allowed, streams)
        if not streams:  # with them every plan is dear: that of the best alone is worth a second look
            result = self.leaner(result)
        self._free[tuple(streams)] = result
        if self.over(result) <= 0:
            return result
        least = self.chosen(variants, _frugal(variants, allowed, result.plan, self.promises), streams)
        if self.over(least) > 0:
            return min(least, result, key=self.arena)
        limit = self.objective.ram
        while limit is not None and self.over(result) > 0:
            state = _state_bytes(result.chosen)
            if not _take_away(variants, allowed, result.chosen, result.plan, limit - state, self.promises):
                return least
            result = self.chosen(variants, allowed, streams)
        return result if streams else self.leaner(result)

    def leaner(self, first: _Chosen) -> _Chosen:
        """The same, or of the same variants a choice with less RAM that executes no more and is nearly as small.

        The frontier knows nothing of RAM: there a few bytes of flash decide against any number of bytes of it, even
        where they save instructions, too.
        """
        most, limit = first.point.instructions, first.point.flash
        limit += self.worth(self.ram(first), limit)
        if self.objective.flash is not None:
            limit = max(min(limit, self.objective.flash), first.point.flash)
        best = tried = first
        left = {node: list(indices) for node, indices in first.allowed.items()}
        for _ in range(_ROUNDS):
            less = self.arena(tried) - 1
            if not _take_away(first.variants, left, tried.chosen, tried.plan, less, self.promises):
                break
            found = weighed(first.variants, left, self.target)
            near = tuple(p for p in found.points if p.instructions <= most and p.flash <= limit)
            if not near:
                break  # of fewer variants there is nothing nearer
            point = pick(replace(found, points=near), self.objective.optimize, limit, most)
            try:
                tried = self.made(first.variants, left, found, point, first.plan.streams)
            except StreamRefusedError:
                break
            if all(self.saves(tried, old) for old in (best, first)):
                best = tried
        return best if best is first else replace(best, found=_with_point(first.found, best.point))

    def saves(self, new: _Chosen, old: _Chosen) -> bool:
        """Whether one choice executes no more than another, and takes less RAM, which is worth the flash, with the
        values of each as they lie in the end."""
        grown = new.point.flash - old.point.flash
        if grown > self.worth(self.ram(old) - self.ram(new), old.point.flash):
            return False  # before more is planned to know
        (instructions, ram), (most, least) = self.settled(new), self.settled(old)
        return instructions <= most and ram < least and grown <= self.worth(least - ram, old.point.flash)

    def worth(self, saved: int, flash: int) -> int:
        """Bytes of flash, of so many, that so many bytes of saved RAM are worth where instructions are no more: a
        percent of the flash, but no more bytes than are saved; where not flash alone counts, one in four, too.

        A percent is less than what is stated of code may be wrong by; and four times as much flash as RAM, or more, is
        what most boards have.
        """
        percent = min(saved, flash // 100)
        return percent if self.objective.optimize == "size" else max(percent, saved // 4)

    def settled(self, chosen: _Chosen) -> tuple[int, int]:
        """Stated instructions and bytes of RAM, with the values as they lie in the end."""
        if chosen not in self._settled:
            variants, plan = self.arranged(chosen)
            counts = (0 if v.cost is None else v.cost.instructions for v in variants.values())
            self._settled[chosen] = sum(counts) + _moving(plan), self.ram(replace(chosen, plan=plan))
        return self._settled[chosen]

    def allowed(self, variants: Mapping[Node, tuple[Variant, ...]]) -> dict[Node, list[int]]:
        """The indices of each node's variants that may be weighed, within what the user has pinned."""
        return {node: comparable(found) for node, found in variants.items()} | {
            node: [index] for node, index in self.pins.items()
        }

    def chosen(
        self,
        variants: Mapping[Node, tuple[Variant, ...]],
        allowed: Mapping[Node, Sequence[int]],
        streams: Sequence[Stream],
    ) -> _Chosen:
        """Of the allowed variants those that the objective asks for, and their memory."""
        # What rows cost is not to be paid for with flash saved.
        most = round(_GOOD * self._free[()].point.instructions) if streams else None
        found, point = choose(variants, allowed, self.objective, self.target, most)
        return self.made(variants, allowed, found, point, streams)

    def made(
        self,
        variants: Mapping[Node, tuple[Variant, ...]],
        allowed: Mapping[Node, Sequence[int]],
        found: Frontier,
        point: Point,
        streams: Sequence[Stream],
    ) -> _Chosen:
        """What a point of the frontier of the allowed variants stands for, and its memory."""
        chosen = {
            node: variants[node][indices[option]]
            for (node, indices), option in zip(allowed.items(), point.picks, strict=True)
        }
        plan = planned(self.graph, chosen, self.promises, streams=streams)
        return _Chosen(variants, dict(allowed), chosen, plan, found, point)

    def over(self, chosen: _Chosen) -> int:
        """Bytes of RAM more than the objective allows."""
        return 0 if self.objective.ram is None else self.ram(chosen) - self.objective.ram

    def ram(self, chosen: _Chosen) -> int:
        """Bytes of the arena and of state."""
        kept = sum(stream.kept_bytes for stream in chosen.plan.streams)
        return self.arena(chosen) + _state_bytes(chosen.chosen) + kept

    @staticmethod
    def arena(chosen: _Chosen) -> int:
        return chosen.plan.arena_bytes

    def taking_rows(self) -> _Chosen:
        """With the input given by rows. Raises UsageError where it cannot be."""
        found = self.by_rows()
        if found is None:
            raise UsageError(
                f"the first layers of {self.graph.name} cannot be computed from rows of their input as they come",
                hint=GIVE_WHOLE,
            )
        return found

    def by_rows(self) -> _Chosen | None:
        """With layers computed by rows: the cheapest that has room, or what takes the least RAM; None where nothing can
        be."""
        stage("planning memory by rows")
        free = self._free[()]
        frugal = _frugal(self.variants, self.allowed(self.variants), free.plan, self.promises)
        least = self.chosen(self.variants, frugal, ())
        strips = self.strips(least.plan.calls)
        taken = (
            taken_input(self.graph, {n: s.rule for n, s in strips.items()})
            if self.objective.input_rows
            else None
        )
        if not strips:
            return None
        search = Search(self.graph, least.plan, free.chosen, strips, taken=taken)
        found: list[_Chosen] = []
        known = set[tuple[tuple[Node, ...], ...]]()

        def tried(streams: Sequence[Stream] | None) -> bool:
            """Try the forms of streams, but those that were tried; whether one is good enough."""
            layers = tuple(s.nodes for s in streams or ())
            if layers in known:
                return False
            known.add(layers)
            for piled, beneath in ((False, False), (True, True), (True, False)) if streams else ():
                some = search.piled(streams or (), beneath=beneath) if piled else streams or ()
                try:
                    found.append(self.choose(self.with_strips(strips, some), some))
                except StreamRefusedError:
                    continue
                if self.over(found[-1]) <= 0 and found[-1].instructions <= _GOOD * free.instructions:
                    return self.objective.optimize != "size"
            return False

        limit = self.objective.ram
        if self.objective.optimize != "size" and limit is not None:
            limit -= _state_bytes(free.chosen)
            for _ in range(_ROUNDS):
                streams = search.streams(limit)
                if not streams or tried(streams):
                    break
                limit -= max(limit // 40, 1)
        fitting = [chosen for chosen in found if self.over(chosen) <= 0]
        if not fitting or self.objective.optimize == "size":
            tried(search.smallest())
            return self.leaner(min(found, key=self.arena)) if found else None
        return self.leaner(min(fitting, key=lambda chosen: chosen.instructions))

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

    def with_strips(
        self, strips: Mapping[Node, Strips], streams: Sequence[Stream]
    ) -> dict[Node, tuple[Variant, ...]]:
        inside = {node for found in streams for node in found.nodes}
        return {n: strips[n].variants if n in inside else found for n, found in self.variants.items()}

    def _offer(self, selection: Selection) -> dict[Node, tuple[Variant, ...]]:
        candidates = selection.candidates
        return {node: _variants(node, candidates[node], self.target) for node in selection.graph.nodes}


_ROUNDS = 8
"""Of the search for streams that fit: what they need in fact, with scratch memory and gaps, is known in the end."""


@dataclass(frozen=True, eq=False)
class _Chosen:
    """A variant for every node, of all that there are, and the memory that they need. allowed: the indices of those
    that were weighed."""

    variants: Mapping[Node, tuple[Variant, ...]]
    allowed: Mapping[Node, Sequence[int]]
    chosen: Mapping[Node, Variant]
    plan: MemoryPlan
    found: Frontier
    point: Point

    @property
    def instructions(self) -> int:
        """Stated, what moves between rows included."""
        return self.point.instructions + _moving(self.plan)


def _moving(plan: MemoryPlan) -> int:
    """Instructions of what moves between rows."""
    return round(sum(moved(stream) for stream in plan.streams))


def _with_point(found: Frontier, point: Point) -> Frontier:
    """A frontier with a point that RAM speaks for: it may be beaten by others, which take more of that."""
    cost = point.instructions, point.flash
    others = (p for p in found.points if (p.instructions, p.flash) != cost)
    points = sorted((*others, point), key=lambda p: (p.flash, -p.instructions))
    return replace(found, points=tuple(points))


def _state_bytes(chosen: Mapping[Node, Variant]) -> int:
    return sum(variant.call.state_bytes for variant in chosen.values())


def _variants(node: Node, candidates: Sequence[Choice], target: Target) -> tuple[Variant, ...]:
    found = []
    for choice in candidates:
        call = choice.kernel.lower(node, target)
        found.append(Variant(choice, call, choice.kernel.cost(node, target, call)))
    return tuple(found)


_DEAR = 1.15
_GOOD = 1.08
"""Times the instructions of what would be chosen without a limit: where whole layers need more than the first to fit,
they are tried by rows; what needs less than the second is not improved."""


def _frugal(
    variants: Mapping[Node, Sequence[Variant]],
    allowed: Mapping[Node, Sequence[int]],
    plan: MemoryPlan,
    promises: Promises,
) -> dict[Node, list[int]]:
    """Of each call's allowed variants the one that needs the least memory; of several the fastest."""
    found = {node: list(indices) for node, indices in allowed.items()}
    for position, node in enumerate(plan.calls):

        def need(index: int, node: Node = node, position: int = position) -> tuple[int, int]:
            variant = variants[node][index]
            cost = 0 if variant.cost is None else variant.cost.instructions
            return _own_bytes(node, variant, plan, position, promises), cost

        found[node] = [min(allowed[node], key=need)]
    return found


def _take_away(
    variants: Mapping[Node, Sequence[Variant]],
    allowed: dict[Node, list[int]],
    chosen: Mapping[Node, Variant],
    plan: MemoryPlan,
    limit: int,
    promises: Promises,
) -> bool:
    """Disallow variants because of the memory that their calls need: those of calls at which more than `limit` bytes
    are alive, or, where there are none because the arena has gaps, of the call at which most are. False when there is
    nothing to gain.

    What is alive with the variants that need the least is no reason: below that no choice comes.
    """
    least, less = limit, dict[Node, list[int]]()
    for index, node in enumerate(plan.calls):
        own = _own_bytes(node, chosen[node], plan, index, promises)
        needs = {i: _own_bytes(node, variants[node][i], plan, index, promises) for i in allowed[node]}
        least = max(least, plan.alive[index + 1] - own + min(needs.values()))
        less[node] = [i for i, need in needs.items() if need < own]
    if plan.arena_bytes <= least:
        return False
    alive = {node: plan.alive[index + 1] for index, node in enumerate(plan.calls) if less[node]}
    too_much = [node for node, count in alive.items() if count > least]
    for node in too_much or sorted(alive, key=lambda n: -alive[n])[:1]:
        allowed[node] = less[node]
    return bool(alive)


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
