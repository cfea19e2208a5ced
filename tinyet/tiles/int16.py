# SPDX-License-Identifier: Apache-2.0
"""Sums to int16 (tinyet_s16_dsp.h): by one product and an exponent that all channels of a layer have in common."""

from __future__ import annotations

from collections.abc import Sequence

from tinyet.tiles.operation import Operation, compute, constant, saturate, saturate_positive

LOW, HIGH = -(2**15), 2**15 - 1
MOST_EXPONENT = 13


def complaint(exponent: int, low: int, high: int) -> str | None:
    """What no such rounding has, or None. Bounds are on both sides of zero, or zero: so far are they from the ends of
    int16 that the difference is one."""
    if not 0 <= exponent <= MOST_EXPONENT:
        return f"an exponent of {exponent}, has 0 to {MOST_EXPONENT}"
    return (
        None if LOW <= low <= 0 <= high <= HIGH else f"clamped to {low} … {high}, of one sign or beyond int16"
    )


def offset(exponent: int) -> int:
    """That rounds, beside the upper word of a product; 0 where the instruction rounds that itself."""
    return (1 << exponent) >> 1


def rounded(
    sums: Sequence[str], exponent: int, low: int, high: int, multipliers: Sequence[str] = ()
) -> list[Operation]:
    """The outputs of sums, in their place: lower halves. Reads `multipliers`, or "multiplier" for all, and, with an
    exponent, "offset"."""
    factors = list(zip(sums, multipliers or ["multiplier"] * len(sums), strict=True))
    if exponent:
        found = [compute("smmla", s, s, m, "offset") for s, m in factors]
    else:
        found = [compute("smmulr", s, s, m) for s, m in factors]
    found += [saturate_positive(s, exponent, 15) if low == 0 else saturate(s, exponent, 16) for s in sums]
    # So far beyond a bound that int16 ends there, and back.
    for bound, beyond, back in (
        (low - LOW if low else 0, "qsub16", "add.w"),
        (HIGH - high, "qadd16", "sub.w"),
    ):
        if bound:
            found += constant("bound", bound)
            found += [compute(mnemonic, s, s, "bound") for s in sums for mnemonic in (beyond, back)]
    return found
