# SPDX-License-Identifier: Apache-2.0
"""x - log(sum(exp(x))) along an axis. In int8 as LiteRT's LOG_SOFTMAX, bit for bit, for any axis.

LiteRT fixes the output at scale 1/16 and zero point 127. See shared/softmax.py for the exponentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node
from tinyet.numerics import float32, round_shift
from tinyet.ops.shared import softmax
from tinyet.ops.shared.fixed_point import (
    DIFF_INTEGER_BITS,
    SUM_INTEGER_BITS,
    Differences,
    differences,
    log_of_sum,
)
from tinyet.opset import Call, Kernel, Op, Pointer, Struct, library_call

OUT_SCALE, OUT_ZERO_POINT = 1 / 16, 127
# From Q5.26 to steps of 1/16.
OUT_SHIFT = 31 - DIFF_INTEGER_BITS - 4
# The output ends at -255/16: differences below this are at its end whatever the sum, whose logarithm is not
# negative. It also keeps a difference less the logarithm (at most 8.4) within Q5.26.
FARTHEST = -17 << (31 - DIFF_INTEGER_BITS)


@dataclass(frozen=True)
class LogSoftmax(softmax.AlongAxis):
    """x - log(sum(exp(x)))"""

    name: ClassVar[str] = "log_softmax"


def check(node: Node) -> str | None:
    return softmax.check_fixed(node, (OUT_SCALE, OUT_ZERO_POINT))


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


def along_last(node: Node, x: Array) -> Array:
    if node.output.dtype is DType.FLOAT32:
        return log_softmax_f32(x.astype(np.float32))
    return log_softmax_s8(x, node.input(0).type.scale)


def lower_s8(node: Node, target: Target) -> Call:
    table = differences(node.input(0).type.scale)
    exponentials = softmax.exponentials(node, "Q0.31, of 0, -1, -2 … steps")
    params = Struct(
        "tinyet_log_softmax_s8_params",
        {
            "shape": softmax.axis_struct(node),
            "exponentials": Pointer(exponentials.name),
            "count": exponentials.data.size,
            "near": near_count(table),
            "multiplier": table.factor.multiplier,
            "left": table.factor.shift,
        },
    )
    return library_call("tinyet_log_softmax_s8", node, [0], params, [exponentials])


OP = Op(
    attrs=LogSoftmax,
    summary="x - log(sum(exp(x))) along an axis",
    infer=softmax.infer,
    reference=softmax.along_axis(along_last),
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
            "tinyet_log_softmax_f32",
            "f32",
            softmax.lower_f32,
            softmax.FLOAT_HEADERS,
            ("tinyet_log_softmax_f32.c",),
        ),
    ),
)
