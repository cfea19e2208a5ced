# SPDX-License-Identifier: Apache-2.0
"""x - log(sum(exp(x))) along an axis. In int8 as LiteRT's LOG_SOFTMAX, bit for bit, for any axis.

LiteRT fixes the output at scale 1/16 and zero point 127. See softmax.py for the exponentials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import float32, round_shift
from tinyet.ops import softmax
from tinyet.ops.shared.fixed_point import (
    DIFF_INTEGER_BITS,
    SUM_INTEGER_BITS,
    Differences,
    differences,
    log_of_sum,
)
from tinyet.opset import Call, Constant, Kernel, Op, Pointer, Struct, library_call

OUT_SCALE, OUT_ZERO_POINT = 1 / 16, 127
# From Q5.26 to steps of 1/16.
OUT_SHIFT = 31 - DIFF_INTEGER_BITS - 4
# The output ends at -255/16: differences below this are at its end whatever the sum, whose logarithm is not
# negative. It also keeps a difference less the logarithm (at most 8.4) within Q5.26.
FARTHEST = -17 << (31 - DIFF_INTEGER_BITS)


@dataclass(frozen=True)
class LogSoftmax(Attrs):
    """inputs: x of any shape with the axis `axis`."""

    name: ClassVar[str] = "log_softmax"
    axis: int


def attrs_of(node: Node) -> LogSoftmax:
    assert isinstance(node.attrs, LogSoftmax)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    return softmax.infer_axis(node, attrs_of(node).axis)


def check(node: Node) -> str | None:
    return softmax.check_fixed(node, attrs_of(node).axis, (OUT_SCALE, OUT_ZERO_POINT))


def log_softmax_s8(x: Array, scale: float) -> Array:
    """int8 (…, depth) → int8, along the last axis."""
    table = differences(scale)
    diff = x.astype(np.int64) - x.max(axis=-1, keepdims=True).astype(np.int64)
    total = round_shift(table.exponentials()[-diff], SUM_INTEGER_BITS).sum(axis=-1, keepdims=True)
    # Multiplied without a shift that might leave int32: far differences are at the end of the range.
    live = diff > -near_count(table)
    value = round_shift(table.q5(np.where(live, diff, 0)) - log_of_sum(total), OUT_SHIFT) + OUT_ZERO_POINT
    return np.where(live, np.clip(value, -128, 127), -128).astype(np.int8)


def near_count(table: Differences) -> int:
    """How many of the differences 0, -1 … -255 are not beyond FARTHEST."""
    diff = -np.arange(256, dtype=np.int64)
    live = diff >= table.smallest
    return int(np.count_nonzero(live & (table.q5(np.where(live, diff, 0)) >= FARTHEST)))


def log_softmax_f32(x: float32.Float32) -> float32.Float32:
    """float32 (…, depth) along the last axis: (x - max) - log(sum of exp(x - max), in order)."""
    with np.errstate(all="ignore"):
        shifted = np.asarray(x - float32.maximum_in_order(x), np.float32)
        return np.asarray(shifted - float32.log(float32.sum_in_order(float32.exp(shifted))), np.float32)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    axis = attrs_of(node).axis
    x = np.moveaxis(inputs[0], axis, -1)
    if node.output.dtype is DType.FLOAT32:
        out: Array = log_softmax_f32(x.astype(np.float32))
    else:
        out = log_softmax_s8(x, node.input(0).type.scale)
    return (np.ascontiguousarray(np.moveaxis(out, -1, axis)),)


def lower_s8(node: Node, target: Target) -> Call:
    table = differences(node.input(0).type.scale)
    exponentials = table.exponentials()
    used = int(np.count_nonzero(exponentials))
    params = Struct(
        "tinyet_log_softmax_s8_params",
        {
            "shape": softmax.axis_struct(node, attrs_of(node).axis),
            "exponentials": Pointer("exponentials"),
            "count": used,
            "near": near_count(table),
            "multiplier": table.factor.multiplier,
            "left": table.factor.shift,
        },
    )
    constants = [
        Constant("exponentials", exponentials[:used].astype(np.int32), "Q0.31, of 0, -1, -2 … steps")
    ]
    return library_call("tinyet_log_softmax_s8", node, [0], params, constants)


def lower_f32(node: Node, target: Target) -> Call:
    return library_call("tinyet_log_softmax_f32", node, [0], softmax.axis_struct(node, attrs_of(node).axis))


OP = Op(
    attrs=LogSoftmax,
    summary="x - log(sum(exp(x))) along an axis",
    infer=infer,
    reference=reference,
    check=check,
    inplace=(0,),
    kernels=(
        Kernel(
            "tinyet_log_softmax_s8",
            "s8",
            lower_s8,
            softmax.FIXED_HEADERS,
            ("tinyet_log_softmax_s8.c",),
        ),
        Kernel(
            "tinyet_log_softmax_f32", "f32", lower_f32, softmax.FLOAT_HEADERS, ("tinyet_log_softmax_f32.c",)
        ),
    ),
)
