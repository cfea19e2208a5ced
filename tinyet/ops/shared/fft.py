# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of real signals, bit for bit as KISS FFT 1.3.0 computes them (kiss_fft.c, kiss_fftr.c), which
TFLM's SignalRfft and SignalIrfft call.

N real numbers are N / 2 complex ones, whose transform is turned into that of the real ones; its N / 2 + 1 numbers are
stored with the real part first. The complex transform is made in stages of 4, 2, 3 and 5. In fixed point each
stage divides by its radix first, so that nothing overflows: the result is the transform / N, and the inverse one
divides by N / 2 again. Sums wrap, products are rounded with ties upward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet.ir import Array, DType, Node
from tinyet.ops.shared.signals import check_types
from tinyet.opset import ALONE, Constant, Kernel, Lower, Pointer, Struct

Numbers = npt.NDArray[Any]
"""Fixed point as int64 within the bits of its type, or float32."""

DTYPES = (DType.INT16, DType.INT32, DType.FLOAT32)
RADICES = (4, 2, 3, 5)
MAX_LENGTH = 1 << 15
MAX_STAGES = 10
"""TINYET_FFT_STAGES: 9 of 3 or fewer, and one of 2."""


def length_complaint(length: int) -> str | None:
    """The error in a number of real values, or None."""
    if not 4 <= length <= MAX_LENGTH or length % 2 != 0:
        return f"a transform of {length} values: an even number from 4 to {MAX_LENGTH} is needed"
    if math.prod(stages(length // 2)) != length // 2:
        return f"a transform of {length} values, which have other prime factors than 2, 3 and 5"
    return None


def stages(count: int) -> tuple[int, ...]:
    """The radix of each stage of a transform of `count` complex numbers, the outermost first; what other prime factors
    it has is left out."""
    found = []
    for radix in RADICES:
        while count % radix == 0:
            found.append(radix)
            count //= radix
    return tuple(found)


@dataclass(frozen=True)
class Complex:
    """Real and imaginary parts, of one shape."""

    r: Numbers
    i: Numbers

    def __getitem__(self, key: Any) -> Complex:
        return Complex(self.r[key], self.i[key])


def joined(parts: Sequence[Complex]) -> Complex:
    """Along the last axis."""
    return Complex(np.concatenate([p.r for p in parts], -1), np.concatenate([p.i for p in parts], -1))


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic of an element type."""

    dtype: DType

    @property
    def fixed(self) -> bool:
        return self.dtype is not DType.FLOAT32

    @property
    def point(self) -> int:
        """Bits behind the point."""
        return self.dtype.bits - 1

    def wrapped(self, x: Numbers) -> Numbers:
        return x.astype(self.dtype.numpy).astype(np.int64) if self.fixed else x

    def rounded(self, product: Numbers) -> Numbers:
        if not self.fixed:
            return product
        return self.wrapped((product + (1 << (self.point - 1))) >> self.point)

    def times(self, x: Numbers, y: Numbers) -> Numbers:
        return self.rounded(x * y)

    def half(self, x: Numbers) -> Numbers:
        return x >> 1 if self.fixed else x * np.float32(0.5)

    def half_sum(self, x: Numbers, y: Numbers) -> Numbers:
        """int16 is added up in more bits, int32 is not."""
        total = x + y
        return self.half(total if self.dtype is DType.INT16 else self.wrapped(total))

    def plus(self, x: Numbers, y: Numbers) -> Numbers:
        return self.wrapped(x + y)

    def minus(self, x: Numbers, y: Numbers) -> Numbers:
        return self.wrapped(x - y)

    def add(self, x: Complex, y: Complex) -> Complex:
        return Complex(self.plus(x.r, y.r), self.plus(x.i, y.i))

    def subtract(self, x: Complex, y: Complex) -> Complex:
        return Complex(self.minus(x.r, y.r), self.minus(x.i, y.i))

    def multiply(self, x: Complex, y: Complex) -> Complex:
        return Complex(self.rounded(x.r * y.r - x.i * y.i), self.rounded(x.r * y.i + x.i * y.r))

    def part(self, x: Complex, divisor: int) -> Complex:
        """x / divisor in fixed point, x itself in float."""
        if not self.fixed:
            return x
        share = np.asarray(self.dtype.range[1] // divisor, np.int64)
        return Complex(self.times(x.r, share), self.times(x.i, share))

    def conjugate(self, x: Complex) -> Complex:
        return Complex(x.r, self.wrapped(-x.i))

    def numbers(self, x: Array) -> Numbers:
        return x.astype(np.int64) if self.fixed else x.astype(np.float32)


# ---------------------------------------------------------------- tables


def units(phases: Sequence[float], dtype: DType) -> npt.NDArray[Any]:
    """cos and sin of each phase, (count, 2)."""
    pairs = [(math.cos(phase), math.sin(phase)) for phase in phases]
    if dtype is DType.FLOAT32:
        return np.array(pairs, np.float32)
    most = dtype.range[1]
    return np.array([[math.floor(0.5 + most * v) for v in pair] for pair in pairs], dtype.numpy)


def twiddles(length: int, dtype: DType, inverse: bool) -> npt.NDArray[Any]:
    """Of the complex transform of length / 2 numbers, (length / 2, 2)."""
    count, sign = length // 2, -1 if inverse else 1
    return units([sign * (-2 * math.pi * i / count) for i in range(count)], dtype)


def super_twiddles(length: int, dtype: DType, inverse: bool) -> npt.NDArray[Any]:
    """Of the step between the complex transform and that of the real values, (length / 4 rounded down, 2)."""
    count, sign = length // 2, -1 if inverse else 1
    return units([sign * (-math.pi * ((i + 1) / count + 0.5)) for i in range(count // 2)], dtype)


def table(values: npt.NDArray[Any], kind: Arithmetic) -> Complex:
    return Complex(kind.numbers(values[:, 0]), kind.numbers(values[:, 1]))


# ---------------------------------------------------------------- the complex transform


def transform(
    kind: Arithmetic, x: Complex, radices: Sequence[int], turns: Complex, inverse: bool, stride: int = 1
) -> Complex:
    """Along the last axis. turns: the twiddles of the whole transform, of which this is one of `stride` parts."""
    if not radices:
        return x
    radix, size = radices[0], x.r.shape[-1] // radices[0]
    inner = [
        transform(kind, x[..., first::radix], radices[1:], turns, inverse, stride * radix)
        for first in range(radix)
    ]
    at = np.arange(size) * stride
    first, *others = (kind.part(part, radix) for part in inner)
    turned = [kind.multiply(part, turns[at * (n + 1)]) for n, part in enumerate(others)]
    if radix == 2:
        return joined([kind.add(first, turned[0]), kind.subtract(first, turned[0])])
    if radix == 3:
        return joined(_three(kind, first, turned, turns[stride * size]))
    if radix == 4:
        return joined(_four(kind, first, turned, inverse))
    return joined(_five(kind, first, turned, turns[stride * size], turns[stride * 2 * size]))


def _three(kind: Arithmetic, first: Complex, turned: Sequence[Complex], turn: Complex) -> list[Complex]:
    total, apart = kind.add(*turned), kind.subtract(*turned)
    middle = kind.subtract(first, Complex(kind.half(total.r), kind.half(total.i)))
    side = Complex(kind.times(apart.r, turn.i), kind.times(apart.i, turn.i))
    low = Complex(kind.minus(middle.r, side.i), kind.plus(middle.i, side.r))
    high = Complex(kind.plus(middle.r, side.i), kind.minus(middle.i, side.r))
    return [kind.add(first, total), low, high]


def _four(kind: Arithmetic, first: Complex, turned: Sequence[Complex], inverse: bool) -> list[Complex]:
    one, two, three = turned
    apart, even = kind.subtract(first, two), kind.add(first, two)
    odd, side = kind.add(one, three), kind.subtract(one, three)
    low = Complex(kind.plus(apart.r, side.i), kind.minus(apart.i, side.r))
    high = Complex(kind.minus(apart.r, side.i), kind.plus(apart.i, side.r))
    if inverse:
        low, high = high, low
    return [kind.add(even, odd), low, kind.subtract(even, odd), high]


def _five(
    kind: Arithmetic, first: Complex, turned: Sequence[Complex], near: Complex, far: Complex
) -> list[Complex]:
    one, two, three, four = turned
    outer, outer_apart = kind.add(one, four), kind.subtract(one, four)
    inner, inner_apart = kind.add(two, three), kind.subtract(two, three)

    def middle(a: Complex, b: Complex) -> Complex:
        return Complex(
            kind.plus(kind.plus(first.r, kind.times(outer.r, a.r)), kind.times(inner.r, b.r)),
            kind.plus(kind.plus(first.i, kind.times(outer.i, a.r)), kind.times(inner.i, b.r)),
        )

    times, wrapped = kind.times, kind.wrapped
    wide = Complex(
        kind.plus(times(outer_apart.i, near.i), times(inner_apart.i, far.i)),
        kind.minus(wrapped(-times(outer_apart.r, near.i)), times(inner_apart.r, far.i)),
    )
    narrow = Complex(
        kind.plus(wrapped(-times(outer_apart.i, far.i)), times(inner_apart.i, near.i)),
        kind.minus(times(outer_apart.r, far.i), times(inner_apart.r, near.i)),
    )
    by_near, by_far = middle(near, far), middle(far, near)
    return [
        kind.add(first, kind.add(outer, inner)),
        kind.subtract(by_near, wide),
        kind.add(by_far, narrow),
        kind.subtract(by_far, narrow),
        kind.add(by_near, wide),
    ]


# ---------------------------------------------------------------- real values


def real_transform(x: Array, length: int, dtype: DType) -> Array:
    """Of the last axis, to which zeros are added up to `length` (n, length + 2)."""
    kind, count = Arithmetic(dtype), length // 2
    padded = np.zeros((*x.shape[:-1], length), dtype.numpy)
    padded[..., : x.shape[-1]] = x
    values = kind.numbers(padded)
    turns = table(twiddles(length, dtype, False), kind)
    inner = transform(kind, Complex(values[..., 0::2], values[..., 1::2]), stages(count), turns, False)
    zeros = np.zeros((*x.shape[:-1], count + 1), values.dtype)
    out = Complex(zeros, zeros.copy())
    ends = kind.part(inner[..., 0], 2)
    out.r[..., 0], out.r[..., count] = kind.plus(ends.r, ends.i), kind.minus(ends.r, ends.i)
    at = np.arange(1, count // 2 + 1)
    here = kind.part(inner[..., at], 2)
    there = kind.part(kind.conjugate(inner[..., count - at]), 2)
    total = kind.add(here, there)
    turned = kind.multiply(kind.subtract(here, there), table(super_twiddles(length, dtype, False), kind))
    out.r[..., at], out.i[..., at] = kind.half_sum(total.r, turned.r), kind.half_sum(total.i, turned.i)
    # In the middle of an even number of values both write the same element, and this is the one that stays.
    out.r[..., count - at] = kind.half_sum(total.r, -turned.r)
    out.i[..., count - at] = kind.half_sum(turned.i, -total.i)
    return _interleaved(out, dtype)


def inverse_transform(x: Array, length: int, dtype: DType) -> Array:
    """Of the last axis, length + 2 values (n, length); in float divided by `length`."""
    kind, count = Arithmetic(dtype), length // 2
    values = kind.numbers(x)
    given = Complex(values[..., 0::2], values[..., 1::2])
    zeros = np.zeros((*x.shape[:-1], count), values.dtype)
    inner = Complex(zeros, zeros.copy())
    first, last = given.r[..., 0], given.r[..., count]
    ends = kind.part(Complex(kind.plus(first, last), kind.minus(first, last)), 2)
    inner.r[..., 0], inner.i[..., 0] = ends.r, ends.i
    at = np.arange(1, count // 2 + 1)
    here = kind.part(given[..., at], 2)
    there = kind.part(kind.conjugate(given[..., count - at]), 2)
    even = kind.add(here, there)
    odd = kind.multiply(kind.subtract(here, there), table(super_twiddles(length, dtype, True), kind))
    low, high = kind.add(even, odd), kind.conjugate(kind.subtract(even, odd))
    inner.r[..., at], inner.i[..., at] = low.r, low.i
    inner.r[..., count - at], inner.i[..., count - at] = high.r, high.i
    out = transform(kind, inner, stages(count), table(twiddles(length, dtype, True), kind), True)
    found = _interleaved(out, dtype)
    return found if kind.fixed else np.asarray(found.astype(np.float32) / np.float32(length))


def _interleaved(x: Complex, dtype: DType) -> Array:
    pairs = np.stack([x.r, x.i], axis=-1).astype(dtype.numpy)
    return pairs.reshape(*x.r.shape[:-1], -1)


# ---------------------------------------------------------------- the call


def fft_struct(length: int) -> Struct:
    """tinyet_fft: of each stage its radix, the elements of one of its parts, and how far apart neighbours are in the
    input."""
    count, radices = length // 2, stages(length // 2)
    strides = tuple(accumulate((1, *radices[:-1]), mul))
    sizes = tuple(count // (stride * radix) for stride, radix in zip(strides, radices, strict=True))
    rest = (0,) * (MAX_STAGES - len(radices))
    return Struct(
        "tinyet_fft",
        {
            "count": count,
            "stages": len(radices),
            "radix": radices + rest,
            "size": sizes + rest,
            "stride": strides + rest,
        },
    )


def fft_constants(length: int, dtype: DType, inverse: bool) -> tuple[dict[str, Pointer], list[Constant]]:
    """The fields that point at the tables of a transform, and these tables."""
    tables = {
        "twiddles": twiddles(length, dtype, inverse),
        "super_twiddles": super_twiddles(length, dtype, inverse),
    }
    constants = [Constant(name, values.reshape(-1)) for name, values in tables.items()]
    return {name: Pointer(name) for name in tables}, constants


# ---------------------------------------------------------------- the operators


def check(node: Node) -> str | None:
    """The type rule of a transform and its inverse: one type, of DTYPES."""
    dtype = node.output.dtype
    if dtype not in DTYPES:
        return f"no form for {dtype.value}"
    return check_types(node, (dtype,), (dtype,))


def kernel(symbol: str, dtype: DType, lower: Lower) -> Kernel:
    """The library kernel of this name, beside the complex transform that it calls."""
    sources = (f"{symbol}.c", f"tinyet_fft_{dtype.suffix}.c")
    return Kernel(symbol, dtype.suffix, lower, ("tinyet_fft.h",), sources, no_cost_model=ALONE)
