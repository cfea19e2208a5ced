# SPDX-License-Identifier: Apache-2.0
"""Integer division of a window's sum, without dividing: what average and adaptive average pooling share.

The rule (LiteRT): the average of the raw int8 or int16 values, halves away from zero; the zero point is not
subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from tinyet.errors import InternalError
from tinyet.ir import DType
from tinyet.numerics import Int64
from tinyet.ops.shared.counting import Parts, add
from tinyet.opset import Constant


@dataclass(frozen=True)
class Division:
    """Rounding of the sum of a window's taps in the C kernel (tinyet_average.h):

        t = start + sum;  u = t + offset - (1 if even and t < 0);  average = (u * multiplier >> shift) - bias

    start:      what taps outside the image add.
    offset:     bias * divisor + divisor // 2: makes every u of this window non-negative.
    even:       whether the divisor is even: only then does a negative half differ from the floor.
    multiplier: uint32, or 0 when no (multiplier, shift) is exact for every u: the C kernel then divides.
    """

    multiplier: int
    shift: int
    start: int
    offset: int
    even: bool
    bias: int
    divisor: int


def exact_reciprocal(divisor: int, largest: int) -> tuple[int, int] | None:
    """(m, s) with u // divisor == u * m >> s for all integers 0 <= u <= largest and u * m < 2**32, or None.

    With m = ceil(2**s / d) and e = m * d - 2**s, u * m / 2**s = u / d + u * e / (d * 2**s). The fraction of
    u / d is at most (d - 1) / d, so the floor is right as long as u * e < 2**s.
    """
    for shift in range(31, -1, -1):
        multiplier = -(-(2**shift) // divisor)
        error = multiplier * divisor - 2**shift
        if largest * multiplier < 2**32 and largest * error < 2**shift:
            return multiplier, shift
    return None


def parts(counts: Int64, times: int, divisor: int | None, zero_point: int, dtype: DType) -> Parts:
    """Of the cost of pools on a core that shifts bit by bit and divides by a function: outputs by how they are rounded.

    counts: taps in the image, of each window, which has so many outputs. divisor: of all, or None for the count.
    """
    found: Parts = {}
    for count, windows in zip(*np.unique(counts, return_counts=True), strict=True):
        outputs = times * int(windows)
        one = division(int(count), int(count) if divisor is None else divisor, zero_point, dtype)
        if one.multiplier == 0:
            add(found, "divided output", outputs)
        else:
            add(found, "multiplied output", outputs)
            add(found, "shift by a byte", outputs * (one.shift // 8))
            add(found, "shift by a bit", outputs * (one.shift % 8))
    return found


MAX_TABLE = 1 << 12
"""Rows of a division_table."""


def fits(dtype: DType, count: int, divisor: int) -> bool:
    """Whether windows of `count` taps can be summed, and divided by `divisor`, in 32 bits whatever the zero point."""
    return 2 * -dtype.range[0] * (count + abs(divisor - count)) + divisor < 2**31


def division(count: int, divisor: int, zero_point: int, dtype: DType = DType.INT8) -> Division:
    """The division for windows with `count` taps in the image, summed and divided by `divisor`.

    Taps missing to the divisor's number read as the zero point: padding that counts, or a divisor of the
    user's. Raises InternalError for windows of more than 2**22 taps or so.
    """
    start = (divisor - count) * zero_point
    lowest, highest = dtype.range
    low, high = start + lowest * count, start + highest * count
    bias = max(0, -(low // divisor))
    offset = bias * divisor + divisor // 2
    if high + offset >= 2**31 or low < -(2**31):
        raise InternalError(f"a window of {count} taps, divided by {divisor}, does not fit 32 bits")
    multiplier, shift = exact_reciprocal(divisor, high + offset) or (0, 0)
    return Division(multiplier, shift, start, offset, divisor % 2 == 0, bias, divisor)


def division_table(
    counts: Sequence[int], divisor: int | None, zero_point: int, dtype: DType = DType.INT8
) -> tuple[int, Constant]:
    """(smallest count, table): one row of int32 (the fields of Division) for each count from the smallest on.

    counts: numbers of taps in the image that occur. divisor: the same for all windows, or None for the count.
    """
    first = min(counts)
    rows = np.zeros((max(counts) - first + 1, len(fields(Division))), np.int32)
    for count in set(counts):
        rows[count - first] = astuple(
            division(count, count if divisor is None else divisor, zero_point, dtype)
        )
    return first, Constant("divisions", rows, ", ".join(f.name for f in fields(Division)))


def average(sums: Int64, divisor: Int64) -> Int64:
    """int64 sums / divisor, halves away from zero."""
    magnitude = (np.abs(sums) + divisor // 2) // divisor
    return np.asarray(np.where(sums < 0, -magnitude, magnitude), np.int64)
