# SPDX-License-Identifier: Apache-2.0
"""The plan of a graph's memory as it is for the same graph at another size: the same places, for shorter tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from tinyet.errors import InternalError
from tinyet.ir import Graph, Node, Tensor
from tinyet.memory.check import check_plan
from tinyet.memory.plan import MemoryPlan
from tinyet.opset import AccessOrder, Kernel, Op

_ALIGN, _SCRATCH_ALIGN = 4, 8
"""As `plan_memory` has them."""


def at_another_size(plan: MemoryPlan, graph: Graph, other: Graph) -> MemoryPlan:
    """plan: of `graph`, without layers by rows. other: its nodes in their order, with other shapes. Whether it is right
    there is for `check_plan` to prove."""
    if plan.fusion_groups:
        raise InternalError("layers by rows are for one size", graph.name)
    nodes: Mapping[Node, Node] = dict(zip(graph.nodes, other.nodes, strict=True))
    tensors: dict[Tensor, Tensor] = dict(zip(graph.inputs, other.inputs, strict=True))
    for node, now in nodes.items():
        tensors.update(zip(node.outputs, now.outputs, strict=True))
    return dataclasses.replace(
        plan,
        order=tuple(nodes[n] for n in plan.order),
        calls=tuple(nodes[n] for n in plan.calls),
        elided=tuple(nodes[n] for n in plan.elided),
        overwrites={nodes[n]: pair for n, pair in plan.overwrites.items()},
        overlaps={nodes[n]: indices for n, indices in plan.overlaps.items()},
        storage={tensors[t]: storage for t, storage in plan.storage.items()},
        lifetimes={tensors[t]: lifetime for t, lifetime in plan.lifetimes.items()},
        scratch={nodes[n]: offset for n, offset in plan.scratch.items()},
    )


def check_resized(
    graph: Graph,
    plan: MemoryPlan,
    op_of: Callable[[Node], Op],
    scratch: Mapping[Node, int],
    kernels: Mapping[Node, Kernel],
) -> None:
    """Prove that a plan of `at_another_size` computes its graph. scratch: bytes of the calls that have some; kernels:
    of the calls. Raises InternalError."""

    def replaces(node: Node, index: int) -> bool:
        found = kernels[node].replaces
        return found is not None and found(node, index)

    def access_order(node: Node, index: int) -> AccessOrder | None:
        found = kernels[node].access_order
        return None if found is None else found(node, index)

    check_plan(
        graph,
        plan,
        op_of,
        scratch,
        access_order=access_order,
        replaces=replaces,
        align=_ALIGN,
        scratch_align=_SCRATCH_ALIGN,
    )
