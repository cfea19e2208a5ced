# SPDX-License-Identifier: Apache-2.0
"""Functions of float32 values: equal to ONNX Runtime's on processors with FMA, bit for bit, for its own
approximations (sigmoid, tanh), else float64's, which is less than a float32's last bit away."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tinyet.importers.onnx.values import Float32

Function = Callable[[Float32], Float32]

# A quotient of polynomials in x, which Eigen and ONNX Runtime share; the highest power first.
_SIGMOID_LIMIT, _TANH_LIMIT = np.float32(18), np.float32(9)
_SIGMOID_ABOVE = (
    4.37031012579801e-11, 1.15627324459942e-07, 6.08574864600143e-05, 8.51377133304701e-03, 2.48287947061529e-01,
)  # fmt: skip
_SIGMOID_BELOW = (
    6.10247389755681e-13, 5.76102136993427e-09, 6.29106785017040e-06, 1.70198817374094e-03, 1.16817656904453e-01,
    9.93151921023180e-01,
)  # fmt: skip
_TANH_ABOVE = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
    1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
_TANH_BELOW = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)


def _polynomial(x: Float32, coefficients: Sequence[float]) -> Float32:
    """By fused multiplications and additions: the product is exact in float64."""
    found = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        exact = found.astype(np.float64) * x.astype(np.float64) + np.float64(np.float32(coefficient))
        found = exact.astype(np.float32)
    return found


def sigmoid(x: Float32) -> Float32:
    bounded = np.clip(x, -_SIGMOID_LIMIT, _SIGMOID_LIMIT)
    square = bounded * bounded
    odd = _polynomial(square, _SIGMOID_ABOVE) * bounded
    quotient = odd / _polynomial(square, _SIGMOID_BELOW)
    return np.asarray(np.maximum(quotient + np.float32(0.5), np.float32(0)), np.float32)


def tanh(x: Float32) -> Float32:
    bounded = np.clip(x, -_TANH_LIMIT, _TANH_LIMIT)
    square = bounded * bounded
    odd = _polynomial(square, _TANH_ABOVE) * bounded
    return np.asarray(odd / _polynomial(square, _TANH_BELOW), np.float32)


def erf(x: Float32) -> Float32:
    return np.array([math.erf(float(v)) for v in x], np.float32)


def in_float64(function: Callable[..., object]) -> Function:
    """A function of numpy's, evaluated in float64 and rounded to float32."""

    def evaluated(x: Float32) -> Float32:
        with np.errstate(all="ignore"):
            return np.asarray(function(x.astype(np.float64)), np.float32)

    return evaluated
