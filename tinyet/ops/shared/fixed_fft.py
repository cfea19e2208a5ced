# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of real int16 values in fixed point: numbers of 32 bits, twiddles of 16.

N real numbers are N / 2 complex ones, whose transform is turned into that of the real ones (as `fft` does it). Every
product is that of a core's instruction for a word and a halfword, (x * w) >> 16, rounded down; w has 15 bits behind
the point, so it halves: the first stage, whose twiddles are all 1, adds, and each stage behind it halves what it adds.
Samples begin as far to the left as the greatest sum that can occur allows, which is known ahead of time: nothing is
scaled by what the data are, and nothing wraps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

ONE = 1 << 15
"""1 in the numbers of tables. int16 has -1, but not 1: tables hold what is at most 1 with the other sign."""
SIXTY, NEAR_COSINE, FAR_COSINE, NEAR_SINE, FAR_SINE = (
    round(ONE * value)
    for value in (
        math.sin(math.pi / 3),
        math.cos(0.4 * math.pi),
        math.cos(0.8 * math.pi),
        math.sin(0.4 * math.pi),
        math.sin(0.8 * math.pi),
    )
)
"""Of butterflies of 3 and of 5; TINYET_FFT_SIXTY and so on in tinyet_log_bands_s16.c."""

_SAMPLE_BITS = 15
_MOST_LEFT = 15


def times(x: Integers, w: Integers | int) -> Integers:
    return (x * w) >> 16


def radices(count: int) -> tuple[int, ...]:
    """Of the stages of a transform of `count` complex numbers, the innermost first. 4 is first where it can be, because
    the first stage needs no products."""
    found = []
    for radix in (4, 2, 3, 5):
        while count % radix == 0:
            found.append(radix)
            count //= radix
    return tuple(found)


def halvings(length: int) -> int:
    """How many stages halve."""
    return len(radices(length // 2)) - 1


def left_shift(length: int) -> int:
    """How far samples times their window are shifted to the left, so that no sum of the transform leaves 32 bits.

    A complex number of two samples is at most 2**15 * sqrt(2) long. The first stage adds `radix` of them, the others
    half of each; the step to real values adds two, and butterflies of 3 and 5 double what they multiply.
    """
    first, *others = radices(length // 2)
    size = math.sqrt(2) * 2.0**_SAMPLE_BITS * first
    largest = 2 * size
    for radix in others:
        size *= radix / 2
        largest = max(largest, 2 * size, 4 * size / radix)
    # Each stage rounds down a few times; a thousandth is more than all of that.
    return min(math.floor(31 - math.log2(largest * 1.001)), _MOST_LEFT)


def order(count: int) -> Integers:
    """Where each complex number of the input lies before the first stage."""
    places = np.zeros(count, np.int64)
    at, size = np.arange(count), count
    for radix in reversed(radices(count)):
        size //= radix
        places += (at % radix) * size
        at = at // radix
    return places


def _halfwords(values: npt.ArrayLike) -> Integers:
    return np.clip(np.floor(np.asarray(values) * ONE + 0.5), -ONE, ONE - 1).astype(np.int64)


def twiddles(length: int) -> Integers:
    """-exp(-2 pi i k / count) of the complex transform, (entries, 2): as many as stages read."""
    count = length // 2
    most = max(((radix - 1) * count // radix for radix in radices(count)[1:]), default=0)
    angle = 2 * np.pi * np.arange(most) / count
    return _halfwords(np.stack([-np.cos(angle), np.sin(angle)], -1))


def split_twiddles(length: int) -> Integers:
    """-i exp(-2 pi i k / length) for k from 1 to length / 4, (entries, 2): both parts lie from -1 to 0."""
    angle = 2 * np.pi * np.arange(1, length // 4 + 1) / length
    return _halfwords(np.stack([-np.sin(angle), -np.cos(angle)], -1))


@dataclass(frozen=True)
class Complex:
    """Real and imaginary parts, of one shape."""

    r: Integers
    i: Integers

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.r + other.r, self.i + other.i)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.r - other.r, self.i - other.i)

    def halved(self) -> Complex:
        return Complex(self.r >> 1, self.i >> 1)

    def times(self, w: Integers) -> Complex:
        """w: (…, 2)."""
        wr, wi = w[..., 0], w[..., 1]
        return Complex(times(self.r, wr) - times(self.i, wi), times(self.i, wr) + times(self.r, wi))

    def scaled(self, w: int) -> Complex:
        """w as it is, not its half."""
        return Complex(times(2 * self.r, w), times(2 * self.i, w))

    def quarter(self) -> Complex:
        """Times i."""
        return Complex(-self.i, self.r)


def _butterfly(parts: Sequence[Complex]) -> list[Complex]:
    """parts: the first one, and the others with the other sign."""
    a, *others = parts
    if len(others) == 1:
        return [a - others[0], a + others[0]]
    if len(others) == 2:
        total = others[0] + others[1]
        middle, side = a + total.halved(), (others[0] - others[1]).scaled(SIXTY).quarter()
        return [a - total, middle + side, middle - side]
    if len(others) == 3:
        b, c, d = others
        even, odd, side = a - c, b + d, (b - d).quarter()
        middle = a + c
        return [even - odd, middle + side, even + odd, middle - side]
    outer, inner = others[0] + others[3], others[1] + others[2]
    outer_side, inner_side = others[0] - others[3], others[1] - others[2]
    near = a - (outer.scaled(NEAR_COSINE) + inner.scaled(FAR_COSINE))
    far = a - (outer.scaled(FAR_COSINE) + inner.scaled(NEAR_COSINE))
    near_side = (outer_side.scaled(NEAR_SINE) + inner_side.scaled(FAR_SINE)).quarter()
    far_side = (outer_side.scaled(FAR_SINE) - inner_side.scaled(NEAR_SINE)).quarter()
    return [a - outer - inner, near + near_side, far + far_side, far - far_side, near - near_side]


def complex_transform(z: Complex, length: int) -> Complex:
    """Of the last axis, length / 2 numbers that lie in their `order`; divided by 2 ** halvings."""
    count, table, size = length // 2, twiddles(length), 1
    for radix in radices(count):
        shape = (*z.r.shape[:-1], count // (size * radix), radix, size)
        blocks = Complex(z.r.reshape(shape), z.i.reshape(shape))
        parts = [Complex(blocks.r[..., m, :], blocks.i[..., m, :]) for m in range(radix)]
        if size == 1:
            found = _butterfly([parts[0], *(Complex(-part.r, -part.i) for part in parts[1:])])
        else:
            at = np.arange(size) * (count // (size * radix))
            found = _butterfly(
                [parts[0].halved(), *(part.times(table[at * m]) for m, part in enumerate(parts) if m)]
            )
        z = Complex(
            np.stack([f.r for f in found], -2).reshape(*z.r.shape[:-1], count),
            np.stack([f.i for f in found], -2).reshape(*z.r.shape[:-1], count),
        )
        size *= radix
    return z


def real_transform(x: Integers, length: int) -> Complex:
    """Of the last axis, `length` values: the length / 2 + 1 numbers, divided by 2 ** halvings."""
    count, places = length // 2, order(length // 2)
    shape = (*x.shape[:-1], count)
    given = Complex(np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    given.r[..., places], given.i[..., places] = x[..., 0::2], x[..., 1::2]
    z = complex_transform(given, length)
    out = Complex(*(np.zeros((*x.shape[:-1], count + 1), np.int64) for _ in range(2)))
    out.r[..., 0], out.r[..., count] = z.r[..., 0] + z.i[..., 0], z.r[..., 0] - z.i[..., 0]
    at = np.arange(1, count // 2 + 1)
    here = Complex(z.r[..., at], z.i[..., at])
    there = Complex(z.r[..., count - at], -z.i[..., count - at])
    even, odd = (here + there).halved(), (here - there).times(split_twiddles(length))
    out.r[..., at], out.i[..., at] = even.r + odd.r, even.i + odd.i
    out.r[..., count - at], out.i[..., count - at] = even.r - odd.r, odd.i - even.i
    return out
