# SPDX-License-Identifier: Apache-2.0
"""A graph with every decision for one target: kernels, calls with their constants, order, addresses.

A `Program` is the same for all boards; a `Deployment` is what it becomes on one of them. It is computed from the
program alone, without torch and always to the same result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates import DEFAULT, Delegate
from tinyet.errors import UnsupportedOp, UsageError, bullet_list
from tinyet.ir import Array, Graph, Node, Size, place_of
from tinyet.memory import MemoryPlan
from tinyet.memory.caller_buffers import check_ends
from tinyet.memory.check import check_plan
from tinyet.memory.fusion import Run
from tinyet.memory.resized import at_another_size, check_resized
from tinyet.memory.split import Split
from tinyet.messages.stages import stage
from tinyet.ops import op_of
from tinyet.opset import Call, Constant, Cost, Event, FieldValue, InputArg, Pointer, Struct
from tinyet.opset.cost import field_bytes
from tinyet.opset.parts import Part
from tinyet.planning.candidates import Candidate, Chosen
from tinyet.planning.decision import Decision
from tinyet.planning.kernel_selection import Choice, Selection
from tinyet.planning.layer_names import names_of
from tinyet.planning.layouts import AccessOrderCache, planned
from tinyet.planning.objective import Objective
from tinyet.planning.parts import ALIGN, Cut, in_parts, stretches, undisturbed
from tinyet.planning.places import USUAL, Places
from tinyet.planning.search import decide
from tinyet.planning.sized import Sizing, sizing_of

ArrayKey = tuple[bytes, str, bool]
"""Equal for arrays that can be one: of the same bytes, elements and address space (`StoredArray.rom`)."""
AHEAD_ALIGN = 16
"""Of copies of weights in the arena, in bytes, like that of the arena itself."""
SCRATCH_ALIGN = 8
"""Of scratch memory."""


@dataclass(frozen=True, eq=False)
class Step:
    """One call of the generated `run`, which is one layer of every report. `index` counts from 0.

    name: the layer's, made of its module's path; unique in the deployment (`layers.layer_names`).
    first_event: number of the call's first event; events count on where the layers' indices end.
    runs: how often the call is made in an inference; where the layer is computed by rows, once for each tile; where it
    is cut, once for each part.
    parts: of a layer that is cut; its calls are `Deployment.calls_of` then. groups: of the output's channels, into
    which each of its rows is cut. whole: the layer's node, of such a call.
    """

    index: int
    name: str
    node: Node
    choice: Choice
    call: Call
    macs: int
    first_event: int = 0
    runs: int = 1
    parts: tuple[Part, ...] = ()
    groups: int = 1
    whole: Node | None = None

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
        """The layer in every report: its name, and its line."""
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
    def key(self) -> ArrayKey:
        return np.ascontiguousarray(self.data).tobytes(), self.data.dtype.name, self.rom

    @property
    def bytes(self) -> int:
        """C has no empty arrays: one element stands for them."""
        return max(self.data.nbytes, self.data.itemsize)


@dataclass(frozen=True, eq=False)
class Stretch:
    """Parts of a layer that one call makes: `count` of them from number `first` on, each of the layer's groups of
    channels a number further.

    step: that call. reads: of each input in the arena, by its number, (bytes that the first part begins behind the
    tensor's start, bytes from part to part); writes: the same of the output.
    """

    step: Step
    first: int
    count: int
    reads: Mapping[int, tuple[int, int]]
    writes: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Sized:
    """size: which is known at run time. at: the deployment for each of its values: the same calls at the same places,
    for shorter tensors."""

    size: Size
    at: Mapping[int, Deployment]


@dataclass(frozen=True, eq=False)
class Deployment:
    """graph: the program's, with a Region node for each part that a region delegate took. decision: why each layer has
    the kernel that it has. places: the memories of arena, state and weights. sized: of a program with a size that is
    known at run time, the same at each of its values; everything else here is for the largest."""

    graph: Graph
    target: Target
    plan: MemoryPlan
    steps: tuple[Step, ...]
    decision: Decision
    places: Places = USUAL
    sized: Sized | None = None

    def __repr__(self) -> str:
        """In a line; `tinyet analyze` tells of each layer."""
        kinds = f"{len(self.steps)} layers, arena {self.plan.arena_bytes:,} bytes"
        return f"<deployment of {self.graph.name} for {self.target.cpu}: {kinds}>"

    @property
    def order(self) -> tuple[int, ...]:
        """The index of the layer of each call that an inference makes, in that order."""
        index = {step.node: step.index for step in self.steps}
        found: list[int] = []
        for step in self.steps:
            fusion_group = self.plan.fusion_group(step.node)
            if fusion_group is None:
                found += [step.index] * step.runs
            elif step.node is fusion_group.nodes[0]:
                found += [index[action.node] for action in fusion_group.actions if isinstance(action, Run)]
        return tuple(found)

    @cached_property
    def stretches(self) -> Mapping[Step, tuple[Stretch, ...]]:
        """The calls of each layer that is cut."""
        return {step: tuple(_stretches(step)) for step in self.steps if step.parts}

    def calls_of(self, step: Step) -> tuple[Step, ...]:
        """A layer's calls in the generated code: itself, or, where it is cut, one for each stretch of parts."""
        return tuple(stretch.step for stretch in self.stretches[step]) if step.parts else (step,)

    @property
    def calls(self) -> tuple[Step, ...]:
        """All calls in the generated code."""
        return tuple(call for step in self.steps for call in self.calls_of(step))

    def cost_of(self, step: Step) -> Cost | None:
        """What a call of the generated code states: of a layer in parts, each of its parts by that call."""
        if step.whole is None:
            return self.decision.chosen[step.node].cost
        layer = self.steps[step.index]
        return next(part.cost for part in layer.parts if part.call is step.call)

    @property
    def events(self) -> tuple[Event, ...]:
        """Parts of calls, in the order of their numbers, which start behind those of the layers."""
        return tuple(event for step in self.steps for event in step.call.events)

    @property
    def state_bytes(self) -> int:
        """Bytes of static memory beside the arena."""
        kept = sum(fusion_group.kept_bytes for fusion_group in self.plan.fusion_groups)
        return kept + sum(step.call.state_bytes for step in self.steps)

    def origin_of(self, number: int) -> str:
        """The layer or event behind a number: its name, its line, and its operator."""
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
        for step in self.calls:
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
        """The bytes of `constant_bytes` that kernels read as activations, by the same pointers."""
        return sum(array.bytes for array in self.arrays if not array.rom)

    def arrays_of(self, step: Step) -> tuple[StoredArray, ...]:
        """The arrays that this layer is the first to need; over all layers they are `arrays`."""
        return tuple(self._arrays_of.get(step.index, ()))

    @cached_property
    def _arrays_of(self) -> dict[int, list[StoredArray]]:
        found: dict[int, list[StoredArray]] = {}
        for array in self.arrays:
            found.setdefault(array.uses[0][0].index, []).append(array)
        return found

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the kernels' parameter structs; where constants have an address space of their own, each once.
        64-bit fields that hold small numbers count as 32 bits."""
        place = {use: number for number, array in enumerate(self.arrays) for use in array.uses}
        found: dict[object, Struct] = {}
        for step in self.calls:
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
    size: Size | None = None,
) -> Deployment:
    """Choose kernels, pack constants, order the calls and place every value.

    delegates: who is asked for kernels, in this order; the portable ones take what is left where they are not named.
    require: every call must go to one of `delegates`; without it the portable kernels take what these refuse.
    objective: what the choice is made for; by default "balanced", without limits.
    size: of the graph's inputs, known at run time: every layer is one call for all its values, and none is by rows.
    That each reads and writes what it should, at every value, has been checked when this returns.
    Raises UnsupportedOp when a node has no kernel for the target, or one of a delegate that was not asked for;
    UsageError for a pin of the objective that no layer has, or an output that cannot have a buffer of its own.
    """
    stage("choosing kernels")
    aim = objective or Objective()
    if aim.callers:
        check_ends(graph)
    sizing = None if size is None else sizing_of(graph, size)
    if sizing is not None:
        if aim.input_rows:
            raise UsageError(
                "a model that takes its input row by row has no size that is known at run time",
                "--input-rows",
                "leave --input-rows away, or compile it for one size",
            )
        aim = replace(aim, untiled=True)
    selection, decision, plan = decide(graph, target, delegates, aim, require=require, sizing=sizing)
    steps = _steps(selection.graph, decision, plan)
    _no_fallback(steps, selection, delegates if require else None)
    whole = Deployment(selection.graph, target, plan, steps, decision)
    return whole if sizing is None else replace(whole, sized=_sized(whole, sizing))


def _sized(whole: Deployment, sizing: Sizing) -> Sized:
    """The deployment at every value, each proved."""
    if whole.graph is not sizing.graph:
        raise UnsupportedOp(
            "a delegate takes a part of the graph as a whole, and knows it for one size only",
            hint="leave this delegate away, or compile the model for one size",
        )
    found = {}
    for value, graph in zip(sizing.size.values, sizing.graphs, strict=True):
        nodes = dict(zip(whole.graph.nodes, graph.nodes, strict=True))
        plan = whole.plan if graph is whole.graph else at_another_size(whole.plan, whole.graph, graph)
        steps = tuple(
            replace(step, node=nodes[step.node], macs=op_of(nodes[step.node]).macs(nodes[step.node]))
            for step in whole.steps
        )
        found[value] = replace(whole, graph=graph, plan=plan, steps=steps)
        if graph is not whole.graph:
            kernels = {step.node: step.choice.kernel for step in steps}
            scratch = {step.node: step.call.scratch_bytes for step in steps if step.call.scratch_bytes}
            check_resized(graph, plan, op_of, scratch, kernels)
    return Sized(sizing.size, found)


def with_states_apart(deployment: Deployment) -> Deployment:
    """The same kernels with a plan in which the states lie at the arena's start and share bytes with nothing, so that
    other models can have the rest of it in turns."""
    graph, decision = deployment.graph, deployment.decision
    apart = _planned_again(deployment, decision.chosen, states_apart=True)
    return replace(deployment, plan=apart, steps=_steps(graph, decision, apart))


def _planned_again(
    deployment: Deployment, chosen: Chosen, *, states_apart: bool = False, split: Split | None = None
) -> MemoryPlan:
    """A plan for these calls that keeps what the deployment's has: how values lie, what goes by rows, and whether
    inputs and outputs are in the caller's buffers."""
    plan = deployment.plan
    return planned(
        deployment.graph,
        chosen,
        AccessOrderCache(),
        {t: found for t in plan.storage if (found := plan.data_layout(t)) is not None},
        plan.fusion_groups,
        states_apart=states_apart,
        callers=plan.buffers_from is not None,
        split=split,
    )


def ahead_bytes(arrays: Iterable[StoredArray]) -> int:
    """What copies of arrays take, one behind the other."""
    return sum(-(-array.bytes // AHEAD_ALIGN) * AHEAD_ALIGN for array in arrays)


def with_copies_ahead(deployment: Deployment, layers: Collection[str]) -> Deployment:
    """The same kernels with a plan in which calls of these layers work in memory for copies of their weights, behind
    their own."""
    graph, chosen = deployment.graph, dict(deployment.decision.chosen)
    for step in deployment.steps:
        if step.name in layers:
            own = -(-step.call.scratch_bytes // AHEAD_ALIGN) * AHEAD_ALIGN
            call = replace(step.call, scratch_bytes=own + ahead_bytes(deployment.arrays_of(step)))
            chosen[step.node] = replace(chosen[step.node], call=call)
    decision = replace(deployment.decision, chosen=chosen)
    made = _planned_again(deployment, chosen)
    return replace(deployment, plan=made, decision=decision, steps=_steps(graph, decision, made))


def with_arena_split(deployment: Deployment, split: Split) -> Deployment:
    """The same kernels with a plan of two pieces; of one, where one of them would have nothing."""
    graph, decision = deployment.graph, deployment.decision
    made = _planned_again(deployment, decision.chosen, split=split)
    return replace(deployment, plan=made, steps=_steps(graph, decision, made))


def with_parts(deployment: Deployment, cuts: Mapping[Node, Cut]) -> Deployment:
    """The same with calls made in parts, each proved to be the call: at the same addresses, or, where parts need what
    earlier ones have written over, or more scratch memory, by a plan of its own."""
    if not cuts:
        return deployment
    graph, plan, chosen = deployment.graph, deployment.plan, dict(deployment.decision.chosen)
    chosen |= {node: cut.candidate for node, cut in cuts.items()}
    as_planned = chosen | {node: _in_parts(cut) for node, cut in cuts.items()}
    scratch = {node: deployment.decision.chosen[node].call.scratch_bytes for node in cuts}
    if not all(
        cut.candidate.call.scratch_bytes <= scratch[node] and undisturbed(plan, node, cut)
        for node, cut in cuts.items()
    ):
        plan = _planned_again(deployment, as_planned)
    _check_parts(graph, plan, chosen, cuts)
    decision = replace(deployment.decision, chosen=chosen)
    steps = tuple(
        replace(step, runs=len(cut.parts), parts=cut.parts, groups=cut.groups)
        if (cut := cuts.get(step.node)) is not None
        else step
        for step in _steps(graph, decision, plan)
    )
    return replace(deployment, plan=plan, decision=decision, steps=steps)


def _in_parts(cut: Cut) -> Candidate:
    """For the planner: what the parts read behind what they have written."""
    choice = cut.candidate.choice
    return replace(cut.candidate, choice=replace(choice, kernel=in_parts(choice.kernel, cut)))


def _check_parts(graph: Graph, plan: MemoryPlan, chosen: Chosen, cuts: Mapping[Node, Cut]) -> None:
    """Prove the plan with these calls in parts."""
    kernels = {node: candidate.choice.kernel for node, candidate in chosen.items()}
    kernels |= {part.node: kernels[node] for node, cut in cuts.items() for part in cut.parts}
    orders = AccessOrderCache()
    check_plan(
        graph,
        plan,
        op_of,
        {node: c.call.scratch_bytes for node, c in chosen.items() if c.call.scratch_bytes},
        align=ALIGN,
        scratch_align=SCRATCH_ALIGN,
        access_order=lambda node, index: orders.access_order(kernels[node], node, index),
        replaces=lambda node, index: orders.replaces(kernels[node], node, index),
        parts={node: cut.parts for node, cut in cuts.items()},
    )


def _stretches(step: Step) -> Iterator[Stretch]:
    for first, count in stretches(step.parts, step.groups):
        part, behind = step.parts[first], step.parts[first + (step.groups if count > 1 else 0)]
        macs = op_of(part.node).macs(part.node)
        call = replace(step, node=part.node, call=part.call, macs=macs, runs=count, parts=(), whole=step.node)
        reads = {i: (start, behind.reads[i] - start) for i, start in part.reads.items()}
        yield Stretch(call, first, count, reads, (part.writes, behind.writes - part.writes))


def _steps(graph: Graph, decision: Decision, plan: MemoryPlan) -> tuple[Step, ...]:
    """The calls of a plan, in its order."""
    steps: list[Step] = []
    events = 0
    names = names_of(graph, plan.calls)
    for index, node in enumerate(plan.calls):
        first, chosen = len(plan.calls) + events, decision.chosen[node]
        steps.append(
            Step(
                index,
                names[node],
                node,
                chosen.choice,
                chosen.call,
                op_of(node).macs(node),
                first,
                plan.runs(node),
            )
        )
        events += len(chosen.call.events)
    return tuple(steps)


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
            hint="allow others (--delegates NAME,portable, or leave --require-delegate away), or change these layers",
        )
