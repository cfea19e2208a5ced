# SPDX-License-Identifier: Apache-2.0
"""Cheaper arithmetic for int8 operators of two operands, proved exact ahead of time.

The specification rescales each operand on its own and rounds three times. For given scales the result is
nearly always one affine form, rounded once: clamp((c + u * a + v * b) >> shift). It is used only where it
gives the specified output for all 65,536 pairs of inputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
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


_WITHIN = 2.0**-14
"""How far from the factors in reals others are looked for, as a share of them."""
_STEPS = 40
"""Of each search: its interval becomes 0.62 times as long."""


def centre(
    u: Int64, v: Int64, want: Int64, factors: tuple[float, float], clamp: tuple[int, int]
) -> tuple[float, float]:
    """Real factors near the given ones that leave the constant of an affine form the most room: arguments as for
    `find`.

    Each case bounds the constant, from below by want - (a * u + b * v), from above by one more. The room between
    the largest lower bound and the smallest upper one is a concave function of a and b, so that a search for the best b
    within one for the best a finds its maximum. Cases that are far from a boundary are left out: what is found is
    to be proved anyway.
    """
    u, v = np.broadcast_arrays(u, v)
    sums = factors[0] * u + factors[1] * v
    least, most = (want - sums)[want > clamp[0]], (want + 1 - sums)[want < clamp[1]]
    if not least.size or not most.size:
        return factors
    middle = (least.max() + most.min()) / 2
    reach = float(np.abs(factors[0] * u).max() + np.abs(factors[1] * v).max())
    near = 3 * _WITHIN * reach
    below = (want > clamp[0]) & (middle - (want - sums) < near)
    above = (want < clamp[1]) & ((want + 1 - sums) - middle < near)
    if not below.any() or not above.any():
        return factors
    low, high = (u[below], v[below], want[below]), (u[above], v[above], want[above] + 1)

    def room(a: float, b: float) -> float:
        of_low, of_high = (w - (a * x + b * y) for x, y, w in (low, high))
        return float(of_high.min() - of_low.max())

    def best_b(a: float) -> tuple[float, float]:
        b = _largest(lambda b: room(a, b), factors[1])
        return room(a, b), b

    a = _largest(lambda a: best_b(a)[0], factors[0])
    return a, best_b(a)[1]


def _largest(function: Callable[[float], float], around: float) -> float:
    """Where a concave function is largest, near a point."""
    ends = sorted((around * (1 - _WITHIN), around * (1 + _WITHIN)))
    if ends[0] == ends[1]:
        return around
    for _ in range(_STEPS):
        left, right = ends[0] + 0.382 * (ends[1] - ends[0]), ends[0] + 0.618 * (ends[1] - ends[0])
        ends = [left, ends[1]] if function(left) < function(right) else [ends[0], right]
    return (ends[0] + ends[1]) / 2


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
    low, high = clamp
    target = want << shift

    def tries() -> Iterator[tuple[int, int]]:
        yield from candidates(*(f * 2.0**shift for f in factors))
        yield from candidates(*(f * 2.0**shift for f in centre(u, v, want, factors, clamp)))

    for a, b in tries():
        sums = u * a + v * b
        # Each case bounds c from one side or both: a clamped output says nothing about its own side.
        least = int((target - sums)[want > low].max(initial=-INT32_LIMIT))
        most = int((target + (1 << shift) - 1 - sums)[want < high].min(initial=INT32_LIMIT))
        c = (least + most) // 2
        largest = max(int(np.abs(u * a).max()), int(np.abs(sums).max()))
        if least <= most and largest + abs(c) <= INT32_LIMIT:
            return Affine(a, b, c, shift)
    return None
