# SPDX-License-Identifier: Apache-2.0
"""One arena of several models: the states of each, one after another, and behind them what the schedule lets share.

Every model has a plan of its own whose states lie at its start. Here each plan's two parts get their places; no
address within a part changes. Then all of it is proved again, by the check of each plan in the whole arena, with the
other models' states as bytes that its run must leave as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tinyet.deployment import Deployment, with_states_apart
from tinyet.errors import InternalError, UsageError, bullet_list
from tinyet.ir import Tensor
from tinyet.memory import MemoryPlan
from tinyet.memory.accesses import Span
from tinyet.memory.apart import ARENA_ALIGN
from tinyet.memory.caller_buffers import first_offset
from tinyet.memory.check import check_plan
from tinyet.memory.offsets import align_up
from tinyet.memory.plan import MARK_BYTES
from tinyet.ops import op_of
from tinyet.planning.layouts import AccessOrderCache
from tinyet.together.schedule import WHERE, Apart, Chain, Model, Never, Part, chains, names_of, pairs_in_turn


@dataclass(frozen=True)
class Piece:
    """Bytes of the shared arena that a model has: its states' from `kept`, for itself, and the rest from `start`."""

    kept: int
    kept_bytes: int
    start: int
    bytes: int


@dataclass(frozen=True, eq=False)
class Shared:
    """Deployments in one arena, by the models' names.

    apart_bytes: of the arenas that they would have by themselves, one beside another.
    """

    schedule: Part
    deployments: Mapping[str, Deployment]
    pieces: Mapping[str, Piece]
    arena_bytes: int
    apart_bytes: int


def share(schedule: Part, deployments: Mapping[str, Deployment]) -> Shared:
    """Place the models' plans in one arena, and prove that each is right there.

    deployments: as each would be by itself. Raises UsageError where a model cannot take another's output in place.
    """
    by_name = {name: with_states_apart(each) for name, each in deployments.items()}
    problems = [text for chain in chains(schedule) for text in _cannot_chain(chain, by_name)]
    if problems:
        raise UsageError(
            f"these models cannot hand values on in place:\n{bullet_list(problems)}",
            WHERE,
            "a | b in place of a > b: they share memory, and you copy the values",
        )
    kept, kept_at = 0, dict[str, int]()
    for name, each in by_name.items():
        kept_at[name] = kept
        kept += each.plan.kept_bytes
    size, starts = _placed(schedule, by_name)
    total = kept + size
    pieces, moved = dict[str, Piece](), dict[str, Deployment]()
    for name, each in by_name.items():
        plan = each.plan
        start = kept + starts[name]
        pieces[name] = Piece(kept_at[name], plan.kept_bytes, start, plan.arena_bytes - plan.kept_bytes)
        moved[name] = replace(each, plan=_moved(plan, kept_at[name], start, total))
    apart = sum(align_up(each.plan.arena_bytes, ARENA_ALIGN) for each in deployments.values())
    found = Shared(schedule, moved, pieces, total, apart)
    check(found)
    return found


def _placed(part: Part, deployments: Mapping[str, Deployment]) -> tuple[int, dict[str, int]]:
    """Bytes that a part of the schedule takes, without states, and where each model's begin."""
    if isinstance(part, Model):
        plan = deployments[part.name].plan
        return align_up(plan.arena_bytes - plan.kept_bytes, ARENA_ALIGN), {part.name: 0}
    placed = [_placed(each, deployments) for each in part.parts]
    starts: dict[str, int] = {}
    match part:
        case Never():
            for _, inner in placed:
                starts |= inner
            return max(size for size, _ in placed), starts
        case Apart():
            at = 0
            for size, inner in placed:
                starts |= {name: at + start for name, start in inner.items()}
                at += size
            return at, starts
        case Chain():
            begins, offset = [0], 0
            for a, b in zip(part.parts, part.parts[1:], strict=False):
                given, taken = deployments[a.name].plan, deployments[b.name].plan
                offset += given.offset(_output(deployments[a.name])) - given.kept_bytes
                offset -= taken.offset(_input(deployments[b.name])) - taken.kept_bytes
                begins.append(offset)
            low = min(begins)
            ends = [each - low + size for each, (size, _) in zip(begins, placed, strict=True)]
            return max(ends), {m.name: each - low for m, each in zip(part.parts, begins, strict=True)}


def _input(deployment: Deployment) -> Tensor:
    return deployment.graph.user_inputs[0]


def _output(deployment: Deployment) -> Tensor:
    return deployment.graph.user_outputs[0]


def _cannot_chain(chain: Chain, deployments: Mapping[str, Deployment]) -> list[str]:
    """Why models cannot take each other's outputs, a line each."""
    problems = []
    for a, b in zip(chain.parts, chain.parts[1:], strict=False):
        giver, taker = deployments[a.name], deployments[b.name]
        inputs, outputs = taker.graph.user_inputs, giver.graph.user_outputs
        pair = f"{a.name} > {b.name}"
        if giver.plan.buffers_from is not None:
            problems.append(f"{pair}: inputs and outputs are the caller's, who gives both the same buffer")
            continue
        if len(inputs) != 1 or len(outputs) != 1:
            problems.append(
                f"{pair}: {a.name} has {len(outputs)} output(s), {b.name} {len(inputs)} input(s), each must be one"
            )
            continue
        if inputs[0].type != outputs[0].type:
            problems.append(
                f"{pair}: the output {outputs[0].name} is {outputs[0].type}, the input {inputs[0].name} is "
                f"{inputs[0].type}"
            )
            continue
        # Only one that lies within another's block can be anywhere else.
        apart = giver.plan.offset(outputs[0]) - taker.plan.offset(inputs[0])
        if apart % ARENA_ALIGN:
            problems.append(
                f"{pair}: {outputs[0].name} or {inputs[0].name} lies in the midst of another value"
            )
    return problems


def _moved(plan: MemoryPlan, kept: int, rest: int, arena_bytes: int) -> MemoryPlan:
    """The plan with its states from `kept` on, and everything else from `rest` on, in an arena of that size."""

    def at(offset: int) -> int:
        if plan.buffers_from is not None and offset >= plan.buffers_from:
            return offset - plan.buffers_from + first_offset(arena_bytes)
        return offset + kept if offset < plan.kept_bytes else offset - plan.kept_bytes + rest

    return replace(
        plan,
        blocks=tuple(replace(block, offset=at(block.offset)) for block in plan.blocks),
        scratch={node: at(offset) for node, offset in plan.scratch.items()},
        mark=None if plan.mark is None else at(plan.mark),
        arena_bytes=arena_bytes,
        buffers_from=None if plan.buffers_from is None else first_offset(arena_bytes),
    )


# ---------------------------------------------------------------- proof


def check(shared: Shared) -> None:
    """Prove of every model that its run computes what it should in the shared arena and leaves the states of all
    others as they are; that models that may run at the same time have no byte in common; and that what one hands on
    lies where the other takes it.

    Raises InternalError.
    """
    states = {name: _states(name, each) for name, each in shared.deployments.items()}
    for name, each in shared.deployments.items():
        others = [span for other, spans in states.items() if other != name for span in spans]
        _check_plan(each, others)
    in_turn = pairs_in_turn(shared.schedule)
    touched = {name: _touched(each) for name, each in shared.deployments.items()}
    names = list(names_of(shared.schedule))
    for number, a in enumerate(names):
        for b in names[number + 1 :]:
            meet = any(s < other_end and t < end for s, end in touched[a] for t, other_end in touched[b])
            if meet and frozenset((a, b)) not in in_turn:
                raise InternalError(f"{a} and {b} may run at the same time and share bytes", "shared arena")
    for chain in chains(shared.schedule):
        for giver, taker in zip(chain.parts, chain.parts[1:], strict=False):
            given, taken = shared.deployments[giver.name], shared.deployments[taker.name]
            if given.plan.offset(_output(given)) != taken.plan.offset(_input(taken)):
                raise InternalError(f"{taker.name} does not take what {giver.name} gives", "shared arena")


def _states(model: str, deployment: Deployment) -> list[Span]:
    """What a model keeps from run to run. No tensor's name holds a space."""
    plan = deployment.plan
    spans = [
        Span(f"state {t.name} of {model}", plan.offset(t), t.type.bytes)
        for t in (state.value for state in deployment.graph.states)
    ]
    return spans if plan.mark is None else [*spans, Span(f"the mark of {model}", plan.mark, MARK_BYTES)]


def _touched(deployment: Deployment) -> list[tuple[int, int]]:
    """(first byte, behind the last) of all that a model may write: values, rows of values, and scratch memory."""
    plan = deployment.plan
    found = [(block.offset, block.bytes) for block in plan.arena_blocks]
    found += [
        (plan.scratch[step.node], step.call.scratch_bytes)
        for step in deployment.steps
        if step.node in plan.scratch
    ]
    return [(start, start + size) for start, size in found if size]


def _check_plan(deployment: Deployment, kept: list[Span]) -> None:
    orders = AccessOrderCache()
    kernels = {step.node: step.choice.kernel for step in deployment.steps}
    check_plan(
        deployment.graph,
        deployment.plan,
        op_of,
        {s.node: s.call.scratch_bytes for s in deployment.steps if s.call.scratch_bytes},
        align=4,
        scratch_align=8,
        access_order=lambda node, index: orders.access_order(kernels[node], node, index),
        replaces=lambda node, index: orders.replaces(kernels[node], node, index),
        kept=kept,
    )
