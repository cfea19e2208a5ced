# SPDX-License-Identifier: Apache-2.0
"""A graph with every decision for one target: kernels, calls with their constants, order, addresses.

A `Program` is the same for all boards; a `Deployment` is what it becomes on one of them. It is computed from the
program alone, without torch and always to the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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
from tinyet.memory import MemoryPlan
from tinyet.memory.storage import StreamRefused
from tinyet.memory.streams import Stream, Taken
from tinyet.ops import op_of
from tinyet.ops.region import Region
from tinyet.opset import Call, Constant, Event, FieldValue, InputArg, Pointer, Struct
from tinyet.opset.cost import field_bytes
from tinyet.rows import Search, Strips, strips_of
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

    Where the arena is larger than the objective allows, the variants with much scratch that cannot be there are taken
    away, and the choice is made again; and where that is not enough, layers are computed by rows.
    """

    def __init__(
        self, selection: Selection, target: Target, delegates: Sequence[Delegate], objective: Objective
    ) -> None:
        self.selection, self.target, self.delegates = selection, target, delegates
        self.objective = objective
        self.graph = selection.graph
        self.whole = self._offer(selection)
        self.pins: dict[Node, int] = {}
        if objective.pins:
            calls = planned(self.graph, {node: found[0] for node, found in self.whole.items()}).calls
            layers = {name: node for node, name in _names(self.graph, calls).items()}
            self.pins = pinned(self.whole, layers, objective.pins)

    def decide(self) -> tuple[Decision, MemoryPlan]:
        best = self.choose(self.whole, ())
        if self.objective.input_rows:
            best = self.taking_rows(best)
        elif self.objective.optimize == "size" or self.over(best) > 0:
            by_rows = self.by_rows(best)
            if by_rows is not None and self.arena(by_rows) < self.arena(best):
                best = by_rows
        plan, chosen = best.plan, best.chosen
        state = _state_bytes(chosen)
        most = None if self.objective.ram is None else self.objective.ram - state
        if self.objective.optimize != "speed":
            # What is there is spent on speed only where that is all that is asked for.
            most = min(plan.arena_bytes, plan.arena_bytes if most is None else most)
        arranged_, plan = arranged(self.graph, chosen, plan, most, self.target)
        return Decision(self.objective, best.variants, arranged_, best.found, best.point), plan

    def choose(self, variants: Mapping[Node, tuple[Variant, ...]], streams: Sequence[Stream]) -> _Chosen:
        """The variants that the objective asks for, of those whose scratch memory there is room for."""
        allowed = {node: comparable(found) for node, found in variants.items()}
        allowed |= {node: [index] for node, index in self.pins.items()}
        while True:
            found, point, indices = choose(variants, allowed, self.objective, self.target)
            chosen = {node: variants[node][index] for node, index in indices.items()}
            plan = planned(self.graph, chosen, streams=streams)
            result = _Chosen(variants, chosen, plan, found, point)
            limit = self.objective.ram
            if limit is None or self.over(result) <= 0:
                return result
            if not _take_away(variants, allowed, chosen, plan, limit - _state_bytes(chosen)):
                return result

    def over(self, chosen: _Chosen) -> int:
        """Bytes of RAM more than the objective allows."""
        if self.objective.ram is None:
            return 0
        return self.arena(chosen) + _state_bytes(chosen.chosen) - self.objective.ram

    @staticmethod
    def arena(chosen: _Chosen) -> int:
        return chosen.plan.arena_bytes

    def taking_rows(self, whole: _Chosen) -> _Chosen:
        """With the input given by rows. Raises UsageError where it cannot be."""
        strips = self.strips(whole.plan.calls)
        taken = taken_input(self.graph, whole.plan.calls, strips)
        found = self.by_rows(whole, strips, taken)
        if found is None:
            raise UsageError(
                f"the first layers of {self.graph.name} cannot be computed from rows of {taken.input.name} as they come",
                hint=GIVE_WHOLE,
            )
        return found

    def by_rows(
        self, whole: _Chosen, strips: Mapping[Node, Strips] | None = None, taken: Taken | None = None
    ) -> _Chosen | None:
        """With layers computed by rows: the cheapest that has room, or what takes the least RAM; None where nothing can
        be."""
        stage("planning memory by rows")
        strips = self.strips(whole.plan.calls) if strips is None else strips
        if not strips:
            return None
        search = Search(self.graph, whole.plan, whole.chosen, strips, taken=taken)
        best: _Chosen | None = None

        def tried(streams: Sequence[Stream] | None) -> _Chosen | None:
            """The best of all that was tried: with what fits there is no need to go on."""
            nonlocal best
            if not streams:
                return best
            for piled, beneath in ((False, False), (True, True), (True, False)):
                some = search.piled(streams, beneath=beneath) if piled else streams
                try:
                    found = self.choose(self.with_strips(strips, some), some)
                except StreamRefused:
                    continue
                if best is None or self.arena(found) < self.arena(best):
                    best = found
                if self.over(found) <= 0 and self.objective.optimize != "size":
                    break
            return best

        limit = self.objective.ram
        if self.objective.optimize != "size" and limit is not None:
            limit -= _state_bytes(whole.chosen)
            for _ in range(_ROUNDS):
                streams = search.streams(limit)
                if not streams:
                    break
                found = tried(streams)
                if found is not None and self.over(found) <= 0:
                    return found
                limit -= max(limit // 50, 1)
        return tried(search.smallest())

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
        return {n: strips[n].variants if n in inside else found for n, found in self.whole.items()}

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


def _state_bytes(chosen: Mapping[Node, Variant]) -> int:
    return sum(variant.call.state_bytes for variant in chosen.values())


def _variants(node: Node, candidates: Sequence[Choice], target: Target) -> tuple[Variant, ...]:
    found = []
    for choice in candidates:
        call = choice.kernel.lower(node, target)
        found.append(Variant(choice, call, choice.kernel.cost(node, target, call)))
    return tuple(found)


def _take_away(
    variants: Mapping[Node, Sequence[Variant]],
    allowed: dict[Node, list[int]],
    chosen: Mapping[Node, Variant],
    plan: MemoryPlan,
    limit: int,
) -> bool:
    """Disallow variants because of their scratch: those of calls at which more than `limit` bytes are alive, or, where
    there are none because the arena has gaps, of the call at which most are. False when there is nothing to gain."""

    def smaller(node: Node) -> list[int]:
        scratch = chosen[node].call.scratch_bytes
        return [i for i in allowed[node] if variants[node][i].call.scratch_bytes < scratch]

    alive = {node: n for node, n in zip(plan.calls, plan.alive, strict=True) if smaller(node)}
    too_much = [node for node, count in alive.items() if count > limit]
    for node in too_much or sorted(alive, key=lambda n: -alive[n])[:1]:
        allowed[node] = smaller(node)
    return bool(alive)


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
