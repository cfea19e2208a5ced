# SPDX-License-Identifier: Apache-2.0
"""Positions of the greatest or least elements along an axis, in order. Of equal ones the first comes first; a NaN
counts as greater than any number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.shapes import around_axis, expect_axis
from tinyet.opset import ALONE, AXIS, Call, Iteration, Kernel, Nest, Op, Struct, library_call, operand

_DTYPES = (DType.INT8, DType.INT16, DType.FLOAT32, DType.INT32)


@dataclass(frozen=True)
class ArgSort(Attrs):
    """inputs: x int8, int16, int32 or float32; output: int32, the first `count` places along `axis`."""

    name: ClassVar[str] = "argsort"
    axis: int = field(metadata=AXIS)
    count: int
    descending: bool


def attrs_of(node: Node) -> ArgSort:
    assert isinstance(node.attrs, ArgSort)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    attrs = attrs_of(node)
    shape = expect_axis(node, attrs.axis)
    if not 1 <= attrs.count <= shape[attrs.axis]:
        raise UnsupportedShape(f"argsort: {attrs.count} of {shape[attrs.axis]} elements", node.where)
    return ((*shape[: attrs.axis], attrs.count, *shape[attrs.axis + 1 :]),)


def iterate(node: Node) -> Iteration:
    nest, axis = Nest(), attrs_of(node).axis
    out = nest.all_parallel(node.output.shape)
    read = [nest.reduced(size) if a == axis else out[a] for a, size in enumerate(node.input(0).shape)]
    return nest.iteration([operand(*read)], [operand(*out)])


def check(node: Node) -> str | None:
    if node.input(0).dtype not in _DTYPES:
        return f"argsort has no {node.input(0).dtype.value} form"
    return None if node.output.dtype is DType.INT32 else "places must be int32"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, attrs = inputs[0], attrs_of(node)
    assert x is not None
    axis = attrs.axis
    if attrs.descending:
        # From the other end, so that of equal elements the first stays first.
        order = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
        order = x.shape[axis] - 1 - order
    else:
        order = np.argsort(x, axis, kind="stable")
    return (np.ascontiguousarray(np.take(order, np.arange(attrs.count), axis), np.int32),)


def kernel(dtype: DType) -> Kernel:
    symbol = f"tinyet_argsort_{dtype.suffix}"

    def lower(node: Node, _target: Target) -> Call:
        attrs = attrs_of(node)
        outer, size, inner = around_axis(node.input(0).shape, attrs.axis)
        fields = {"outer": outer, "size": size, "inner": inner}
        wanted = {"count": attrs.count, "descending": int(attrs.descending)}
        return library_call(symbol, node, [0], Struct("tinyet_argsort_params", fields | wanted))

    dtypes = dtype.suffix if dtype is DType.INT32 else f"{dtype.suffix}_s32"
    return Kernel(
        symbol,
        dtypes,
        lower,
        ("tinyet_argsort.h",),
        (f"{symbol}.c",),
        no_cost_model=ALONE,
    )


OP = Op(
    attrs=ArgSort,
    summary="where the greatest or the least elements along an axis are, in their order",
    infer=infer,
    reference=reference,
    iteration=iterate,
    check=check,
    kernels=tuple(kernel(dtype) for dtype in _DTYPES),
)
