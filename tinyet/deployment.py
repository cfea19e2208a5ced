# SPDX-License-Identifier: Apache-2.0
"""A graph with every decision for one target: kernels, calls with their constants, order, addresses.

A `Program` is the same for all boards; a `Deployment` is what it becomes on one of them. It is computed from the
program alone, without torch and always to the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates import DEFAULT, Delegate
from tinyet.delegates.decide import Decision, Objective, Variant, choose, comparable, pinned
from tinyet.delegates.frontier import Frontier, Point
from tinyet.delegates.select import Choice, Selection, select
from tinyet.errors import UnsupportedOp, UsageError, bullet_list
from tinyet.input_rows import GIVE_WHOLE, taken_input
from tinyet.ir import Array, Graph, Node, place_of
from tinyet.layers import layer_names
from tinyet.memory import MemoryPlan, course
from tinyet.memory.storage import StreamRefused
from tinyet.memory.streams import Stream
from tinyet.memory.sweeping import Course
from tinyet.ops import op_of
from tinyet.ops.region import Region
from tinyet.opset import Call, Constant, Event, FieldValue, InputArg, Pointer, Struct, Sweeps
from tinyet.opset.cost import field_bytes
from tinyet.rows import Search, Strips, moved, strips_of
from tinyet.stages import stage
from tinyet.storage import arranged, planned


@dataclass(frozen=True, eq=False)
class Step:
    """One call of the generated `run`, which is one layer of every report. `index` counts from 0.

    name: the layer's, made of its module's path; unique in the deployment (`layers.layer_names`).
    first_event: number of the call's first event; events count on where the layers' indices end.
    """

    index: int
    name: str
    node: Node
    choice: Choice
    call: Call
    macs: int
    first_event: int = 0

    def __repr__(self) -> str:
        return f"<layer {self.index}, {self}: {self.node.op} by {self.choice.kernel.symbol}>"

    @property
    def line(self) -> str:
        """`file:line` of the user's source; empty when it is not known."""
        return "" if self.node.origin is None else self.node.origin.location

    @property
    def source(self) -> str:
        """`file:line: text` of the user's source; empty when it is not known."""
        return "" if self.node.origin is None else self.node.origin.source

    def __str__(self) -> str:
        """As every report names a layer: its name, and its line."""
        return place_of(self.name, self.line)


@dataclass(frozen=True, eq=False)
class StoredArray:
    """A const array of the generated code.

    align: in bytes, of the strictest use. rom: its pointers know that it is constant (`ConstantArg`, `Pointer`); a
    constant that a kernel takes as it takes activations (`InputArg`) is not, and lies in RAM where constants have an
    address space of their own. uses: the steps that need it, each with the constant's name there, or the input's index.
    role, comment: the first use's.
    """

    data: Array
    align: int
    rom: bool
    uses: tuple[tuple[Step, str | int], ...]
    role: str
    comment: str

    @property
    def bytes(self) -> int:
        """C has no empty arrays: one element stands for them."""
        return max(self.data.nbytes, self.data.itemsize)


@dataclass(frozen=True, eq=False)
class Deployment:
    """graph: the program's, with a Region node for each part that a region delegate took. decision: why each layer has
    the kernel that it has."""

    graph: Graph
    target: Target
    plan: MemoryPlan
    steps: tuple[Step, ...]
    decision: Decision

    def __repr__(self) -> str:
        """In a line; `tinyet analyze` tells of each layer."""
        kinds = f"{len(self.steps)} layers, arena {self.plan.arena_bytes:,} bytes"
        return f"<deployment of {self.graph.name} for {self.target.cpu}: {kinds}>"

    @property
    def events(self) -> tuple[Event, ...]:
        """Parts of calls, in the order of their numbers, which start behind those of the layers."""
        return tuple(event for step in self.steps for event in step.call.events)

    @property
    def state_bytes(self) -> int:
        """Bytes of static memory beside the arena."""
        return sum(step.call.state_bytes for step in self.steps)

    def origin_of(self, number: int) -> str:
        """What a layer's or an event's number stands for: its name, its line, and its operator."""
        if number < len(self.steps):
            step = self.steps[number]
            return f"layer {number}, {step}: {step.node.op}"
        for step in self.steps:
            part = number - step.first_event
            if 0 <= part < len(step.call.events):
                event = step.call.events[part]
                where = f", {event.origins[-1]}" if event.origins else ""
                return f"layer {step.index}, {step}: {step.node.op}, in it {event.label}{where}"
        return f"layer {number}"

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(step.macs for step in self.steps)

    @cached_property
    def arrays(self) -> tuple[StoredArray, ...]:
        """The const arrays of the generated code, in the order in which the calls first need them.

        Equal arrays of one address space are one, whatever asks for them: this is what the emitter prints, and what
        every sum of bytes counts.
        """
        found: dict[tuple[bytes, str, bool], list[tuple[Step, str | int, Constant]]] = {}
        for step in self.steps:
            uses: list[tuple[str | int, Constant]] = [(c.name, c) for c in step.call.constants]
            for index in (arg.index for arg in step.call.args if isinstance(arg, InputArg)):
                tensor = step.node.input(index)
                if tensor.is_constant:
                    uses.append((index, Constant(f"input_{index}", tensor.array, tensor.name)))
            for role, c in uses:
                key = np.ascontiguousarray(c.data).tobytes(), c.data.dtype.name, isinstance(role, str)
                found.setdefault(key, []).append((step, role, c))
        return tuple(
            StoredArray(
                data=uses[0][2].data,
                align=max(c.align for _, _, c in uses),
                rom=rom,
                uses=tuple((step, role) for step, role, _ in uses),
                role=uses[0][2].name,
                comment=uses[0][2].comment,
            )
            for (_, _, rom), uses in found.items()
        )

    @property
    def constant_bytes(self) -> int:
        """Bytes of packed weights and tables, and of constants that are operands, each once."""
        return sum(array.bytes for array in self.arrays)

    @property
    def operand_bytes(self) -> int:
        """Those of `constant_bytes` that kernels take as they take activations, by the same pointers."""
        return sum(array.bytes for array in self.arrays if not array.rom)

    def arrays_of(self, step: Step) -> tuple[StoredArray, ...]:
        """The arrays that this step is the first to need; over all steps they are `arrays`."""
        return tuple(self._arrays_of.get(step, ()))

    @cached_property
    def _arrays_of(self) -> dict[Step, list[StoredArray]]:
        found: dict[Step, list[StoredArray]] = {}
        for array in self.arrays:
            found.setdefault(array.uses[0][0], []).append(array)
        return found

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the kernels' parameter structs; where constants have an address space of their own, each once.
        64-bit fields that hold small numbers count as 32 bits."""
        place = {use: number for number, array in enumerate(self.arrays) for use in array.uses}
        found: dict[object, Struct] = {}
        for step in self.steps:
            if step.call.params is not None:
                pointed = tuple(place[step, name] for name in _pointed(step.call.params))
                same = (repr(step.call.params), pointed) if "progmem" in self.target.features else step
                found[same] = step.call.params
        return sum(field_bytes(params, self.target) for params in found.values())


def _pointed(value: FieldValue) -> tuple[str, ...]:
    """The names of the constants that a parameter struct points at."""
    if isinstance(value, Pointer):
        return (value.constant,)
    return (
        tuple(n for item in value.fields.values() for n in _pointed(item))
        if isinstance(value, Struct)
        else ()
    )


def deploy(
    graph: Graph,
    target: Target,
    delegates: Sequence[Delegate] = DEFAULT,
    *,
    require: bool = False,
    objective: Objective | None = None,
) -> Deployment:
    """Choose kernels, pack constants, order the calls and place every value.

    delegates: who is asked for kernels, in this order; the portable ones take what is left where they are not named.
    require: every call must go to one of `delegates`; without it the portable kernels take what these refuse.
    objective: what the choice is made for; by default "balanced", without limits.
    Raises UnsupportedOp when a node has no kernel for the target, or one of a delegate that was not asked for;
    UsageError for a pin of the objective that no layer has.
    """
    stage("choosing kernels")
    selection = select(graph, target, delegates)
    decision, plan = _Chooser(selection, target, delegates, objective or Objective()).decide()
    steps: list[Step] = []
    events = 0
    names = _names(selection.graph, plan.calls)
    for index, node in enumerate(plan.calls):
        first, chosen = len(plan.calls) + events, decision.chosen[node]
        steps.append(
            Step(index, names[node], node, chosen.choice, chosen.call, op_of(node).macs(node), first)
        )
        events += len(chosen.call.events)
    _no_fallback(steps, selection, delegates if require else None)
    return Deployment(selection.graph, target, plan, tuple(steps), decision)


def _names(graph: Graph, calls: Sequence[Node]) -> dict[Node, str]:
    """What layers are called. Their order in the graph says it, not that of the calls, which depends on the kernels: a
    layer has one name whatever computes it."""
    computed = set(calls)
    ordered = [node for node in graph.nodes if node in computed]
    return dict(zip(ordered, layer_names(ordered), strict=True))


class _Chooser:
    """Chooses a variant for every node, and plans the memory that they need.

    Where the arena is larger than the objective allows, the variants that cannot be there are taken away, because of
    their scratch memory or because their output lies over too little of their input, and the choice is made again; and
    where that is not enough, layers are computed by rows.
    """

    def __init__(
        self, selection: Selection, target: Target, delegates: Sequence[Delegate], objective: Objective
    ) -> None:
        self.selection, self.target, self.delegates = selection, target, delegates
        self.objective = objective
        self.graph = selection.graph
        self.variants = self._offer(selection)
        self._free: dict[tuple[Stream, ...], _Chosen] = {}
        self.pins: dict[Node, int] = {}
        if objective.pins:
            calls = planned(self.graph, {node: found[0] for node, found in self.variants.items()}).calls
            layers = {name: node for node, name in _names(self.graph, calls).items()}
            self.pins = pinned(self.variants, layers, objective.pins)

    def decide(self) -> tuple[Decision, MemoryPlan]:
        best = self.whole_layers()
        if self.objective.input_rows:
            best = self.taking_rows()
        elif not self.objective.whole and (self.objective.optimize == "size" or self.dear(best)):
            by_rows = self.by_rows()
            if by_rows is not None and self.better(by_rows, best):
                best = by_rows
        plan, chosen = best.plan, best.chosen
        state = _state_bytes(chosen)
        most = None if self.objective.ram is None else self.objective.ram - state
        if self.objective.optimize != "speed":
            # What is there is spent on speed only where that is all that is asked for.
            most = min(plan.arena_bytes, plan.arena_bytes if most is None else most)
        arranged_, plan = arranged(self.graph, chosen, plan, most, self.target)
        return Decision(self.objective, best.variants, arranged_, best.found, best.point), plan

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
        allowed = {node: comparable(found) for node, found in variants.items()}
        allowed |= {node: [index] for node, index in self.pins.items()}
        result = self._free[tuple(streams)] = self.chosen(variants, allowed, streams)
        if self.over(result) <= 0:
            return result
        least = self.chosen(variants, _frugal(variants, allowed, result.plan), streams)
        if self.over(least) > 0:
            return least
        limit = self.objective.ram
        while limit is not None and self.over(result) > 0:
            state = _state_bytes(result.chosen)
            if not _take_away(variants, allowed, result.chosen, result.plan, limit - state):
                return least
            result = self.chosen(variants, allowed, streams)
        return result

    def chosen(
        self,
        variants: Mapping[Node, tuple[Variant, ...]],
        allowed: Mapping[Node, Sequence[int]],
        streams: Sequence[Stream],
    ) -> _Chosen:
        """Of the allowed variants those that the objective asks for, and their memory."""
        # What rows cost is not to be paid for with flash saved.
        most = round(_GOOD * self._free[()].point.instructions) if streams else None
        found, point, indices = choose(variants, allowed, self.objective, self.target, most)
        chosen = {node: variants[node][index] for node, index in indices.items()}
        return _Chosen(variants, chosen, planned(self.graph, chosen, streams=streams), found, point)

    def over(self, chosen: _Chosen) -> int:
        """Bytes of RAM more than the objective allows."""
        if self.objective.ram is None:
            return 0
        return self.arena(chosen) + _state_bytes(chosen.chosen) - self.objective.ram

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
        allowed = {node: comparable(found) for node, found in self.variants.items()}
        allowed |= {node: [index] for node, index in self.pins.items()}
        least = self.chosen(self.variants, _frugal(self.variants, allowed, free.plan), ())
        strips = self.strips(least.plan.calls)
        taken = taken_input(self.graph, least.plan.calls, strips) if self.objective.input_rows else None
        if not strips:
            return None
        search = Search(self.graph, least.plan, free.chosen, strips, taken=taken)
        found: list[_Chosen] = []

        def tried(streams: Sequence[Stream] | None) -> bool:
            """Try the forms of streams; whether one is good enough."""
            for piled, beneath in ((False, False), (True, True), (True, False)) if streams else ():
                some = search.piled(streams or (), beneath=beneath) if piled else streams or ()
                try:
                    found.append(self.choose(self.with_strips(strips, some), some))
                except StreamRefused:
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
            return min(found, key=self.arena, default=None)
        return min(fitting, key=lambda chosen: chosen.instructions)

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
            return self._offer(select(graph, self.target, libraries or DEFAULT))

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


@dataclass(frozen=True)
class _Chosen:
    """A variant for every node, of all that there are, and the memory that they need."""

    variants: Mapping[Node, tuple[Variant, ...]]
    chosen: Mapping[Node, Variant]
    plan: MemoryPlan
    found: Frontier
    point: Point

    @property
    def instructions(self) -> int:
        """Stated, what moves between rows included."""
        return self.point.instructions + round(sum(moved(stream) for stream in self.plan.streams))


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
    variants: Mapping[Node, Sequence[Variant]], allowed: Mapping[Node, Sequence[int]], plan: MemoryPlan
) -> dict[Node, list[int]]:
    """Of each call's allowed variants the one that needs the least memory; of several the fastest."""
    found = {node: list(indices) for node, indices in allowed.items()}
    for position, node in enumerate(plan.calls):

        def need(index: int, node: Node = node, position: int = position) -> tuple[int, int]:
            variant = variants[node][index]
            cost = 0 if variant.cost is None else variant.cost.instructions
            return _own_bytes(node, variant, plan, position), cost

        found[node] = [min(allowed[node], key=need)]
    return found


def _take_away(
    variants: Mapping[Node, Sequence[Variant]],
    allowed: dict[Node, list[int]],
    chosen: Mapping[Node, Variant],
    plan: MemoryPlan,
    limit: int,
) -> bool:
    """Disallow variants because of the memory that their calls need: those of calls at which more than `limit` bytes
    are alive, or, where there are none because the arena has gaps, of the call at which most are. False when there is
    nothing to gain.

    What is alive with the variants that need the least is no reason: below that no choice comes.
    """
    least, less = limit, dict[Node, list[int]]()
    for index, node in enumerate(plan.calls):
        own = _own_bytes(node, chosen[node], plan, index)
        needs = {i: _own_bytes(node, variants[node][i], plan, index) for i in allowed[node]}
        least = max(least, plan.alive[index + 1] - own + min(needs.values()))
        less[node] = [i for i, need in needs.items() if need < own]
    if plan.arena_bytes <= least:
        return False
    alive = {node: plan.alive[index + 1] for index, node in enumerate(plan.calls) if less[node]}
    too_much = [node for node, count in alive.items() if count > least]
    for node in too_much or sorted(alive, key=lambda n: -alive[n])[:1]:
        allowed[node] = less[node]
    return bool(alive)


@lru_cache(maxsize=4096)
def _course(node: Node, sweep: Sweeps | None) -> Course | None:
    """The steps of a node's call by a kernel that says so."""
    return None if sweep is None else course(node, sweep)


def _own_bytes(node: Node, variant: Variant, plan: MemoryPlan, index: int) -> int:
    """Bytes that a call needs beside the blocks of a plan that are alive at it, if this variant makes it: scratch
    memory, less what it saves because its output may lie over an input that dies, partly or wholly."""
    kernel, need = variant.choice.kernel, variant.call.scratch_bytes
    variables = [(i, t) for i, t in enumerate(node.inputs) if t is not None and not t.is_constant]
    if plan.stream(node) is not None or len(node.outputs) != 1:
        return need
    if any(plan.form(t) for t in (*(t for _, t in variables), *node.outputs)):
        return need
    size, found = node.output.type.bytes, _course(node, kernel.sweep)
    taken, saved = plan.overwrites.get(node, (None, 0))[0], 0
    for i, tensor in variables:
        life = plan.blocks[plan.storage[tensor].block].lifetime
        began = plan.blocks[plan.storage[node.output].block].lifetime.first
        if i != taken and (life.last != index or began != index):
            continue
        replaces = kernel.replaces is not None and kernel.replaces(node, i)
        if tensor.type.bytes == size and (replaces or (i == taken and i in op_of(node).inplace)):
            saved = size
        elif found is not None and tensor in found.needed:
            saved = max(saved, found.saved(tensor))
    # One block is that of both where the output is in place now.
    return need + (0 if taken is None else size) - saved


def _no_fallback(steps: Sequence[Step], selection: Selection, required: Sequence[Delegate] | None) -> None:
    """Raise UnsupportedOp, listing them, for calls that went to nobody of `required`, or not to where they are pinned.

    Only now is it known which nodes need no call, because memory planning lets their bytes be.
    """
    wrong = []
    for step in steps:
        pinned = selection.pinned.get(step.node)
        allowed = required if pinned is None else (pinned,)
        if allowed is not None and step.choice.delegate not in allowed:
            names = ", ".join(d.name for d in allowed)
            reasons = "; ".join(
                str(r) for r in step.choice.refusals if r.delegate in {d.name for d in allowed}
            )
            wrong.append(f"{step}: {step.node.op}: {reasons or f'{names} has no kernel for it'}")
    if wrong:
        raise UnsupportedOp(
            f"{len(wrong)} call(s) would not go to the delegate that was asked for:\n{bullet_list(wrong)}",
            hint="allow others (--delegate NAME,portable, or leave --require-delegate away), or change these layers",
        )
