# SPDX-License-Identifier: Apache-2.0
"""Successive calls, fused: computed tile by tile, together, with line buffers between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyet.ir import Graph, Node, Tensor
from tinyet.ir.kept import Kept
from tinyet.ir.memoize import memoize
from tinyet.memory.fusion import FusionGroup, Run
from tinyet.memory.tile_records import TiledInput
from tinyet.ops import op_of
from tinyet.opset import TileMap
from tinyet.planning.line_buffers import LineBuffers
from tinyet.planning.tile_schedule import TileSchedule

_MOST_ACTIONS = 100_000
"""Of all fusion groups that are kept for a graph: some tens of megabytes."""
_OUTPUT = -1
"""Of a layer, beside the numbers of its inputs."""


def fused(
    graph: Graph,
    nodes: Sequence[Node],
    rules: Mapping[Node, TileMap],
    *,
    align: int,
    stacked: bool = False,
    on_output: bool = False,
    scratch: Mapping[Node, int] | None = None,
    take: TiledInput | None = None,
) -> FusionGroup | None:
    """The fusion group of successive calls; None if they cannot be one.

    rules: of each of the calls. stacked: line buffers lie one above another; on_output: the lowest on the whole part of
    the last layer's output. scratch: bytes of the calls' scratch memory, at least, which is on top. take: the value
    that they read whose rows come from the caller.
    """
    found = TileSchedule(graph, nodes, rules, None if take is None else take.tensor)
    if not found.possible() or not found.run():
        return None
    last = found.states.get(nodes[-1].outputs[0]) if stacked and on_output else None
    base = (
        last.tensor if last is not None and last.whole and last.top == 0 and last.end == last.height else None
    )
    placed = LineBuffers(found, stacked, base, scratch or {})
    placed.place()
    rows = placed.rows()
    loose: list[Tensor] = []
    for tensor, buffer in rows.items():
        if (buffer.above * buffer.row_bytes) % align and not buffer.window and tensor not in found.made:
            names = _given_alone(graph, tensor, rules)
            if names is None:
                return None
            loose += names
    result = FusionGroup(
        tuple(nodes),
        dict(rules),
        tuple(placed.actions),
        rows,
        tuple(placed.stacked_buffers),
        placed.heights(),
        take,
        tuple(dict.fromkeys(loose)),
    )
    return result if _aligned(result, align) else None


class FusionCache:
    """The fusion groups that have been made of one graph's calls. A search comes to the same calls in several ways, and
    so do searches for another aim, limit or target."""

    def __init__(self) -> None:
        self._made = Kept[FusionGroup | None](
            _MOST_ACTIONS, lambda found: 0 if found is None else len(found.actions)
        )

    def fused(
        self,
        graph: Graph,
        nodes: Sequence[Node],
        rules: Mapping[Node, TileMap],
        *,
        align: int,
        stacked: bool = False,
        on_output: bool = False,
        scratch: Mapping[Node, int] | None = None,
        take: TiledInput | None = None,
    ) -> FusionGroup | None:
        """`fused`, made once."""
        taken = None if take is None else (take.input, take.views)
        needs = None if scratch is None else tuple(scratch.items())
        # Not the graph, which goes when nobody else has it, and this with it.
        key = tuple(nodes), tuple(rules.items()), align, stacked, on_output, needs, taken
        return self._made.get(
            key,
            lambda: fused(
                graph,
                nodes,
                rules,
                align=align,
                stacked=stacked,
                on_output=on_output,
                scratch=scratch,
                take=take,
            ),
        )


@memoize
def fusion_cache_of(_graph: Graph) -> FusionCache:
    """A graph's own, as long as the graph is there."""
    return FusionCache()


def _given_alone(graph: Graph, tensor: Tensor, rules: Mapping[Node, TileMap]) -> list[Tensor] | None:
    """The names of a value that the caller gives and only these layers read, row by row; None for any other."""
    while (maker := graph.producer(tensor)) is not None and op_of(maker).view:
        tensor = maker.input(0)
    if tensor not in graph.user_inputs:
        return None
    names = [tensor]
    for name in names:
        if name in graph.outputs:
            return None
        for reader in graph.consumers(name):
            if op_of(reader).view and reader not in rules:
                names += reader.outputs
            elif reader not in rules or any(
                t is name and i not in rules[reader].inputs for i, t in enumerate(reader.inputs)
            ):
                return None
    return names


def _aligned(found: FusionGroup, align: int) -> bool:
    """Do all tiles begin where tensors may begin?"""
    # Of each layer's inputs, by number, and of its output: bytes of a row, and what its beginning is a multiple of.
    known: dict[Node, dict[int, tuple[int, int]]] = {}
    for node in found.nodes:
        tensors = {index: node.input(index) for index in found.rules[node].inputs}
        if not found.rules[node].reduces:
            tensors[_OUTPUT] = node.outputs[0]
        known[node] = {
            number: (found.rows[tensor].row_bytes, max(align, tensor.dtype.bytes))
            for number, tensor in tensors.items()
        }
    for action in found.actions:
        if isinstance(action, Run):
            numbers = known[action.node]
            for index, place in action.reads:
                size, multiple = numbers[index]
                if (place.start + place.slot * size) % multiple:
                    return False
            if _OUTPUT in numbers:
                size, multiple = numbers[_OUTPUT]
                if (action.writes.start + action.writes.slot * size) % multiple:
                    return False
    return True
