# SPDX-License-Identifier: Apache-2.0
"""Index of the greatest element along an axis: the first of ties; a NaN counts as greater than any number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared import reduction
from tinyet.ops.shared.counting import Parts
from tinyet.ops.shared.shapes import around_axis, expect_axis
from tinyet.opset import AXIS, Call, CostModel, Iteration, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class ArgMax(Attrs):
    """inputs: x int8, int16, int32 or float32; output: int32 indices along `axis`, which stays only with `keepdims`."""

    name: ClassVar[str] = "argmax"
    axis: int = field(metadata=AXIS)
    keepdims: bool = False


def attrs_of(node: Node) -> ArgMax:
    assert isinstance(node.attrs, ArgMax)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    attrs = attrs_of(node)
    shape = expect_axis(node, attrs.axis)
    return ((*shape[: attrs.axis], *((1,) if attrs.keepdims else ()), *shape[attrs.axis + 1 :]),)


def iterate(node: Node) -> Iteration:
    return reduction.over_axes(node, (attrs_of(node).axis,), keepdims=attrs_of(node).keepdims)


def check(node: Node) -> str | None:
    if node.input(0).dtype not in (DType.INT8, DType.INT16, DType.INT32, DType.FLOAT32):
        return f"argmax has no {node.input(0).dtype.value} form"
    return None if node.output.dtype is DType.INT32 else "indices must be int32"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, axis = inputs[0], attrs_of(node).axis
    assert x is not None
    return (np.argmax(x, axis=axis).astype(np.int32).reshape(node.output.shape),)


def searched(node: Node) -> Parts:
    """Elements one after another; as many take the place of the best as of random ones."""
    outer, count, inner = around_axis(node.input(0).shape, attrs_of(node).axis)
    greater = sum(1 / n for n in range(2, count + 1))
    parts: Parts = {"call": 1, "row": outer, "output": outer * inner, "element": outer * inner * (count - 1)}
    return parts | {"greater element": round(outer * inner * greater)}


def kernel(dtype: str) -> Kernel:
    symbol, signature_ = f"tinyet_argmax_{dtype}", "s32" if dtype == "s32" else f"{dtype}_s32"

    def lower(node: Node, _target: Target) -> Call:
        outer, count, inner = around_axis(node.input(0).shape, attrs_of(node).axis)
        fields = {"outer": outer, "count": count, "inner": inner}
        return library_call(symbol, node, [0], Struct("tinyet_argmax_params", fields))

    return Kernel(
        symbol, signature_, lower, ("tinyet_argmax.h",), (f"{symbol}.c",), cost_model=CostModel(searched)
    )


OP = Op(
    attrs=ArgMax,
    summary="index of the greatest element along an axis, the first of ties",
    infer=infer,
    reference=reference,
    iteration=iterate,
    check=check,
    kernels=(kernel("s8"), kernel("s16"), kernel("s32"), kernel("f32")),
)
