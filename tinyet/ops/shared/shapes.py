# SPDX-License-Identifier: Apache-2.0
"""Shape rules that several operators have, and the sizes around an axis."""

from __future__ import annotations

import math

from tinyet.errors import UnsupportedShape
from tinyet.ir import Node, Shape


def same_shape(node: Node) -> tuple[Shape, ...]:
    """The shape rule of an operator that works element by element on input 0."""
    return (node.input(0).shape,)


def expect_rank(node: Node, index: int, rank: int) -> Shape:
    """The shape of an input, which must have `rank` dimensions."""
    shape = node.input(index).shape
    if len(shape) != rank:
        raise UnsupportedShape(
            f"{node.op}: input {index} must have {rank} dimensions, has {len(shape)}", node.where
        )
    return shape


def expect_axis(node: Node, axis: int) -> Shape:
    """The shape of input 0; raises UnsupportedShape when it has no such axis."""
    shape = node.input(0).shape
    if not 0 <= axis < len(shape):
        raise UnsupportedShape(f"{node.op}: no axis {axis} in {len(shape)} dimensions", node.where)
    return shape


def around_axis(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Elements (outer, along, inner): before the axis, along it, behind it."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
