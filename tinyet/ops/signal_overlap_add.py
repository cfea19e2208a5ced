# SPDX-License-Identifier: Apache-2.0
"""Sound from frames that overlap, as TFLM's SignalOverlapAdd (signal/src/overlap_add.cc).

Each frame is added to what the frames before it have left; the first samples of the sum are the result, the others
are left to the next frame. int16 saturates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.integers import saturated
from tinyet.ops.shared.signals import check_moved, check_types, iterate_signals
from tinyet.opset import ALONE, Call, Kernel, Op, Struct, library_call

DTYPES = (DType.INT16, DType.FLOAT32)


@dataclass(frozen=True)
class SignalOverlapAdd(Attrs):
    """inputs: x int16 or float32 (…, F, S), F frames of S samples; what is left of the frames before, of x's type, (…,
    S - step), zeros at first. Outputs: (…, F * step); what is left, (…, S - step), which is the next run's state.
    0 < step < S."""

    name: ClassVar[str] = "signal_overlap_add"
    step: int


def attrs_of(node: Node) -> SignalOverlapAdd:
    assert isinstance(node.attrs, SignalOverlapAdd)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    x, left, step = node.input(0).shape, node.input(1).shape, attrs_of(node).step
    if len(x) < 2 or not 0 < step < x[-1] or left != (*x[:-2], x[-1] - step):
        raise UnsupportedShape(
            f"signal_overlap_add: frames {x}, each {step} on, with {left} left", node.where
        )
    return (*x[:-2], x[-2] * step), left


def check(node: Node) -> str | None:
    dtype = node.input(0).dtype
    if dtype not in DTYPES:
        return f"no form for {dtype.value}"
    return check_types(node, (dtype, dtype), (dtype, dtype)) or check_moved(node, 0, 1)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, left = inputs
    assert x is not None
    assert left is not None
    step, dtype = attrs_of(node).step, node.input(0).dtype
    ends = np.zeros((*left.shape[:-1], step), left.dtype)
    parts = []
    for frame in range(x.shape[-2]):
        total = np.concatenate([left, ends], -1)
        if dtype is DType.FLOAT32:
            total = total.astype(np.float32) + x[..., frame, :].astype(np.float32)
        else:
            total = saturated(total.astype(np.int64) + x[..., frame, :].astype(np.int64), dtype)
        parts.append(total[..., :step])
        left = total[..., step:]
    return np.concatenate(parts, -1), left.copy()


def kernel(dtype: DType) -> Kernel:
    symbol = f"tinyet_signal_overlap_add_{dtype.suffix}"

    def lower(node: Node, _target: Target) -> Call:
        *_, frames, size = node.input(0).shape
        fields = {
            "channels": node.input(0).type.count // (frames * size),
            "frames": frames,
            "size": size,
            "step": attrs_of(node).step,
        }
        params = Struct("tinyet_signal_overlap_add_params", fields)
        return library_call(symbol, node, [0, 1], params)

    return Kernel(
        symbol,
        dtype.suffix,
        lower,
        ("tinyet_signal_frames.h",),
        (f"{symbol}.c",),
        no_cost_model=ALONE,
    )


OP = Op(
    attrs=SignalOverlapAdd,
    summary="sound from frames that overlap",
    infer=infer,
    inputs=(2, 2),
    reference=reference,
    iteration=iterate_signals,
    check=check,
    kernels=tuple(kernel(dtype) for dtype in DTYPES),
)
