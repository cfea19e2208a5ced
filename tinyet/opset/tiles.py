# SPDX-License-Identifier: Apache-2.0
"""An operator a few rows at a time: the rows of its inputs that some rows of its output need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from tinyet.ir import Attrs, Node, Tensor

Fill = int | Literal["edge"] | None


@dataclass(frozen=True)
class TileMap:
    """Rows are an axis of the output, and one of its inputs. A tile `i` is rows `i * out` to `(i + 1) * out`, `out` not
    included, of the output; it needs the rows from `i * stride - before` on, `window` of them, of each input in
    `inputs`. Where tiles do not come out even, the last one ends with the output, and computes some rows of the one
    before it again.

    inputs: those that are read by rows; all others are the same for every tile.
    attrs:  of the operator on a tile, which finds what is above and below the image among its rows.
    fill:   the value of rows above and below the image, as it is stored, or that they are copies of the row at its
            edge; None where there are none.
    axis, read: the rows' axis in the output, and in each input in `inputs`.

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
    axis: int = 1
    read: int = 1

    @property
    def reduces(self) -> bool:
        """Whether all tiles together make the output, none a part of it."""
        return self.out == 0

    def height(self, node: Node) -> int:
        """Rows of the output of a node that has this rule."""
        return node.outputs[0].shape[self.axis]

    def tiles(self, node: Node) -> int:
        """Of a node that has this rule."""
        if self.reduces:
            return node.input(self.inputs[0]).shape[self.read] // self.stride
        return -(-self.height(node) // self.out)

    def first_written(self, node: Node, tile: int) -> int:
        """The first row of the output that a tile makes."""
        return 0 if self.reduces else min(tile * self.out, self.height(node) - self.out)

    def first_read(self, node: Node, tile: int) -> int:
        """The first row of the inputs that a tile needs; those above the image are negative."""
        if self.reduces:
            return tile * self.stride - self.before
        return self.first_written(node, tile) * self.stride // self.out - self.before


ReduceTiles = Callable[[Node, int], TileMap | None]
"""The tiles, of so many rows, that all together make an output of no rows; None for a node that has none."""


def never(_node: Node, _rows: int) -> TileMap | None:
    """Of operators whose output is made of rows, or not at all by them."""
    return None


def has_rows(tensor: Tensor, axis: int | None = None) -> bool:
    """Whether it is one image, or sequence, of more rows than one. axis: that is to be its rows, where they were
    followed to it."""
    usual = row_axis(tensor)
    if axis is None or 0 < axis == usual:
        return len(tensor.shape) >= 3 and 0 < usual < len(tensor.shape) - 1
    return axis < len(tensor.shape) and tensor.shape[axis] > 1


def row_axis(tensor: Tensor) -> int:
    """Rows are what is apart along the first axis of more indices than one: of an image (1, rows, columns, channels),
    and of a sequence, (1, positions, channels) or an image of one line, (1, 1, positions, channels). So each is one
    piece of memory, behind the one before."""
    for axis, size in enumerate(tensor.shape):
        if size > 1:
            return axis
    return 0


def rows_of(tensor: Tensor) -> int:
    """How many a tensor has."""
    return tensor.shape[row_axis(tensor)] if tensor.shape else 1


def row_pixels(tensor: Tensor, axis: int) -> int:
    """How many times all channels are in a row, where an axis is the rows."""
    return prod(tensor.shape[axis + 1 : -1])


def in_pieces(tensor: Tensor, axis: int) -> bool:
    """Whether the elements of a row lie apart where the tensor is whole, with those of other rows between them. In
    line buffers a row is one piece always; so several of them are no part of the tensor's shape."""
    return any(size > 1 for size in tensor.shape[:axis])


def tile_node(node: Node, rule: TileMap) -> Node:
    """The node for one tile: a node like any other, of smaller tensors."""
    inputs = [
        _rows(tensor, rule.read, rule.window) if tensor is not None and index in rule.inputs else tensor
        for index, tensor in enumerate(node.inputs)
    ]
    output = node.outputs[0] if rule.reduces else _rows(node.outputs[0], rule.axis, rule.out)
    return node.replace(attrs=rule.attrs, inputs=inputs, outputs=[output])


def _rows(tensor: Tensor, axis: int, rows: int) -> Tensor:
    shape = (*tensor.shape[:axis], rows, *tensor.shape[axis + 1 :])
    return Tensor(tensor.name, replace(tensor.type, shape=shape))
