# SPDX-License-Identifier: Apache-2.0
"""The arena as reports have it: what lies where, when, and on whose behalf."""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.deployment import Deployment
from tinyet.memory.arena_map import ArenaBlock, arena_map


@dataclass(frozen=True)
class ArenaAnalysis:
    """A block of the arena. kind: "value", of a tensor, or of the window of rows that it passes through; "scratch",
    memory of one layer; "stacked", windows one behind the other; "mark", the word that says whether states are set.

    name: the tensor's, or the layer's of scratch memory, or empty; type: the tensor's, empty for others; form: as of
    `LayerAnalysis`. offset, bytes: in the arena. first, last: the layers from which and to which it is needed, -1 for
    the time before the first, when the caller writes inputs, the number of layers for that after the last. line: of
    what computes it, empty for inputs."""

    kind: str
    name: str
    type: str
    form: str
    offset: int
    bytes: int
    first: int
    last: int
    line: str


def arena_of(deployment: Deployment) -> tuple[ArenaAnalysis, ...]:
    """What lies in the arena, and when."""
    plan = deployment.plan
    steps = {step.node: step for step in deployment.steps}
    makers = {tensor: step for step in deployment.steps for tensor in step.node.outputs}
    scratch = {node: steps[node].call.scratch_bytes for node in plan.scratch}

    def described(block: ArenaBlock) -> ArenaAnalysis:
        tensor = block.tensor
        step = makers.get(tensor) if tensor is not None else steps.get(block.node) if block.node else None
        return ArenaAnalysis(
            kind=block.kind,
            name=tensor.name if tensor is not None else "" if step is None else step.name,
            type="" if tensor is None else str(tensor.type),
            form="" if tensor is None else plan.form(tensor),
            offset=block.offset,
            bytes=block.bytes,
            first=block.first,
            last=block.last,
            line="" if step is None else step.line,
        )

    blocks = [described(block) for block in arena_map(plan, scratch)]
    return tuple(sorted(blocks, key=lambda block: (block.offset, block.first, block.name)))
