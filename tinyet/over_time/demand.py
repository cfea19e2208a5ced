# SPDX-License-Identifier: Apache-2.0
"""The steps of each tensor that an answer depends on, and which of them are padding.

Steps are counted from the first of the window: those before it have numbers below 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tinyet.ir import Node, Tensor, place_of
from tinyet.over_time.trace import Trace

Span = tuple[int, int]
"""First and last step."""

ALWAYS = -(1 << 40)
"""A first step of all that there ever were."""


@dataclass(frozen=True)
class Head:
    """A place where steps become an answer: a node, or an output of the graph that is steps (node None).

    spans: which steps it reads of which tensors.
    tail: it counts them from the end, so that it is the same for a longer window.
    """

    node: Node | None
    spans: dict[Tensor, Span]
    tail: bool

    @property
    def name(self) -> str:
        if self.node is None:
            return f"output {next(iter(self.spans)).name}"
        return place_of(self.node.op, self.node.origin.place if self.node.origin else "")


@dataclass(frozen=True)
class Edge:
    """A node that reads steps which the network has not, for the answer of a head; before: as many before its first,
    after: behind its last."""

    node: Node
    head: Head
    tensor: Tensor
    before: int
    after: int


def heads_of(trace: Trace, new_steps: dict[Tensor, int]) -> Iterator[Head]:
    """new_steps: of each tensor, how many come at a time."""
    for node in trace.heads:
        rule = trace.rules[node]
        spans = {}
        for index in rule.inputs:
            tensor = node.input(index)
            last = rule.first + rule.extent - 1
            spans[tensor] = (ALWAYS, trace.steps(tensor) - 1) if rule.carried else (rule.first, last)
        yield Head(node, spans, rule.tail or bool(rule.carried))
    for tensor in dict.fromkeys(trace.graph.outputs):
        if tensor in trace.axis:
            steps = trace.steps(tensor)
            yield Head(None, {tensor: (steps - new_steps[tensor], steps - 1)}, tail=True)


def demand(
    trace: Trace, head: Head, *, clipped: bool, begin: int = 0
) -> tuple[dict[Tensor, Span], list[Edge]]:
    """The steps of each tensor that the head's answer is made of, and where the network has no such steps.

    clipped: padding is padding, which is made of nothing; else it stands for steps like all others.
    begin: the frame of the window that the network begins with; a multiple of all strides. Behind 0 it is the network
    over fewer frames, the window's last.
    """
    spans: dict[Tensor, Span] = {}
    edges: list[Edge] = []

    def want(node: Node, tensor: Tensor, span: Span) -> None:
        first, last = span
        start, end = begin // trace.stride[tensor], trace.steps(tensor) - 1
        if first < start or last > end:
            edges.append(Edge(node, head, tensor, max(start - first, 0), max(last - end, 0)))
        if clipped:
            first, last = max(first, start), min(last, end)
        if first <= last:
            known = spans.get(tensor, (first, last))
            spans[tensor] = min(first, known[0]), max(last, known[1])

    if head.node is None:
        spans.update(head.spans)
    else:
        for tensor, span in head.spans.items():
            want(head.node, tensor, span)
    for node in reversed(trace.graph.nodes):
        if node not in trace.rules or node.outputs[0] not in spans:
            continue
        rule, (first, last) = trace.rules[node], spans[node.outputs[0]]
        for index in rule.inputs:
            oldest, newest = rule.read(first, last)
            want(node, node.input(index), (ALWAYS if rule.carried else oldest, newest))
    return spans, edges
