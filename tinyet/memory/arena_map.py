# SPDX-License-Identifier: Apache-2.0
"""What lies where in the arena, and when: a block for each tensor, scratch area and word that is kept there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tinyet.ir import Node, Tensor
from tinyet.memory.plan import MARK_BYTES, MemoryPlan

Kind = Literal["value", "scratch", "stacked", "mark"]


@dataclass(frozen=True)
class ArenaBlock:
    """kind: a tensor's value, or the window of a few rows that it passes through; memory of one call; stacked windows,
    one behind the other, with scratch memory on top; or the word that says whether the states are set.

    offset, bytes: in the arena; of a value with others' between its pixels, from its first byte to its last. first,
    last: the calls from which and to which it is needed, as in `Lifetime`. tensor, node: whose it is.
    """

    kind: Kind
    offset: int
    bytes: int
    first: int
    last: int
    tensor: Tensor | None = None
    node: Node | None = None


def arena_map(plan: MemoryPlan, scratch_bytes: Mapping[Node, int]) -> list[ArenaBlock]:
    """All blocks of a plan's arena, in the order in which they were planned. scratch_bytes: of the calls that have
    scratch memory of their own."""
    blocks = [
        ArenaBlock("value", plan.offset(tensor), plan.extent(tensor), life.first, life.last, tensor)
        for tensor in plan.storage
        if not plan.is_callers(tensor)
        for life in (plan.lifetimes[tensor],)
    ]
    for group in plan.fusion_groups:
        if group.stacked_buffers:
            life = plan.lifetimes[group.nodes[0].outputs[0]]
            block = plan.blocks[plan.storage[group.stacked_buffers[0]].block]
            blocks.append(ArenaBlock("stacked", block.offset, block.bytes, life.first, life.last))
    if plan.mark is not None:
        blocks.append(ArenaBlock("mark", plan.mark, MARK_BYTES, -1, len(plan.calls)))
    index = {node: i for i, node in enumerate(plan.calls)}
    blocks += [
        ArenaBlock("scratch", plan.scratch[node], size, index[node], index[node], node=node)
        for node, size in scratch_bytes.items()
    ]
    return blocks
