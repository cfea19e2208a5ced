# SPDX-License-Identifier: Apache-2.0
"""A frame shifted left as far as its largest value allows, as TFLM's SignalFftAutoScale (signal/src/fft_auto_scale.cc).

TFLM holds the largest absolute value in 16 bits. That of -32768 is -32768 there, so what comes behind the last
-32768 of a frame decides alone, the first of it with its sign. Such frames are shifted as TFLM shifts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.signals import check_types, expect_vector
from tinyet.opset import ALONE, Call, Kernel, Op, Struct, everything, library_call


@dataclass(frozen=True)
class SignalFftAutoScale(Attrs):
    """inputs: x int16 (N,). Outputs: int16 (N,), x * 2^shift; int32 (), the shift, 0 to 15."""

    name: ClassVar[str] = "signal_fft_auto_scale"


def infer(node: Node) -> tuple[Shape, ...]:
    return (expect_vector(node, 0),), ()


def check(node: Node) -> str | None:
    return check_types(node, (DType.INT16,), (DType.INT16, DType.INT32))


def largest(x: Array) -> int:
    """The largest absolute value, as it is found in 16 bits."""
    found = 0
    for value in x.tolist():
        if value > found:
            found = value
        elif -value > found:
            found = -value if value != -32768 else value
    return found


def reference(_node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    (x,) = inputs
    assert x is not None
    most = largest(x)
    shift = max(15 - most.bit_length(), 0) if most > 0 else 0
    scaled = (x.astype(np.int64) << shift).astype(np.int16)
    return scaled, np.asarray(shift, np.int32)


def lower(node: Node, _target: Target) -> Call:
    params = Struct("tinyet_signal_count", {"count": node.outputs[0].type.count})
    return library_call("tinyet_signal_fft_auto_scale", node, [0], params)


OP = Op(
    attrs=SignalFftAutoScale,
    summary="a frame shifted left as far as it goes, and how far",
    infer=infer,
    reference=reference,
    iteration=everything,
    check=check,
    kernels=(
        Kernel(
            "tinyet_signal_fft_auto_scale",
            "s16",
            lower,
            ("tinyet_signal.h",),
            ("tinyet_signal_fft_auto_scale.c",),
            no_cost_model=ALONE,
        ),
    ),
)
