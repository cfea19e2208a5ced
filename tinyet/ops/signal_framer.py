# SPDX-License-Identifier: Apache-2.0
"""Frames that overlap, of sound as it comes, as TFLM's SignalFramer (signal/micro/kernels/framer.cc).

A frame is the oldest of the samples that are there, once there are enough. TFLM writes no frame before that; here it
is made of zeros and what there is.
"""

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
class SignalFramer(Attrs):
    """inputs: x int16 (…, N), N a multiple of `step`; the samples before them, int16 (…, K), zeros at first; how many
    of these there have not been yet, int32 (): K at first, or 0 where zeros count as samples.
    Outputs: int16 (…, N / step, size); int32 (), 1 where all of these are whole, 0 else; the last K samples; how many
    are still missing.
    K is size - step, or where zeros do not count, size rounded up to a multiple of step, less step; at least 1."""

    name: ClassVar[str] = "signal_framer"
    size: int
    step: int


def attrs_of(node: Node) -> SignalFramer:
    assert isinstance(node.attrs, SignalFramer)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    x, before, attrs = node.input(0).shape, node.input(1).shape, attrs_of(node)
    if not x or attrs.size < 1 or attrs.step < 1 or x[-1] % attrs.step != 0:
        raise UnsupportedShape(
            f"signal_framer: frames of {attrs.size} samples, each {attrs.step} on, of {x}", node.where
        )
    lengths = attrs.size - attrs.step, (attrs.size - 1) // attrs.step * attrs.step
    if before[:-1] != x[:-1] or len(before) != len(x) or before[-1] not in lengths:
        raise UnsupportedShape(f"signal_framer: {before} before {x}", node.where)
    if node.input(2).shape != ():
        raise UnsupportedShape("signal_framer: how many are missing is one number", node.where)
    return (*x[:-1], x[-1] // attrs.step, attrs.size), (), before, ()


def check(node: Node) -> str | None:
    s16, s32 = DType.INT16, DType.INT32
    return check_types(node, (s16, s16, s32), (s16, s32, s16, s32)) or check_moved(node, 0, 1)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, before, missing = inputs
    assert x is not None
    assert before is not None
    assert missing is not None
    attrs, kept = attrs_of(node), before.shape[-1]
    together = np.concatenate([before, x], -1)
    starts = range(0, x.shape[-1], attrs.step)
    frames = np.stack([together[..., at : at + attrs.size] for at in starts], -2)
    still = max(int(missing.item()), 0)
    return (
        frames,
        np.asarray(still == 0, np.int32),
        together[..., together.shape[-1] - kept :].copy(),
        np.asarray(max(still - x.shape[-1], 0), np.int32),
    )


def lower(node: Node, _target: Target) -> Call:
    attrs, (channels, count) = attrs_of(node), frames_of(node.input(0).shape)
    fields = {
        "channels": channels,
        "count": count,
        "size": attrs.size,
        "step": attrs.step,
        "kept": node.input(1).shape[-1],
    }
    params = Struct("tinyet_signal_framer_params", fields)
    return library_call("tinyet_signal_framer", node, [0, 1, 2], params)


OP = Op(
    attrs=SignalFramer,
    summary="frames that overlap, of sound as it comes",
    infer=infer,
    inputs=(3, 3),
    reference=reference,
    iteration=iterate_signals,
    check=check,
    kernels=(
        Kernel(
            "tinyet_signal_framer",
            "s16",
            lower,
            ("tinyet_signal_frames.h",),
            ("tinyet_signal_framer.c",),
            no_cost_model=ALONE,
        ),
    ),
)
