# SPDX-License-Identifier: Apache-2.0
"""Bytes (uint8) as the float32 numbers that they are: exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import Call, Op, Struct, library_call, library_kernels


@dataclass(frozen=True)
class Cast(Attrs):
    """inputs: x, uint8 of any shape. The output is float32."""

    name: ClassVar[str] = "cast"


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if x.dtype is not DType.UINT8 or out.dtype is not DType.FLOAT32:
        return f"casts uint8 to float32, not {x.dtype.value} to {out.dtype.value}"
    return None if x.type.quant is None else f"{x.name} must be plain bytes, and is quantized"


def reference(_node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (inputs[0].astype(np.float32),)


def lower(node: Node, _target: Target) -> Call:
    params = Struct("tinyet_bytes_params", {"count": node.output.type.count})
    return library_call("tinyet_cast_u8_f32", node, [0], params)


OP = Op(
    attrs=Cast,
    summary="uint8 to float32",
    infer=same_shape,
    reference=reference,
    check=check,
    kernels=library_kernels("tinyet_cast", ("u8_f32",), lower, ("tinyet_bytes.h",)),
)
