# SPDX-License-Identifier: Apache-2.0
"""Sound later by a number of samples, as TFLM's SignalDelay (signal/micro/kernels/delay.cc)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.signals import check_moved, check_types, frames_of, iterate_signals
from tinyet.opset import ALONE, Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class SignalDelay(Attrs):
    """inputs: x int16 (…, N); the D samples before them, int16 (…, D), zeros at first. Outputs: int16 (…, N), what came
    D samples ago; the last D samples, (…, D), which are the next run's state."""

    name: ClassVar[str] = "signal_delay"


def infer(node: Node) -> tuple[Shape, ...]:
    x, before = node.input(0).shape, node.input(1).shape
    if not x or len(before) != len(x) or before[:-1] != x[:-1]:
        raise UnsupportedShape(f"signal_delay: {x} behind {before}", node.where)
    return x, before


def check(node: Node) -> str | None:
    s16 = DType.INT16
    return check_types(node, (s16, s16), (s16, s16)) or check_moved(node, 0, 1)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, before = inputs
    assert x is not None
    assert before is not None
    count, together = x.shape[-1], np.concatenate([before, x], -1)
    return together[..., :count].copy(), together[..., count:].copy()


def lower(node: Node, _target: Target) -> Call:
    frames, count = frames_of(node.input(0).shape)
    fields = {"frames": frames, "count": count, "delay": node.input(1).shape[-1]}
    params = Struct("tinyet_signal_delay_params", fields)
    return library_call("tinyet_signal_delay", node, [0, 1], params)


OP = Op(
    attrs=SignalDelay,
    summary="sound later by a number of samples",
    infer=infer,
    inputs=(2, 2),
    reference=reference,
    iteration=iterate_signals,
    check=check,
    kernels=(
        Kernel(
            "tinyet_signal_delay",
            "s16",
            lower,
            ("tinyet_signal_frames.h",),
            ("tinyet_signal_delay.c",),
            no_cost_model=ALONE,
        ),
    ),
)
