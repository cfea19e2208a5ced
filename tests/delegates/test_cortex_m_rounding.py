# SPDX-License-Identifier: Apache-2.0
"""The forms in which cortex_m rounds sums to outputs give what `requantize` gives, at every boundary."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import drawing
from tinyet.delegates.cortex_m import rounding
from tinyet.delegates.cortex_m.rounding import Form
from tinyet.ir import Array
from tinyet.numerics import requantize
from tinyet.ops.shared.integers import sum_range


def rounded(r: rounding.Rounding, sums: Array) -> npt.NDArray[np.int64]:
    """tinyet_round_dsp in Python: (…, channels) sums → outputs. Fails where a step would leave int32."""

    def fits(x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        assert np.all((x >= -(2**31)) & (x < 2**31))
        return x

    acc = sums.astype(np.int64)
    shift, multiplier, offset = (np.asarray(v, np.int64) for v in (r.shift, r.multiplier, r.offset))
    if r.form is Form.ONE_SIDED:
        value = fits((fits(acc << shift) * multiplier >> 32) + offset) >> r.exponent
    elif r.form is Form.TWO_SIDED:
        value = fits(((fits(acc << 1) * multiplier + 2**31) >> 32) + offset + (acc >> 31)) >> shift
    else:
        value = requantize(acc, multiplier, shift) + offset
    return np.asarray(np.clip(value, r.low, r.high), np.int64)


def boundary_sums(multiplier: int, shift: int, low: int, high: int) -> Array:
    """All sums of low … high within three of where some output begins, and some more."""
    outputs = np.arange(-260, 260)
    middle = [((2 * int(q) + 1) << (30 - shift)) // max(multiplier, 1) for q in outputs]
    near = (np.array(middle)[:, None] + np.arange(-3, 4)).ravel()
    sums = np.concatenate(
        [near, np.arange(-40, 40), np.linspace(low, high, 100).astype(np.int64), [low, high]]
    )
    return sums[(sums >= low) & (sums <= high)]


@drawing.quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 22), st.booleans(), st.integers(-128, 127))
def test_rounding_is_requantization(seed: int, exponent: int, relu: bool, zero_point: int) -> None:
    """Each form at every rounding boundary, for multipliers at both ends of their range."""
    rng = np.random.default_rng(seed)
    count = 12
    depth = int(rng.choice([1, 9, 64, 600]))
    weights = rng.integers(-127, 128, (count, depth)).astype(np.int64)
    bias = rng.integers(-(2**12), 2**12, count)
    multiplier = rng.choice([2**30, 2**30 + 1, 2**31 - 1, int(rng.integers(2**30, 2**31))], count)
    shift = -np.minimum(exponent + rng.integers(0, 4, count), 31)
    low = zero_point if relu else -128
    r = rounding.choose(weights, bias, multiplier, shift, zero_point, (low, 127))
    smallest, largest = sum_range(weights, bias)
    for c in range(count):
        sums = boundary_sums(int(multiplier[c]), int(shift[c]), int(smallest[c]), int(largest[c]))
        want = np.clip(requantize(sums, multiplier[c], shift[c]) + zero_point, low, 127)
        live = bool(r.weights[c].any() or r.multiplier[c])
        one = rounding.Rounding(
            r.form, r.exponent, low, 127, r.weights, r.bias, r.multiplier[c], r.offset[c], r.shift[c]
        )
        np.testing.assert_array_equal(rounded(one, sums if live else np.zeros_like(sums)), want)


@drawing.quick
@given(st.integers(0, 2**32 - 1), st.integers(4, 12), st.integers(0, 2), st.integers(-128, 127))
def test_rounding_without_shifts(seed: int, exponent: int, spread: int, zero_point: int) -> None:
    """Of 256 times each sum: what the one-sided form gives, at every boundary of its sums and at both of their ends."""
    rng = np.random.default_rng(seed)
    count, depth = 6, int(rng.choice([1, 9, 27, 64]))
    weights = rng.integers(-127, 128, (count, depth)).astype(np.int64)
    weights[0] = 0
    bias = rng.integers(-(2**12), 2**12, count)
    multiplier = rng.choice([2**30, 2**30 + 1, 2**31 - 1, int(rng.integers(2**30, 2**31))], count)
    shift = -(exponent + rng.integers(0, spread + 1, count))
    r = rounding.choose(weights, bias, multiplier, shift, zero_point, (zero_point, 127), 8)
    if r.form is not Form.ONE_SIDED:
        return
    found = r.alike
    # Factors of a power of two apart leave the multipliers bits enough.
    assert found is not None
    assert np.all((found.multiplier >= 0) & (found.multiplier < 2**31))
    smallest, largest = sum_range(r.weights, r.bias)
    for c in range(count):
        sums = boundary_sums(int(multiplier[c]), int(shift[c]), int(smallest[c]), int(largest[c])).astype(
            np.int64
        )
        product = 256 * sums * found.multiplier[c] >> 32
        value = product + found.offset[c] >> found.exponent
        one = rounding.Rounding(
            r.form, r.exponent, r.low, 127, r.weights, r.bias, r.multiplier[c], r.offset[c], r.shift[c]
        )
        np.testing.assert_array_equal(np.clip(value, r.low, 127), rounded(one, sums))


def test_forms_are_chosen() -> None:
    """ReLU gets the shortest form, other clamps the second, a factor of one half and more the plain one."""
    weights, bias = np.full((2, 16), 100, np.int64), np.zeros(2, np.int64)
    multiplier = np.full(2, 3 * 2**29)

    def form(shift: int, low: int) -> Form:
        return rounding.choose(
            weights, bias, multiplier, np.full(2, shift), -128 if low else 0, (-128, 127)
        ).form

    assert form(-10, 1) is Form.ONE_SIDED
    assert form(-10, 0) is Form.TWO_SIDED
    assert form(0, 0) is Form.PLAIN
    assert form(-31, 0) is Form.ONE_SIDED or form(-31, 0) is Form.TWO_SIDED
