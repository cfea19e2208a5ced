# SPDX-License-Identifier: Apache-2.0
"""The steps to a plan: a tiling, its kernels, and the layouts and memory of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.ir import Node
from tinyet.memory import MemoryPlan
from tinyet.memory.fusion import FusionGroup
from tinyet.memory.inplace import fits_over
from tinyet.ops import op_of
from tinyet.planning.candidates import Allowed, Candidate, Candidates, Chosen
from tinyet.planning.kernel_front import KernelSet
from tinyet.planning.layouts import AccessOrderCache
from tinyet.planning.pareto import Figures, Front


@dataclass(frozen=True, eq=False)
class Tiling:
    """Which layers are computed by tiles, and the candidates of all; limits do not change it.

    fusion_groups: none where all layers are untiled. candidates: of every node; allowed: those that may be
    compared. needs: for each node that needs a call, the live bytes at it for each candidate, by the
    candidate's index.
    """

    candidates: Candidates
    allowed: Allowed
    fusion_groups: Sequence[FusionGroup]
    needs: Mapping[Node, Mapping[int, int]]

    @property
    def least(self) -> int:
        """Bytes of the arena, whichever kernels are chosen."""
        return max((min(found.values()) for found in self.needs.values()), default=0)

    @property
    def choices(self) -> dict[Node, Mapping[int, int]]:
        """`needs`, where not all of a call's candidates need the same."""
        return {node: found for node, found in self.needs.items() if len(set(found.values())) > 1}

    def within(self, limit: int) -> dict[Node, Sequence[int]]:
        """The allowed candidates with which no more than `limit` bytes are alive at a call, or the one that needs the
        least; of several the fastest."""
        found = dict(self.allowed)
        for node, needs in self.needs.items():
            fitting = [i for i in self.allowed[node] if needs[i] <= limit]
            found[node] = fitting or [
                min(self.allowed[node], key=lambda i: (needs[i], self.candidates[node][i].time))
            ]
        return found


@dataclass(frozen=True, eq=False)
class Assignment:
    """A kernel for every node, of those that a tiling allows: `kernels` is the point of `front` that was
    taken. first: a first plan of their memory, which is final if no better one is possible."""

    tiling: Tiling
    allowed: Allowed
    chosen: Chosen
    front: Front[KernelSet]
    kernels: KernelSet
    first: MemoryPlan

    def index(self, node: Node) -> int:
        """Which of the tiling's candidates of a node was chosen."""
        return self.tiling.candidates[node].index(self.chosen[node])


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan as it would be printed: the candidates with their layouts, all addresses, and the figures."""

    assignment: Assignment
    chosen: Chosen
    memory: MemoryPlan
    figures: Figures

    @property
    def tiled(self) -> bool:
        """Whether some layers are computed by tiles."""
        return bool(self.memory.fusion_groups)


def own_bytes(
    node: Node, candidate: Candidate, plan: MemoryPlan, index: int, access_orders: AccessOrderCache
) -> int:
    """Bytes that a call needs beside the blocks of a plan that are alive at it, if this candidate makes it: scratch
    memory, less what it saves because its output may lie over an input that dies, partly or wholly.

    index: the call's in the plan.
    """
    kernel, need = candidate.choice.kernel, candidate.call.scratch_bytes
    variables = [(i, t) for i, t in enumerate(node.inputs) if t is not None and not t.is_constant]
    if plan.fusion_group(node) is not None or len(node.outputs) != 1:
        return need
    if any(plan.form(t) for t in (*(t for _, t in variables), *node.outputs)):
        return need
    if plan.is_callers(node.output):
        return need
    size, found = node.output.type.bytes, access_orders.access_schedule(kernel, node)
    overwritten, saved = plan.overwrites.get(node, (None, 0))[0], 0
    for i, tensor in variables:
        life = plan.blocks[plan.storage[tensor].block].lifetime
        began = plan.blocks[plan.storage[node.output].block].lifetime.first
        if plan.is_callers(tensor):
            continue
        if i != overwritten and (life.last != index or began != index):
            continue
        replaces = access_orders.replaces(kernel, node, i)
        inplace = i == overwritten and i in op_of(node).inplace
        if (replaces or inplace) and fits_over(node.output, tensor, replaces):
            saved = size
        elif found is not None and tensor in found.needed:
            saved = max(saved, found.saved(tensor))
    # Both share one block if the output is in place now.
    return need + (0 if overwritten is None else size) - saved
