# SPDX-License-Identifier: Apache-2.0
"""The same bytes under another shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.ops.shared.movement import check_rearranged, copy_kernels
from tinyet.opset import ONE, SHAPE, Index, Iteration, Nest, Op, TimeAxes, TimeRule, operand, whole


@dataclass(frozen=True)
class Reshape(Attrs):
    """inputs: x of any shape; `shape` has as many elements."""

    name: ClassVar[str] = "reshape"
    shape: Shape = field(metadata=SHAPE)


def attrs_of(node: Node) -> Reshape:
    assert isinstance(node.attrs, Reshape)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape, have = attrs_of(node).shape, node.input(0).shape
    if any(size < 1 for size in shape) or math.prod(shape) != math.prod(have):
        raise UnsupportedShape(f"reshape: {have} has not as many elements as {shape}", node.where)
    return (shape,)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    return (x.reshape(attrs_of(node).shape),)


def iterate(node: Node) -> Iteration | str:
    """By the sizes that both shapes are made of: (6, 4) and (3, 8) of 3, 2 and 4, (4, 6) and (6, 4) of none."""
    before, after = node.input(0).shape, node.output.shape
    lengths = {math.prod(shape[axis:]) for shape in (before, after) for axis in range(len(shape))}
    cuts = sorted({1, *lengths})
    if any(large % small for small, large in itertools.pairwise(cuts)):
        return f"{node.op} takes {before} apart and puts {after} together"
    nest = Nest()
    places = {small: nest.parallel(large // small) for small, large in itertools.pairwise(cuts)}

    def index(shape: Shape, axis: int) -> Index:
        step = math.prod(shape[axis + 1 :])
        return sum(
            (place * (cut // step) for cut, place in places.items() if step <= cut < step * shape[axis]), ONE
        )

    x, out = ([index(shape, axis) for axis in range(len(shape))] for shape in (before, after))
    return nest.iteration([operand(*x)], [operand(*out)])


def part(node: Node, axis: int, count: int) -> Reshape:
    shape = attrs_of(node).shape
    return Reshape((*shape[:axis], count, *shape[axis + 1 :]))


def over_time(node: Node, axes: TimeAxes) -> TimeRule | str:
    """Time stays an axis where as many elements lie around it as before; else the steps become one whole."""
    shape, (axis,) = attrs_of(node).shape, axes
    assert axis is not None
    before, steps = math.prod(node.input(0).shape[:axis]), node.input(0).shape[axis]
    places = [p for p, size in enumerate(shape) if size == steps and math.prod(shape[:p]) == before]
    if not places:
        return whole(node, (0,), steps)
    place = places[0]
    return TimeRule((0,), place, lambda count: Reshape((*shape[:place], count, *shape[place + 1 :])))


# The kernel copies; it runs only where both cannot share their bytes (a graph input returned as an output).
OP = Op(
    attrs=Reshape,
    summary="another shape for the same bytes: costs nothing",
    infer=infer,
    reference=reference,
    iteration=iterate,
    part=part,
    over_time=over_time,
    check=check_rearranged,
    inplace=(0,),
    same_scale=True,
    view=True,
    kernels=copy_kernels(),
)
