# SPDX-License-Identifier: Apache-2.0
"""A graph with every decision for one target: kernels, calls with their constants, order, addresses.

A `Program` is the same for all boards; a `Deployment` is what it becomes on one of them. It is computed from the
program alone, without torch and always to the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.boards import Target
from tinyet.delegates import DEFAULT, Delegate
from tinyet.ir import Graph, Node
from tinyet.memory import MemoryPlan, plan_memory
from tinyet.ops import op_of
from tinyet.opset import Call
from tinyet.select import Choice, select


@dataclass(frozen=True, eq=False)
class Step:
    """One call of the generated `run`, which is one layer of every report. `index` counts from 0."""

    index: int
    node: Node
    choice: Choice
    call: Call
    macs: int

    @property
    def name(self) -> str:
        """The name of the value that the step computes."""
        return self.node.outputs[0].name


@dataclass(frozen=True, eq=False)
class Deployment:
    graph: Graph
    target: Target
    plan: MemoryPlan
    steps: tuple[Step, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(step.macs for step in self.steps)

    @property
    def constant_bytes(self) -> int:
        """Bytes of packed weights and tables, before equal arrays are shared."""
        return sum(c.data.nbytes for step in self.steps for c in step.call.constants)


def deploy(graph: Graph, target: Target, delegates: Sequence[Delegate] = DEFAULT) -> Deployment:
    """Choose kernels, pack constants, order the calls and place every value.

    delegates: who is asked for kernels, in this order; the portable ones always come last.
    Raises UnsupportedOp when a node has no kernel for the target.
    """
    selection = select(graph, target, delegates)
    calls: Mapping[Node, Call] = {
        node: choice.kernel.lower(node, target) for node, choice in selection.items()
    }
    scratch = {node: call.scratch_bytes for node, call in calls.items() if call.scratch_bytes}
    plan = plan_memory(graph, op_of, scratch)
    steps = tuple(
        Step(index, node, selection[node], calls[node], op_of(node).macs(node))
        for index, node in enumerate(plan.calls)
    )
    return Deployment(graph, target, plan, steps)
