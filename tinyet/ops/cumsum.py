# SPDX-License-Identifier: Apache-2.0
"""Running sums along an axis.

int8: each sum of (x - zero point), requantized; LiteRT has no such kernel. float32: one addition after
another, starting from 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.boards import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import Multiplier, quantize_multiplier, requantize
from tinyet.opset import ALONE, AXIS, Call, Iteration, Kernel, Nest, Op, Struct, library_call, operand


@dataclass(frozen=True)
class CumSum(Attrs):
    """inputs: x. Output: the sum of the elements along `axis` up to and with each one."""

    name: ClassVar[str] = "cumsum"
    axis: int = field(metadata=AXIS)


def attrs_of(node: Node) -> CumSum:
    assert isinstance(node.attrs, CumSum)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape, axis = node.input(0).shape, attrs_of(node).axis
    if not 0 <= axis < len(shape):
        raise UnsupportedShape(f"cumsum: no axis {axis} in {len(shape)} dimensions", node.where)
    return (shape,)


def iterate(node: Node) -> Iteration:
    nest, axis = Nest(), attrs_of(node).axis
    places = operand(
        *(nest.sequential(n) if a == axis else nest.parallel(n) for a, n in enumerate(node.output.shape))
    )
    return nest.iteration([places], [places])


def check(node: Node) -> str | None:
    x, out = node.input(0), node.output
    if x.dtype is not out.dtype or x.dtype not in (DType.INT8, DType.FLOAT32):
        return f"no form from {x.dtype.value} to {out.dtype.value}"
    # |x - zero point| <= 255, and a sum must not leave int32.
    depth = x.shape[attrs_of(node).axis]
    return "sums could overflow 32 bits" if x.dtype is DType.INT8 and 255 * depth >= 2**31 else None


def factor(node: Node) -> Multiplier:
    """scale(input) / scale(output), in float64."""
    return quantize_multiplier(node.input(0).type.scale / node.output.type.scale)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, axis = inputs[0], attrs_of(node).axis
    assert x is not None
    if x.dtype == np.int8:
        sums = np.cumsum(x.astype(np.int64) - node.input(0).type.zero_point, axis)
        scaled = requantize(sums, factor(node).multiplier, factor(node).shift)
        return (np.clip(scaled + node.output.type.zero_point, -128, 127).astype(np.int8),)
    out = np.moveaxis(np.empty(x.shape, np.float32), axis, 0)
    total = np.zeros(out.shape[1:], np.float32)
    for i, part in enumerate(np.moveaxis(x, axis, 0)):
        total = total + part
        out[i] = total
    return (np.ascontiguousarray(np.moveaxis(out, 0, axis)),)


def shape_struct(node: Node) -> Struct:
    """The tensor as three dimensions: before the axis, the axis, behind it."""
    shape, axis = node.input(0).shape, attrs_of(node).axis
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    return Struct("tinyet_cumsum_shape", {"outer": outer, "depth": shape[axis], "inner": inner})


def lower_s8(node: Node, _target: Target) -> Call:
    params = Struct(
        "tinyet_cumsum_s8_params",
        {
            "shape": shape_struct(node),
            "in_zero_point": node.input(0).type.zero_point,
            "multiplier": factor(node).multiplier,
            "shift": factor(node).shift,
            "out_zero_point": node.output.type.zero_point,
        },
    )
    return library_call("tinyet_cumsum_s8", node, [0], params)


def lower_f32(node: Node, _target: Target) -> Call:
    return library_call("tinyet_cumsum_f32", node, [0], shape_struct(node))


HEADERS = ("tinyet_cumsum.h",)

OP = Op(
    attrs=CumSum,
    summary="running sums along an axis",
    infer=infer,
    reference=reference,
    iteration=iterate,
    check=check,
    inplace=(0,),
    kernels=(
        Kernel("tinyet_cumsum_s8", "s8", lower_s8, HEADERS, ("tinyet_cumsum_s8.c",), no_cost_model=ALONE),
        Kernel("tinyet_cumsum_f32", "f32", lower_f32, HEADERS, ("tinyet_cumsum_f32.c",), no_cost_model=ALONE),
    ),
)
