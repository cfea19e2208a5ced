# SPDX-License-Identifier: Apache-2.0
"""Dimensions of size 1 repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.ops.shared.movement import Move, check_rearranged, move_kernels, plan, strides
from tinyet.opset import SHAPE, Op, elementwise


@dataclass(frozen=True)
class Expand(Attrs):
    """inputs: x; output: x broadcast to `shape` by numpy's rules."""

    name: ClassVar[str] = "expand"
    shape: Shape = field(metadata=SHAPE)


def attrs_of(node: Node) -> Expand:
    assert isinstance(node.attrs, Expand)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape, have = attrs_of(node).shape, node.input(0).shape
    tail = shape[len(shape) - len(have) :] if len(shape) >= len(have) else ()
    fits = len(tail) == len(have) and all(a in (1, b) for a, b in zip(have, tail, strict=True))
    if not fits or min(shape, default=1) < 1:
        raise UnsupportedShape(f"expand: {have} cannot be broadcast to {shape}", node.where)
    return (shape,)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    return (np.broadcast_to(x, attrs_of(node).shape).copy(),)


def part(node: Node, axis: int, count: int) -> Expand:
    shape = attrs_of(node).shape
    return Expand((*shape[:axis], count, *shape[axis + 1 :]))


def plan_of(node: Node) -> Move:
    shape, have = attrs_of(node).shape, node.input(0).shape
    source = tuple(0 if size == 1 else stride for size, stride in zip(have, strides(have), strict=True))
    return plan(shape, (0,) * (len(shape) - len(have)) + source)


OP = Op(
    attrs=Expand,
    summary="dimensions of size 1 repeated (expand, broadcast_to, repeat of such)",
    infer=infer,
    reference=reference,
    iteration=elementwise,
    part=part,
    check=check_rearranged,
    same_scale=True,
    kernels=move_kernels(plan_of),
)
