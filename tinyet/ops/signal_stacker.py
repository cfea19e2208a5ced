# SPDX-License-Identifier: Apache-2.0
"""The last few frames of features one after another, as TFLM's SignalStacker (signal/micro/kernels/stacker.cc).

The first frame stands for those before it, too. A stack is whole when the frames of its right context have come, and
then again after every `step` frames. TFLM writes no other; here it is what the last frames are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.signals import check_moved, check_range, check_types, expect_vector
from tinyet.opset import ALONE, Call, Kernel, Op, Struct, everything, library_call


@dataclass(frozen=True)
class SignalStacker(Attrs):
    """inputs: x int16 (C,), a frame; the frames before it, int16 (K C,), zeros at first; how many frames are missing to
    a whole stack, int32 (), -1 at first. Outputs: int16 ((K + 1) C,), the stack; int32 (), 1 where it is whole, 0 else;
    the last K frames; how many are missing. K, at least 1, is the left context and the right one, `right`;
    0 <= right <= K, 0 < step <= K + 1."""

    name: ClassVar[str] = "signal_stacker"
    right: int
    step: int


def attrs_of(node: Node) -> SignalStacker:
    assert isinstance(node.attrs, SignalStacker)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    count, kept = expect_vector(node, 0), expect_vector(node, 1)
    if kept % count != 0 or node.input(2).shape != ():
        raise UnsupportedShape(f"signal_stacker: {kept} values before {count}", node.where)
    return (kept + count,), (), (kept,), ()


def check(node: Node) -> str | None:
    s16, s32, attrs = DType.INT16, DType.INT32, attrs_of(node)
    kept = node.input(1).type.count // node.input(0).type.count
    return (
        check_types(node, (s16, s16, s32), (s16, s32, s16, s32))
        or check_moved(node, 0, 1)
        or check_range("right", attrs.right, 0, kept)
        or check_range("step", attrs.step, 1, kept + 1)
    )


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, before, missing = inputs
    assert x is not None
    assert before is not None
    assert missing is not None
    attrs, count = attrs_of(node), len(x)
    number = int(missing.item())
    if number < 0:
        before, number = np.tile(x, len(before) // count), attrs.right + 1
    stack = np.concatenate([before, x])
    # What only a state that somebody has set can be, counts as none missing.
    number = max(number - 1, 0)
    whole = number == 0
    return (
        stack,
        np.asarray(whole, np.int32),
        stack[count:].copy(),
        np.asarray(attrs.step if whole else number, np.int32),
    )


def lower(node: Node, _target: Target) -> Call:
    attrs, count = attrs_of(node), node.input(0).type.count
    fields = {
        "count": count,
        "kept": node.input(1).type.count // count,
        "right": attrs.right,
        "step": attrs.step,
    }
    params = Struct("tinyet_signal_stacker_params", fields)
    return library_call("tinyet_signal_stacker", node, [0, 1, 2], params)


OP = Op(
    attrs=SignalStacker,
    summary="the last frames of features one after another",
    infer=infer,
    inputs=(3, 3),
    reference=reference,
    iteration=everything,
    check=check,
    kernels=(
        Kernel(
            "tinyet_signal_stacker",
            "s16",
            lower,
            ("tinyet_signal_frames.h",),
            ("tinyet_signal_stacker.c",),
            no_cost_model=ALONE,
        ),
    ),
)
