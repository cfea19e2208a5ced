# SPDX-License-Identifier: Apache-2.0
"""A frame of sound times a window, as TFLM's SignalWindow (signal/src/window.cc)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.signals import check_range, check_types, expect_vector
from tinyet.opset import ALONE, Call, Constant, Kernel, Op, Pointer, Struct, elementwise, library_call


@dataclass(frozen=True)
class SignalWindow(Attrs):
    """inputs: x int16 (…, N); window int16 (N,), a constant. Output: int16 (…, N), x * window / 2^shift rounded down,
    saturated."""

    name: ClassVar[str] = "signal_window"
    shift: int


def attrs_of(node: Node) -> SignalWindow:
    assert isinstance(node.attrs, SignalWindow)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape, count = node.input(0).shape, expect_vector(node, 1)
    if shape[-1:] != (count,):
        raise UnsupportedShape(f"signal_window: a window of {count} values for {shape}", node.where)
    return (shape,)


def check(node: Node) -> str | None:
    s16 = DType.INT16
    return check_types(node, (s16, s16), (s16,), (1,)) or check_range("shift", attrs_of(node).shift, 0, 31)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, window = inputs
    assert x is not None
    assert window is not None
    product = (x.astype(np.int64) * window.astype(np.int64)) >> attrs_of(node).shift
    return (np.clip(product, *DType.INT16.range).astype(np.int16),)


def lower(node: Node, _target: Target) -> Call:
    count = node.input(1).type.count
    params = Struct(
        "tinyet_signal_window_params",
        {
            "window": Pointer("window"),
            "frames": node.output.type.count // count,
            "count": count,
            "shift": attrs_of(node).shift,
        },
    )
    constants = [Constant("window", node.input(1).array)]
    return library_call("tinyet_signal_window", node, [0], params, constants)


OP = Op(
    attrs=SignalWindow,
    summary="a frame of sound times a window",
    infer=infer,
    inputs=(2, 2),
    reference=reference,
    iteration=elementwise,
    check=check,
    inplace=(0,),
    kernels=(
        Kernel(
            "tinyet_signal_window",
            "s16",
            lower,
            ("tinyet_signal.h",),
            ("tinyet_signal_window.c",),
            no_cost_model=ALONE,
        ),
    ),
)
