# SPDX-License-Identifier: Apache-2.0
"""A tensor whose elements stand in the opposite order along some axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.ops.shared.movement import Move, check_rearranged, move_kernels, plan, strides
from tinyet.opset import AXES, Iteration, Nest, Op, operand


@dataclass(frozen=True)
class Flip(Attrs):
    """inputs: x. Output: the last first along each of `axes`, which rise."""

    name: ClassVar[str] = "flip"
    axes: tuple[int, ...] = field(metadata=AXES)


def attrs_of(node: Node) -> Flip:
    assert isinstance(node.attrs, Flip)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape, axes = node.input(0).shape, attrs_of(node).axes
    if not axes or list(axes) != sorted({axis for axis in axes if 0 <= axis < len(shape)}):
        raise UnsupportedShape(f"flip: axes {list(axes)} of {len(shape)} dimensions", node.where)
    return (shape,)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    return (np.ascontiguousarray(np.flip(x, attrs_of(node).axes)),)


def iterate(node: Node) -> Iteration:
    nest, shape, axes = Nest(), node.output.shape, attrs_of(node).axes
    out = nest.all_parallel(shape)
    read = ((-1) * place + (shape[a] - 1) if a in axes else place for a, place in enumerate(out))
    return nest.iteration([operand(*read)], [operand(*out)])


def plan_of(node: Node) -> Move:
    shape = node.input(0).shape
    source, offset = list(strides(shape)), 0
    for axis in attrs_of(node).axes:
        offset += source[axis] * (shape[axis] - 1)
        source[axis] = -source[axis]
    return plan(shape, tuple(source), offset)


OP = Op(
    attrs=Flip,
    summary="the opposite order along axes",
    infer=infer,
    reference=reference,
    iteration=iterate,
    check=check_rearranged,
    same_scale=True,
    kernels=move_kernels(plan_of),
)
