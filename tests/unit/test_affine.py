# SPDX-License-Identifier: Apache-2.0
"""Affine forms of sums with 24 fraction bits in their factors, on cores with DSP."""

from __future__ import annotations

import numpy as np
import pytest

from tinyet.delegates.cortex_m import elementwise
from tinyet.ops.shared.addition import Scaling, affine_form

NARROW = (
    Scaling((0.08656903356313705, 0.07067553699016571, 0.13063639402389526), (11, -12, 19), 1, (-128, 127)),
    Scaling((0.09136938387741249, 0.2132767377482592, 0.3019569646790155), (-15, -1, -5), 1, (-128, 127)),
)
"""The factors that are exact lie within a few units of 2**-24."""


@pytest.mark.parametrize("scaling", NARROW)
def test_factors_that_are_not_those_of_the_portable_form(scaling: Scaling) -> None:
    """It has none for the second of them, and for the first one that is no longer exact with other fraction bits."""
    form = elementwise.form_of(scaling)
    assert form is not None
    every = np.arange(-128, 128, dtype=np.int64)
    a, b = every[:, None], every[None, :]
    sums = form.w + (form.u * a >> 8) + (form.v * b >> 8)
    want = scaling.apply(a.astype(np.int8), b.astype(np.int8))
    np.testing.assert_array_equal(np.clip(sums >> 16, -128, 127), want)
    portable = affine_form(scaling)
    if portable is not None:
        factors = tuple(round(f * 2.0 ** (24 - portable.shift)) for f in (portable.a, portable.b))
        assert (form.u, form.v) != factors
