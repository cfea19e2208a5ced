# SPDX-License-Identifier: Apache-2.0
"""Elements, or whole rows, of a tensor at places along an axis that other values say.

A place below 0 counts from the end; one outside takes the nearest there is, so that nothing is read past the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.movement import MOVABLE
from tinyet.ops.shared.shapes import around_axis, expect_axis
from tinyet.opset import AXIS, Call, Iteration, Kernel, Nest, Op, Struct, library_call, operand

_LEAST_ROW = 8
"""Bytes of a row that is worth a memcpy."""

_UNSTATED = "the sizes of its elements and rows leave one kernel to choose"


@dataclass(frozen=True)
class Gather(Attrs):
    """inputs: x; places int32, either a list, which takes rows of x along `axis`, or of x's shape but along `axis`,
    which takes an element for each of its own."""

    name: ClassVar[str] = "gather"
    axis: int = field(metadata=AXIS)


def attrs_of(node: Node) -> Gather:
    assert isinstance(node.attrs, Gather)
    return node.attrs


def by_rows(node: Node) -> bool:
    """Whether all elements at a place along the axis are taken together."""
    return len(node.input(1).shape) == 1


def infer(node: Node) -> tuple[Shape, ...]:
    axis, places = attrs_of(node).axis, node.input(1).shape
    shape = expect_axis(node, axis)
    if by_rows(node):
        return ((*shape[:axis], *places, *shape[axis + 1 :]),)
    if len(places) != len(shape) or any(size != places[at] for at, size in enumerate(shape) if at != axis):
        raise UnsupportedShape(f"gather: places of shape {places} in {shape} along axis {axis}", node.where)
    return (places,)


def iterate(node: Node) -> Iteration:
    """What a place is, only the device knows: along the axis any element may be read."""
    nest, axis, x = Nest(), attrs_of(node).axis, node.input(0)
    out = nest.all_parallel(node.output.shape)
    any_place = nest.reduced(x.shape[axis])
    if by_rows(node):
        count = len(node.input(1).shape)
        read = (*out[:axis], any_place, *out[axis + count :])
        return nest.iteration([operand(*read), operand(*out[axis : axis + count])], [operand(*out)])
    return nest.iteration([operand(*out[:axis], any_place, *out[axis + 1 :]), operand(*out)], [operand(*out)])


def check(node: Node) -> str | None:
    x, places, out = node.input(0), node.input(1), node.output
    if places.dtype is not DType.INT32:
        return f"the places must be int32, not {places.dtype.value}"
    if out.dtype not in MOVABLE or (x.dtype, x.type.quant) != (out.dtype, out.type.quant):
        return "gather moves elements, so input and output must have one type and quantization"
    if out.type.quant is not None and out.type.quant.axis is not None:
        return "gather cannot take from what is quantized per channel"
    return None


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, places = inputs
    assert x is not None
    assert places is not None
    axis = attrs_of(node).axis
    size = x.shape[axis]
    found = places.astype(np.int64)
    found = np.clip(np.where(found < 0, found + size, found), 0, size - 1)
    taken = np.take(x, found, axis) if by_rows(node) else np.take_along_axis(x, found, axis)
    return (np.ascontiguousarray(taken),)


def refuse_elements(node: Node, _target: Target) -> str | None:
    if not by_rows(node):
        return "takes rows, and here each element has a place of its own"
    if _row_bytes(node) < _LEAST_ROW:
        return f"takes rows of {_LEAST_ROW} bytes and more"
    return None


def _row_bytes(node: Node) -> int:
    x = node.input(0)
    return around_axis(x.shape, attrs_of(node).axis)[2] * x.dtype.bytes


def lower_rows(node: Node, _target: Target) -> Call:
    outer, size, _ = around_axis(node.input(0).shape, attrs_of(node).axis)
    count = node.input(1).type.count
    fields = {"outer": outer, "size": size, "count": count, "row_bytes": _row_bytes(node)}
    return library_call("tinyet_gather_rows", node, [0, 1], Struct("tinyet_gather_rows_params", fields))


def kernel(dtype: DType) -> Kernel:
    symbol = f"tinyet_gather_x{8 * dtype.bytes}"

    def lower(node: Node, _target: Target) -> Call:
        axis = attrs_of(node).axis
        outer, size, inner = around_axis(node.input(0).shape, axis)
        count = node.output.shape[axis]
        own = not by_rows(node)
        fields = {"outer": outer, "size": size, "inner": inner, "count": count}
        steps = {"outer_step": count * inner * own, "step": inner if own else 1, "inner_step": int(own)}
        return library_call(symbol, node, [0, 1], Struct("tinyet_gather_params", fields | steps))

    return Kernel(
        symbol, dtype.suffix, lower, ("tinyet_gather.h",), (f"{symbol}.c",), no_cost_model=_UNSTATED
    )


OP = Op(
    attrs=Gather,
    summary="elements or rows at places along an axis that int32 values say",
    infer=infer,
    inputs=(2, 2),
    reference=reference,
    iteration=iterate,
    check=check,
    same_scale=True,
    kernels=(
        *(
            Kernel(
                "tinyet_gather_rows",
                dtype.suffix,
                lower_rows,
                ("tinyet_gather.h",),
                ("tinyet_gather_rows.c",),
                refuse_elements,
                no_cost_model=_UNSTATED,
            )
            for dtype in MOVABLE
        ),
        *(kernel(dtype) for dtype in MOVABLE),
    ),
)
