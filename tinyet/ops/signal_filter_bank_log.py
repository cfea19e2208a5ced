# SPDX-License-Identifier: Apache-2.0
"""Natural logarithms of the channels of a filter bank, as TFLM's SignalFilterBankLog (signal/src/log.cc).

In 16 bits behind the point: log2 is the number of the highest bit, plus the fraction behind it, plus a correction that
is linear between 129 points; times ln 2; times the scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.signals import bits, check_range, check_types, expect_vector, words
from tinyet.opset import ALONE, Call, Constant, Kernel, Op, Pointer, Struct, elementwise, library_call

LN_2 = 45426
"""ln 2 with 16 bits behind the point."""

CORRECTIONS = np.array(
    [round((math.log2(1 + i / 128) - i / 128) * 65536) for i in range(129)] + [0], np.uint16
)
"""log2(1 + x) - x at the 128ths, with 16 bits behind the point."""


@dataclass(frozen=True)
class SignalFilterBankLog(Attrs):
    """inputs: x uint32 (C,). Output: int16 (C,), ln(x * 2^correction_bits) * scale, saturated; 0 where that product, in
    32 bits, is 0 or 1."""

    name: ClassVar[str] = "signal_filter_bank_log"
    scale: int
    correction_bits: int


def attrs_of(node: Node) -> SignalFilterBankLog:
    assert isinstance(node.attrs, SignalFilterBankLog)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    return ((expect_vector(node, 0),),)


def check(node: Node) -> str | None:
    attrs = attrs_of(node)
    return (
        check_types(node, (DType.UINT32,), (DType.INT16,))
        or check_range("scale", attrs.scale, 0, 2**31 - 1)
        or check_range("correction_bits", attrs.correction_bits, 0, 31)
    )


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    attrs, low, half = attrs_of(node), np.uint64(0xFFFFFFFF), np.uint64(1 << 15)
    x = (words(inputs[0]) << np.uint64(attrs.correction_bits)) & low
    whole = np.maximum(bits(x), np.uint64(1)) - np.uint64(1)
    # 16 bits of what is behind the highest one.
    behind = np.where(x > 0, x, np.uint64(1)) - (np.uint64(1) << whole)
    fraction = ((behind << np.uint64(16)) >> whole).astype(np.int64)
    segment = fraction >> 9
    first, next_ = (CORRECTIONS[segment + i].astype(np.int64) for i in (0, 1))
    fraction += first + (((next_ - first) * (fraction - (segment << 9))) >> 16)
    log2 = (whole << np.uint64(16)) + fraction.astype(np.uint64)
    natural = (np.uint64(LN_2) * log2 + half) >> np.uint64(16)
    scaled = ((np.uint64(attrs.scale) * natural + half) & low) >> np.uint64(16)
    return (np.where(x > 1, np.minimum(scaled, np.uint64(32767)), np.uint64(0)).astype(np.int16),)


def lower(node: Node, _target: Target) -> Call:
    attrs = attrs_of(node)
    params = Struct(
        "tinyet_signal_log_params",
        {
            "corrections": Pointer("corrections"),
            "count": node.output.type.count,
            "scale": attrs.scale,
            "correction_bits": attrs.correction_bits,
        },
    )
    constants = [Constant("corrections", CORRECTIONS, "log2(1 + x) - x, 16 bits behind the point")]
    return library_call("tinyet_signal_filter_bank_log", node, [0], params, constants)


OP = Op(
    attrs=SignalFilterBankLog,
    summary="logarithms of the channels of a filter bank",
    infer=infer,
    reference=reference,
    iteration=elementwise,
    check=check,
    kernels=(
        Kernel(
            "tinyet_signal_filter_bank_log",
            "u32_s16",
            lower,
            ("tinyet_signal.h",),
            ("tinyet_signal_filter_bank_log.c",),
            no_cost_model=ALONE,
        ),
    ),
)
