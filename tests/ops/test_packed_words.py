# SPDX-License-Identifier: Apache-2.0
"""Two channels in one product, and the rounding rule by two products of 32 bits: the proofs, and what they refuse. The
kernels themselves are in test_conv2d.py and test_linear.py, on boards in tests/emulated/test_operators.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.delegates.test_winograd import layer
from tinyet.numerics import Int64, quantize_multipliers, requantize
from tinyet.ops.shared import byte_products, packed_words, two_products
from tinyet.ops.shared.two_products import Rescaling

REACH = 10_000
CLAMPS = [(-128, 127), (-20, 90), (-3, 5)]


def outputs(r: Rescaling, sums: Int64, clamp: tuple[int, int]) -> Int64:
    """As tinyet_two_products has them, in 32 bits; sums: (channels, …)."""
    bits = 2**32 - 1
    start, limit, upper, lower, offset, split, less, lowest = (
        array[:, None] for array in (r.start, r.limit, r.upper, r.lower, r.offset, r.split, r.less, r.lowest)
    )
    a = (sums - start) & bits
    product = a * upper + ((a * lower & bits) >> r.right) + offset - np.where(a < split, less, 0)
    product += (a * lowest & bits) >> 2 * r.right
    byte = ((product & bits) >> 24) & 255
    inside = np.where(byte > 127, byte - 256, byte)
    return np.where(a < limit, inside, np.where(a >> 31 == 1, *clamp))


@pytest.mark.parametrize("bits", [16, byte_products.RIGHT])
@pytest.mark.parametrize("clamp", CLAMPS)
@pytest.mark.parametrize("zero_point", [-128, -7, 127])
def test_every_sum_is_rounded_as_the_rule_says(clamp: tuple[int, int], zero_point: int, bits: int) -> None:
    """Factors from nearly a step a unit down to none at all within reach; each sum that there can be."""
    factors = np.concatenate([np.geomspace(1e-7, 0.9, 37), 2.0 ** -np.arange(1, 12), [0.0]])
    multiplier, shift = quantize_multipliers(factors)
    edge = np.full(len(factors), REACH)
    found = two_products.rescaling(multiplier, shift, zero_point, clamp, (-edge, edge), bits=bits)
    assert isinstance(found, Rescaling), found
    assert found.right == bits
    sums = np.broadcast_to(np.arange(-REACH, REACH + 1), (len(factors), 2 * REACH + 1))
    want = np.clip(requantize(sums, multiplier[:, None], shift[:, None]) + zero_point, *clamp)
    np.testing.assert_array_equal(outputs(found, sums, clamp), want)


@pytest.mark.parametrize("off", range(-7, 8))
def test_steps_far_from_where_real_numbers_have_them_are_none(
    off: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a rule that rounds each sum as one further on: its steps are the right ones, or said to be none."""
    monkeypatch.setattr(two_products, "requantize", lambda sums, m, s: requantize(sums + off, m, s))
    multiplier, shift = quantize_multipliers(np.ones(2))
    edge = np.full(2, 20)
    steps = two_products.steps_of(multiplier, shift, 0, (-3, 3), (-edge, edge))
    assert (steps is not None) == (abs(off) <= 3)
    if steps is not None:
        assert steps.at.tolist() == [[output - off for output in range(-2, 4)]] * 2


def test_sums_of_many_bits_are_rounded_by_eight_more() -> None:
    """Of an AVR's kernels: outputs that reach over 20 bits. Each sum on both sides of a step, and some others."""
    multiplier, shift = quantize_multipliers(np.geomspace(3e-4, 6e-4, 40))
    edge, bits = np.full(40, 400_000), byte_products.RIGHT
    coarse = two_products.rescaling(multiplier, shift, -3, (-128, 127), (-edge, edge), bits=bits)
    assert isinstance(coarse, str)
    found = two_products.rescaling(multiplier, shift, -3, (-128, 127), (-edge, edge), bits=bits, finer=bits)
    assert isinstance(found, Rescaling), found
    assert found.lowest.any()
    assert found.right == bits
    steps = two_products.steps_of(multiplier, shift, -3, (-128, 127), (-edge, edge))
    assert steps is not None
    random = np.random.default_rng(2).integers(-400_000, 400_001, (40, 1000))
    sums = np.concatenate([steps.at, steps.at - 1, random, -edge[:, None], edge[:, None]], axis=1)
    sums = np.clip(sums, -400_000, 400_000)
    want = np.clip(requantize(sums, multiplier[:, None], shift[:, None]) - 3, -128, 127)
    np.testing.assert_array_equal(outputs(found, sums, (-128, 127)), want)
    for lost in (0, 1):  # of no use, but for the bits that are asked for
        less = replace(found, lowest=found.lowest * lost)
        assert (outputs(less, sums, (-128, 127)) == want).all() == bool(lost)


def test_sums_that_are_not_negative_where_outputs_change_have_one_side() -> None:
    multiplier, shift = quantize_multipliers(np.geomspace(1e-4, 0.1, 20))
    edge = np.full(20, REACH)
    found = two_products.rescaling(multiplier, shift, -128, (-128, 127), (-edge, edge))
    assert isinstance(found, Rescaling)
    assert not found.two_sided
    assert found.words(0, 20).shape == (20, 4)


def test_what_is_refused() -> None:
    multiplier, shift = quantize_multipliers([300.0])
    edge = np.array([REACH])
    assert "unit of the sum" in str(two_products.rescaling(multiplier, shift, 0, (-128, 127), (-edge, edge)))
    multiplier, shift = quantize_multipliers([2.7e-7])
    wide = np.array([2**30])
    why = two_products.rescaling(multiplier, shift, 0, (-128, 127), (-wide, wide))
    assert "two products" in str(why)
    far = np.array([2**31 - 1])
    multiplier, shift = quantize_multipliers([2.0**-9])
    assert "too far" in str(two_products.rescaling(multiplier, shift, 0, (-128, 127), (-far, far)))


@pytest.mark.parametrize("largest", [1, 9, 127])
def test_runs_hold_what_16_bits_do_and_not_one_tap_less(largest: int) -> None:
    rng = np.random.default_rng(largest)
    magnitudes = rng.integers(0, largest + 1, (300, packed_words.CHANNELS))
    magnitudes[7] = 128
    runs = packed_words.runs(magnitudes)
    assert [start for start, _ in runs[1:]] == [end for _, end in runs[:-1]]
    assert runs[0][0] == 0
    assert runs[-1][1] == 300
    for start, end in runs:
        assert 0 < end - start <= packed_words.LONGEST
        assert 255 * magnitudes[start:end].sum(axis=0).max() < 2**16
        more = 255 * magnitudes[start : end + 1].sum(axis=0).max() >= 2**16
        assert more or end == 300 or end - start == packed_words.LONGEST


def test_a_refusal_says_why() -> None:
    node = layer(np.full((2, 3, 3, 4), 127), np.zeros(2, np.int64), scale=300.0)
    assert packed_words.refuse(node) == "a unit of the sum is more than an output step"
    assert (
        packed_words.refuse(layer(np.full((2, 3, 3, 4), 127), np.zeros(2, np.int64), scale=2.0**-9)) is None
    )
