# SPDX-License-Identifier: Apache-2.0
"""An arena in two pieces, the first in a faster and smaller memory: as the user asks for it, and what each block of the
arena gains there."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.boards import Memory
from tinyet.deployment import Deployment
from tinyet.memory.fused_node import scratch_name
from tinyet.planning.places import ARENA, PIECES


def pieces_of(to: str) -> tuple[str, str]:
    """The memory of an arena, or of its first piece, and that of the second, or nothing."""
    first, _, second = to.partition(PIECES)
    return first, second


def pieces_problems(deployment: Deployment, board: str, named: Mapping[str, Memory], to: str) -> list[str]:
    """What is wrong with an arena in two pieces. named: the memories of the board, by their names."""
    names = to.split(PIECES)
    problems = [f"{ARENA}: {board} has no memory {name!r}" for name in names if name not in named]
    problems += [
        f"{ARENA}: {name} cannot be written" for name in names if name in named and named[name].read_only
    ]
    if len(names) != 2 or len(set(names)) != len(names):
        problems.append(f"{ARENA}: {to} names no two memories; the first is filled first")
    if deployment.plan.buffers_from is not None:
        problems.append(f"{ARENA}: it is one piece where inputs and outputs lie in the caller's buffers")
    if deployment.sized is not None:
        problems.append(f"{ARENA}: it is one piece where a run is told the size of its inputs")
    return problems


def worth_of(deployment: Deployment, first: Memory, second: Memory) -> dict[str, float]:
    """Cycles of waiting that each block of the arena, by its name, saves an inference in the first memory and not in
    the second. Where the board's file does not say that these are any: the bytes that it reads and writes."""
    plan, found = deployment.plan, dict[str, float]()
    read = (second.read_waits or 0) / second.line_bytes - (first.read_waits or 0) / first.line_bytes
    write = (second.write_waits or 0) / second.line_bytes - (first.write_waits or 0) / first.line_bytes
    if read <= 0 and write <= 0:
        read = write = 1.0

    def add(name: str, worth: float) -> None:
        found[name] = found.get(name, 0.0) + worth

    for step in deployment.steps:
        for tensor in dict.fromkeys(t for t in step.node.inputs if t is not None and not t.is_constant):
            add(plan.blocks[plan.storage[tensor].block].name, read * tensor.type.bytes)
        for tensor in step.node.outputs:
            add(plan.blocks[plan.storage[tensor].block].name, write * tensor.type.bytes)
        add(scratch_name(step.node), (read + write) * step.call.scratch_bytes)
    return found
