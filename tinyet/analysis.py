# SPDX-License-Identifier: Apache-2.0
"""The cost of a program on a board, before anything is built: every layer, its kernel, its bytes, its source line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tinyet.accounts.buffers import BufferAnalysis, buffers_of, copies_noted
from tinyet.accounts.code import FunctionAnalysis, KernelAnalysis, function_analyses, kernels_of
from tinyet.accounts.fronts import (
    KernelFrontPoint,
    PlanAnalysis,
    cycles_said,
    kernel_front_of,
    plans_of,
)
from tinyet.accounts.layers import LayerAnalysis, layers_of, linked_sizes
from tinyet.accounts.memories import MemoryAnalysis, memories_of
from tinyet.advising.subject import Subject
from tinyet.advising.trials import Advice, advise
from tinyet.boards import DEFAULT_BOARD, Board, load_board
from tinyet.budget.arena import ArenaAnalysis, arena_of
from tinyet.budget.code import call_bytes, functions_of
from tinyet.budget.fit import (
    NO_LIMITS,
    Contributor,
    FitRequest,
    Limits,
    largest_constants,
    limits_given,
    objective_of,
    peak_tensors,
)
from tinyet.budget.fusion import FusionGroupAnalysis, fusion_groups_of
from tinyet.budget.placing import Placed, placed, places_given
from tinyet.budget.room import Flash, PlannedStack, room_of
from tinyet.build.size import Size, measure
from tinyet.delegates import Delegates, delegates_or_default
from tinyet.deployment import Deployment
from tinyet.emit.symbols import symbols_of
from tinyet.errors.arguments import instance_given
from tinyet.ir import Tensor
from tinyet.messages.stages import part
from tinyet.pages import notebook
from tinyet.pages.pictures import PICTURES
from tinyet.planning.objective import OPTIMIZE
from tinyet.program import Program
from tinyet.project import Project
from tinyet.stack.use import StackUse


@dataclass(frozen=True)
class Analysis:
    """A program on a board (or on the generic portable target).

    arena_lower_bound: the most bytes that are alive at once with these kernels in this order; arena_optimal: the arena
        is no larger. arena_searched: no other addresses make it smaller, for that is so or all were tried. arena_least:
        bytes of any arena for this program, which its inputs and states, or an output, take alone.
    fusion_groups: layers that are computed by rows; whole_arena_bytes: the arena if none were, None where none is.
    peak: what is alive at the worst step. notes: layers that stayed float, and why;
        copies for buffers of the caller's. buffers: these; none where inputs and outputs lie in the arena.
    code_bytes: of all functions and calls, as far as they are stated; linked_bytes: of the built application's
        flash, but for its demonstration sample, None where it is not built. functions, kernels: in the order of the
        layers.
    flash: of the whole firmware as it is known before a build; planned_stack: what is counted of the stack.
    time: what plans are compared by, "cycles", as estimated for the board, or "instructions" on a core without a
        model of its cycles; cycles: of an inference, as far as they are stated, None without a model; milliseconds: at
        the board's clock.
    ram_bytes: static data of the built application, and stack: what it takes of it at most; None where it is not built.
    memories: of the board, and what they hold as far as that is known before a build. advice: what was tried, those
        first that help; None where nobody asked.
    kernel_front: of the choice of kernels, from the smallest to the fastest, at most MOST_POINTS of them;
        kernel_front_gap: bytes by which it may miss better ones. plans: what was made of such choices before one was
        taken, the smallest in RAM first.
    memories: of the board; placed: in which of them the arena, the state and each layer's weights lie.
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
    buffers: tuple[BufferAnalysis, ...] = ()
    memories: tuple[MemoryAnalysis, ...] = ()
    placed: tuple[Placed, ...] = ()
    advice: tuple[Advice, ...] | None = None

    def __repr__(self) -> str:
        what = f"{len(self.layers)} layers, {self.macs:,} MACs"
        bytes_ = f"{self.constant_bytes:,} bytes of constants, arena {self.arena_bytes:,} bytes"
        return f"<analysis of {self.name} on {self.board}: {what}, {bytes_}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the sums, and the pictures of `--svg`."""
        found: list[tuple[str, notebook.Cell]] = [
            ("MACs", self.macs),
            ("estimated cycles", self.cycles),
            ("estimated ms", self.milliseconds),
            ("arena, bytes", self.arena_bytes),
            ("weights and tables, bytes", self.constant_bytes),
            ("flash at most, bytes", self.flash.at_most),
        ]
        pictures = "".join(draw(self.to_json()) for draw in PICTURES.values())
        return notebook.facts(f"{self.name} on {self.board}", found, pictures)

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
                    "reads": list(layer.reads),
                    "refusals": list(layer.refusals),
                    "candidates": [vars(candidate) for candidate in layer.candidates],
                    "trees": None if layer.trees is None else vars(layer.trees),
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
            "buffers": [vars(buffer) for buffer in self.buffers],
            "memories": [
                {**vars(memory), "taken": [vars(part) for part in memory.taken]} for memory in self.memories
            ],
            "placed": [{**vars(each), "memory": each.memory.name} for each in self.placed],
            "advice": None if self.advice is None else [one.to_json() for one in self.advice],
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
    place: Mapping[str, str] | None = None,
    input_rows: bool = False,
    buffers: str | None = None,
    advice: bool = False,
) -> Analysis:
    """What each layer of a program costs on a board, before anything is built.

    board and all options: as `generate` takes them; the board is DEFAULT_BOARD where none is named. Of a project they
    are its own, each unless another is given, and the linker's figures are there, too, where the project has been built
    and nothing else is asked for. advice: try what could make it smaller or faster, too, a plan each, which takes
    seconds to minutes. Raises UsageError for what is neither a Program nor a Project, UnsupportedOp when an operator
    has no kernel for the board."""
    subject = _subject_of(
        model,
        board,
        delegates=delegates,
        require_delegate=require_delegate,
        optimize=optimize,
        max_ram=max_ram,
        max_flash=max_flash,
        stack=stack,
        pins=pins,
        place=place,
        input_rows=input_rows,
        buffers=buffers,
    )
    request, chosen = subject.request, subject.request.objective
    aims = (chosen.optimize, *(aim for aim in OPTIMIZE if aim != chosen.optimize))
    made: list[Deployment] = []
    for number, aim in enumerate(aims, 1):
        with part(f"for {aim}", number, len(aims)):
            # As the subject's own plan is asked for, a project's is not made anew.
            other = replace(request, objective=replace(chosen, optimize=aim)) if made else None
            made.append(subject.deployed(other))
    deployment, *others = made
    found = replace(_analysis_of(subject, deployment), plans=plans_of(deployment, others))
    return replace(found, advice=advise(subject, deployment, others)) if advice else found


def analyze_chosen(
    model: Program | Project, board: str | Path | Board | None = None, *, optimize: str | None = None
) -> Analysis:
    """What `analyze` says of the plan that is taken, in a third of the time: of `plans` those only that were made on
    the way to it. Parameters and errors: as of `analyze`."""
    subject = _subject_of(model, board, optimize=optimize)
    return _analysis_of(subject, subject.deployed())


def _analysis_of(subject: Subject, deployment: Deployment) -> Analysis:
    own, board = subject.own, subject.request.board
    size = used = None
    if own is not None and own.application is not None:
        size, used = measure(own.elf(board.name)), own.stack
    return analyze_deployment(subject.program, deployment, board, subject.request.limits, size, used)


def _subject_of(
    model: Program | Project,
    board: str | Path | Board | None,
    *,
    delegates: Delegates | None = None,
    require_delegate: bool = False,
    optimize: str | None = None,
    max_ram: int | None = None,
    max_flash: int | None = None,
    stack: int | None = None,
    pins: Mapping[str, str] | None = None,
    place: Mapping[str, str] | None = None,
    input_rows: bool = False,
    buffers: str | None = None,
) -> Subject:
    project = model if isinstance(model, Project) else None
    hint = "program = tinyet.compile(...), or tinyet.open(path)"
    program = instance_given(
        model if project is None else project.program, Program, "analyze takes a Program", hint
    )
    own = Limits() if project is None else project.limits
    asked = (board, delegates, optimize, max_ram, max_flash, stack, pins, place, require_delegate, input_rows)
    as_it_is = project is not None and not any((*asked, buffers))
    given = limits_given(max_ram, max_flash, stack, bare=own.bare)
    limits = Limits(
        given.max_ram or own.max_ram, given.max_flash or own.max_flash, given.stack or own.stack, own.bare
    )
    if project is not None:
        if delegates is None:
            delegates, require_delegate = project.delegates, require_delegate or project.require_delegate
        optimize, pins = optimize or project.optimize, {**project.pins, **(pins or {})}
        place = {**project.place, **(place or {})}
        input_rows, buffers = input_rows or project.input_rows, buffers or project.buffers
        board = project.board if board is None else board
    target = load_board(DEFAULT_BOARD if board is None else board)
    chosen = delegates_or_default(delegates, require=require_delegate)
    objective = objective_of(
        target,
        optimize or "balanced",
        limits,
        pins=pins,
        input_rows=input_rows,
        buffers=buffers or "arena",
        place=places_given(place),
    )
    request = FitRequest(
        program.graph, target, objective, limits, tuple(chosen), require_delegate, program.size
    )
    return Subject(program, request, project if as_it_is else None)


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
    symbols = symbols_of(deployment, program.name)
    functions = functions_of(deployment, symbols.functions)
    linked = None if size is None else linked_sizes(size)
    layers = layers_of(deployment, symbols, functions, linked)
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
        functions=function_analyses(functions, linked),
        kernels=kernels,
        notes=(*(str(n) for n in program.notes), *copies_noted(deployment)),
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
        buffers=buffers_of(deployment),
        memories=memories_of(deployment, board, room),
        placed=placed(deployment, board),
        fusion_groups=fusion_groups_of(deployment),
        whole_arena_bytes=None if decision.untiled is None else decision.untiled.arena_bytes,
    )


def _least(deployment: Deployment) -> int:
    """Bytes that every plan takes, whichever kernels there are in whichever order."""
    graph, plan = deployment.graph, deployment.plan
    inside = [t for t in graph.inputs if plan.input_line_buffer(t) is None and not plan.is_callers(t)]
    given = sum(t.type.bytes for t in inside)
    return max([given, *(t.type.bytes for t in graph.outputs if not plan.is_callers(t))])


def _io(tensor: Tensor) -> str:
    return f"{tensor.name}: {tensor.type}"
