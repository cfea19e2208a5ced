# SPDX-License-Identifier: Apache-2.0
"""The layers computed by rows, the place of their rows, and their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyet.deployment import Deployment
from tinyet.ir import Node
from tinyet.memory.fusion import FusionGroup
from tinyet.planning.candidates import Chosen
from tinyet.planning.tiling import added_macs, moved


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
    which whole layers leave out. moved_bytes: of rows that move to make room. instructions: stated for all tiles and
    moves; whole_instructions: for the same layers as a whole. None: a kernel does not state them.
    """

    layers: tuple[int, ...]
    line_buffers: tuple[LineBufferAnalysis, ...]
    added_macs: int
    moved_bytes: int
    instructions: int | None
    whole_instructions: int | None


def fusion_groups_of(deployment: Deployment) -> tuple[FusionGroupAnalysis, ...]:
    """All of a deployment, in the order of its layers."""
    decision = deployment.decision
    index = {step.node: step.index for step in deployment.steps}
    found = []
    for fusion_group in deployment.plan.fusion_groups:
        tiles = _stated(decision.chosen, fusion_group.nodes)
        whole = None if decision.untiled is None else _stated(decision.untiled.chosen, fusion_group.nodes)
        found.append(
            FusionGroupAnalysis(
                layers=tuple(index[node] for node in fusion_group.nodes),
                line_buffers=_line_buffers(fusion_group),
                added_macs=added_macs(fusion_group),
                moved_bytes=sum(fusion_group.moved),
                instructions=None if tiles is None else tiles + round(moved(fusion_group)),
                whole_instructions=whole,
            )
        )
    return tuple(found)


def _line_buffers(fusion_group: FusionGroup) -> tuple[LineBufferAnalysis, ...]:
    return tuple(
        LineBufferAnalysis(w.tensor.name, w.slots, w.height, w.bytes) for w in fusion_group.line_buffers
    )


def _stated(chosen: Chosen, nodes: Sequence[Node]) -> int | None:
    """Instructions of some layers; None where one of their kernels does not state them."""
    costs = [chosen[node].cost for node in nodes]
    known = [cost.instructions for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
