# SPDX-License-Identifier: Apache-2.0
"""A fusion group as one call, for the planner of calls: the graph with a node for each fusion group, such a node's
effect on memory, and the plan translated back to its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tinyet.errors import InternalError
from tinyet.ir import Attrs, DType, Graph, Node, Shape, Tensor, TensorType
from tinyet.memory.buffers import Buffer
from tinyet.memory.fusion import FusionGroup, LineBuffer, Run
from tinyet.memory.live_ranges import LiveRange, alive_between
from tinyet.memory.plan import Block, Lifetime, MemoryPlan, Storage
from tinyet.memory.timeline import AccessSchedule, Inner
from tinyet.opset import Op
from tinyet.opset.access_order import Bytes


@dataclass(frozen=True, eq=False)
class Border:
    """Bytes that a fusion group has directly above or below a whole tensor, as a tensor: padding rows, or stacked
    buffers.

    start: its first byte, counted from that of the tensor.
    """

    rows: LineBuffer
    bytes: Tensor
    start: int


@dataclass(frozen=True, eq=False)
class FusedNode(Attrs):
    """inputs: all values that the layers of a fusion group read and do not compute; outputs: the whole tensors that
    they compute, and the borders of whole tensors.

    kept: inputs that are whole until the last row: of a fusion group that takes rows, all states, because its image
    may be dropped at any row and must not leave a trace.
    """

    name: ClassVar[str] = "stream"
    fusion_group: FusionGroup
    borders: tuple[Border, ...]
    kept: tuple[Tensor, ...]


def borders_of(node: Node) -> tuple[Border, ...]:
    """Of a fusion group's node; of all others none."""
    return node.attrs.borders if isinstance(node.attrs, FusedNode) else ()


def fusion_group_of(node: Node) -> FusionGroup | None:
    """The fusion group of a node, if it is one."""
    return node.attrs.fusion_group if isinstance(node.attrs, FusedNode) else None


def _shapes(node: Node) -> tuple[Shape, ...]:
    return tuple(t.shape for t in node.outputs)


def _reference(node: Node, _inputs: object) -> tuple[()]:
    raise InternalError("a stream is computed by its layers", node.where)


OP = Op(FusedNode, "layers that are computed by rows", _shapes, _reference, ())
"""A fusion group's operator for the planner: it moves nothing, and replaces nothing."""


def with_fused_nodes(
    graph: Graph, fusion_groups: Sequence[FusionGroup], scratch: Mapping[Node, int], scratch_align: int
) -> Graph:
    """The graph with a node for each fusion group, as soon as its inputs are there; without values that come from the
    caller.

    scratch: bytes of the layers' scratch memory. Raises InternalError if fusion groups wait for each other, or for
    their own results.
    """
    nodes: dict[Node, Node] = {}
    for found in fusion_groups:
        kept = () if found.tiled_input is None else tuple(state.value for state in graph.states)
        nodes.update(dict.fromkeys(found.nodes, _fused_node(found, kept, scratch, scratch_align)))
    taken = [found.tiled_input for found in fusion_groups if found.tiled_input is not None]
    inputs = tuple(t for t in graph.inputs if all(t is not each.input for each in taken))
    views = {node for each in taken for node in each.views}
    wanted: dict[Node, set[Node]] = {}
    for node in graph.nodes:
        if node in views:
            continue
        unit = nodes.get(node, node)
        makers = (graph.producer(t) for t in node.inputs if t is not None)
        before = {nodes.get(maker, maker) for maker in makers if maker is not None and maker not in views}
        wanted.setdefault(unit, set()).update(before - {unit})
    order: dict[Node, None] = {}
    while len(order) < len(wanted):
        ready = next((u for u, before in wanted.items() if u not in order and before <= order.keys()), None)
        if ready is None:
            raise InternalError("the layers of a stream wait for what is computed outside of it")
        order[ready] = None
    return graph.replace(inputs=inputs, nodes=tuple(order))


def _fused_node(
    found: FusionGroup, kept: tuple[Tensor, ...], scratch: Mapping[Node, int], align: int
) -> Node:
    made = dict.fromkeys(t for node in found.nodes for t in node.outputs)
    there = {
        *made,
        *([] if found.tiled_input is None else [found.tiled_input.tensor]),
    }  # an input that comes by rows is in a window
    read = [t for node in found.nodes for t in node.inputs if t is not None and t not in there]
    whole = [t for t in made if t not in found.rows or not found.rows[t].window]
    origins = tuple(dict.fromkeys(o for node in found.nodes for o in node.origins))
    highest = int(stacked_heights(found, scratch, align).max())
    borders = tuple(border for rows in found.rows.values() for border in _borders(found, rows, highest))
    outputs = (*whole, *(border.bytes for border in borders))
    return Node(FusedNode(found, borders, kept), tuple(dict.fromkeys([*read, *kept])), outputs, origins)


def stacked_heights(fusion_group: FusionGroup, scratch: Mapping[Node, int], align: int) -> Bytes:
    """Bytes of a fusion group's stacked buffers at each action, with its layers' scratch memory on top, except
    scratch that lasts."""
    area = [
        scratch.get(action.node, 0)
        if isinstance(action, Run) and not fusion_group.rules[action.node].reduces
        else 0
        for action in fusion_group.actions
    ]
    sizes = np.array(area, np.int64)
    return np.where(
        sizes > 0, (fusion_group.heights + align - 1) // align * align + sizes, fusion_group.heights
    )


def _borders(fusion_group: FusionGroup, rows: LineBuffer, highest: int) -> list[Border]:
    found = []
    size = rows.tensor.type.bytes
    stacked_buffers = highest - size if rows.tensor is fusion_group.base else 0
    for where, count, start in (
        ("above", rows.above * rows.row_bytes, -rows.above * rows.row_bytes),
        ("below", rows.below * rows.row_bytes, size),
        ("stacked on", max(stacked_buffers, 0), size),
    ):
        if count:
            kind = TensorType((count,), DType.INT8)
            found.append(Border(rows, Tensor(f"{where} {rows.tensor.name}", kind), start))
    return found


def access_schedule_of(
    node: Node, scratch: Mapping[Node, int], align: int, scratch_align: int
) -> AccessSchedule | None:
    """What a fusion group's node does at each of its actions; None for all other nodes.

    scratch: bytes of the layers' scratch memory.
    """
    found = fusion_group_of(node)
    if found is None:
        return None
    assert isinstance(node.attrs, FusedNode)
    heights = stacked_heights(found, scratch, scratch_align)
    written: dict[Tensor, Bytes] = {}
    needed: dict[Tensor, Bytes] = {}
    for tensor in node.outputs:
        if tensor in found.rows:
            rows = found.rows[tensor]
            made = np.maximum.accumulate((rows.behind - rows.above) * rows.row_bytes)
            written[tensor] = np.clip(heights if tensor is found.base else made, 0, tensor.type.bytes)
    for layer in found.nodes:
        if found.rules[layer].reduces:
            complete = np.arange(len(found.actions)) >= found.moments(layer)[-1]
            written[layer.outputs[0]] = np.where(complete, layer.outputs[0].type.bytes, 0).astype(np.int64)
    for border in borders_of(node):
        if border.rows.tensor is found.base:
            written[border.bytes] = np.maximum(heights - border.start, 0)
            continue
        made = np.maximum.accumulate(border.rows.behind - border.rows.above) * border.rows.row_bytes
        everything = np.full(len(made), border.bytes.type.bytes, np.int64)
        below = np.clip(made - border.rows.tensor.type.bytes, 0, border.bytes.type.bytes)
        written[border.bytes] = everything if border.start < 0 else below
        # The border above begins with the first of its rows, that below behind all others.
        before = 0 if border.start < 0 else border.rows.above * border.rows.row_bytes + border.start
        needed[border.bytes] = np.clip(_from_start(border.rows) - before, 0, border.bytes.type.bytes)
    variables = tuple(t for t in dict.fromkeys(node.inputs) if t is not None and not t.is_constant)
    for tensor in variables:
        if tensor in found.rows and tensor not in node.attrs.kept:
            rows = found.rows[tensor]
            behind_border = _from_start(rows) - rows.above * rows.row_bytes
            needed[tensor] = np.clip(behind_border, 0, tensor.type.bytes)
    inner = []
    for window in found.line_buffers:
        if not window.stacked:
            low, high = window.first * window.row_bytes, window.behind * window.row_bytes
            inner.append(Inner(rows_name(window.tensor), low, high, window.bytes, align))
    if found.stacked_buffers and found.base is None:
        most = int(heights.max())
        inner.append(
            Inner(rows_name(found.stacked_buffers[0]), np.zeros_like(heights), heights, most, scratch_align)
        )
    for layer in found.nodes:
        if (size := scratch.get(layer, 0)) and _apart(found, layer):
            works = [isinstance(action, Run) and action.node is layer for action in found.actions]
            if found.rules[layer].reduces:
                works = [True] * len(works)
            high = np.where(works, size, 0).astype(np.int64)
            inner.append(Inner(scratch_name(layer), np.zeros_like(high), high, size, scratch_align))
    return AccessSchedule(variables, written, needed, tuple(inner))


def _apart(fusion_group: FusionGroup, node: Node) -> bool:
    """Whether a layer's scratch memory has a place of its own: if it lasts, or if there are no stacked buffers below
    it."""
    return fusion_group.rules[node].reduces or not fusion_group.stacked_buffers


def _from_start(rows: LineBuffer) -> Bytes:
    """The first byte of a whole tensor and its borders that is still read at each action or later, counted from the
    first of the border above."""
    held = rows.behind > rows.first
    ended = np.where(
        np.maximum.accumulate(held), rows.slots, 0
    )  # for values that are no longer there, or not yet
    return np.maximum.accumulate(np.where(held, rows.first, ended) * rows.row_bytes)


def rows_name(tensor: Tensor) -> str:
    """Of the buffer that is a tensor's window, or the stacked buffers whose lowest it is."""
    return f"rows of {tensor.name}"


def scratch_name(node: Node) -> str:
    """Of the buffer that is a call's scratch memory. No tensor's name holds a space, so this cannot be one. A fusion
    group's first output may be that of a layer in it, which has scratch memory of its own."""
    of = "scratch of" if fusion_group_of(node) is None else "what is in the stream of"
    return f"{of} {node.outputs[0].name}"


def alive_at_calls(
    live_ranges: Sequence[LiveRange], boundaries: Bytes, calls: Sequence[Node]
) -> tuple[int, ...]:
    """The most bytes alive before the first call, at each call or layer of a fusion group, and after the last.
    boundaries: the first moment of each, and the one behind all."""
    whole = alive_between(live_ranges, boundaries)
    found = whole[:1]
    for position, node in enumerate(calls):
        fusion_group = fusion_group_of(node)
        if fusion_group is None:
            found.append(whole[position + 1])
            continue
        moments = np.arange(boundaries[position + 1], boundaries[position + 2] + 1)
        each = np.array(alive_between(live_ranges, moments))
        found += [int(each[fusion_group.moments(layer)].max()) for layer in fusion_group.nodes]
    return (*found, whole[-1])


def inner_buffer(
    calls: Sequence[Node], fusion_groups: Mapping[Node, AccessSchedule], inner: LiveRange
) -> Buffer:
    """The buffer that a fusion group works in."""
    position = next(
        p
        for p, node in enumerate(calls)
        if node in fusion_groups and any(b.name == inner.name for b in fusion_groups[node].inner)
    )
    return Buffer(inner.name, inner.bytes, position, position, inner.align)


def with_layers(
    plan: MemoryPlan,
    fusion_groups: Sequence[FusionGroup],
    offsets: Mapping[str, int],
    scratch: Mapping[Node, int],
    scratch_align: int,
) -> MemoryPlan:
    """The plan of a contracted graph, with the layers of each fusion group in place of its node.

    offsets: of the buffers that fusion groups work in, by their names. scratch: bytes of the layers' scratch memory.
    """
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

    borders = {border.bytes for node in plan.calls for border in borders_of(node)}
    storage = {t: place for t, place in plan.storage.items() if t not in borders}
    lifetimes = {t: life(old) for t, old in plan.lifetimes.items() if t not in borders}
    blocks = [replace(block, lifetime=life(block.lifetime)) for block in plan.blocks]
    areas = {n: at for n, at in plan.scratch.items() if fusion_group_of(n) is None}
    for node, start in zip(plan.calls, starts, strict=False):
        found = fusion_group_of(node)
        if found is None:
            continue
        whole = Lifetime(start, start + len(found.nodes) - 1)
        for window in found.line_buffers:
            lifetimes[window.tensor] = whole
            if not window.stacked or (window.tensor is found.stacked_buffers[0] and found.base is None):
                name = rows_name(window.tensor)
                heights = stacked_heights(found, scratch, scratch_align)
                size = int(heights.max()) if window.stacked else window.bytes
                storage[window.tensor] = Storage(len(blocks), 0)
                blocks.append(Block(name, offsets[name], size, whole))
        for tensor in found.stacked_buffers:
            storage[tensor] = storage[found.stacked_buffers[0]]
        if found.tiled_input is not None:
            storage |= dict.fromkeys(found.tiled_input.names, storage[found.tiled_input.tensor])
            lifetimes |= dict.fromkeys(found.tiled_input.names, whole)
        with_scratch = [n for n in found.nodes if scratch.get(n, 0)]
        areas |= {n: offsets[scratch_name(n)] for n in with_scratch if _apart(found, n)}
    views = tuple(
        node for found in fusion_groups if found.tiled_input is not None for node in found.tiled_input.views
    )
    return replace(
        plan,
        order=(*views, *(layer for node in plan.order for layer in _layers(node))),
        elided=(*views, *plan.elided),
        calls=tuple(calls),
        blocks=tuple(blocks),
        storage=storage,
        lifetimes=lifetimes,
        scratch=areas,
        fusion_groups=tuple(fusion_groups),
    )


def _layers(node: Node) -> Sequence[Node]:
    found = fusion_group_of(node)
    return (node,) if found is None else found.nodes
