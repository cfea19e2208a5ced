# SPDX-License-Identifier: Apache-2.0
"""The cost of a program on a board, before anything is built: every layer, its kernel, its bytes, its source line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tinyet.boards import Board, load_board
from tinyet.boards.cpus import Target
from tinyet.budget.arena import ArenaAnalysis, arena_of
from tinyet.budget.code import Function, call_bytes, functions_of, plain_name
from tinyet.budget.fit import (
    NO_LIMITS,
    Contributor,
    Limits,
    fitted,
    largest_constants,
    limits_given,
    objective_of,
    peak_tensors,
)
from tinyet.budget.fusion import FusionGroupAnalysis, fusion_groups_of
from tinyet.budget.room import Flash, PlannedStack, room_of
from tinyet.build.size import Size, measure
from tinyet.compiler import DEFAULT_BOARD
from tinyet.delegates import Delegates, delegates_or_default
from tinyet.deployment import Deployment, Step
from tinyet.emit.model import symbols_of
from tinyet.errors.arguments import instance_given
from tinyet.ir import Node, Tensor, place_of
from tinyet.memory import MemoryPlan
from tinyet.opset.cost import constant_bytes, counts_cycles
from tinyet.planning.decision import Decision
from tinyet.planning.objective import OPTIMIZE, Objective
from tinyet.planning.pareto import Figures
from tinyet.program import Program
from tinyet.project import Project
from tinyet.stack.use import StackUse

MOST_POINTS = 16
"""Of a front of kernels, in a report."""
MOST_PLANS = 8
"""Of a front of plans."""


@dataclass(frozen=True)
class CandidateAnalysis:
    """A kernel that could compute a layer, and what it says that costs: instructions and estimated cycles of a call,
    bytes of flash (constants, code of its own, shared code that may be there already), scratch in the arena. None: it
    does not say."""

    kernel: str
    delegate: str
    instructions: int | None
    cycles: int | None
    constant_bytes: int
    code_bytes: int | None
    shared_bytes: int | None
    scratch_bytes: int

    @property
    def flash_bytes(self) -> int:
        """Estimated flash, all code counted."""
        return self.constant_bytes + (self.code_bytes or 0) + (self.shared_bytes or 0)


@dataclass(frozen=True)
class KernelFrontPoint:
    """A choice that no other beats: instructions and estimated cycles of an inference, and bytes of flash, as far as
    layers state them. cycles: None where instructions stand for time. chosen: this is what was taken."""

    instructions: int
    cycles: int | None
    flash_bytes: int
    chosen: bool


@dataclass(frozen=True)
class PlanAnalysis:
    """Kernels and memory as they would be together, which no other plan that was made beats in everything: instructions
    and estimated cycles of an inference and bytes of flash, as far as they are stated, bytes of the arena and of state.
    cycles: None where instructions stand for time. chosen: this is what was taken. optimize: the aims that take it,
    under the same limits."""

    instructions: int
    cycles: int | None
    flash_bytes: int
    ram_bytes: int
    chosen: bool
    optimize: tuple[str, ...] = ()


@dataclass(frozen=True)
class FunctionAnalysis:
    """Code that is in flash once, whoever needs it. wrapper: made for calls with certain constants, not of a library.

    bytes: as its kernel states them. linked_bytes: as the linker has it; None where nothing is built, and where the
    compiler has made it part of its caller. kernels: that call it, or are it; layers: that need it, by index.
    """

    name: str
    wrapper: bool
    bytes: int | None
    linked_bytes: int | None
    kernels: tuple[str, ...]
    layers: tuple[int, ...]


@dataclass(frozen=True)
class KernelAnalysis:
    """All layers that one kernel computes. code_bytes: of functions and calls, each function with the first kernel that
    needs it; None where that is not stated. constant_bytes, instructions, cycles: the sums of its layers'."""

    kernel: str
    delegate: str
    layers: tuple[int, ...]
    instructions: int | None
    cycles: int | None
    code_bytes: int | None
    constant_bytes: int


@dataclass(frozen=True)
class LayerAnalysis:
    """One call of the generated code. Bytes: `constant_bytes` and `code_bytes` in flash, `output_bytes` and
    `scratch_bytes` in the arena. code_bytes: of its call, and of the function that was made for it where no layer
    before it has the same; None where that is not stated. linked_bytes: of its constants and that function in the
    firmware, None where it is not built. name: as every report names it; value: the tensor that it computes; runs:
    how often its call is made in an inference; form: how
    that lies in the arena, empty for row-major; over: the inputs that it lies partly over, written row by row while
    they are read; line: `file:line`, source: the line's text behind it, both empty where they are not known.
    instructions, cycles: stated for its kernel, the cycles as estimated for the board, or None.
    candidates: all kernels that could compute it, in the order of asking, that one among them."""

    index: int
    name: str
    value: str
    op: str
    kernel: str
    delegate: str
    dtype: str
    shape: tuple[int, ...]
    form: str
    over: tuple[str, ...]
    macs: int
    constant_bytes: int
    code_bytes: int | None
    linked_bytes: int | None
    output_bytes: int
    scratch_bytes: int
    refusals: tuple[str, ...]
    line: str
    source: str
    instructions: int | None
    cycles: int | None
    candidates: tuple[CandidateAnalysis, ...]
    runs: int

    @property
    def label(self) -> str:
        """The layer as every report names it."""
        return place_of(self.name, self.line)


@dataclass(frozen=True)
class Analysis:
    """A program on a board (or on the generic portable target).

    arena_lower_bound: the most bytes that are alive at once with these kernels in this order; arena_optimal: the arena
        is no larger. arena_searched: no other addresses make it smaller, for that is so or all were tried. arena_least:
        bytes of any arena for this program, which its inputs and states, or an output, take alone.
    fusion_groups: layers that are computed by rows; whole_arena_bytes: the arena if none were, None where none is.
    peak: what is alive at the worst step. notes: layers that stayed float, and why.
    code_bytes: of all functions and calls, as far as they are stated; linked_bytes: of the built application's
        flash, but for its demonstration sample, None where it is not built. functions, kernels: in the order of the
        layers.
    flash: of the whole firmware as it is known before a build; planned_stack: what is counted of the stack.
    time: what plans are compared by, "cycles", as estimated for the board, or "instructions" on a core without a
        model of its cycles; cycles: of an inference, as far as they are stated, None without a model; milliseconds: at
        the board's clock.
    ram_bytes: static data of the built application, and stack: what it takes of it at most; None where it is not built.
    kernel_front: of the choice of kernels, from the smallest to the fastest, at most MOST_POINTS of them;
        kernel_front_gap: bytes by which it may miss better ones. plans: what was made of such choices before one was
        taken, the smallest in RAM first.
    """

    name: str
    board: str
    cpu: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    macs: int
    constant_bytes: int
    code_bytes: int
    linked_bytes: int | None
    flash: Flash
    planned_stack: PlannedStack
    arena_bytes: int
    arena_lower_bound: int
    arena_optimal: bool
    arena_searched: bool
    arena_least: int
    peak_layer: int
    peak: tuple[Contributor, ...]
    largest_constants: tuple[Contributor, ...]
    layers: tuple[LayerAnalysis, ...]
    functions: tuple[FunctionAnalysis, ...]
    kernels: tuple[KernelAnalysis, ...]
    notes: tuple[str, ...]
    optimize: str
    time: Literal["cycles", "instructions"]
    cycles: int | None
    milliseconds: float | None
    kernel_front: tuple[KernelFrontPoint, ...]
    kernel_front_gap: int
    plans: tuple[PlanAnalysis, ...]
    fusion_groups: tuple[FusionGroupAnalysis, ...]
    whole_arena_bytes: int | None
    ram_bytes: int | None = None
    stack: StackUse | None = None
    arena: tuple[ArenaAnalysis, ...] = ()

    def __repr__(self) -> str:
        what = f"{len(self.layers)} layers, {self.macs:,} MACs"
        bytes_ = f"{self.constant_bytes:,} bytes of constants, arena {self.arena_bytes:,} bytes"
        return f"<analysis of {self.name} on {self.board}: {what}, {bytes_}>"

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "version": 4,
            "name": self.name,
            "board": self.board,
            "cpu": self.cpu,
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "macs": self.macs,
            "constant_bytes": self.constant_bytes,
            "code_bytes": self.code_bytes,
            "linked_bytes": self.linked_bytes,
            "flash": self.flash.to_json(),
            "planned_stack": self.planned_stack.to_json(),
            "arena_bytes": self.arena_bytes,
            "arena_lower_bound": self.arena_lower_bound,
            "arena_optimal": self.arena_optimal,
            "arena_searched": self.arena_searched,
            "arena_least": self.arena_least,
            "peak_layer": self.peak_layer,
            "peak": [vars(c) for c in self.peak],
            "largest_constants": [vars(c) for c in self.largest_constants],
            "layers": [
                {
                    **vars(layer),
                    "shape": list(layer.shape),
                    "over": list(layer.over),
                    "refusals": list(layer.refusals),
                    "candidates": [vars(candidate) for candidate in layer.candidates],
                }
                for layer in self.layers
            ],
            "functions": [
                {**vars(one), "kernels": list(one.kernels), "layers": list(one.layers)}
                for one in self.functions
            ],
            "kernels": [{**vars(one), "layers": list(one.layers)} for one in self.kernels],
            "notes": list(self.notes),
            "optimize": self.optimize,
            "time": self.time,
            "cycles": self.cycles,
            "milliseconds": self.milliseconds,
            "kernel_front": [vars(point) for point in self.kernel_front],
            "kernel_front_gap": self.kernel_front_gap,
            "plans": [vars(plan) | {"optimize": list(plan.optimize)} for plan in self.plans],
            "ram_bytes": self.ram_bytes,
            "ram_with_stack_bytes": None
            if self.ram_bytes is None or self.stack is None
            else self.stack.with_data(self.ram_bytes),
            "stack": None if self.stack is None else self.stack.to_json(),
            "fusion_groups": [
                {
                    **vars(one),
                    "layers": list(one.layers),
                    "line_buffers": [vars(buffer) for buffer in one.line_buffers],
                }
                for one in self.fusion_groups
            ],
            "whole_arena_bytes": self.whole_arena_bytes,
            "arena": [vars(block) for block in self.arena],
        }


def analyze(
    model: Program | Project,
    board: str | Path | Board | None = None,
    *,
    delegates: Delegates | None = None,
    require_delegate: bool = False,
    optimize: str | None = None,
    max_ram: int | None = None,
    max_flash: int | None = None,
    stack: int | None = None,
    pins: Mapping[str, str] | None = None,
    input_rows: bool = False,
) -> Analysis:
    """What each layer of a program costs on a board, before anything is built.

    board and all options: as `generate` takes them; the board is DEFAULT_BOARD where none is named. Of a project they
    are its own, each unless another is given, and the linker's figures are there, too, where the project has been built
    and nothing else is asked for. Raises UsageError for what is neither a Program nor a Project, UnsupportedOp when an
    operator has no kernel for the board."""
    project = model if isinstance(model, Project) else None
    hint = "program = tinyet.compile(...), or tinyet.open(path)"
    program = instance_given(
        model if project is None else project.program, Program, "analyze takes a Program", hint
    )
    own = Limits() if project is None else project.limits
    asked = (board, delegates, optimize, max_ram, max_flash, stack, pins, require_delegate, input_rows)
    built = project is not None and not any(asked) and project.application is not None
    given = limits_given(max_ram, max_flash, stack, bare=own.bare)
    limits = Limits(
        given.max_ram or own.max_ram, given.max_flash or own.max_flash, given.stack or own.stack, own.bare
    )
    if project is not None:
        if delegates is None:
            delegates, require_delegate = project.delegates, require_delegate or project.require_delegate
        optimize, pins = optimize or project.optimize, {**project.pins, **(pins or {})}
        input_rows = input_rows or project.input_rows
        board = project.board if board is None else board
    target = load_board(DEFAULT_BOARD if board is None else board)
    chosen = delegates_or_default(delegates, require=require_delegate)
    objective = objective_of(target, optimize or "balanced", limits, pins=pins, input_rows=input_rows)

    def of(aim: Objective) -> Deployment:
        return fitted(program.graph, target, aim, limits, chosen, require=require_delegate, size=program.size)

    deployment = of(objective)
    others = {aim: of(replace(objective, optimize=aim)) for aim in OPTIMIZE if aim != objective.optimize}
    size = measure(project.elf(project.board.name)) if built and project is not None else None
    used = project.stack if built and project is not None else None
    found = analyze_deployment(program, deployment, target, limits, size, used)
    return replace(found, plans=plans_of(deployment, others.values()))


def plans_of(deployment: Deployment, others: Iterable[Deployment] = ()) -> tuple[PlanAnalysis, ...]:
    """The front of the plans that were made for a deployment, and for others of the same program with other aims: at
    even steps of time, those that were taken among them; the smallest in RAM first."""
    made = [deployment, *others]
    best = list(dict.fromkeys(plan for one in made for plan in one.decision.plans))
    best = [p for p in best if not any(other.dominates(p) and not p.dominates(other) for other in best)]
    best.sort(key=lambda plan: (plan.time, plan.ram, plan.flash))
    taken = {one.decision.objective.optimize: one.decision.figures for one in made}
    shown = {i for i, plan in enumerate(best) if plan in taken.values()}
    logs = [math.log(max(plan.time, 1)) for plan in best]
    while len(shown) < min(MOST_PLANS, len(best)):
        left = [i for i in range(len(best)) if i not in shown]
        shown.add(max(left, key=lambda i: (min((abs(logs[i] - logs[j]) for j in shown), default=0), -i)))
    return tuple(
        PlanAnalysis(
            plan.instructions,
            cycles_said(plan, deployment.target),
            plan.flash,
            plan.ram,
            plan == deployment.decision.figures,
            tuple(aim for aim in OPTIMIZE if taken.get(aim) == plan),
        )
        for plan in sorted((best[i] for i in shown), key=lambda plan: (plan.ram, plan.flash))
    )


def kernel_front_of(decision: Decision, target: Target) -> tuple[KernelFrontPoint, ...]:
    """Points at even steps of time, the ends and the chosen one among them."""
    points = decision.kernel_front.points
    shown = {0, len(points) - 1, points.index(decision.kernels)}
    if len(points) > MOST_POINTS:
        most, least = (math.log(max(points[i].figures.time, 1)) for i in (0, -1))
        steps = [most + (least - most) * step / (MOST_POINTS - 2) for step in range(1, MOST_POINTS - 2)]
        logs = [math.log(max(p.figures.time, 1)) for p in points]
        shown |= {min(range(len(points)), key=lambda i: (abs(logs[i] - step), i)) for step in steps}
    else:
        shown |= set(range(len(points)))
    return tuple(
        KernelFrontPoint(
            points[i].figures.instructions,
            cycles_said(points[i].figures, target),
            points[i].figures.flash,
            points[i] == decision.kernels,
        )
        for i in sorted(shown)
    )


def cycles_said(figures: Figures, target: Target) -> int | None:
    """Estimated cycles of a plan; None on a core without a model of them."""
    return figures.time if counts_cycles(target) else None


def candidate_analyses(decision: Decision, node: Node, target: Target) -> tuple[CandidateAnalysis, ...]:
    return tuple(
        CandidateAnalysis(
            kernel=candidate.choice.kernel.symbol,
            delegate=candidate.choice.delegate.name,
            instructions=None if candidate.cost is None else candidate.cost.instructions,
            cycles=None if candidate.cost is None else candidate.cost.cycles,
            constant_bytes=constant_bytes(candidate.call, target),
            code_bytes=None if candidate.cost is None else candidate.cost.code,
            shared_bytes=None if candidate.cost is None else sum(candidate.cost.shared.values()),
            scratch_bytes=candidate.call.scratch_bytes,
        )
        for candidate in decision.candidates[node]
    )


def linked_sizes(size: Size) -> dict[str, int]:
    """Bytes of flash by the name in C; of functions of one name in several files the sum."""
    found: dict[str, int] = {}
    for symbol in size.symbols:
        if symbol.section.in_flash:
            name = plain_name(symbol.name)
            found[name] = found.get(name, 0) + symbol.bytes
    return found


def kernels_of(
    deployment: Deployment, functions: Sequence[Function], layers: Sequence[LayerAnalysis]
) -> tuple[KernelAnalysis, ...]:
    """The layers by their kernels."""
    users: dict[tuple[str, str], list[Step]] = {}
    for step in deployment.steps:
        users.setdefault((step.choice.kernel.symbol, step.choice.delegate.name), []).append(step)
    found = []
    for (kernel, delegate), steps in users.items():
        code = [f.bytes for f in functions if f.steps[0] in steps] + [
            call_bytes(deployment, s) for s in steps
        ]
        own = [layers[s.index] for s in steps]
        found.append(
            KernelAnalysis(
                kernel=kernel,
                delegate=delegate,
                layers=tuple(s.index for s in steps),
                instructions=_sum([layer.instructions for layer in own]),
                cycles=_sum([layer.cycles for layer in own]),
                code_bytes=_sum(code),
                constant_bytes=sum(layer.constant_bytes for layer in own),
            )
        )
    return tuple(found)


def _sum(numbers: Sequence[int | None]) -> int | None:
    """None where one is not known."""
    known = [n for n in numbers if n is not None]
    return sum(known) if len(known) == len(numbers) else None


def analyze_deployment(
    program: Program,
    deployment: Deployment,
    board: Board,
    limits: Limits = NO_LIMITS,
    size: Size | None = None,
    stack: StackUse | None = None,
) -> Analysis:
    """size, stack: of the application that was built of it."""
    plan = deployment.plan
    room = room_of(deployment, board, bare=limits.bare, stack=limits.stack)
    step, peak = peak_tensors(deployment)
    decision = deployment.decision
    costs = {node: candidate.cost for node, candidate in decision.chosen.items()}
    symbols = symbols_of(deployment, program.name)
    functions = functions_of(deployment, symbols.functions)
    linked = None if size is None else linked_sizes(size)
    made = {f.steps[0]: f for f in functions if f.made}
    layers = tuple(
        LayerAnalysis(
            index=s.index,
            name=s.name,
            value=s.node.outputs[0].name,
            op=s.node.op,
            kernel=s.choice.kernel.symbol,
            delegate=s.choice.delegate.name,
            dtype=s.choice.kernel.dtypes,
            shape=s.node.outputs[0].shape,
            form=deployment.plan.form(s.node.outputs[0]),
            over=tuple(t.name for t in deployment.plan.over(s.node)),
            macs=s.macs,
            constant_bytes=sum(a.bytes for a in deployment.arrays_of(s)),
            code_bytes=_sum([call_bytes(deployment, s), *([made[s].bytes] if s in made else [])]),
            linked_bytes=None
            if linked is None
            else sum(
                linked.get(name, 0)
                for name in (*symbols.constants.get(s, ()), *([made[s].name] if s in made else []))
            ),
            output_bytes=sum(_there(plan, t) for t in s.node.outputs),
            scratch_bytes=s.call.scratch_bytes,
            refusals=tuple(str(r) for r in s.choice.refusals),
            line=s.line,
            source=s.source,
            instructions=None if (cost := costs[s.node]) is None else cost.instructions,
            cycles=None if cost is None else cost.cycles,
            candidates=candidate_analyses(decision, s.node, deployment.target),
            runs=s.runs,
        )
        for s in deployment.steps
    )
    kernels = kernels_of(deployment, functions, layers)
    cycles = cycles_said(decision.figures, deployment.target)
    return Analysis(
        name=program.name,
        board=board.name,
        cpu=board.cpu,
        inputs=tuple(_io(t) for t in program.inputs),
        outputs=tuple(_io(t) for t in program.outputs),
        macs=deployment.macs,
        constant_bytes=deployment.constant_bytes,
        code_bytes=sum(f.bytes or 0 for f in functions)
        + sum(call_bytes(deployment, s) or 0 for s in deployment.steps),
        linked_bytes=None if size is None else size.flash - size.sample,
        flash=room.flash,
        planned_stack=room.stack,
        arena_bytes=plan.arena_bytes,
        arena_lower_bound=plan.lower_bound,
        arena_optimal=plan.arena_bytes == plan.lower_bound,
        arena_searched=plan.optimal,
        arena_least=_least(deployment),
        peak_layer=step,
        peak=tuple(peak),
        largest_constants=tuple(largest_constants(deployment)),
        layers=layers,
        functions=tuple(
            FunctionAnalysis(
                name=f.name,
                wrapper=f.made,
                bytes=f.bytes,
                linked_bytes=None if linked is None else linked.get(f.name),
                kernels=f.kernels,
                layers=tuple(s.index for s in f.steps),
            )
            for f in functions
        ),
        kernels=kernels,
        notes=tuple(str(n) for n in program.notes),
        optimize=decision.objective.optimize,
        time="instructions" if cycles is None else "cycles",
        cycles=cycles,
        milliseconds=None if cycles is None else 1e3 * cycles / board.clock_hz,
        kernel_front=kernel_front_of(decision, deployment.target),
        kernel_front_gap=decision.kernel_front.gap,
        plans=plans_of(deployment),
        ram_bytes=None if size is None else size.ram,
        stack=stack,
        arena=arena_of(deployment),
        fusion_groups=fusion_groups_of(deployment),
        whole_arena_bytes=None if decision.untiled is None else decision.untiled.arena_bytes,
    )


def _least(deployment: Deployment) -> int:
    """Bytes that every plan takes, whichever kernels there are in whichever order."""
    graph, plan = deployment.graph, deployment.plan
    given = sum(t.type.bytes for t in graph.inputs if plan.input_line_buffer(t) is None)
    return max([given, *(t.type.bytes for t in graph.outputs)])


def _there(plan: MemoryPlan, tensor: Tensor) -> int:
    """Bytes of the arena that a layer's output takes: of its window, where it passes through one."""
    window = plan.line_buffer(tensor)
    if window is not None:
        return window.bytes
    return plan.size(tensor)


def _io(tensor: Tensor) -> str:
    return f"{tensor.name}: {tensor.type}"
