# SPDX-License-Identifier: Apache-2.0
"""Numbers as functions of a size: what C computes of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

_MOST_DIVISOR = 64
"""Of a quotient: strides of layers, multiplied."""
_MOST = 1 << 30
"""Of a result and of what is computed on the way: int32_t holds it."""


def formula(numbers: Sequence[int], values: Sequence[int], name: str) -> str | None:
    """A C expression of type int32_t that gives numbers[i] for values[i], for all of them: a * size + b, or
    (size + b) / c * a + d. None where there is none.

    name: of the size, an int32_t. Every value is tried, so that no expression is right for some sizes only.
    """
    if len(set(numbers)) == 1:
        return str(numbers[0])
    if max(map(abs, numbers)) >= _MOST:
        return None
    return _line(numbers, values, name) or _quotient(numbers, values, name)


def _line(numbers: Sequence[int], values: Sequence[int], name: str) -> str | None:
    rise, run = numbers[-1] - numbers[0], values[-1] - values[0]
    if rise % run:
        return None
    factor = rise // run
    offset = numbers[0] - factor * values[0]
    if any(factor * v + offset != n for n, v in zip(numbers, values, strict=True)):
        return None
    return f"({_sum(_times(name, factor), offset)})"


def _quotient(numbers: Sequence[int], values: Sequence[int], name: str) -> str | None:
    """Steps of equal height at equal distances."""
    jumps = sorted({b - a for a, b in itertools.pairwise(numbers) if a != b}, key=abs)
    if not jumps:
        return None
    height = jumps[0]
    for divisor in range(2, _MOST_DIVISOR + 1):
        for shift in range(divisor):
            floor = [(v + shift) // divisor for v in values]
            rest = numbers[0] - height * floor[0]
            if all(height * f + rest == n for f, n in zip(floor, numbers, strict=True)):
                quotient = f"({name} + {shift}) / {divisor}" if shift else f"{name} / {divisor}"
                return f"({_sum(_times(quotient, height), rest)})"
    return None


def _times(text: str, factor: int) -> str:
    return text if factor == 1 else f"{text} * {factor}" if factor >= 0 else f"{text} * ({factor})"


def _sum(text: str, offset: int) -> str:
    return text if not offset else f"{text} + {offset}" if offset > 0 else f"{text} - {-offset}"
