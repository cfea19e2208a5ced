# SPDX-License-Identifier: Apache-2.0
"""Whether an operator can be computed a few rows at a time: it follows from its iteration."""

from __future__ import annotations

from dataclasses import replace

from tinyet.ir import Attrs, DType, Node, Tensor
from tinyet.opset.blocks import Blocks, blocks
from tinyet.opset.op import Op
from tinyet.opset.tiles import Fill, TileMap, has_rows, in_pieces, row_axis, row_pixels, rows_of

_FOUR = 4
"""Several rows of single pixels are fours: kernels take pixels by two or four, and four rows are whole words."""


def tile_map(
    op: Op,
    node: Node,
    as_it_is: Attrs,
    axes: tuple[int, int] | None = None,
    most: int | None = None,
    times: int = 1,
) -> TileMap | str:
    """A node's tiles of as few rows as there can be, or of some times as many; a text says why it has none.

    as_it_is: attributes of the operator whose output is its input. axes: of the output and of its inputs, that are
    their rows; None: `row_axis` of each. most: where rows are single pixels, as in a sequence, a tile has at least
    four, and so many that there are no more tiles than that. times: how many of the smallest tiles are one where rows
    are several pixels, or all that there are; fewer where they have to come out even, and one where rows do not lie
    together.
    """
    reduced = _reduced(op, node, axes, most, times)
    if reduced is not None:
        return reduced
    axis = row_axis(node.outputs[0]) if axes is None else axes[0]
    if len(node.outputs) != 1 or not has_rows(node.outputs[0], axis):
        return f"{node.op} makes no image of several rows"
    space = op.iteration(node)
    if isinstance(space, str):
        return space
    found = blocks(node, space, axis, least=2)
    if isinstance(found, str):
        return found
    if not found.read:
        return f"{node.op} makes all rows of the same"
    read = row_axis(node.input(min(found.read))) if axes is None else axes[1]
    alone = in_pieces(node.outputs[0], axis)
    for index, rows in found.read.items():
        tensor = node.input(index)
        if tensor.is_constant:
            return f"{node.op} has another value of {tensor.name} for each row"
        if rows != read:
            return f"{node.op} makes rows of another axis of {tensor.name}"
        if tensor.shape[read] == 1:
            return f"{node.op} makes rows of {tensor.name}, which has none"
        alone = alone or in_pieces(tensor, read)
    if alone and (found.size, found.extent, found.first) != (1, 1, 0):
        return f"{node.op} takes several rows at once that do not lie together"
    count = node.outputs[0].shape[axis] // found.size
    together = 1 if alone else _together(node.outputs[0], axis, count, most, times)
    attrs = op.part(node, axis, together * found.size)
    if isinstance(attrs, str):
        return attrs
    return TileMap(
        tuple(found.read),
        as_it_is if attrs is None else attrs,
        window=(together - 1) * found.stride + found.extent,
        stride=together * found.stride,
        before=-found.first,
        out=together * found.size,
        fill=_fill(found, node.input(min(found.read))),
        axis=axis,
        read=read,
    )


def _reduced(
    op: Op, node: Node, axes: tuple[int, int] | None, most: int | None, times: int
) -> TileMap | None:
    """Tiles that make one value together come out even, so that no row counts twice."""
    x = node.input(0) if node.inputs else None
    if x is None or not has_rows(x) or (axes is not None and axes[1] != row_axis(x)):
        return None
    rows, axis = rows_of(x), row_axis(x)
    together = _together(x, axis, rows, most, times)
    found = op.reduce_tiles(node, max(n for n in range(1, together + 1) if rows % n == 0))
    return None if found is None else replace(found, read=axis)


def _together(tensor: Tensor, axis: int, count: int, most: int | None, times: int) -> int:
    """How many of the smallest tiles are one, where there are `count` of them."""
    if row_pixels(tensor, axis) > 1:
        return min(times, count)
    if most is None:
        return 1
    return min(-(-count // (most * _FOUR)) * _FOUR, count)


def _fill(found: Blocks, tensor: Tensor) -> Fill:
    """In float, what is outside the image is left out of sums, which no value of it does."""
    (outside, *others) = dict.fromkeys(found.outside.values())
    if outside == "edge" and not others:
        return "edge"
    if others or outside is None or isinstance(outside, str) or tensor.dtype is DType.FLOAT32:
        return None
    return int(outside)
