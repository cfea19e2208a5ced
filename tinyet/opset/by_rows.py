# SPDX-License-Identifier: Apache-2.0
"""Whether an operator can be computed a few rows at a time: it follows from its iteration."""

from __future__ import annotations

from tinyet.ir import Attrs, DType, Node, Tensor
from tinyet.opset.blocks import Blocks, blocks
from tinyet.opset.op import Op
from tinyet.opset.tiles import Fill, TileMap, has_rows


def tile_map(op: Op, node: Node, as_it_is: Attrs) -> TileMap | str:
    """A node's tiles of as few rows as there can be; a text says why it has none.

    as_it_is: attributes of the operator whose output is its input.
    """
    reduced = op.reduce_tiles(node)
    if reduced is not None:
        return reduced
    if len(node.outputs) != 1 or not has_rows(node.outputs[0]):
        return f"{node.op} makes no image of several rows"
    space = op.iteration(node)
    if isinstance(space, str):
        return space
    found = blocks(node, space, 1, least=2)
    if isinstance(found, str):
        return found
    if not found.read:
        return f"{node.op} makes all rows of the same"
    for index, axis in found.read.items():
        tensor = node.input(index)
        if tensor.is_constant:
            return f"{node.op} has another value of {tensor.name} for each row"
        if axis != 1 or tensor.shape[0] != 1 or tensor.shape[1] == 1:
            return f"{node.op} makes rows of no rows of {tensor.name}"
    attrs = op.part(node, 1, found.size)
    if isinstance(attrs, str):
        return attrs
    return TileMap(
        tuple(found.read),
        as_it_is if attrs is None else attrs,
        window=found.extent,
        stride=found.stride,
        before=-found.first,
        out=found.size,
        fill=_fill(found, node.input(min(found.read))),
    )


def _fill(found: Blocks, tensor: Tensor) -> Fill:
    """In float, what is outside the image is left out of sums, which no value of it does."""
    (outside, *others) = dict.fromkeys(found.outside.values())
    if outside == "edge" and not others:
        return "edge"
    if others or outside is None or isinstance(outside, str) or tensor.dtype is DType.FLOAT32:
        return None
    return int(outside)
