# SPDX-License-Identifier: Apache-2.0
"""How values lie between layers where not row-major: agreed on between who writes and who reads, when the whole is
cheaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tinyet.boards.cpus import Target
from tinyet.delegates.decide import Variant
from tinyet.errors import InternalError
from tinyet.ir import Graph, Node, Tensor
from tinyet.memory import MemoryPlan, plan_memory
from tinyet.memory.streams import Stream
from tinyet.ops import op_of
from tinyet.opset import Arrangement, Sweep, Sweeps
from tinyet.stages import stage

Variants = Mapping[Node, Variant]

_MOST_PLANS = 24
"""Plans of the memory that are made to find out which tensors there is room for as pairs of pixels."""


def planned(
    graph: Graph,
    chosen: Variants,
    pairs: frozenset[Tensor] = frozenset(),
    streams: Sequence[Stream] = (),
) -> MemoryPlan:
    """The memory of a graph computed by these variants, with tensors as pairs of pixels, and calls by rows."""
    stage("planning memory")
    scratch = {node: v.call.scratch_bytes for node, v in chosen.items() if v.call.scratch_bytes}

    def may_pitch(node: Node, tensor: Tensor, pitch: int) -> bool:
        return chosen[node].choice.kernel.may_pitch(node, tensor, pitch)

    def sweep(node: Node, index: int) -> Sweep | None:
        said = chosen[node].choice.kernel.sweep
        return None if said is None else _said(said, node, index)

    def replaces(node: Node, index: int) -> bool:
        said = chosen[node].choice.kernel.replaces
        return said is not None and said(node, index)

    return plan_memory(
        graph,
        op_of,
        scratch,
        may_pitch=may_pitch,
        pairs=pairs,
        sweep=sweep,
        replaces=replaces,
        streams=streams,
    )


@lru_cache(maxsize=4096)
def _said(sweep: Sweeps, node: Node, index: int) -> Sweep | None:
    """What a kernel says of a node: memory is planned many times for one choice."""
    return sweep(node, index)


@dataclass(frozen=True)
class _Agreement:
    """A tensor as pairs of pixels. variants: of who writes it and of who reads it. saved: instructions."""

    tensor: Tensor
    variants: Variants
    saved: int


def arranged(
    graph: Graph, chosen: Variants, plan: MemoryPlan, most: int | None, target: Target
) -> tuple[dict[Node, Variant], MemoryPlan]:
    """Let tensors lie as pairs of pixels where that saves instructions and the arena is not larger than `most` bytes.

    Returns the variants, those of layers whose tensors lie otherwise with calls for that, and the memory.
    """
    agreements = sorted(_agreements(graph, chosen, plan, target), key=lambda a: -a.saved)
    if agreements:
        everything = _with(graph, chosen, agreements, plan.streams)
        if most is None or everything[1].arena_bytes <= most:
            chosen, plan = everything
        else:
            taken: list[_Agreement] = []
            for agreement in agreements[:_MOST_PLANS]:
                tried = _with(graph, chosen, [*taken, agreement], plan.streams)
                if tried[1].arena_bytes <= most:
                    taken.append(agreement)
            if taken:
                chosen, plan = _with(graph, chosen, taken, plan.streams)
    return _lowered(chosen, plan, target), plan


def _with(
    graph: Graph, chosen: Variants, agreements: list[_Agreement], streams: Sequence[Stream]
) -> tuple[Variants, MemoryPlan]:
    found = dict(chosen)
    for agreement in agreements:
        found |= agreement.variants
    return found, planned(graph, found, frozenset(a.tensor for a in agreements), streams)


def _agreements(graph: Graph, chosen: Variants, plan: MemoryPlan, target: Target) -> list[_Agreement]:
    """All that would save instructions."""
    found = []
    for writer in plan.calls:
        tensor = writer.outputs[0]
        readers = graph.consumers(tensor)
        if len(readers) != 1 or readers[0] not in chosen or tensor in graph.outputs or plan.pitch(tensor):
            continue
        reader = readers[0]
        if not all(chosen[node].choice.kernel.may_pair(node, tensor) for node in (writer, reader)):
            continue
        if any(plan.stream(node) is not None for node in (writer, reader)):
            continue  # what streams read and write are rows
        variants = {
            writer: _variant(writer, chosen[writer], Arrangement(writes_pairs=True), target),
            reader: _variant(reader, chosen[reader], Arrangement(reads_pairs=True), target),
        }
        saved = sum(_instructions(chosen[node]) - _instructions(v) for node, v in variants.items())
        if saved > 0:
            found.append(_Agreement(tensor, variants, saved))
    return found


def _instructions(variant: Variant) -> int:
    return 0 if variant.cost is None else variant.cost.instructions


def _variant(node: Node, variant: Variant, arrangement: Arrangement, target: Target) -> Variant:
    """The variant's kernel for the arrangement."""
    kernel = variant.choice.kernel
    if kernel.arranged is None:
        raise InternalError(f"{kernel.symbol} takes only what is row-major", node.where)
    call = kernel.arranged.lower(node, target, arrangement)
    return replace(variant, call=call, cost=kernel.cost(node, target, call, arrangement))


def _lowered(chosen: Variants, plan: MemoryPlan, target: Target) -> dict[Node, Variant]:
    """The variants for the arrangements of a plan."""
    found = dict(chosen)
    for node in plan.calls:
        if plan.stream(node) is not None:
            continue
        first, output = node.inputs[0] if node.inputs else None, node.outputs[0]
        in_arena = first is not None and not first.is_constant
        arrangement = Arrangement(
            plan.pitch(first) if first is not None and in_arena else 0,
            plan.pitch(output),
            first is not None and in_arena and plan.pairs(first),
            plan.pairs(output),
        )
        # Those of pairs alone have been lowered, to learn what they cost.
        if arrangement.input or arrangement.output:
            found[node] = _variant(node, chosen[node], arrangement, target)
            if found[node].call.scratch_bytes != chosen[node].call.scratch_bytes:
                raise InternalError(f"{found[node].call.kernel} needs other scratch memory", node.where)
    return found
