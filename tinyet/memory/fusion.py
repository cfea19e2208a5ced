# SPDX-License-Identifier: Apache-2.0
"""Layers computed tile by tile, together, so that the values between them are never whole.

A fusion group runs some successive calls in a loop: whenever a layer has the rows that its next rows need, it
computes these, the last layer first, so that no row waits longer than it must. Values between its layers live in line
buffers: rows that lie one after another, the oldest at the start; when that is not needed any more, the others move
there. So each layer finds its rows where it found the last ones, without gaps, and any kernel can compute a tile: it
is a layer of few rows. Nothing is computed twice, unless tiles do not come out even: the last one then begins earlier.

Line buffers have places of their own, or are stacked, one behind the other in one piece of memory: a row that is not
needed any more leaves its room to another buffer. They move only where one finds no room to grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tinyet.ir import Node, Tensor
from tinyet.memory.tile_records import (
    Action,
    Close,
    Fill,
    LineBuffer,
    Move,
    Open,
    Place,
    Run,
    Shift,
    Take,
    TiledInput,
    row_bytes,
)
from tinyet.opset import TileMap
from tinyet.opset.access_order import Bytes

__all__ = [
    "Action",
    "Close",
    "Fill",
    "FusionGroup",
    "LineBuffer",
    "Move",
    "Open",
    "Place",
    "Run",
    "Shift",
    "Take",
    "TiledInput",
    "row_bytes",
]


_COUNTS = 5
"""Numbers that say how far the rows of an image have come."""


@dataclass(frozen=True, eq=False)
class FusionGroup:
    """nodes: the calls, in order. rules: how each is computed by rows. actions: all that is done, in order.
    rows: of every tensor that is read or written by rows. stacked_buffers: the line buffers in it, the lowest first;
    heights: its bytes at each action. tiled_input: the value that comes from the caller row by row, where one does.
    loose: inputs of the graph, and views of them, that begin wherever the padding above them ends; that begins where
    tensors may.
    """

    nodes: tuple[Node, ...]
    rules: Mapping[Node, TileMap]
    actions: tuple[Action, ...]
    rows: Mapping[Tensor, LineBuffer]
    stacked_buffers: tuple[Tensor, ...]
    heights: Bytes
    tiled_input: TiledInput | None
    loose: tuple[Tensor, ...] = ()

    @property
    def line_buffers(self) -> tuple[LineBuffer, ...]:
        return tuple(rows for rows in self.rows.values() if rows.window)

    @property
    def base(self) -> Tensor | None:
        """The whole tensor beneath the stacked buffers, if there is one."""
        return (
            self.stacked_buffers[0]
            if self.stacked_buffers and not self.rows[self.stacked_buffers[0]].window
            else None
        )

    def passing(self, tensor: Tensor) -> LineBuffer | None:
        """The line buffer that a tensor passes through, where it is never there as a whole."""
        if self.tiled_input is not None and tensor in self.tiled_input.names:
            tensor = self.tiled_input.tensor
        rows = self.rows.get(tensor)
        return rows if rows is not None and rows.window else None

    @cached_property
    def moved(self) -> tuple[int, ...]:
        """Bytes of each move."""
        return tuple(self.moved_by(action) for action in self.actions if isinstance(action, (Move, Shift)))

    def moved_by(self, action: Move | Shift) -> int:
        """Bytes that an action moves."""
        return action.bytes if isinstance(action, Shift) else action.kept * self._row_bytes[action.tensor]

    @cached_property
    def _row_bytes(self) -> dict[Tensor, int]:
        return {tensor: rows.row_bytes for tensor, rows in self.rows.items()}

    @property
    def kept_bytes(self) -> int:
        """Static memory beside the arena, with pointers of 32 bits: the position from push to push of rows."""
        if self.tiled_input is None:
            return 0
        places = sum(
            not rows.window and not rows.stacked
            for node in self.nodes
            for tensor in (*(node.input(i) for i in self.rules[node].inputs), node.outputs[0])
            if (rows := self.rows.get(tensor)) is not None
        )
        return 4 * (_COUNTS + places + 2 * self.windows)

    @property
    def windows(self) -> int:
        """Stacked windows: some tensors share one."""
        return len({self.rows[tensor].number for tensor in self.stacked_buffers})

    def moments(self, node: Node) -> list[int]:
        """The numbers of the actions that compute a layer's tiles."""
        return self._moments[node]

    @cached_property
    def _moments(self) -> dict[Node, list[int]]:
        found: dict[Node, list[int]] = {node: [] for node in self.nodes}
        for k, action in enumerate(self.actions):
            if isinstance(action, Run):
                found[action.node].append(k)
        return found

    def runs(self, node: Node) -> int:
        """How often a layer is called."""
        return self.rules[node].tiles(node)
