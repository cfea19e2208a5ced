# SPDX-License-Identifier: Apache-2.0
"""Layers computed row by row, one with another, so that the values between them are never there as a whole.

A stream runs some calls that follow each other in a loop: whenever a layer has the rows that its next rows need, it
computes these, the last layer first, so that no row waits longer than it must. Values between its layers live in
windows: rows that lie one after another, the oldest at the start; when nobody needs that any more, the others move
there. So each layer finds its rows where it found the last ones, without gaps, and any kernel can compute a strip: it
is a layer of few rows. Nothing is computed twice.

Windows have places of their own, or are in a pile, one directly behind the other: it takes no more than the rows that
are there at a time, and moves more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.ir import Graph, Node, Tensor
from tinyet.memory.row_records import Action, Fill, Move, Place, Rows, Run, Shift, Take, row_bytes
from tinyet.memory.row_schedule import Schedule
from tinyet.memory.row_windows import Placed
from tinyet.opset import RowRule
from tinyet.opset.sweep import Bytes

__all__ = ["Action", "Fill", "Move", "Place", "Rows", "Run", "Shift", "Stream", "Take", "row_bytes", "stream"]


@dataclass(frozen=True, eq=False)
class Stream:
    """nodes: the calls, in order. rules: how each is computed by rows. actions: all that is done, in order.
    rows: of every tensor that is read or written by rows. pile: the windows in it, the lowest first; heights: its bytes
    at each action. taken: the stream's first value comes from the caller row by row.
    """

    nodes: tuple[Node, ...]
    rules: Mapping[Node, RowRule]
    actions: tuple[Action, ...]
    rows: Mapping[Tensor, Rows]
    pile: tuple[Tensor, ...]
    heights: Bytes
    taken: bool

    @property
    def windows(self) -> tuple[Rows, ...]:
        return tuple(rows for rows in self.rows.values() if rows.window)

    @property
    def base(self) -> Tensor | None:
        """The whole tensor beneath the pile, where one is."""
        return self.pile[0] if self.pile and not self.rows[self.pile[0]].window else None

    @property
    def moved(self) -> tuple[int, ...]:
        """Bytes of each move."""
        return tuple(
            action.bytes if isinstance(action, Shift) else action.kept * row_bytes(action.tensor)
            for action in self.actions
            if isinstance(action, Move | Shift)
        )

    def moments(self, node: Node) -> list[int]:
        """The numbers of the actions that compute a layer's strips."""
        return [k for k, action in enumerate(self.actions) if isinstance(action, Run) and action.node is node]

    def runs(self, node: Node) -> int:
        """How often a layer is called."""
        return self.rules[node].strips(node) or 0


def stream(
    graph: Graph,
    nodes: Sequence[Node],
    rules: Mapping[Node, RowRule],
    *,
    align: int,
    piled: bool = False,
    beneath: bool = False,
    take: bool = False,
) -> Stream | None:
    """The stream of calls that follow each other; None where they cannot be one.

    rules: of each of the calls. piled: windows are in a pile; beneath: with what is whole of the last layer's output
    beneath them. take: the graph's input that they read comes from the caller, row by row.
    """
    found = Schedule(graph, nodes, rules, take)
    if not found.possible() or not found.run():
        return None
    last = found.states.get(nodes[-1].outputs[0]) if piled and beneath else None
    base = (
        last.tensor if last is not None and last.whole and last.top == 0 and last.end == last.height else None
    )
    placed = Placed(found, piled, base)
    placed.place()
    pile = tuple(window.state.tensor for window in placed.pile)
    result = Stream(
        tuple(nodes), dict(rules), tuple(placed.actions), placed.rows(), pile, placed.heights(), take
    )
    return result if _aligned(result, align) else None


def _aligned(found: Stream, align: int) -> bool:
    """Do all strips begin where tensors may begin?"""
    for action in found.actions:
        if isinstance(action, Run):
            places = [(action.node.input(index), place) for index, place in action.reads]
            if not found.rules[action.node].reduces:
                places.append((action.node.outputs[0], action.writes))
            for tensor, place in places:
                if (place.start + place.slot * row_bytes(tensor)) % max(align, tensor.dtype.bytes):
                    return False
    return True
