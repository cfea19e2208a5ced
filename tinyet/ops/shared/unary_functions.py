# SPDX-License-Identifier: Apache-2.0
"""The functions of Unary, each twice: in float64 for the tables of int8, and as the float32 reference of its C
kernel.

alpha and beta are the function's parameters. The exact forms give a limit where a function is not defined:
-inf for the logarithm of a negative number, 0 for its root, inf for its reciprocal root; a table saturates
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tinyet.numerics import float32 as f32
from tinyet.numerics.float32 import Float32

FunctionName = Literal[
    "abs",
    "ceil",
    "celu",
    "cos",
    "elu",
    "erf",
    "exp",
    "expm1",
    "floor",
    "gelu",
    "gelu_tanh",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "leaky_relu",
    "log",
    "log1p",
    "mish",
    "neg",
    "pow",
    "reciprocal",
    "round",
    "rsqrt",
    "selu",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "softplus",
    "softshrink",
    "sqrt",
    "square",
    "tanh",
    "threshold",
]
"""The functions that Unary computes; C functions have the same names."""

Float64 = npt.NDArray[np.float64]
Exact = Callable[[Float64, float, float], Float64]
Single = Callable[[Float32, np.float32, np.float32], npt.NDArray[np.floating]]


@dataclass(frozen=True)
class Function:
    """exact: float64 → float64; single: the C kernel's float32 operations in order."""

    exact: Exact
    single: Single


_ONE, _HALF, _ZERO = np.float32(1), np.float32(0.5), np.float32(0)
_SIXTH = np.float32(0.166666672)
_ROOT_HALF = np.float32(0.707106769)
_TANH_SCALE, _TANH_CUBE = np.float32(0.797884583), np.float32(0.0447149985)
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
_SELU_POSITIVE, _SELU_NEGATIVE = np.float32(1.05070102), np.float32(1.75809932)


def _erf(x: Float64) -> Float64:
    return np.array([math.erf(v) for v in x.ravel()]).reshape(x.shape)


def _sigmoid(x: Float64) -> Float64:
    return np.asarray(1 / (1 + np.exp(-x)))


def _softplus(x: Float64, beta: float, threshold: float) -> Float64:
    return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)


def _softplus_f32(x: Float32, beta: np.float32, threshold: np.float32) -> Float32:
    return np.where(x * beta > threshold, x, f32.log1p(f32.exp(x * beta)) / beta)


def _integral(x: Float32, rounded: Callable[[Float32], Float32]) -> Float32:
    """Beyond 2**23 every float is an integer; NaN stays."""
    near = np.abs(x) < np.float32(8388608)
    return np.where(near, np.copysign(rounded(np.where(near, x, _ZERO)), x), x)


def _round_f32(x: Float32) -> Float32:
    return (np.abs(x) + np.float32(8388608)) - np.float32(8388608)


def _gelu_tanh(x: Float64) -> Float64:
    cube = np.asarray(x**3)
    inner = np.asarray(math.sqrt(2 / math.pi) * (x + 0.044715 * cube))
    return np.asarray(0.5 * x * (1 + np.tanh(inner)))


def _gelu_tanh_f32(x: Float32) -> Float32:
    # A name for each step: mypy takes minutes to infer this product of products in one expression.
    cube = (x * x) * x
    inner = x + _TANH_CUBE * cube
    return (_HALF * x) * (_ONE + f32.tanh(_TANH_SCALE * inner))


def _hard(x: Float32) -> Float32:
    return f32.clamp(x + np.float32(3), 0, 6)


FUNCTIONS: Mapping[FunctionName, Function] = {
    "abs": Function(lambda x, _a, _b: np.abs(x), lambda x, _a, _b: np.abs(x)),
    "ceil": Function(lambda x, _a, _b: np.ceil(x), lambda x, _a, _b: _integral(x, np.ceil)),
    "celu": Function(
        lambda x, a, _: np.where(x > 0, x, a * np.expm1(x / a)),
        lambda x, a, _: np.where(x > 0, x, a * f32.expm1(x / a)),
    ),
    "cos": Function(lambda x, _a, _b: np.cos(x), lambda x, _a, _b: f32.cos(x)),
    "elu": Function(
        lambda x, a, _: np.where(x > 0, x, a * np.expm1(x)),
        lambda x, a, _: np.where(x > 0, x, a * f32.expm1(x)),
    ),
    "erf": Function(lambda x, _a, _b: _erf(x), lambda x, _a, _b: f32.erf(x)),
    "exp": Function(lambda x, _a, _b: np.exp(x), lambda x, _a, _b: f32.exp(x)),
    "expm1": Function(lambda x, _a, _b: np.expm1(x), lambda x, _a, _b: f32.expm1(x)),
    "floor": Function(lambda x, _a, _b: np.floor(x), lambda x, _a, _b: _integral(x, np.floor)),
    "gelu": Function(
        lambda x, _a, _b: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
        lambda x, _a, _b: (_HALF * x) * (_ONE + f32.erf(x * _ROOT_HALF)),
    ),
    "gelu_tanh": Function(lambda x, _a, _b: _gelu_tanh(x), lambda x, _a, _b: _gelu_tanh_f32(x)),
    "hardshrink": Function(
        lambda x, a, _: np.where(np.abs(x) <= a, 0, x),
        lambda x, a, _: np.where(np.abs(x) <= a, _ZERO, x),
    ),
    "hardsigmoid": Function(lambda x, _a, _b: np.clip(x + 3, 0, 6) / 6, lambda x, _a, _b: _hard(x) * _SIXTH),
    "hardswish": Function(
        lambda x, _a, _b: x * np.clip(x + 3, 0, 6) / 6, lambda x, _a, _b: (x * _hard(x)) * _SIXTH
    ),
    "leaky_relu": Function(
        lambda x, a, _: np.where(x >= 0, x, a * x), lambda x, a, _: np.where(x >= 0, x, a * x)
    ),
    "log": Function(
        lambda x, _a, _b: np.where(x > 0, np.log(np.maximum(x, 0)), -np.inf), lambda x, _a, _b: f32.log(x)
    ),
    "log1p": Function(
        lambda x, _a, _b: np.where(x > -1, np.log1p(np.maximum(x, -1)), -np.inf),
        lambda x, _a, _b: f32.log1p(x),
    ),
    "mish": Function(
        lambda x, _a, _b: x * np.tanh(_softplus(x, 1, 20)),
        lambda x, _a, _b: x * f32.tanh(f32.log1p(f32.exp(x))),
    ),
    "neg": Function(lambda x, _a, _b: -x, lambda x, _a, _b: -x),
    "pow": Function(lambda x, a, _: np.power(x, a), lambda x, a, _: f32.power(x, np.full_like(x, a))),
    "reciprocal": Function(lambda x, _a, _b: 1 / x, lambda x, _a, _b: _ONE / x),
    "round": Function(lambda x, _a, _b: np.rint(x), lambda x, _a, _b: _integral(x, _round_f32)),
    "rsqrt": Function(
        lambda x, _a, _b: np.where(x > 0, 1 / np.sqrt(np.maximum(x, 0)), np.inf),
        lambda x, _a, _b: _ONE / f32.sqrt(x),
    ),
    "selu": Function(
        lambda x, _a, _b: _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x)),
        lambda x, _a, _b: np.where(x > 0, _SELU_POSITIVE * x, _SELU_NEGATIVE * f32.expm1(x)),
    ),
    "sigmoid": Function(lambda x, _a, _b: _sigmoid(x), lambda x, _a, _b: f32.sigmoid(x)),
    "sign": Function(
        lambda x, _a, _b: np.sign(x), lambda x, _a, _b: np.where(x > 0, _ONE, np.where(x < 0, -_ONE, _ZERO))
    ),
    "silu": Function(lambda x, _a, _b: x * _sigmoid(x), lambda x, _a, _b: x * f32.sigmoid(x)),
    "sin": Function(lambda x, _a, _b: np.sin(x), lambda x, _a, _b: f32.sin(x)),
    "softplus": Function(_softplus, _softplus_f32),
    "softshrink": Function(
        lambda x, a, _: np.where(x > a, x - a, np.where(x < -a, x + a, 0)),
        lambda x, a, _: np.where(x > a, x - a, np.where(x < -a, x + a, x * _ZERO)),
    ),
    "sqrt": Function(lambda x, _a, _b: np.sqrt(np.maximum(x, 0)), lambda x, _a, _b: f32.sqrt(x)),
    "square": Function(lambda x, _a, _b: x * x, lambda x, _a, _b: x * x),
    "tanh": Function(lambda x, _a, _b: np.tanh(x), lambda x, _a, _b: f32.tanh(x)),
    "threshold": Function(lambda x, a, b: np.where(x <= a, b, x), lambda x, a, b: np.where(x <= a, b, x)),
}
