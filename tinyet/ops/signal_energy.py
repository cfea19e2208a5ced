# SPDX-License-Identifier: Apache-2.0
"""The energy of each frequency of a spectrum, as TFLM's SignalEnergy (signal/src/energy.cc)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.signals import check_types, expect_vector
from tinyet.opset import ALONE, Call, Iteration, Kernel, Nest, Op, Struct, library_call, operand


@dataclass(frozen=True)
class SignalEnergy(Attrs):
    """inputs: x int16 (2 K,), K complex numbers, real part first. Output: uint32 (K,), the squared absolute values of
    those from `start` on and before `end`; 0 elsewhere, where TFLM leaves what lay there."""

    name: ClassVar[str] = "signal_energy"
    start: int
    end: int


def attrs_of(node: Node) -> SignalEnergy:
    assert isinstance(node.attrs, SignalEnergy)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    count, attrs = expect_vector(node, 0), attrs_of(node)
    if count % 2 != 0 or not 0 <= attrs.start <= attrs.end <= count // 2:
        raise UnsupportedShape(
            f"signal_energy: frequencies {attrs.start} to {attrs.end} of {count} numbers", node.where
        )
    return ((count // 2,),)


def iterate(node: Node) -> Iteration:
    nest = Nest()
    k, part = nest.parallel(node.output.shape[0]), nest.reduced(2)
    return nest.iteration([operand(2 * k + part)], [operand(k)])


def part(node: Node, _axis: int, count: int) -> SignalEnergy | str:
    """Frequencies are counted from the spectrum's first."""
    attrs, all_of_them = attrs_of(node), node.output.shape[0]
    if (attrs.start, attrs.end) != (0, all_of_them):
        return f"{node.op} is of the frequencies {attrs.start} to {attrs.end} only"
    return SignalEnergy(0, count)


def check(node: Node) -> str | None:
    return check_types(node, (DType.INT16,), (DType.UINT32,))


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    (x,) = inputs
    assert x is not None
    attrs = attrs_of(node)
    energy = (x.astype(np.int64).reshape(-1, 2) ** 2).sum(axis=1)
    energy[: attrs.start] = 0
    energy[attrs.end :] = 0
    return (energy.astype(np.uint32),)


def lower(node: Node, _target: Target) -> Call:
    attrs = attrs_of(node)
    fields = {"count": node.output.type.count, "start": attrs.start, "end": attrs.end}
    return library_call("tinyet_signal_energy", node, [0], Struct("tinyet_signal_energy_params", fields))


OP = Op(
    attrs=SignalEnergy,
    summary="the energy of each frequency of a spectrum",
    infer=infer,
    reference=reference,
    iteration=iterate,
    part=part,
    check=check,
    kernels=(
        Kernel(
            "tinyet_signal_energy",
            "s16_u32",
            lower,
            ("tinyet_signal.h",),
            ("tinyet_signal_energy.c",),
            no_cost_model=ALONE,
        ),
    ),
)
