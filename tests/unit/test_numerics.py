# SPDX-License-Identifier: Apache-2.0
"""The rounding of 64-bit sums, against integers of any size, in Python and in C."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyet import assets
from tinyet.errors import QuantizationError
from tinyet.ir import DType, QuantParams, TensorType
from tinyet.numerics import (
    MAX_SHIFT_64,
    SUM_BITS_64,
    bias_type,
    quantize_multiplier,
    quantize_multipliers,
    reduced_multiplier,
    requantize_64,
)

LARGEST = 2**SUM_BITS_64 - 1
sums = st.one_of(
    st.integers(-LARGEST, LARGEST),
    st.integers(-70000, 70000),
    st.sampled_from((0, 1, -1, LARGEST, -LARGEST, 2**31, -(2**31))),
)
multipliers = st.one_of(
    st.integers(2**30, 2**31 - 1), st.sampled_from((0, 2**30, 2**31 - 1, 0x7FFF0000, 0x7FFEFFFF, 0x7FFF8000))
)
shifts = st.integers(-31, MAX_SHIFT_64)


def oracle(acc: int, multiplier: int, shift: int) -> int:
    """By Python's integers: floor((acc * m + half) / 2**n) of the shortened multiplier m."""
    short = min((multiplier + 2**15) // 2**16, 2**15 - 1)
    return int((2 * acc * short + 2 ** (15 - shift)) // 2 ** (16 - shift))


@settings(max_examples=500, deadline=None)
@given(sums, multipliers, shifts)
def test_requantize_64(acc: int, multiplier: int, shift: int) -> None:
    assert int(requantize_64(acc, multiplier, shift)) == oracle(acc, multiplier, shift)


@settings(max_examples=200, deadline=None)
@given(sums, st.floats(2.0**-32, 2.0**MAX_SHIFT_64, exclude_max=True))
def test_it_multiplies(acc: int, factor: float) -> None:
    """Half a unit, and 2**-15 of the result for the shortened factor."""
    fixed = quantize_multiplier(factor)
    got = int(requantize_64(acc, fixed.multiplier, fixed.shift))
    assert abs(got - acc * factor) <= 0.5 + 2.0**-15 * abs(acc * factor)


def test_short_multipliers() -> None:
    wide = np.array([0, 2**30, 2**30 + 2**15, 2**31 - 2**16, 2**31 - 2**15, 2**31 - 1])
    assert reduced_multiplier(wide).tolist() == [0, 2**14, 2**14 + 1, 32767, 32767, 32767]


def test_multipliers_of_many_factors() -> None:
    """The same as one by one, around powers of two and at both ends of the range."""
    powers = 2.0 ** np.arange(-40, 30)
    near = [powers * (1 - 2.0**-bits) for bits in (31, 32, 33, 40, 53)]
    factors = np.concatenate([[0.0, 5e-324, 0.3, 0.7], powers, *near])
    multipliers, shifts = quantize_multipliers(factors)
    one_by_one = [quantize_multiplier(float(f)) for f in factors]
    assert multipliers.tolist() == [m.multiplier for m in one_by_one]
    assert shifts.tolist() == [m.shift for m in one_by_one]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [(math.nan, "nan"), (-1.0, "-1.0"), (math.inf, "inf"), (2.0**30, "too large")],
)
def test_a_factor_among_many_that_cannot_be_used(wrong: float, words: str) -> None:
    with pytest.raises(QuantizationError, match=words):
        quantize_multipliers([1.0, wrong])


PROGRAM = """
#include <stdio.h>
#include "tinyet_common.h"
int main(void) {
  long long acc;
  int multiplier, shift;
  while (scanf("%lld %d %d", &acc, &multiplier, &shift) == 3) {
    printf("%d\\n", tinyet_requantize_s64(acc, multiplier, shift));
  }
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_c_computes_the_same(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(PROGRAM, encoding="utf-8")
    include = str(assets.path("firmware") / "include")
    sanitizers = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    binary = str(tmp_path / "main")
    subprocess.run(
        ["gcc", "-std=c11", "-I", include, *sanitizers, "-o", binary, str(tmp_path / "main.c")], check=True
    )
    rng, lines, wanted = np.random.default_rng(0), [], []
    for _ in range(5000):
        shift = int(rng.integers(-31, MAX_SHIFT_64 + 1))
        multiplier = int(rng.choice(np.array([rng.integers(2**30, 2**31), 2**31 - 1, 2**30])))
        # Results are below 2**30.
        limit = min(LARGEST, 2 ** (29 - shift))
        acc = int(rng.choice([rng.integers(-limit, limit), limit, -limit, rng.integers(-3, 4)]))
        lines.append(f"{acc} {int(reduced_multiplier(multiplier))} {15 - shift}")
        wanted.append(oracle(acc, multiplier, shift))
    done = subprocess.run([binary], input="\n".join(lines), capture_output=True, text=True, check=True)
    assert [int(line) for line in done.stdout.split()] == wanted


def test_biases_are_as_wide_as_the_sums() -> None:
    weights = QuantParams((0.1, 0.2), (0, 0), 0)
    for dtype, wanted in ((DType.INT8, DType.INT32), (DType.INT16, DType.INT64)):
        type_ = bias_type(2, TensorType((4,), dtype, QuantParams.per_tensor(0.5, 0)), weights)
        assert type_.dtype is wanted
        assert type_.quant is not None
        assert type_.quant.scale == pytest.approx((0.05, 0.1), rel=1e-6)
