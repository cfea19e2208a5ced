# SPDX-License-Identifier: Apache-2.0
"""Fused activation functions as bounds."""

from __future__ import annotations

import math

from tinyet.errors import RefusedError
from tinyet.numerics import NO_CLAMP
from tinyet.tflite.enumerations import ACTIVATIONS

_BOUNDS = {"none": NO_CLAMP, "relu": (0.0, math.inf), "relu_n1_to_1": (-1.0, 1.0), "relu6": (0.0, 6.0)}


def bounds_of(activation: int) -> tuple[float, float]:
    """The real bounds of a fused activation. Raises RefusedError for one that is no clamp."""
    name = ACTIVATIONS[activation] if 0 <= activation < len(ACTIVATIONS) else str(activation)
    if name not in _BOUNDS:
        raise RefusedError(
            f"has the fused activation {name}", "let the converter keep it as an operator of its own"
        )
    return _BOUNDS[name]
