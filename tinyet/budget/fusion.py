# SPDX-License-Identifier: Apache-2.0
"""The layers computed by rows, the place of their rows, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinyet.deployment import Deployment
from tinyet.ir import Node
from tinyet.memory.fusion import FusionGroup
from tinyet.opset import Cost
from tinyet.planning.candidates import Chosen
from tinyet.planning.tiling import CYCLES, INSTRUCTIONS, Actions, added_macs, moving


@dataclass(frozen=True)
class LineBufferAnalysis:
    """A value of which at most `rows` of its `of` rows are there at once, in `bytes` bytes of the arena."""

    value: str
    rows: int
    of: int
    bytes: int


@dataclass(frozen=True)
class FusionGroupAnalysis:
    """Layers that are computed row by row, one with another.

    layers: by index. line_buffers: of the values between them. added_macs: multiplications with rows around images,
    which whole layers leave out. moved_bytes: of rows that move to make room. instructions, cycles: stated for all
    tiles and moves; whole_instructions, whole_cycles: for the same layers as a whole. None: not stated by a kernel.
    """

    layers: tuple[int, ...]
    line_buffers: tuple[LineBufferAnalysis, ...]
    added_macs: int
    moved_bytes: int
    instructions: int | None
    whole_instructions: int | None
    cycles: int | None
    whole_cycles: int | None


def fusion_groups_of(deployment: Deployment) -> tuple[FusionGroupAnalysis, ...]:
    """All of a deployment, in the order of its layers."""
    decision = deployment.decision
    index = {step.node: step.index for step in deployment.steps}
    found = []
    for fusion_group in deployment.plan.fusion_groups:
        whole = None if decision.untiled is None else decision.untiled.chosen
        counts, cycles = (
            [None if by is None else _stated(by, fusion_group.nodes, of) for by in (decision.chosen, whole)]
            for of in (instructions_of, cycles_of)
        )
        found.append(
            FusionGroupAnalysis(
                layers=tuple(index[node] for node in fusion_group.nodes),
                line_buffers=_line_buffers(fusion_group),
                added_macs=added_macs(fusion_group),
                moved_bytes=sum(fusion_group.moved),
                instructions=_with(counts[0], fusion_group, INSTRUCTIONS),
                whole_instructions=counts[1],
                cycles=_with(cycles[0], fusion_group, CYCLES),
                whole_cycles=cycles[1],
            )
        )
    return tuple(found)


def _line_buffers(fusion_group: FusionGroup) -> tuple[LineBufferAnalysis, ...]:
    return tuple(
        LineBufferAnalysis(w.tensor.name, w.slots, w.height, w.bytes) for w in fusion_group.line_buffers
    )


def instructions_of(cost: Cost) -> int | None:
    """Of a call, which every cost states."""
    return cost.instructions


def cycles_of(cost: Cost) -> int | None:
    """Of a call; None on a core without a model of them."""
    return cost.cycles


def _stated(chosen: Chosen, nodes: Sequence[Node], of: Callable[[Cost], int | None]) -> int | None:
    """The sum of some layers' figures; None where one of their kernels does not state it."""
    costs = [chosen[node].cost for node in nodes]
    known = [n for cost in costs if cost is not None and (n := of(cost)) is not None]
    return sum(known) if len(known) == len(costs) else None


def _with(tiles: int | None, fusion_group: FusionGroup, actions: Actions) -> int | None:
    """Of tiles and moves."""
    return None if tiles is None else tiles + moving([fusion_group], actions)
