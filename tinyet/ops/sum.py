# SPDX-License-Identifier: Apache-2.0
"""Sum over axes.

int8: requantize(sum of (x - zero point)), the formula of LiteRT's and TFLM's SUM. float32: one addition after
another, over the reduced elements in row-major order, starting from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node
from tinyet.numerics import Multiplier, requantize
from tinyet.ops.shared import reduction
from tinyet.ops.shared.integers import saturated
from tinyet.opset import Call, FieldValue, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class Sum(reduction.Reduce):
    """inputs: x; output: sums over `axes`."""

    name: ClassVar[str] = "sum"


def add_up(node: Node, x: Array, multiplier: Multiplier | None, divisor: float) -> Array:
    """The output of Sum and Mean: requantized by `multiplier` (integers) or divided (float32)."""
    if node.input(0).dtype is DType.FLOAT32:
        total = np.zeros(node.output.shape, np.float32)
        for part in reduction.slices(node, x):
            total = total + part.astype(np.float32)
        return np.asarray(total / np.float32(divisor), np.float32)
    assert multiplier is not None
    offset = node.input(0).type.zero_point * reduction.count(node)
    sums = x.astype(np.int64).sum(axis=reduction.attrs_of(node).axes).reshape(node.output.shape) - offset
    out = requantize(sums, multiplier.multiplier, multiplier.shift) + node.output.type.zero_point
    return saturated(out, node.output.dtype)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    multiplier = None if node.input(0).dtype is DType.FLOAT32 else reduction.sum_multiplier(node)
    return (add_up(node, x, multiplier, 1.0),)


def call_s8(node: Node, multiplier: Multiplier) -> Call:
    fields: dict[str, FieldValue] = {
        "shape": reduction.shape_struct(node),
        "bias": -node.input(0).type.zero_point * reduction.count(node),
        "multiplier": multiplier.multiplier,
        "shift": multiplier.shift,
        "out_zero_point": node.output.type.zero_point,
    }
    return library_call("tinyet_sum_s8", node, [0], Struct("tinyet_sum_s8_params", fields))


def call_s16(node: Node, multiplier: Multiplier) -> Call:
    fields: dict[str, FieldValue] = {
        "shape": reduction.shape_struct(node),
        "multiplier": multiplier.multiplier,
        "shift": multiplier.shift,
    }
    return library_call("tinyet_sum_s16", node, [0], Struct("tinyet_sum_s16_params", fields))


def call_f32(node: Node, divisor: float) -> Call:
    fields: dict[str, FieldValue] = {"shape": reduction.shape_struct(node), "divisor": divisor}
    return library_call("tinyet_sum_f32", node, [0], Struct("tinyet_sum_f32_params", fields))


def lower_s8(node: Node, _target: Target) -> Call:
    return call_s8(node, reduction.sum_multiplier(node))


def lower_s16(node: Node, _target: Target) -> Call:
    return call_s16(node, reduction.sum_multiplier(node))


def lower_f32(node: Node, _target: Target) -> Call:
    return call_f32(node, 1.0)


HEADERS = ("tinyet_reduce.h",)

OP = Op(
    attrs=Sum,
    summary="sum over axes",
    infer=reduction.infer,
    reference=reference,
    check=reduction.sums_fit,
    kernels=(
        Kernel("tinyet_sum_s8", "s8", lower_s8, HEADERS, ("tinyet_sum_s8.c",), reduction.refuse),
        Kernel("tinyet_sum_s16", "s16", lower_s16, HEADERS, ("tinyet_sum_s16.c",), reduction.refuse),
        Kernel("tinyet_sum_f32", "f32", lower_f32, HEADERS, ("tinyet_sum_f32.c",), reduction.refuse),
    ),
)
