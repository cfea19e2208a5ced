# SPDX-License-Identifier: Apache-2.0
"""A stream as one call, for what plans calls: the graph with a node for each stream, and the plan back in its layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from tinyet.errors import InternalError
from tinyet.ir import Attrs, Graph, Node, Shape, Tensor
from tinyet.memory.plan import Lifetime, MemoryPlan
from tinyet.memory.streams import Stream
from tinyet.opset import Op


@dataclass(frozen=True, eq=False)
class Streamed(Attrs):
    """inputs: all that the layers of a stream read and do not compute; outputs: what is whole of what they compute."""

    name: ClassVar[str] = "stream"
    stream: Stream


def stream_of(node: Node) -> Stream | None:
    """What a node stands for, where it is a stream."""
    return node.attrs.stream if isinstance(node.attrs, Streamed) else None


def _shapes(node: Node) -> tuple[Shape, ...]:
    return tuple(t.shape for t in node.outputs)


def _reference(node: Node, _inputs: object) -> tuple[()]:
    raise InternalError("a stream is computed by its layers", node.where)


OP = Op(Streamed, "layers that are computed by rows", _shapes, _reference, ())
"""What the planner is told of a stream: it moves nothing, and replaces nothing."""


def contracted(graph: Graph, streams: Iterable[Stream]) -> Graph:
    """The graph with a node for each stream, as soon as its inputs are there.

    Raises InternalError where streams wait for each other, or for what they compute themselves.
    """
    nodes: dict[Node, Node] = {}
    for found in streams:
        nodes.update(dict.fromkeys(found.nodes, _contracted(graph, found)))
    wanted: dict[Node, set[Node]] = {}
    for node in graph.nodes:
        unit = nodes.get(node, node)
        makers = (graph.producer(t) for t in node.inputs if t is not None)
        before = {nodes.get(maker, maker) for maker in makers if maker is not None}
        wanted.setdefault(unit, set()).update(before - {unit})
    order: dict[Node, None] = {}
    while len(order) < len(wanted):
        ready = next((u for u, before in wanted.items() if u not in order and before <= order.keys()), None)
        if ready is None:
            raise InternalError("the layers of a stream wait for what is computed outside of it")
        order[ready] = None
    return graph.replace(nodes=tuple(order))


def _contracted(graph: Graph, found: Stream) -> Node:
    made = {t for node in found.nodes for t in node.outputs}
    read = (t for node in found.nodes for t in node.inputs if t is not None and t not in made)
    whole = (t for node in found.nodes for t in node.outputs if not found.rows[t].window)
    origins = tuple(dict.fromkeys(o for node in found.nodes for o in node.origins))
    return Node(Streamed(found), tuple(dict.fromkeys(read)), tuple(whole), origins)


def expanded(plan: MemoryPlan, streams: Sequence[Stream]) -> MemoryPlan:
    """The plan of a contracted graph, with the layers of each stream in place of its node; windows, and what streams
    need else, are there already."""
    starts: list[int] = []  # the number of each call, or of its first layer
    calls: list[Node] = []
    for node in plan.calls:
        starts.append(len(calls))
        calls += _layers(node)
    starts.append(len(calls))

    def life(old: Lifetime) -> Lifetime:
        first = old.first if old.first < 0 else starts[old.first]
        last = old.last if old.last < 0 else starts[min(old.last + 1, len(plan.calls))] - 1
        return Lifetime(first, len(calls) if old.last == len(plan.calls) else last)

    return replace(
        plan,
        order=tuple(layer for node in plan.order for layer in _layers(node)),
        calls=tuple(calls),
        blocks=tuple(replace(block, lifetime=life(block.lifetime)) for block in plan.blocks),
        lifetimes={tensor: life(old) for tensor, old in plan.lifetimes.items()},
        streams=tuple(streams),
    )


def _layers(node: Node) -> Sequence[Node]:
    found = stream_of(node)
    return (node,) if found is None else found.nodes


def rows_of(streams: Iterable[Stream]) -> Mapping[Tensor, Stream]:
    """The stream that has a tensor as a window."""
    return {rows.tensor: found for found in streams for rows in found.windows}
