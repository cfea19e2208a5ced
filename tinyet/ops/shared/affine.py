# SPDX-License-Identifier: Apache-2.0
"""Cheaper arithmetic for int8 operators of two operands, proved exact ahead of time.

The specification rescales each operand on its own and rounds three times. For given scales the result is
nearly always one affine form, rounded once: clamp((c + u * a + v * b) >> shift). It is used only where it
gives the specified output for all 65,536 pairs of inputs.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from tinyet.numerics import Int64

INT32_LIMIT = 2**31 - 1


def candidates(a: float, b: float) -> list[tuple[int, int]]:
    """Integer factors to try for the real ones a and b, the nearest first.

    Scales whose ratios are powers of two give exact ties, which must round away from zero on both sides:
    factors that are both too large by the same small share do that. Elsewhere one step from the nearest
    integers is nearly always enough.
    """
    around = sorted(itertools.product(range(-2, 3), repeat=2), key=lambda d: (d[0] ** 2 + d[1] ** 2, d))
    tries = [(round(a) + i, round(b) + j) for i, j in around]
    larger = max(abs(a), abs(b))
    tries += [(round(a + a * 2**k / larger), round(b + b * 2**k / larger)) for k in range(10)]
    return list(dict.fromkeys(tries))


@dataclass(frozen=True)
class Affine:
    """clamp((c + u * a + v * b) >> shift); no intermediate leaves int32 for the operands it was found for."""

    a: int
    b: int
    c: int
    shift: int


def find(
    u: Int64, v: Int64, want: Int64, factors: tuple[float, float], clamp: tuple[int, int]
) -> Affine | None:
    """The affine form with want == clamp((c + u * a + v * b) >> shift) for every element, or None.

    u, v: int64, broadcasting against want: the operands of every case that can happen. factors: a and b in
    reals.
    """
    reach = sum(abs(f) * float(np.abs(w).max()) for f, w in zip(factors, (u, v), strict=True))
    # `c` holds the zero points, at most as large as the reach plus the width of the output, and half a step.
    shift = min(math.floor(31 - math.log2(2 * reach + 512)), 30)
    if shift < 1:
        return None
    # That is for the worst of zero points: most leave room for finer factors, where those have no form.
    finer = range(shift, min(shift + 2, 30) + 1)
    return next(filter(None, (find_at(u, v, want, factors, clamp, each) for each in finer)), None)


def find_at(
    u: Int64, v: Int64, want: Int64, factors: tuple[float, float], clamp: tuple[int, int], shift: int
) -> Affine | None:
    """The same with a shift of 1 and more that is given."""
    low, high = clamp
    target = want << shift
    for a, b in candidates(*(f * 2.0**shift for f in factors)):
        sums = u * a + v * b
        # Each case bounds c from one side or both: a clamped output says nothing about its own side.
        least = int((target - sums)[want > low].max(initial=-INT32_LIMIT))
        most = int((target + (1 << shift) - 1 - sums)[want < high].min(initial=INT32_LIMIT))
        c = (least + most) // 2
        largest = max(int(np.abs(u * a).max()), int(np.abs(sums).max()))
        if least <= most and largest + abs(c) <= INT32_LIMIT:
            return Affine(a, b, c, shift)
    return None
