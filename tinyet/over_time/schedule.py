# SPDX-License-Identifier: Apache-2.0
"""When each step is computed: the number of steps of each tensor in a run, the newest, and how far back it is read.

Steps are counted as in the window whose answer the run gives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from tinyet.ir import Node, Tensor
from tinyet.over_time.demand import Head, Span
from tinyet.over_time.trace import Trace


@dataclass(frozen=True)
class Read:
    """A node, or an output of the graph (node None), reads these steps in a run. fill: the initial value of steps
    before the window's first, if that matters."""

    node: Node | None
    tensor: Tensor
    span: Span
    fill: float | None


@dataclass
class Schedule:
    """hop: frames of a run. lag: frames that come behind the window before its answer is known."""

    trace: Trace
    hop: int
    frames: int
    lag: int
    new: dict[Tensor, int] = field(default_factory=dict)
    newest: dict[Tensor, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.new.update(new_steps(self.trace, self.hop))
        graph = self.trace.graph
        self.newest.update({t: self.frames - 1 + self.lag for t in graph.inputs if t in self.trace.axis})
        for node, rule in self.trace.rules.items():
            if node.outputs[0] in self.trace.axis:
                reach = min(self.newest[node.input(index)] for index in rule.inputs)
                if rule.carried:  # its state is behind the window's last step
                    reach = min(reach, self.trace.steps(node.outputs[0]) - 1)
                self.newest[node.outputs[0]] = rule.made(reach)

    @property
    def runs(self) -> int:
        """Until the first window is there, and the steps behind it."""
        return -(-(self.frames + self.lag) // self.hop)

    def first(self, tensor: Tensor) -> int:
        """The first step that is ever computed."""
        return self.newest[tensor] - self.runs * self.new[tensor] + 1

    def fresh(self, tensor: Tensor) -> Span:
        """The steps of a run."""
        return self.newest[tensor] - self.new[tensor] + 1, self.newest[tensor]

    def spans_of(self, node: Node) -> dict[Tensor, Span]:
        """The input spans that a node reads in a run."""
        rule, x = self.trace.rules[node], node.input(self.trace.rules[node].inputs[0])
        if node.outputs[0] in self.trace.axis:
            first, last = self.fresh(node.outputs[0])
        elif rule.carried:
            first, last = self.trace.steps(x) - self.new[x], self.trace.steps(x) - 1
        else:
            first, last = 0, 0
        return {node.input(index): rule.read(first, last) for index in rule.inputs}

    def reads(self, heads: list[Head], padded: set[tuple[Node, Tensor]]) -> Iterator[Read]:
        """padded: where steps before the window are padding that an answer is made of."""
        for node, rule in self.trace.rules.items():
            for tensor, span in self.spans_of(node).items():
                yield Read(node, tensor, span, rule.fill if (node, tensor) in padded else None)
        for head in heads:
            if head.node is None:
                for tensor, span in head.spans.items():
                    yield Read(None, tensor, span, None)


def new_steps(trace: Trace, hop: int) -> dict[Tensor, int]:
    return {tensor: int(hop / stride) for tensor, stride in trace.stride.items()}


def least_hop(trace: Trace) -> int:
    """The fewest frames that give each layer a whole number of steps."""
    return math.lcm(*(stride.numerator for stride in trace.stride.values()))
