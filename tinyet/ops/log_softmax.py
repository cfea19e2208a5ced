# SPDX-License-Identifier: Apache-2.0
"""x - log(sum(exp(x))) along an axis. In int8 as LiteRT's LOG_SOFTMAX, bit for bit, for any axis.

LiteRT fixes the output at scale 1/16 and zero point 127, which holds -15.9 … 0. At any other scale, differences and
the logarithm of the sum are added in a format that holds all differences of the input, and only then become output
steps. See shared/softmax.py for the exponentials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node
from tinyet.numerics import Int64, Multiplier, float32, quantize_multiplier, requantize, round_shift
from tinyet.ops.shared import softmax
from tinyet.ops.shared.cost_models import COST_MODELS
from tinyet.ops.shared.fixed_point import (
    DIFF_INTEGER_BITS,
    SUM_INTEGER_BITS,
    Differences,
    differences,
    log_of_sum,
)
from tinyet.ops.shared.integers import representable, saturated
from tinyet.opset import Call, Kernel, Op, mixing, with_cost_models

LITERT = 1 / 16, 127
"""Scale and zero point."""
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
    complaint = softmax.check(node)
    if complaint is not None or node.output.dtype is not DType.INT8 or softmax.has_scale(node, LITERT):
        return complaint
    fits = representable(lambda: format_of(node).to_out.shift <= 0)
    return None if fits else "the output's scale is too small for the input's"


@dataclass(frozen=True)
class Format:
    """Qm.n for an output of any scale: `to_sum` takes input steps to it, `log_shift` the logarithm, from Q5.26, and
    `to_out` what they add up to to output steps."""

    to_sum: Multiplier
    log_shift: int
    to_out: Multiplier


LARGEST_LOG = math.log(softmax.MAX_DEPTH)


def format_of(node: Node) -> Format:
    """One bit more than all differences and the logarithm of the sum need: the factor of 255 steps is then below 2**22,
    by which they can be shifted within int32."""
    scale = node.input(0).type.scale
    bits = max(DIFF_INTEGER_BITS, math.frexp(255 * scale + LARGEST_LOG)[1] + 1)
    fraction = 31 - bits
    return Format(
        quantize_multiplier(scale * 2.0**fraction),
        bits - DIFF_INTEGER_BITS,
        quantize_multiplier(2.0**-fraction / node.output.type.scale),
    )


def differences_and_sum(x: Array, table: Differences) -> tuple[Int64, Int64]:
    """Along the last axis: int8 less its maximum, and the sum of their exponentials, Q12.19."""
    diff = x.astype(np.int64) - x.max(axis=-1, keepdims=True).astype(np.int64)
    return diff, round_shift(table.exponentials()[-diff], SUM_INTEGER_BITS).sum(axis=-1, keepdims=True)


def log_softmax_scaled(x: Array, scale: float, form: Format, zero_point: int) -> Array:
    """int8 (…, depth) → int8 of any scale, along the last axis."""
    diff, total = differences_and_sum(x, differences(scale))
    near = requantize(diff, form.to_sum.multiplier, form.to_sum.shift)
    value = near - round_shift(log_of_sum(total), form.log_shift)
    return saturated(requantize(value, form.to_out.multiplier, form.to_out.shift) + zero_point, DType.INT8)


def log_softmax_s8(x: Array, scale: float) -> Array:
    """int8 (…, depth) → int8 of LiteRT's scale, along the last axis."""
    table = differences(scale)
    diff, total = differences_and_sum(x, table)
    # Multiplied without a shift that might leave int32: far differences are at the end of the range.
    live = diff > -near_count(table)
    value = round_shift(table.q5(np.where(live, diff, 0)) - log_of_sum(total), OUT_SHIFT) + LITERT[1]
    return np.where(live, np.clip(value, -128, 127), -128).astype(np.int8)


def near_count(table: Differences) -> int:
    """Number of the differences 0, -1 … -255 that are not beyond FARTHEST."""
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
    scale = node.input(0).type.scale
    if softmax.has_scale(node, LITERT):
        return log_softmax_s8(x, scale)
    return log_softmax_scaled(x, scale, format_of(node), node.output.type.zero_point)


EXPONENTIALS = "Q0.31, of 0, -1, -2 … steps"


def lower_s8(node: Node, target: Target) -> Call:
    table = differences(node.input(0).type.scale)
    fields = {
        "near": near_count(table),
        "multiplier": table.factor.multiplier,
        "left": table.factor.shift,
    }
    return softmax.exponentials_call("tinyet_log_softmax_s8", node, EXPONENTIALS, fields)


def lower_scaled_s8(node: Node, target: Target) -> Call:
    form = format_of(node)
    fields = {
        "multiplier": form.to_sum.multiplier,
        "shift": form.to_sum.shift,
        "log_shift": form.log_shift,
        "out_multiplier": form.to_out.multiplier,
        "out_shift": form.to_out.shift,
        "out_zero_point": node.output.type.zero_point,
    }
    return softmax.exponentials_call("tinyet_log_softmax_scaled_s8", node, EXPONENTIALS, fields)


OP = Op(
    attrs=LogSoftmax,
    summary="x - log(sum(exp(x))) along an axis",
    infer=softmax.infer,
    reference=softmax.along_axis(along_last),
    iteration=mixing(lambda node: (softmax.attrs_of(node).axis,)),
    check=check,
    inplace=(0,),
    kernels=with_cost_models(
        (
            Kernel(
                "tinyet_log_softmax_s8",
                "s8",
                lower_s8,
                softmax.FIXED_HEADERS,
                ("tinyet_log_softmax_s8.c",),
                softmax.refuse_other_scales(LITERT),
            ),
            Kernel(
                "tinyet_log_softmax_scaled_s8",
                "s8",
                lower_scaled_s8,
                softmax.FIXED_HEADERS,
                ("tinyet_log_softmax_scaled_s8.c",),
                softmax.refuse_scale(LITERT),
            ),
            Kernel(
                "tinyet_log_softmax_f32",
                "f32",
                softmax.lower_f32,
                softmax.FLOAT_HEADERS,
                ("tinyet_log_softmax_f32.c",),
            ),
        ),
        COST_MODELS,
    ),
)
