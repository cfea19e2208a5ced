# SPDX-License-Identifier: Apache-2.0
"""Winograd's F(2x2, 3x3) and F(4x4, 3x3) in integers, for 3x3 convolutions of stride 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import in_groups, of_input, window_walk
from tinyet.ops.shared.convolution import attrs_of
from tinyet.opset import AccessOrder, AccessOrders

TOGETHER = 4
"""Tiles that are computed together."""


def matrix(*rows: tuple[int, ...]) -> Int64:
    return np.array(rows, np.int64)


@dataclass(frozen=True, eq=False)
class Transform:
    """F(tile x tile, 3x3) in integers: with i, w, o these matrices,

        o @ ((w @ kernel @ w.T) * (i @ pixels @ i.T)) @ o.T == 2**power * odd * correlation

    tile:    output pixels a side.
    inputs:  (tile + 2, tile + 2); weights: (tile + 2, 3); outputs: (tile, tile + 2).
    lift:    TINYET_DSP_LIFT: what is added to the lower half of a pair of transformed inputs.
    """

    tile: int
    inputs: Int64
    weights: Int64
    outputs: Int64
    power: int
    odd: int
    lift: int

    @property
    def positions(self) -> int:
        return (self.tile + 2) ** 2

    @property
    def inverse(self) -> int:
        """Of `odd`, modulo 2**32."""
        return pow(self.odd, -1, 2**32)


# Of Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (2015), with their weights doubled.
F2 = Transform(
    tile=2,
    inputs=matrix((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    weights=matrix((2, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 2)),
    outputs=matrix((1, 1, 1, 0), (0, 1, -1, -1)),
    power=2,
    odd=1,
    lift=0,
)
# With their weights multiplied by 24; the last row has a third of that, and the last output column three times as much.
F4 = Transform(
    tile=4,
    inputs=matrix(
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
    weights=matrix((6, 0, 0), (-4, -4, -4), (-4, 4, -4), (1, 2, 4), (1, -2, 4), (0, 0, 8)),
    outputs=matrix((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 3)),
    power=6,
    odd=9,
    lift=12800,
)


def transformed_weights(transform: Transform, weights: Int64) -> Int64:
    """(out_c, 3, 3, in_c) → (out_c, positions, in_c)."""
    count, _, _, depth = weights.shape
    t = transform.weights
    return np.asarray(np.einsum("pi,nijc,qj->npqc", t, weights, t).reshape(count, -1, depth), np.int64)


def refuse_shape(transform: Transform, node: Node) -> str | None:
    """Why a convolution has no such tiles."""
    attrs, (_, out_h, out_w, _) = attrs_of(node), node.output.shape
    if attrs.groups != 1:
        return "only one group"
    if node.input(1).shape[1:3] != (3, 3):
        return "only 3x3 kernels"
    if (attrs.stride_h, attrs.stride_w, attrs.dilation_h, attrs.dilation_w) != (1, 1, 1, 1):
        return "only stride 1 and dilation 1"
    if min(out_h, out_w) < transform.tile:
        return f"{out_h}x{out_w} output pixels, needs {transform.tile}x{transform.tile}"
    return None


def parts_of(node: Node, blocks: int, block_bytes: int, *, kept: bool) -> int:
    """How many times F(4x4) with int8 weights transforms those of some output channels, of all but the last as many.

    As few as have room in twice the layer's input and output, for inputs are transformed again for each; where they are
    kept, one for each block. block_bytes: of the transformed weights of a block of output channels.
    """
    if kept:
        return blocks
    room = 2 * (node.input(0).type.bytes + node.output.type.bytes)
    return -(-blocks // max(1, min(blocks, room // block_bytes)))


def by_tiles(tile: int) -> AccessOrders:
    """Four tiles at a time, whose inputs are transformed before they are written; the last overlap those before."""

    @of_input
    def access_order(node: Node) -> AccessOrder:
        walk = window_walk(node)
        out_h, out_w = len(walk.tops), walk.row
        across, down = -(-out_w // tile), -(-out_h // tile)
        of_image = -(-across * down // TOGETHER)

        def corners(groups: Int64, which: int) -> tuple[Int64, Int64, Int64]:
            """Image, row and column of a tile of each group; the last tile stands in for what is missing."""
            image, group = np.divmod(groups, of_image)
            y, x = np.divmod(np.minimum(TOGETHER * group + which, across * down - 1), across)
            return image, np.minimum(y * tile, out_h - tile), np.minimum(x * tile, out_w - tile)

        def end(groups: Int64) -> Int64:
            image, y, x = corners(groups, TOGETHER - 1)
            pixels = image * walk.image + (y + tile - 1) * out_w + x + tile
            return np.asarray(pixels * walk.out_pixel, np.int64)

        def first(groups: Int64) -> Int64:
            image, y, x = corners(groups, 0)
            return walk.first_byte(image * walk.image + y * out_w + x)

        return in_groups(walk.batch * of_image, end, first, walk.in_bytes, gathered=True)

    return access_order
