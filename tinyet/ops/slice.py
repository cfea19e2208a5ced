# SPDX-License-Identifier: Apache-2.0
"""Part of a tensor along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.ops.shared.movement import Move, check_rearranged, move_kernels, plan, strides
from tinyet.ops.shared.shapes import expect_axis
from tinyet.opset import AXIS, START, STOP, Iteration, Nest, Op, operand


@dataclass(frozen=True)
class Slice(Attrs):
    """inputs: x; output: indices start, start + step, … below stop along `axis`.

    0 <= start < stop <= size of the axis, step >= 1.
    """

    name: ClassVar[str] = "slice"
    axis: int = field(metadata=AXIS)
    start: int = field(metadata=START)
    stop: int = field(metadata=STOP)
    step: int = 1


def attrs_of(node: Node) -> Slice:
    assert isinstance(node.attrs, Slice)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    attrs = attrs_of(node)
    shape = expect_axis(node, attrs.axis)
    size = shape[attrs.axis]
    if not 0 <= attrs.start < attrs.stop <= size or attrs.step < 1:
        taken = f"{attrs.start}:{attrs.stop}:{attrs.step}"
        raise UnsupportedShape(f"slice: {taken} of an axis of {size} is empty or leaves it", node.where)
    count = len(range(attrs.start, attrs.stop, attrs.step))
    return ((*shape[: attrs.axis], count, *shape[attrs.axis + 1 :]),)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, attrs = inputs[0], attrs_of(node)
    assert x is not None
    along = slice(attrs.start, attrs.stop, attrs.step)
    return (np.ascontiguousarray(x[(slice(None),) * attrs.axis + (along,)]),)


def iterate(node: Node) -> Iteration:
    nest, a = Nest(), attrs_of(node)
    out = nest.all_parallel(node.output.shape)
    read = (a.step * place + a.start if axis == a.axis else place for axis, place in enumerate(out))
    return nest.iteration([operand(*read)], [operand(*out)])


def part(node: Node, axis: int, count: int) -> Slice | None:
    attrs = attrs_of(node)
    if axis != attrs.axis:
        return attrs
    return None if attrs.step == 1 else Slice(axis, 0, (count - 1) * attrs.step + 1, attrs.step)


def plan_of(node: Node) -> Move:
    attrs = attrs_of(node)
    source = list(strides(node.input(0).shape))
    offset = attrs.start * source[attrs.axis]
    source[attrs.axis] *= attrs.step
    return plan(node.output.shape, tuple(source), offset)


OP = Op(
    attrs=Slice,
    summary="part of a tensor along one axis, with a step (split, chunk, select, narrow)",
    infer=infer,
    reference=reference,
    iteration=iterate,
    part=part,
    check=check_rearranged,
    same_scale=True,
    kernels=move_kernels(plan_of),
)
