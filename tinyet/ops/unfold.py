# SPDX-License-Identifier: Apache-2.0
"""Windows that slide along an axis, each written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.ops.shared.movement import Move, check_rearranged, move_kernels, plan, strides
from tinyet.ops.shared.shapes import expect_axis
from tinyet.opset import AXIS, Iteration, Nest, Op, operand


@dataclass(frozen=True)
class Unfold(Attrs):
    """inputs: x. Output: along `axis` the windows, and what is in each along a new, last axis.

    Window w holds the `size` elements w * step, w * step + dilation, …; as many windows as fit in whole.
    """

    name: ClassVar[str] = "unfold"
    axis: int = field(metadata=AXIS)
    size: int
    step: int = 1
    dilation: int = 1


def attrs_of(node: Node) -> Unfold:
    assert isinstance(node.attrs, Unfold)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    a = attrs_of(node)
    shape = expect_axis(node, a.axis)
    wide = (a.size - 1) * a.dilation + 1
    if min(a.size, a.step, a.dilation) < 1 or wide > shape[a.axis]:
        windows = f"windows of {a.size}, steps of {a.step}, {a.dilation} apart"
        raise UnsupportedShape(f"unfold: {windows}, of an axis of {shape[a.axis]}", node.where)
    count = (shape[a.axis] - wide) // a.step + 1
    return ((*shape[: a.axis], count, *shape[a.axis + 1 :], a.size),)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, a = inputs[0], attrs_of(node)
    assert x is not None
    count = node.output.shape[a.axis]
    first = np.arange(count)[:, None] * a.step + np.arange(a.size)[None] * a.dilation
    windows = np.take(x, first, a.axis)
    return (np.ascontiguousarray(np.moveaxis(windows, a.axis + 1, -1)),)


def plan_of(node: Node) -> Move:
    a = attrs_of(node)
    source = list(strides(node.input(0).shape))
    within = source[a.axis] * a.dilation
    source[a.axis] *= a.step
    return plan(node.output.shape, (*source, within))


def iterate(node: Node) -> Iteration:
    nest, a = Nest(), attrs_of(node)
    *out, tap = nest.all_parallel(node.output.shape)
    read = (a.step * place + a.dilation * tap if axis == a.axis else place for axis, place in enumerate(out))
    return nest.iteration([operand(*read)], [operand(*out, tap)])


def part(node: Node, axis: int, count: int) -> Unfold:
    """So many windows, or elements of each."""
    attrs = attrs_of(node)
    return replace(attrs, size=count) if axis == len(node.output.shape) - 1 else attrs


OP = Op(
    attrs=Unfold,
    summary="windows that slide along an axis, written out",
    infer=infer,
    reference=reference,
    iteration=iterate,
    part=part,
    check=check_rearranged,
    same_scale=True,
    kernels=move_kernels(plan_of),
)
