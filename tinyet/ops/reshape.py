# SPDX-License-Identifier: Apache-2.0
"""The same bytes under another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.ops.shared.movement import check_rearranged, copy_kernels
from tinyet.opset import Op, TimeAxes, TimeRule, whole


@dataclass(frozen=True)
class Reshape(Attrs):
    """inputs: x of any shape; `shape` has as many elements."""

    name: ClassVar[str] = "reshape"
    shape: Shape


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
    over_time=over_time,
    check=check_rearranged,
    inplace=(0,),
    same_scale=True,
    view=True,
    kernels=copy_kernels(),
)
