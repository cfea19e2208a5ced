# SPDX-License-Identifier: Apache-2.0
"""Noise subtracted from the channels of a filter bank, as TFLM's SignalFilterBankSpectralSubtraction
(signal/src/filter_bank_spectral_subtraction.cc).

The noise of a channel is a running average of its magnitudes, times 2^smoothing_bits. Channels of odd numbers have
weights of their own. All in integers without sign: what is shifted beyond 32 bits is lost, as in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.signals import check_range, check_types, expect_vector, words
from tinyet.opset import ALONE, Call, Iteration, Kernel, Nest, Op, Struct, library_call, operand

MOST = 2**31 - 1


@dataclass(frozen=True)
class SignalFilterBankSpectralSubtraction(Attrs):
    """inputs: x uint32 (C,); the noise before, uint32 (C,), 0 at first. Outputs: x less its noise, uint32 (C,); the
    noise, uint32 (C,), which is both a result and the next run's state.

    noise = (2^smoothing_bits x * smoothing + noise before * one_minus_smoothing) / 2^bits; the result is x less
    noise / 2^smoothing_bits, at least x * min_signal_remaining / 2^bits. Odd channels have the alternate weights.
    clamping: the noise that is kept is no more than the signal.
    """

    name: ClassVar[str] = "signal_filter_bank_spectral_subtraction"
    smoothing: int
    one_minus_smoothing: int
    alternate_smoothing: int
    alternate_one_minus_smoothing: int
    min_signal_remaining: int
    smoothing_bits: int
    bits: int
    clamping: bool


def attrs_of(node: Node) -> SignalFilterBankSpectralSubtraction:
    assert isinstance(node.attrs, SignalFilterBankSpectralSubtraction)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    count = expect_vector(node, 0)
    expect_vector(node, 1, count)
    return (count,), (count,)


def iterate(node: Node) -> Iteration:
    nest = Nest()
    c = operand(nest.parallel(node.outputs[0].shape[0]))
    return nest.iteration([c, c], [c, c])


def check(node: Node) -> str | None:
    u32, attrs = DType.UINT32, attrs_of(node)
    complaint = check_types(node, (u32, u32), (u32, u32))
    for name, value in vars(attrs).items():
        most = 31 if name in ("smoothing_bits", "bits") else MOST
        complaint = complaint or check_range(name, value, 0, most)
    return complaint


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    attrs, x, noise = attrs_of(node), words(inputs[0]), words(inputs[1])
    low, up, down = np.uint64(0xFFFFFFFF), np.uint64(attrs.smoothing_bits), np.uint64(attrs.bits)
    odd = np.arange(len(x)) % 2 == 1
    weight = np.where(odd, attrs.alternate_smoothing, attrs.smoothing).astype(np.uint64)
    rest = np.where(odd, attrs.alternate_one_minus_smoothing, attrs.one_minus_smoothing).astype(np.uint64)
    signal = (x << up) & low
    noise = ((signal * weight + noise * rest) >> down) & low
    estimate = np.minimum(noise, signal)
    floor = ((x * np.uint64(attrs.min_signal_remaining)) >> down) & low
    result = np.maximum((signal - estimate) >> up, floor)
    kept = estimate if attrs.clamping else noise
    return result.astype(np.uint32), kept.astype(np.uint32)


def lower(node: Node, _target: Target) -> Call:
    attrs = attrs_of(node)
    params = Struct(
        "tinyet_signal_spectral_subtraction_params",
        {
            "count": node.outputs[0].type.count,
            "smoothing": (attrs.smoothing, attrs.alternate_smoothing),
            "one_minus_smoothing": (attrs.one_minus_smoothing, attrs.alternate_one_minus_smoothing),
            "min_signal_remaining": attrs.min_signal_remaining,
            "smoothing_bits": attrs.smoothing_bits,
            "bits": attrs.bits,
            "clamping": int(attrs.clamping),
        },
    )
    return library_call("tinyet_signal_spectral_subtraction", node, [0, 1], params)


OP = Op(
    attrs=SignalFilterBankSpectralSubtraction,
    summary="channels of a filter bank less their noise, which is carried on",
    infer=infer,
    inputs=(2, 2),
    reference=reference,
    iteration=iterate,
    check=check,
    kernels=(
        Kernel(
            "tinyet_signal_spectral_subtraction",
            "u32",
            lower,
            ("tinyet_signal.h",),
            ("tinyet_signal_spectral_subtraction.c",),
            no_cost_model=ALONE,
        ),
    ),
)
