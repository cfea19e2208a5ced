# SPDX-License-Identifier: Apache-2.0
"""Whole numbers as float32: bytes exactly, int32 as the nearest float32, ties to even, as C converts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.ops.shared.counting import values
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import Call, Claim, Kernel, Op, Struct, each_row, each_step, library_call

_WHOLE = (DType.UINT8, DType.INT32)


@dataclass(frozen=True)
class Cast(Attrs):
    """inputs: x, uint8 or int32 of any shape: numbers, not what stands for real ones. The output is float32."""

    name: ClassVar[str] = "cast"


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if x.dtype not in _WHOLE or out.dtype is not DType.FLOAT32:
        return f"casts uint8 and int32 to float32, not {x.dtype.value} to {out.dtype.value}"
    return None if x.type.quant is None else f"{x.name} stands for real values: it is to be dequantized"


def reference(_node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (inputs[0].astype(np.float32),)


def kernel(dtype: DType) -> Kernel:
    symbol = f"tinyet_cast_{dtype.suffix}_f32"

    def lower(node: Node, _target: Target) -> Call:
        return library_call(
            symbol, node, [0], Struct("tinyet_cast_params", {"count": node.output.type.count})
        )

    return Kernel(
        symbol, f"{dtype.suffix}_f32", lower, ("tinyet_cast.h",), (f"{symbol}.c",), claim=Claim(values)
    )


OP = Op(
    attrs=Cast,
    summary="uint8 or int32 to float32",
    infer=same_shape,
    reference=reference,
    rows=each_row,
    over_time=each_step,
    check=check,
    kernels=tuple(kernel(dtype) for dtype in _WHOLE),
)
