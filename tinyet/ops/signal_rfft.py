# SPDX-License-Identifier: Apache-2.0
"""The Fourier transform of real values, as TFLM's SignalRfft: shared/fft.py."""

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
class SignalRfft(Attrs):
    """inputs: x int16, int32 or float32 (…, N), N <= length; zeros are added. Output: of x's type, (…, length + 2), the
    first length / 2 + 1 complex numbers of the transform, real part first; in fixed point divided by length."""

    name: ClassVar[str] = "signal_rfft"
    length: int


def attrs_of(node: Node) -> SignalRfft:
    assert isinstance(node.attrs, SignalRfft)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    shape, length = node.input(0).shape, attrs_of(node).length
    complaint = fft.length_complaint(length)
    if complaint is None and not (shape and shape[-1] <= length):
        complaint = f"a transform of {length} values for {shape}"
    if complaint is not None:
        raise UnsupportedShape(f"signal_rfft: {complaint}", node.where)
    return ((*shape[:-1], length + 2),)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    (x,) = inputs
    assert x is not None
    return (fft.real_transform(x, attrs_of(node).length, node.output.dtype),)


def kernel(dtype: DType) -> Kernel:
    symbol = f"tinyet_signal_rfft_{dtype.suffix}"

    def lower(node: Node, _target: Target) -> Call:
        length, given = attrs_of(node).length, node.input(0).shape[-1]
        pointers, constants = fft.fft_constants(length, dtype, inverse=False)
        params = Struct(
            f"{symbol}_params",
            {
                **pointers,
                "fft": fft.fft_struct(length),
                "frames": node.input(0).type.count // given,
                "given": given,
            },
        )
        return library_call(symbol, node, [0], params, constants)

    return fft.kernel(symbol, dtype, lower)


OP = Op(
    attrs=SignalRfft,
    summary="the Fourier transform of real values",
    infer=infer,
    reference=reference,
    iteration=iterate_signals,
    check=fft.check,
    kernels=tuple(kernel(dtype) for dtype in fft.DTYPES),
)
