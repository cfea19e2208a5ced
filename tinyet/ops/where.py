# SPDX-License-Identifier: Apache-2.0
"""Chooses element by element: from a where the condition is not 0, from b elsewhere. What is not chosen does not
matter, be it NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.ops.shared import stepped
from tinyet.ops.shared.counting import values
from tinyet.ops.shared.movement import MOVABLE
from tinyet.opset import Call, CostModel, Kernel, Op, Struct, elementwise, library_call


@dataclass(frozen=True)
class Where(Attrs):
    """inputs: condition int32; a, b of one type and quantization, which the output has. Each is of the output's shape
    or a single element."""

    name: ClassVar[str] = "where"


def check(node: Node) -> str | None:
    condition, a, b, out = node.input(0), node.input(1), node.input(2), node.output
    if condition.dtype is not DType.INT32:
        return f"the condition must be int32, not {condition.dtype.value}"
    if out.dtype not in MOVABLE or {a.dtype, b.dtype} != {out.dtype}:
        return "where chooses between values of one type"
    if {a.type.quant, b.type.quant} != {out.type.quant}:
        return "inputs and output must share one quantization"
    if out.type.quant is not None and out.type.quant.axis is not None:
        return "where cannot choose between values that are quantized per channel"
    return None


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    condition, a, b = inputs
    assert condition is not None
    assert a is not None
    assert b is not None
    return (np.asarray(np.where(condition != 0, a, b), node.output.dtype.numpy).reshape(node.output.shape),)


def kernel(dtype: DType) -> Kernel:
    symbol = f"tinyet_where_x{8 * dtype.bytes}"

    def lower(node: Node, _target: Target) -> Call:
        steps = (stepped.step(node.input(index)) for index in range(3))
        names = ("condition_step", "a_step", "b_step")
        fields = {"count": node.output.type.count, **dict(zip(names, steps, strict=True))}
        return library_call(symbol, node, [0, 1, 2], Struct("tinyet_where_params", fields))

    dtypes = "s32" if dtype is DType.INT32 else f"s32_{dtype.suffix}"
    return Kernel(symbol, dtypes, lower, ("tinyet_where.h",), (f"{symbol}.c",), cost_model=CostModel(values))


OP = Op(
    attrs=Where,
    summary="elements of a where a condition holds, of b elsewhere",
    infer=stepped.infer,
    inputs=(3, 3),
    reference=reference,
    iteration=elementwise,
    check=check,
    inplace=(1, 2),
    same_scale=True,
    kernels=tuple(kernel(dtype) for dtype in MOVABLE),
)
