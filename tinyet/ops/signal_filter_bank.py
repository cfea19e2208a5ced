# SPDX-License-Identifier: Apache-2.0
"""The energies of a spectrum summed up channel by channel of a filter bank, as TFLM's SignalFilterBank
(signal/src/filter_bank.cc).

Channels are triangles that overlap by half: an energy counts in one channel with its weight, and in the next one with
its counter-weight. The first of the C + 1 bands gives the first channel its rising half, and has no sum of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.signals import check_types, expect_vector
from tinyet.opset import (
    ALONE,
    Call,
    Constant,
    FieldValue,
    Kernel,
    Op,
    Pointer,
    Struct,
    everything,
    library_call,
)

WEIGHTS, UNWEIGHTS, FREQUENCY_STARTS, WEIGHT_STARTS, WIDTHS = range(1, 6)
TABLES = {
    "weights": WEIGHTS,
    "unweights": UNWEIGHTS,
    "frequency_starts": FREQUENCY_STARTS,
    "weight_starts": WEIGHT_STARTS,
    "widths": WIDTHS,
}


@dataclass(frozen=True)
class SignalFilterBank(Attrs):
    """inputs: x uint32 (K,); constants, all int16: weights (W,), counter-weights (W,), and of each of the C + 1 bands
    its first frequency, its first weight, and how many it has, (C + 1,) each. Output: uint32 (C, 2), the sums of C
    channels, of 64 bits: the lower word first."""

    name: ClassVar[str] = "signal_filter_bank"


def infer(node: Node) -> tuple[Shape, ...]:
    expect_vector(node, 0)
    expect_vector(node, UNWEIGHTS, expect_vector(node, WEIGHTS))
    bands = expect_vector(node, WIDTHS)
    for index in (FREQUENCY_STARTS, WEIGHT_STARTS):
        expect_vector(node, index, bands)
    if bands < 2:
        raise UnsupportedShape("signal_filter_bank: there is no channel", node.where)
    return ((bands - 1, 2),)


def check(node: Node) -> str | None:
    tables = tuple(TABLES.values())
    complaint = check_types(node, (DType.UINT32, *(DType.INT16 for _ in tables)), (DType.UINT32,), tables)
    if complaint is not None:
        return complaint
    widths = node.input(WIDTHS).array.astype(np.int64)
    for index, (starts, length) in {
        FREQUENCY_STARTS: ("frequencies", node.input(0).type.count),
        WEIGHT_STARTS: ("weights", node.input(WEIGHTS).type.count),
    }.items():
        first = node.input(index).array.astype(np.int64)
        if np.any(widths < 0) or np.any((widths > 0) & ((first < 0) | (first + widths > length))):
            return f"a band is outside of the {length} {starts}"
    return None


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, *tables = (np.asarray(t) for t in inputs)
    energies = x.astype(np.uint64)
    # As in C, a negative weight is one modulo 2^64.
    weights, unweights = (t.astype(np.int64).astype(np.uint64) for t in tables[:2])
    frequencies, firsts, widths = (t.tolist() for t in tables[2:])
    sums, carried = [], np.uint64(0)
    with np.errstate(over="ignore"):
        for frequency, first, width in zip(frequencies, firsts, widths, strict=True):
            part = energies[frequency : frequency + width]
            sums.append(carried + (part * weights[first : first + width]).sum(dtype=np.uint64))
            carried = (part * unweights[first : first + width]).sum(dtype=np.uint64)
    found = np.array(sums[1:], np.uint64)
    return (np.stack([found, found >> np.uint64(32)], axis=1).astype(np.uint32),)


def lower(node: Node, _target: Target) -> Call:
    fields: dict[str, FieldValue] = {name: Pointer(name) for name in TABLES}
    fields["bands"] = node.input(WIDTHS).type.count
    constants = [Constant(name, node.input(index).array) for name, index in TABLES.items()]
    params = Struct("tinyet_signal_filter_bank_params", fields)
    return library_call("tinyet_signal_filter_bank", node, [0], params, constants)


OP = Op(
    attrs=SignalFilterBank,
    summary="energies summed up by the channels of a filter bank",
    infer=infer,
    inputs=(6, 6),
    reference=reference,
    iteration=everything,
    check=check,
    kernels=(
        Kernel(
            "tinyet_signal_filter_bank",
            "u32",
            lower,
            ("tinyet_signal.h",),
            ("tinyet_signal_filter_bank.c",),
            no_cost_model=ALONE,
        ),
    ),
)
