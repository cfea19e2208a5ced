# SPDX-License-Identifier: Apache-2.0
"""The caller's buffers of a deployment, and what they cost: layers that would be no call if all lay in the arena."""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.deployment import Deployment
from tinyet.ops import op_of


@dataclass(frozen=True)
class BufferAnalysis:
    """An input or output that lies in a buffer of the caller's. kind: "input" or "output"; index: its number. bytes: of
    the buffer; align: of its address."""

    kind: str
    index: int
    name: str
    type: str
    bytes: int
    align: int


def buffers_of(deployment: Deployment) -> tuple[BufferAnalysis, ...]:
    """Inputs, then outputs; none where they lie in the arena."""
    graph, plan = deployment.graph, deployment.plan
    if plan.buffers_from is None:
        return ()
    sides = (("input", graph.user_inputs), ("output", graph.user_outputs))
    return tuple(
        BufferAnalysis(kind, index, t.name, str(t.type), t.type.bytes, plan.buffer_align(t))
        for kind, tensors in sides
        for index, t in enumerate(tensors)
    )


def copies_noted(deployment: Deployment) -> tuple[str, ...]:
    """Layers that only copy, and why, a line each: an input's bytes cannot be an output's, nor can a state's."""
    plan = deployment.plan
    if plan.buffers_from is None:
        return ()
    found = []
    for step in deployment.steps:
        node = step.node
        if not op_of(node).view:
            continue
        ends = [t for t in (*node.inputs, *node.outputs) if t is not None and not t.is_constant]
        names = [f"{t.name} is in a buffer of the caller's" for t in ends if plan.is_callers(t)]
        if names:
            size = sum(t.type.bytes for t in node.outputs)
            found.append(f"{step}: {node.op} copies {size:,} bytes, because {' and '.join(names)}")
    return tuple(found)
