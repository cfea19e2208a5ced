# SPDX-License-Identifier: Apache-2.0
"""An operator's rule for a few rows at a time: the rows of its inputs that some rows of its output need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tinyet.ir import Attrs, Node, Tensor


@dataclass(frozen=True)
class TileMap:
    """Rows are axis 1 of tensors (1, rows, …). A tile `i` is rows `i * out` to `(i + 1) * out`, `out` not included, of
    the output; it needs the rows from `i * stride - before` on, `window` of them, of each input in `inputs`.

    inputs: those that are read by rows; all others are the same for every tile.
    attrs:  of the operator on a tile, which finds what is above and below the image among its rows.
    fill:   the value of rows above and below the image, as it is stored; None where there are none.

    With an `out` of 0 the output is not made of rows: it is there when the last tile is done, and what a tile leaves
    for the next one is in its scratch memory, which is zero before the first and nobody else's until after the last.
    """

    inputs: tuple[int, ...]
    attrs: Attrs
    window: int = 1
    stride: int = 1
    before: int = 0
    out: int = 1
    fill: int | None = None

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


TileMaps = Callable[[Node], TileMap | None]
"""A node's rule; None for one that is not computed by rows."""


def never(_node: Node) -> TileMap | None:
    """Of operators whose output needs more than some rows of the input."""
    return None


def has_rows(tensor: Tensor) -> bool:
    """Whether it is one image, (1, rows, columns, …), of more rows than one."""
    return len(tensor.shape) >= 3 and tensor.shape[0] == 1 and tensor.shape[1] > 1


def each_row(node: Node) -> TileMap | None:
    """Of operators that make row r of the output of row r of their inputs: element by element, or along the last axis.

    An input of fewer axes, or of one row, is the same for every row. None where a constant differs from row to row.
    """
    output = node.outputs[0]
    if not has_rows(output) or len(node.outputs) != 1:
        return None
    by_rows = []
    for index, tensor in enumerate(node.inputs):
        if tensor is None or len(tensor.shape) < len(output.shape) - 1 or _row_count(tensor, output) == 1:
            continue
        if tensor.is_constant or tensor.shape[:2] != output.shape[:2]:
            return None
        by_rows.append(index)
    return TileMap(tuple(by_rows), node.attrs) if by_rows else None


def _row_count(tensor: Tensor, output: Tensor) -> int:
    """Of a tensor that broadcasts to the output."""
    behind = len(output.shape) - 1
    return tensor.shape[-behind] if len(tensor.shape) >= behind else 1


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
