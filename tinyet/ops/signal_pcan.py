# SPDX-License-Identifier: Apache-2.0
"""Per-channel automatic gain, as TFLM's SignalPCAN (signal/src/pcan_argc_fixed.cc).

The gain is a function of the channel's noise, piecewise quadratic between powers of two: entries 0, 1, 2 of the table
for noise 0, 1, 2, and from entry 4 b - 6 on the three coefficients for noise of b bits. Times its gain, a channel is
compressed: x^2 / 4 below 2, x - 1 above, in numbers with 12 bits behind the point that become ones with 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.signals import bits, check_range, check_types, expect_vector, words
from tinyet.opset import (
    ALONE,
    Call,
    Constant,
    Iteration,
    Kernel,
    Nest,
    Op,
    Pointer,
    Struct,
    library_call,
    operand,
    parameters,
)

ENTRIES = 4 * 32 - 6 + 3
"""Of the table, at least: those for noise of 32 bits are the last."""


@dataclass(frozen=True)
class SignalPcan(Attrs):
    """inputs: x uint32 (C,); noise uint32 (C,); gains int16 (125 or more,), a constant. Output: uint32 (C,),
    x * gain(noise) / 2^snr_shift, compressed."""

    name: ClassVar[str] = "signal_pcan"
    snr_shift: int


def attrs_of(node: Node) -> SignalPcan:
    assert isinstance(node.attrs, SignalPcan)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    count = expect_vector(node, 0)
    expect_vector(node, 1, count)
    entries = expect_vector(node, 2)
    if entries < ENTRIES:
        raise UnsupportedShape(f"signal_pcan: {entries} gains, {ENTRIES} are needed", node.where)
    return ((count,),)


def iterate(node: Node) -> Iteration:
    nest = Nest()
    c = operand(nest.parallel(node.output.shape[0]))
    return nest.iteration([c, c, *parameters(node, nest, 2)], [c])


def check(node: Node) -> str | None:
    u32 = DType.UINT32
    complaint = check_types(node, (u32, u32, DType.INT16), (u32,), (2,))
    return complaint or check_range("snr_shift", attrs_of(node).snr_shift, 0, 63)


def gain(noise: npt.NDArray[np.uint64], table: Array) -> npt.NDArray[np.int64]:
    """Of each channel, int16."""
    places = np.maximum(bits(noise), np.uint64(2)).astype(np.int64)
    eleven = np.int64(11)
    x = noise.astype(np.int64)
    fraction = np.where(
        places < eleven, x << np.maximum(eleven - places, 0), x >> np.maximum(places - eleven, 0)
    )
    fraction &= 0x3FF
    entries = table.astype(np.int64)
    at = 4 * places - 6
    value = ((entries[at + 2] * fraction) >> 5) + (entries[at + 1] << 5)
    # 32 bits, as in C.
    value = (value * fraction).astype(np.int32).astype(np.int64)
    value = ((value + (1 << 14)).astype(np.int32) >> 15) + entries[at]
    small = entries[np.minimum(x, 2)]
    return np.where(x <= 2, small, value).astype(np.int16).astype(np.int64)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, noise, table = words(inputs[0]), words(inputs[1]), inputs[2]
    assert table is not None
    low = np.uint64(0xFFFFFFFF)
    factor = gain(noise, table).astype(np.uint64) & low
    ratio = ((x * factor) >> np.uint64(attrs_of(node).snr_shift)) & low
    square = (ratio * ratio & low) >> np.uint64(20)
    # Where it is not used, it may wrap.
    line = ((ratio >> np.uint64(6)) - np.uint64(64)) & low
    return (np.where(ratio < 2 << 12, square, line).astype(np.uint32),)


def lower(node: Node, _target: Target) -> Call:
    params = Struct(
        "tinyet_signal_pcan_params",
        {
            "gains": Pointer("gains"),
            "count": node.output.type.count,
            "snr_shift": attrs_of(node).snr_shift,
        },
    )
    constants = [Constant("gains", node.input(2).array)]
    return library_call("tinyet_signal_pcan", node, [0, 1], params, constants)


OP = Op(
    attrs=SignalPcan,
    summary="channels of a filter bank with automatic gain",
    infer=infer,
    inputs=(3, 3),
    reference=reference,
    iteration=iterate,
    check=check,
    inplace=(0, 1),
    kernels=(
        Kernel(
            "tinyet_signal_pcan",
            "u32",
            lower,
            ("tinyet_signal.h",),
            ("tinyet_signal_pcan.c",),
            no_cost_model=ALONE,
        ),
    ),
)
