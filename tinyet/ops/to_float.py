# SPDX-License-Identifier: Apache-2.0
"""int32 → float32: the nearest float32, ties to even, as C converts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class ToFloat(Attrs):
    """inputs: x, int32 of any shape: numbers, not what stands for real ones. The output is float32."""

    name: ClassVar[str] = "to_float"


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if (x.dtype, out.dtype) != (DType.INT32, DType.FLOAT32):
        return f"turns int32 into float32, not {x.dtype.value} into {out.dtype.value}"
    return None if x.type.quant is None else "the numbers stand for real values: dequantize them"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (inputs[0].astype(np.float32),)


def lower(node: Node, _target: Target) -> Call:
    params = Struct("tinyet_to_float_params", {"count": node.output.type.count})
    return library_call("tinyet_to_float_s32_f32", node, [0], params)


OP = Op(
    attrs=ToFloat,
    summary="int32 to float32",
    infer=same_shape,
    reference=reference,
    check=check,
    kernels=(
        Kernel(
            "tinyet_to_float_s32_f32",
            "s32_f32",
            lower,
            ("tinyet_to_float.h",),
            ("tinyet_to_float_s32_f32.c",),
        ),
    ),
)
