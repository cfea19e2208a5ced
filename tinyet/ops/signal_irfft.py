# SPDX-License-Identifier: Apache-2.0
"""Real values from their Fourier transform, as TFLM's SignalIrfft: shared/fft.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared import fft
from tinyet.ops.shared.signals import iterate_signals
from tinyet.opset import Call, Kernel, Op, Struct, library_call


@dataclass(frozen=True)
class SignalIrfft(Attrs):
    """inputs: x int16, int32 or float32 (…, length + 2), complex numbers, real part first. Output: of x's type,
    (…, length), the inverse transform divided by length; in fixed point by length / 2 in its stages."""

    name: ClassVar[str] = "signal_irfft"
    length: int


def attrs_of(node: Node) -> SignalIrfft:
    assert isinstance(node.attrs, SignalIrfft)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape, length = node.input(0).shape, attrs_of(node).length
    complaint = fft.length_complaint(length)
    if complaint is None and shape[-1:] != (length + 2,):
        complaint = f"{length + 2} values make {length}, not {shape}"
    if complaint is not None:
        raise UnsupportedShape(f"signal_irfft: {complaint}", node.where)
    return ((*shape[:-1], length),)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    (x,) = inputs
    assert x is not None
    return (fft.inverse_transform(x, attrs_of(node).length, node.output.dtype),)


def kernel(dtype: DType) -> Kernel:
    symbol = f"tinyet_signal_irfft_{dtype.suffix}"

    def lower(node: Node, _target: Target) -> Call:
        length = attrs_of(node).length
        pointers, constants = fft.fft_constants(length, dtype, inverse=True)
        params = Struct(
            f"{symbol}_params",
            {**pointers, "fft": fft.fft_struct(length), "frames": node.output.type.count // length},
        )
        scratch = length * dtype.bytes
        return library_call(symbol, node, [0], params, constants, scratch_bytes=scratch)

    return fft.kernel(symbol, dtype, lower)


OP = Op(
    attrs=SignalIrfft,
    summary="real values from their Fourier transform",
    infer=infer,
    reference=reference,
    iteration=iterate_signals,
    check=fft.check,
    kernels=tuple(kernel(dtype) for dtype in fft.DTYPES),
)
