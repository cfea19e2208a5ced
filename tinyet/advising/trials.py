# SPDX-License-Identifier: Apache-2.0
"""Changes that may make a program smaller or faster on a board, each tried by planning it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tinyet.accounts.fronts import cycles_said
from tinyet.advising.subject import Subject
from tinyet.budget.fit import objective_of
from tinyet.budget.room import room_of
from tinyet.compiler import compiled
from tinyet.delegates import delegates_named
from tinyet.deployment import Deployment
from tinyet.errors import TinyetError
from tinyet.ir import Graph
from tinyet.messages.stages import part
from tinyet.ops.softmax import Softmax
from tinyet.passes.boundary import integer_boundary
from tinyet.passes.dead_code import eliminate_dead_code

LEAST_GAIN = 0.01
"""Of arena, flash or time: a change that saves less in each is no help."""
MOST_SLOWER = 1.10
"""Of the time, for a smaller arena by the limit of RAM; what takes longer is for --optimize size to find."""

_Trial = tuple[str, str, Callable[[], Deployment]]
"""What is changed, how it is asked for, and the plan of it."""


@dataclass(frozen=True)
class Advice:
    """A change that was tried. do: how to ask for it. arena_bytes, flash_bytes, instructions, cycles: by how much more
    (negative: less) the plan then takes, flash as it is stated before a build; cycles None on a core without a model of
    them. helps: it saves at least LEAST_GAIN of arena, flash or time. refused: why it cannot be, all figures are 0
    then."""

    what: str
    do: str
    arena_bytes: int = 0
    flash_bytes: int = 0
    instructions: int = 0
    cycles: int | None = None
    helps: bool = False
    refused: str | None = None

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return dict(vars(self))


def advise(subject: Subject, base: Deployment, others: Sequence[Deployment]) -> tuple[Advice, ...]:
    """What was tried, those first that help, in the order of trying. base: the subject's plan; others: its plans for
    other aims, which are there already."""
    found = []
    trials = list(_trials(subject, base, others))
    for number, (what, do, plan) in enumerate(trials, 1):
        with part(f"trying {what}", number, len(trials)):
            try:
                found.append(_advice(what, do, subject, base, plan()))
            except TinyetError as error:
                found.append(Advice(what, do, refused=error.what))
    return tuple(sorted(found, key=lambda one: not one.helps))


def _trials(subject: Subject, base: Deployment, others: Sequence[Deployment]) -> Iterator[_Trial]:
    request = subject.request
    board, objective, graph = request.board, request.objective, request.graph
    for other in others:
        aim = other.decision.objective.optimize
        yield f"kernels and rows for {aim}", f"--optimize {aim}", lambda other=other: other  # type: ignore[misc]
    if (limit := _smaller(subject, base)) is not None:
        limits = replace(request.limits, max_ram=limit)
        wanted = objective_of(
            board,
            objective.optimize,
            limits,
            pins=objective.pins,
            input_rows=objective.input_rows,
            buffers=objective.buffers,
        )
        what = "some layers by rows, or with less scratch memory"
        smaller = replace(request, objective=wanted, limits=limits)
        yield what, f"--max-ram {limit}", lambda: subject.deployed(smaller)
    if not objective.input_rows and not objective.callers:
        rows = replace(request, objective=replace(objective, input_rows=True))
        yield "the input given row by row", "--input-rows", lambda: subject.deployed(rows)
    (cmsis,) = delegates_named(["cmsis_nn"])
    if cmsis not in request.delegates and cmsis.supports(board.target) is None:
        both = replace(request, delegates=(cmsis, *request.delegates))
        names = ",".join(one.name for one in both.delegates)
        yield "Arm's CMSIS-NN allowed", f"--delegates {names}", lambda: subject.deployed(both)
    bare = eliminate_dead_code(integer_boundary(graph))
    if len(bare.nodes) < len(graph.nodes):
        do = "leave --float-io away; the caller quantizes, or has integers anyway"
        yield "integers as inputs and outputs", do, lambda: subject.deployed(replace(request, graph=bare))
    if (without := _without_softmax(graph)) is not None:
        do = "return what goes into it: the largest of these names the same class, but where probabilities were equal"
        ends = replace(request, graph=without)
        yield "the softmax at the end left out", do, lambda: subject.deployed(ends)
    if not any(t.type.quant is not None for node in graph.nodes for t in node.outputs):
        do = "give calibration data (planned with noise in its place: sizes and times hold)"
        yield (
            "int8 in the place of float32",
            do,
            lambda: subject.deployed(replace(request, graph=_in_int8(subject))),
        )


def _advice(what: str, do: str, subject: Subject, base: Deployment, plan: Deployment) -> Advice:
    before, after = base.decision.figures, plan.decision.figures
    board, bare = subject.request.board, subject.request.limits.bare
    flash = [room_of(one, board, bare=bare).flash.stated for one in (base, plan)]
    arena = [one.plan.arena_bytes for one in (base, plan)]
    pairs = ((before.time, after.time), (flash[0], flash[1]), (arena[0], arena[1]))
    known = cycles_said(after, plan.target) is not None
    return Advice(
        what,
        do,
        arena_bytes=arena[1] - arena[0],
        flash_bytes=flash[1] - flash[0],
        instructions=after.instructions - before.instructions,
        cycles=after.time - before.time if known else None,
        helps=any(then <= (1 - LEAST_GAIN) * now for now, then in pairs if now),
    )


def _smaller(subject: Subject, base: Deployment) -> int | None:
    """The limit of RAM under which the smallest plan fits that takes at most MOST_SLOWER of the time; None where no
    plan is smaller."""
    own = base.decision.figures
    plans = [p for p in base.decision.plans if p.ram < own.ram and p.time <= MOST_SLOWER * own.time]
    if not plans:
        return None
    limits = subject.request.limits
    room = room_of(base, subject.request.board, bare=limits.bare, stack=limits.stack)
    return min(plan.ram for plan in plans) + room.static + room.stack.total


def _without_softmax(graph: Graph) -> Graph | None:
    """The graph without a softmax whose result is nothing but an output."""
    for i, tensor in enumerate(graph.user_outputs):
        node = graph.producer(tensor)
        if node is not None and isinstance(node.attrs, Softmax) and not graph.consumers(tensor):
            outputs = list(graph.outputs)
            outputs[i] = node.input(0)
            if not node.input(0).is_constant and graph.producer(node.input(0)) is not None:
                return graph.replace(outputs=outputs, nodes=[n for n in graph.nodes if n is not node])
    return None


def _in_int8(subject: Subject) -> Graph:
    """A float program's graph, quantized with noise. Raises ToolchainError without torch, ModelError for what has no
    form in torch."""
    try:
        from tinyet.quantization.noise import noise_like
        from tinyet.to_module.convert import to_module
    except ImportError as error:
        from tinyet.compiler import without_torch

        raise without_torch(error) from error
    module, examples = to_module(subject.program.graph)
    program = compiled(module, examples, calibration=noise_like(examples), name=subject.program.name)
    return program.graph
