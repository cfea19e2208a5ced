# SPDX-License-Identifier: Apache-2.0
"""An operator a few rows at a time: the rows of its inputs that some rows of its output need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from tinyet.ir import Attrs, Node, Tensor

Fill = int | Literal["edge"] | None


@dataclass(frozen=True)
class TileMap:
    """Rows are axis 1 of tensors (1, rows, …). A tile `i` is rows `i * out` to `(i + 1) * out`, `out` not included, of
    the output; it needs the rows from `i * stride - before` on, `window` of them, of each input in `inputs`.

    inputs: those that are read by rows; all others are the same for every tile.
    attrs:  of the operator on a tile, which finds what is above and below the image among its rows.
    fill:   the value of rows above and below the image, as it is stored, or that they are copies of the row at its
            edge; None where there are none.

    With an `out` of 0 the output is not made of rows: it is there when the last tile is done, and what a tile leaves
    for the next one is in its scratch memory, which is zero before the first and nobody else's until after the last.
    """

    inputs: tuple[int, ...]
    attrs: Attrs
    window: int = 1
    stride: int = 1
    before: int = 0
    out: int = 1
    fill: Fill = None

    @property
    def reduces(self) -> bool:
        """Whether all tiles together make the output, none a part of it."""
        return self.out == 0

    def tiles(self, node: Node) -> int | None:
        """Of a node that has this rule; None where they do not come out even."""
        first = node.input(self.inputs[0])
        rows, of_tile = (
            (first.shape[1], self.stride) if self.reduces else (node.outputs[0].shape[1], self.out)
        )
        return rows // of_tile if rows % of_tile == 0 else None


ReduceTiles = Callable[[Node], TileMap | None]
"""The tiles that all together make an output of no rows; None for a node that has none."""


def never(_node: Node) -> TileMap | None:
    """Of operators whose output is made of rows, or not at all by them."""
    return None


def has_rows(tensor: Tensor) -> bool:
    """Whether it is one image, (1, rows, columns, …), of more rows than one."""
    return len(tensor.shape) >= 3 and tensor.shape[0] == 1 and tensor.shape[1] > 1


def tile_node(node: Node, rule: TileMap) -> Node:
    """The node for one tile: a node like any other, of smaller tensors."""
    inputs = [
        _rows(tensor, rule.window) if tensor is not None and index in rule.inputs else tensor
        for index, tensor in enumerate(node.inputs)
    ]
    output = node.outputs[0] if rule.reduces else _rows(node.outputs[0], rule.out)
    return node.replace(attrs=rule.attrs, inputs=inputs, outputs=[output])


def _rows(tensor: Tensor, rows: int) -> Tensor:
    return Tensor(tensor.name, replace(tensor.type, shape=(1, rows, *tensor.shape[2:])))
