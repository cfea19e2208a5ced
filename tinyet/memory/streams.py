# SPDX-License-Identifier: Apache-2.0
"""Layers computed row by row, one with another, so that the values between them are never there as a whole.

A stream runs some calls that follow each other in a loop: whenever a layer has the rows that its next rows need, it
computes these, the last layer first, so that no row waits longer than it must. Values between its layers live in
windows: rows that lie one after another, the oldest at the start; when nobody needs that any more, the others move
there. So each layer finds its rows where it found the last ones, without gaps, and any kernel can compute a strip: it is a
layer of few rows. Nothing is computed twice.

A window may have a second place, in which its rows wait while other layers work: then the first place, where a layer
reads or writes them, is free for the windows of others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tinyet.ir import Graph, Node, Tensor
from tinyet.memory.row_records import Action, Area, Fill, Move, Place, Rows, Run, Take, row_bytes
from tinyet.memory.row_schedule import Schedule
from tinyet.memory.row_windows import Placed
from tinyet.opset import RowRule

__all__ = ["Action", "Area", "Fill", "Move", "Place", "Rows", "Run", "Stream", "Take", "row_bytes", "stream"]


@dataclass(frozen=True, eq=False)
class Stream:
    """nodes: the calls, in order. rules: how each is computed by rows. actions: all that is done, in order.
    rows: of every tensor that is read or written by rows. taken: the stream's first value comes from the caller row by
    row.
    """

    nodes: tuple[Node, ...]
    rules: Mapping[Node, RowRule]
    actions: tuple[Action, ...]
    rows: Mapping[Tensor, Rows]
    taken: bool

    @property
    def windows(self) -> tuple[Rows, ...]:
        return tuple(rows for rows in self.rows.values() if rows.window)

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(action for action in self.actions if isinstance(action, Move))

    def runs(self, node: Node) -> int:
        """How often a layer is called."""
        return node.outputs[0].shape[1] // self.rules[node].out


def stream(
    graph: Graph,
    nodes: Sequence[Node],
    rules: Mapping[Node, RowRule],
    *,
    align: int,
    waiting: Collection[Tensor] = (),
    take: bool = False,
) -> Stream | None:
    """The stream of calls that follow each other; None where they cannot be one.

    rules: of each of the calls. waiting: the windows with a second place. take: the graph's input that they read comes
    from the caller, row by row.
    """
    found = Schedule(graph, nodes, rules, take)
    if not found.possible() or not found.run():
        return None
    placed = Placed(found, waiting)
    placed.place()
    result = Stream(tuple(nodes), dict(rules), tuple(placed.actions), placed.rows(), take)
    return result if _aligned(result, align) else None


def _aligned(found: Stream, align: int) -> bool:
    """Do all strips begin where tensors may begin?"""
    for action in found.actions:
        if isinstance(action, Run):
            places = [(action.node.input(index), place) for index, place in action.reads]
            for tensor, place in (*places, (action.node.outputs[0], action.writes)):
                if place.slot * row_bytes(tensor) % max(align, tensor.dtype.bytes):
                    return False
    return True
