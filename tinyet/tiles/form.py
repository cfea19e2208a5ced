# SPDX-License-Identifier: Apache-2.0
"""The forms of a rounding of sums to int8 (tinyet_dsp.h)."""

from __future__ import annotations

import enum


class Form(enum.Enum):
    """The value is its name in C."""

    ONE_SIDED = "TINYET_DSP_ONE_SIDED"
    TWO_SIDED = "TINYET_DSP_TWO_SIDED"
    PLAIN = "TINYET_DSP_PLAIN"
