# SPDX-License-Identifier: Apache-2.0
"""Square roots of the sums of a filter bank, as TFLM's SignalFilterBankSquareRoot (signal/src/square_root_64.cc).

The nearest integer. Of a number below 2^32 it has 16 bits at most, of others 32: what would be rounded up beyond them
is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.signals import check_types
from tinyet.opset import ALONE, Call, Iteration, Kernel, Nest, Op, Struct, library_call, operand


@dataclass(frozen=True)
class SignalFilterBankSquareRoot(Attrs):
    """inputs: x uint32 (C, 2), C sums of 64 bits, the lower word first; shift int32 (), of which the lowest 5 bits
    count. Output: uint32 (C,), the roots / 2^shift, rounded down."""

    name: ClassVar[str] = "signal_filter_bank_square_root"


def infer(node: Node) -> tuple[Shape, ...]:
    shape, shift = node.input(0).shape, node.input(1).shape
    if len(shape) != 2 or shape[1] != 2 or shift != ():
        raise UnsupportedShape(
            f"signal_filter_bank_square_root: (C, 2) and (), not {shape} and {shift}", node.where
        )
    return (shape[:1],)


def iterate(node: Node) -> Iteration:
    nest = Nest()
    c, word = nest.parallel(node.output.shape[0]), nest.reduced(2)
    return nest.iteration([operand(c, word), operand()], [operand(c)])


def check(node: Node) -> str | None:
    return check_types(node, (DType.UINT32, DType.INT32), (DType.UINT32,))


def root(number: int) -> int:
    """The nearest integer, within the bits that it may have."""
    found = math.isqrt(number)
    most = 0xFFFF if number < 2**32 else 0xFFFFFFFF
    return found + 1 if number - found * found > found and found != most else found


def reference(_node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, shift = inputs
    assert x is not None
    assert shift is not None
    found = [root(low | high << 32) >> (int(shift.item()) & 31) for low, high in x.tolist()]
    return (np.array(found, np.uint32),)


def lower(node: Node, _target: Target) -> Call:
    params = Struct("tinyet_signal_count", {"count": node.output.type.count})
    return library_call("tinyet_signal_filter_bank_square_root", node, [0, 1], params)


OP = Op(
    attrs=SignalFilterBankSquareRoot,
    summary="square roots of the sums of a filter bank",
    infer=infer,
    inputs=(2, 2),
    reference=reference,
    iteration=iterate,
    check=check,
    kernels=(
        Kernel(
            "tinyet_signal_filter_bank_square_root",
            "u32",
            lower,
            ("tinyet_signal.h",),
            ("tinyet_signal_filter_bank_square_root.c",),
            no_cost_model=ALONE,
        ),
    ),
)
