# SPDX-License-Identifier: Apache-2.0
"""The time axis of each tensor of a network over a window, and the rate of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tinyet.ir import Graph, Node, Tensor
from tinyet.ops import time_rule
from tinyet.opset import TimeRule


@dataclass
class Trace:
    """The known facts about a graph whose inputs have time along some axis.

    axis:     of each tensor that is a sequence of steps.
    stride:   frames of input from one of its steps to the next.
    rules:    of each node that reads steps.
    heads: nodes that reduce the whole window to a value; layers behind them are computed as before. refusals: the
    nodes that have no rule, and why.
    """

    graph: Graph
    axis: dict[Tensor, int] = field(default_factory=dict)
    stride: dict[Tensor, int] = field(default_factory=dict)
    rules: dict[Node, TimeRule] = field(default_factory=dict)
    heads: list[Node] = field(default_factory=list)
    refusals: list[tuple[Node, str]] = field(default_factory=list)

    def steps(self, tensor: Tensor) -> int:
        """In the window."""
        return tensor.shape[self.axis[tensor]]


def trace(graph: Graph, axes: Sequence[int | None]) -> Trace:
    """axes: for each input of the graph, the one that is time."""
    found = Trace(graph)
    for tensor, axis in zip(graph.inputs, axes, strict=True):
        if axis is not None:
            found.axis[tensor], found.stride[tensor] = axis, 1
    unknown: set[Tensor] = set()
    for node in graph.nodes:
        if any(tensor in unknown for tensor in node.inputs):
            unknown.update(node.outputs)
        elif any(tensor in found.axis for tensor in node.inputs):
            rule = _rule(found, node)
            if isinstance(rule, str):
                found.refusals.append((node, rule))
                unknown.update(node.outputs)
            else:
                _follow(found, node, rule)
    return found


def _rule(found: Trace, node: Node) -> TimeRule | str:
    read = [tensor for tensor in node.inputs if tensor is not None]
    for tensor in read:
        if not tensor.is_constant and tensor not in found.axis:
            return f"{node.op} reads {tensor.name}, which is of the whole window, beside single steps"
    rates = {found.stride[tensor] for tensor in read if tensor in found.axis}
    if len(rates) != 1:
        return f"{node.op} reads steps of {' and '.join(map(str, sorted(rates)))} frames at the same time"
    rule = time_rule(
        node, tuple(None if tensor is None else found.axis.get(tensor) for tensor in node.inputs)
    )
    if isinstance(rule, TimeRule) and any(not node.input(state).is_constant for state, _ in rule.carried):
        return f"{node.op} starts from a state that is given with each window"
    return rule


def _follow(found: Trace, node: Node, rule: TimeRule) -> None:
    found.rules[node] = rule
    steps = node.outputs[0]
    if rule.axis is not None and steps.shape[rule.axis] > 1:
        found.axis[steps] = rule.axis
        found.stride[steps] = found.stride[node.input(rule.inputs[0])] * rule.stride
    answers = [tensor for tensor in node.outputs if tensor not in found.axis]
    if any(found.graph.consumers(tensor) or tensor in found.graph.outputs for tensor in answers):
        found.heads.append(node)
