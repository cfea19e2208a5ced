# SPDX-License-Identifier: Apache-2.0
"""The rounding rule by two products of 32 bits, for cores that have no longer ones: found and proved for each channel.

With a = sum - start, the output for 0 <= a < limit is low + v,
    v = (a * upper + (a * lower >> right) + offset) >> 24
in 32 bits without signs, and one of the clamp's bounds for other a. A core of bytes adds a third, a * lowest, of bits
behind those of `lower`, where sums of many bits ask for it. Where sums are negative, below a = split, halves
are rounded away from zero: offset is less there. The rule (numerics.requantize) and v are monotone in the sum, so they
agree for all sums if they do on both sides of each step of the output, at both ends and on both sides of the split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.numerics import Int64, requantize

Mask = npt.NDArray[np.bool_]
FRACTION = 24
_NEAR = 4  # steps of the output lie no farther, in units of the sum, from where real numbers have them
_TRIALS = sorted(range(-12, 13), key=abs)
_EVERYWHERE = 2**32 - 1


@dataclass(frozen=True)
class Rescaling:
    """start, limit, upper, lower, offset, split, less, lowest: (channels,) each. Those of `less` are subtracted from
    the offset below the split; two_sided: whether any is not zero. lowest: zeros, but where `finer` bits were asked
    for."""

    right: int
    two_sided: bool
    start: Int64
    limit: Int64
    upper: Int64
    lower: Int64
    offset: Int64
    split: Int64
    less: Int64
    lowest: Int64

    def padded(self, more: int) -> Rescaling:
        """With so many more channels, of any output."""
        products = (self.upper, self.lower, self.offset)
        arrays = (self.start, self.limit, *products, self.split, self.less, self.lowest)
        return Rescaling(self.right, self.two_sided, *(np.pad(array, (0, more)) for array in arrays))

    def words(self, first: int, count: int) -> Int64:
        """(count, words): of some channels what the kernels read, modulo 2**32."""
        found = [self.split, self.less] if self.two_sided else []
        found += [self.limit, self.upper, self.lower, self.offset]
        return np.stack([f[first : first + count] for f in found], axis=1) & (2**32 - 1)


@dataclass(frozen=True)
class Steps:
    """Where outputs change. at: (channels, high - low), the least sum within reach of each output above low, most + 1
    where there is none."""

    at: Int64
    least: Int64
    most: Int64


def rescaling(
    multiplier: Int64,
    shift: Int64,
    zero_point: int,
    clamp: tuple[int, int],
    reach: tuple[Int64, Int64],
    *,
    bits: int = 16,
    finer: int = 0,
) -> Rescaling | str:
    """For factors of numerics.requantize (channels,), within the least and the largest sum of each channel; or why
    there is none. clamp: the bounds of the output. bits: at most, to the right. finer: bits of `lowest`."""
    low, high = clamp
    unit = _unit(multiplier, shift)
    steps = steps_of(multiplier, shift, zero_point, clamp, reach)
    if steps is None:
        return "an output changes where real numbers have it otherwise"
    least, most = reach
    inside = (steps.at > least[:, None]) & (steps.at <= most[:, None])
    varies = inside.any(axis=1)
    start = np.where(varies, np.minimum(steps.at[:, 0], most), least) if high > low else least
    end = (
        np.where(varies, np.clip(steps.at[:, -1], start + 1, most + 1), start + 1)
        if high > low
        else start + 1
    )
    limit = end - start
    if max(int((most - start).max()), int((start - least).max())) >= 2**31:
        return "sums reach too far"
    right = min(bits, 32 - int(limit.max()).bit_length())
    slope = np.rint(np.where(varies, unit * 2.0 ** (FRACTION + right + finer), 0)).astype(np.float64)
    if float(slope.max()) >= 2.0 ** (32 + right + finer):
        return "a unit of the sum is more than an output step"
    fit = _fitted(slope.astype(np.int64), (right, finer), start, limit, steps)
    if fit is None:
        return "two products of 32 bits do not round every sum as the rule does"
    factor, above, below = fit
    upper, lower, lowest = _parts(factor, (right, finer))
    less = np.where(varies, above - below, 0)
    return Rescaling(
        right=right,
        two_sided=bool(less.any()),
        start=start,
        limit=np.where(varies, limit, _EVERYWHERE),
        upper=upper,
        lower=lower,
        # The byte that is stored is that of v plus the lower bound.
        offset=above + (low << FRACTION),
        split=np.where(less != 0, np.maximum(-start, 0), 0),
        less=less,
        lowest=lowest,
    )


def _parts(factor: Int64, bits: tuple[int, int]) -> tuple[Int64, Int64, Int64]:
    """Its bits above, of `right`, and of `finer`."""
    right, finer = bits
    return (
        factor >> right + finer,
        np.asarray(factor >> finer & (1 << right) - 1, np.int64),
        np.asarray(factor & (1 << finer) - 1, np.int64),
    )


def _unit(multiplier: Int64, shift: Int64) -> npt.NDArray[np.float64]:
    """What a unit of the sum is in output steps."""
    return np.ldexp(multiplier.astype(np.float64), shift - 31)


def steps_of(
    multiplier: Int64, shift: Int64, zero_point: int, clamp: tuple[int, int], reach: tuple[Int64, Int64]
) -> Steps | None:
    """Of the rule's outputs, as `rescaling` takes them; None where one changes far from where real numbers have it."""
    low, high = clamp

    def values(sums: Int64) -> Int64:
        return requantize(sums, multiplier[:, None], shift[:, None]) + zero_point

    halves = np.asarray(np.arange(low + 1, high + 1) - zero_point - 0.5, np.float64)
    return _searched(values, halves, _unit(multiplier, shift), low, reach)


def _searched(
    values: Callable[[Int64], Int64],
    halves: npt.NDArray[np.float64],
    unit: npt.NDArray[np.float64],
    low: int,
    reach: tuple[Int64, Int64],
) -> Steps | None:
    """Searched near where real numbers have them, and proved. values: before the clamp, whose bounds no output that is
    searched lies beyond. halves: between two outputs, in output steps; unit: what a unit of the sum is in output
    steps."""
    least, most = reach[0][:, None], reach[1][:, None]
    wanted = low + 1 + np.arange(len(halves))

    def reached(sums: Int64) -> Mask:
        return np.asarray((sums > most) | ((sums >= least) & (values(sums) >= wanted)), np.bool_)

    with np.errstate(divide="ignore"):
        near = np.where(unit[:, None] > 0, halves / unit[:, None], np.where(halves > 0, np.inf, -np.inf))
    middle = np.clip(near, least, most + 1).astype(np.int64)
    below, at = middle - _NEAR, middle + _NEAR
    for _ in range(3):
        between = (below + at) // 2
        there = reached(between)
        below, at = np.where(there, below, between), np.where(there, between, at)
    # Each end that has moved was asked; one at most of each pair has not.
    unasked = (at == middle + _NEAR) | (below == middle - _NEAR)
    if unasked.any() and not (reached(at) & ~reached(below)).all():
        return None
    return Steps(at, *reach)


def _fitted(
    slope: Int64, bits: tuple[int, int], start: Int64, limit: Int64, steps: Steps
) -> tuple[Int64, Int64, Int64] | None:
    """(factor, offset of sums from zero on, offset of negative sums), or None where a channel has none."""
    at = steps.at - start[:, None]
    split = np.clip(-start, 0, limit)
    missing = np.ones(len(slope), np.bool_)
    factor, above, below = np.zeros_like(slope), np.zeros_like(slope), np.zeros_like(slope)
    for trial in _TRIALS:
        tried = np.maximum(slope + trial, 0)
        upper = _offsets(tried, bits, at, (split, limit))
        lower = _offsets(tried, bits, at, (np.zeros_like(split), split))
        both = np.maximum(upper[0], lower[0]), np.minimum(upper[1], lower[1])
        new = missing & (upper[0] <= upper[1]) & (lower[0] <= lower[1])
        one = both[0] <= both[1]
        factor = np.where(new, tried, factor)
        above = np.where(new, np.where(one, _middle(both), _middle(upper)), above)
        below = np.where(new, np.where(one, _middle(both), _middle(lower)), below)
        missing &= ~new
        if not missing.any():
            return factor, above, below
    return None


def _middle(bounds: tuple[Int64, Int64]) -> Int64:
    return (bounds[0] + bounds[1]) // 2


def _offsets(
    factor: Int64, bits: tuple[int, int], at: Int64, span: tuple[Int64, Int64]
) -> tuple[Int64, Int64]:
    """Least and largest offset with which v is right from a = span[0] to before span[1]; any where that is nothing."""
    first, last = span[0], span[1] - 1
    upper, lower, lowest = _parts(factor[:, None], bits)

    def product(a: Int64) -> Int64:
        right, finer = bits
        two = np.asarray(a * upper + (a * lower >> right), np.int64)
        return two + (a * lowest >> right + finer) if finer else two

    ends = np.stack([first, last], axis=1)
    value = (at[:, None, :] <= ends[:, :, None]).sum(axis=2)
    of_ends = product(np.maximum(ends, 0))
    inside = (at > first[:, None]) & (at <= last[:, None])
    near = np.where(inside, at, 1)
    wanted = np.arange(1, at.shape[1] + 1) << FRACTION
    least = np.where(inside, wanted - product(near), -_EVERYWHERE).max(axis=1, initial=-_EVERYWHERE)
    most = np.where(inside, wanted - 1 - product(near - 1), _EVERYWHERE).min(axis=1, initial=_EVERYWHERE)
    least = np.maximum(least, (value[:, 0] << FRACTION) - of_ends[:, 0])
    most = np.minimum(most, (value[:, 1] + 1 << FRACTION) - 1 - of_ends[:, 1])
    empty = first > last
    return np.where(empty, -_EVERYWHERE, least), np.where(empty, _EVERYWHERE, most)
