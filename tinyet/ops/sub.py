# SPDX-License-Identifier: Apache-2.0
"""a - b with numpy's broadcasting and a fused clamp. In int8 and int16 as LiteRT's SUB, bit for bit; see add.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.numerics import NO_CLAMP
from tinyet.ops import add
from tinyet.ops.shared import broadcast
from tinyet.opset import Call, Op


@dataclass(frozen=True)
class Sub(Attrs):
    """inputs: a, b, which broadcast; either may be a constant. clamp: real bounds of the fused activation."""

    name: ClassVar[str] = "sub"
    clamp: tuple[float, float] = NO_CLAMP


def attrs_of(node: Node) -> Sub:
    assert isinstance(node.attrs, Sub)
    return node.attrs


def scaling(node: Node) -> add.Scaling:
    return add.scaling(node, attrs_of(node).clamp, -1)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    a, b = broadcast.operands(inputs)
    if node.output.dtype is DType.FLOAT32:
        return (broadcast.float_reference(np.subtract, a, b, attrs_of(node).clamp),)
    return (scaling(node).apply(a, b).astype(node.output.dtype.numpy),)


def refuse_affine(node: Node, target: Target) -> str | None:
    return add.refuse_affine(node, scaling(node), target)


def lower_affine(node: Node, target: Target) -> Call:
    return add.lower_affine(node, scaling(node))


def lower_s8(node: Node, target: Target) -> Call:
    return add.lower_exact(node, scaling(node), "tinyet_sub_s8")


def lower_s16(node: Node, target: Target) -> Call:
    return add.lower_symmetric(node, scaling(node), "tinyet_sub_s16")


def lower_f32(node: Node, target: Target) -> Call:
    return broadcast.float_call("tinyet_sub_f32", node, attrs_of(node).clamp)


OP = Op(
    attrs=Sub,
    summary="a - b, broadcasting, with fused clamp",
    infer=broadcast.infer,
    reference=reference,
    check=add.check,
    inplace=(0, 1),
    kernels=(
        broadcast.table_kernel(reference),
        broadcast.kernel("tinyet_affine_s8", lower_affine, "tinyet_affine_s8.c", refuse_affine),
        broadcast.kernel("tinyet_sub_s8", lower_s8, "tinyet_add_s8.c"),
        broadcast.kernel("tinyet_sub_s16", lower_s16, "tinyet_add_s16.c"),
        broadcast.kernel("tinyet_sub_f32", lower_f32, "tinyet_binary_f32.c"),
    ),
)
