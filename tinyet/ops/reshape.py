# SPDX-License-Identifier: Apache-2.0
"""The same bytes under another shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.ops.shared.movement import check_rearranged, copy_kernels
from tinyet.opset import ONE, SHAPE, Index, Iteration, Nest, Op, operand


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


def iterate(node: Node) -> Iteration:
    """By the sizes that both shapes are made of: (6, 4) and (3, 8) of 3, 2 and 4. (4, 6) and (6, 4) are of none: there
    everything is made of everything, and around it, as in (5, 4, 6) and (5, 6, 4), of the same places."""
    before, after = node.input(0).shape, node.output.shape
    lengths = [{math.prod(shape[axis:]) for axis in range(len(shape) + 1)} for shape in (before, after)]
    nest = Nest()
    read, written = (_Places(shape) for shape in (before, after))
    for small, large in itertools.pairwise(sorted(lengths[0] & lengths[1])):
        cuts = sorted(cut for cut in lengths[0] | lengths[1] if small <= cut <= large)
        if any(high % low for low, high in itertools.pairwise(cuts)):
            read.add(nest.reduced, [cut for cut in cuts if cut in lengths[0]])
            written.add(nest.parallel, [cut for cut in cuts if cut in lengths[1]])
        else:
            for low, high in itertools.pairwise(cuts):
                place = nest.parallel(high // low)
                read.put(place, low)
                written.put(place, low)
    return nest.iteration([operand(*read.indices)], [operand(*written.indices)])


class _Places:
    """The indices of a shape's axes, as they are put together of dimensions that are so many elements apart."""

    def __init__(self, shape: Shape) -> None:
        self.indices = [ONE for _ in shape]
        self.steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        self.sizes = shape

    def put(self, place: Index, apart: int) -> None:
        for axis, (step, size) in enumerate(zip(self.steps, self.sizes, strict=True)):
            if step <= apart < step * size:
                self.indices[axis] = self.indices[axis] + place * (apart // step)

    def add(self, make: Callable[[int], Index], cuts: Sequence[int]) -> None:
        """A dimension for each axis from one cut to the next."""
        for low, high in itertools.pairwise(cuts):
            self.put(make(high // low), low)


def part(node: Node, axis: int, count: int) -> Reshape | str:
    """Elements in a row, around which as many lie as in the input."""
    shape, before = attrs_of(node).shape, node.input(0).shape
    if math.prod(shape[:axis]) not in [math.prod(before[:place]) for place in range(len(before))]:
        return f"{node.op} takes {before} apart and puts {shape} together"
    return Reshape((*shape[:axis], count, *shape[axis + 1 :]))


# The kernel copies; it runs only where both cannot share their bytes (a graph input returned as an output).

OP = Op(
    attrs=Reshape,
    summary="another shape for the same bytes: costs nothing",
    infer=infer,
    reference=reference,
    iteration=iterate,
    part=part,
    check=check_rearranged,
    inplace=(0,),
    same_scale=True,
    view=True,
    kernels=copy_kernels(),
)
