# SPDX-License-Identifier: Apache-2.0
"""Functions of one value."""

from __future__ import annotations

import numpy as np
import pytest

from tests.importers.tflite.one_operator import BOTH, File, Fixed, Oracle, Value, scaled
from tinyet.tflite.options import GeluOptions, LeakyReluOptions, SoftmaxOptions

FLOATS = {
    "ABS": 0,
    "CEIL": 0,
    "FLOOR": 0,
    "NEG": 0,
    "ROUND": 0,
    "SQUARE": 0,
    "COS": 2,
    "SIN": 2,
    "EXP": 2,
    "TANH": 2,
}
FLOATS |= {"LOGISTIC": 2, "RELU": 0, "RELU6": 0, "ELU": 2, "HARD_SWISH": 2}
# LiteRT's reference resolver has none.
NOT_THERE = {("litert", "CEIL"), ("litert", "ELU"), ("litert", "ROUND")}
POSITIVE = {"LOG": 2, "SQRT": 0, "RSQRT": 2}


@pytest.mark.parametrize("oracle", BOTH)
def test_float(oracle: Oracle) -> None:
    file = File()
    for code, ulps in FLOATS.items():
        if (oracle, code) in NOT_THERE:
            continue
        file.add(code, [Value((3, 70))], Value((3, 70)), ulps=ulps)
    for code, ulps in POSITIVE.items():
        file.add(code, [Value((3, 70), low=1e-3, high=9)], Value((3, 70)), ulps=ulps)
    file.add("LEAKY_RELU", [Value((3, 70))], Value((3, 70)), LeakyReluOptions(0.3))
    file.add(
        "PRELU",
        [Value((3, 4, 5, 6)), Fixed(np.linspace(-1, 1, 6, dtype=np.float32).reshape(1, 1, 6))],
        Value((3, 4, 5, 6)),
    )
    file.add("LOGICAL_NOT", [Value((7, 3), "bool")], Value((7, 3), "bool"))
    file.add("SOFTMAX", [Value((5, 9))], Value((5, 9)), SoftmaxOptions(1.0), ulps=4)
    file.add("SOFTMAX", [Value((5, 9))], Value((5, 9)), SoftmaxOptions(0.4), ulps=4)
    file.add("LOG_SOFTMAX", [Value((5, 9))], Value((5, 9)), ulps=4)
    file.add("L2_NORMALIZATION", [Value((5, 9))], Value((5, 9)), ulps=2)
    if oracle == "litert":
        for code in ("RELU_N1_TO_1", "RELU_0_TO_1", "SIGN"):
            file.add(code, [Value((3, 70))], Value((3, 70)))
        for approximate in (False, True):
            file.add("GELU", [Value((3, 70))], Value((3, 70)), GeluOptions(approximate), ulps=4)
    file.check([oracle])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("oracle", BOTH)
def test_int8(oracle: Oracle, seed: int) -> None:
    rng, file, shape = np.random.default_rng(seed), File(), (4, 300)
    for code in ("ABS", "RELU", "HARD_SWISH", "ELU"):
        if (oracle, code) in NOT_THERE:
            continue
        file.add(code, [scaled(rng, shape)], scaled(rng, shape))
    same = scaled(rng, shape)
    file.add("RELU", [same], same)
    file.add("RELU6", [same], same)
    for alpha in (0.3, -0.2, 0.01):
        file.add("LEAKY_RELU", [scaled(rng, shape)], scaled(rng, shape), LeakyReluOptions(alpha))
    for around in (0.01, 0.05, 0.3):
        file.add("LOGISTIC", [scaled(rng, shape, around=around)], Value(shape, "int8", 1 / 256, -128))
        file.add("TANH", [scaled(rng, shape, around=around)], Value(shape, "int8", 1 / 128, 0))
    slope = Fixed(rng.integers(-128, 128, (1, 300)).astype(np.int8), 0.011, 3)
    file.add("PRELU", [scaled(rng, shape), slope], scaled(rng, shape))
    file.add("PRELU", [scaled(rng, shape), Fixed(np.array([[40]], np.int8), 0.011, 3)], scaled(rng, shape))
    for beta in (1.0, 0.7):
        file.add(
            "SOFTMAX", [scaled(rng, (30, 17))], Value((30, 17), "int8", 1 / 256, -128), SoftmaxOptions(beta)
        )
    for beta, step in ((1.0, 1 / 65536), (0.7, 1 / 65535)):
        wide = Value((30, 17), "int16", step, -32768)
        file.add("SOFTMAX", [scaled(rng, (30, 17))], wide, SoftmaxOptions(beta))
    file.add("LOG_SOFTMAX", [scaled(rng, (30, 17))], Value((30, 17), "int8", 1 / 16, 127))
    for columns in (5, 300):
        file.add("L2_NORMALIZATION", [scaled(rng, (9, columns))], Value((9, columns), "int8", 1 / 128, 0))
    x = scaled(rng, shape)
    above = Value(shape, "int8", x.scale, -100, low=-99)
    file.add("RSQRT", [above], scaled(rng, shape))
    if oracle == "litert":
        file.add("SQRT", [above], scaled(rng, shape))
        # Where a root is a whole number of steps: 3 of 0.25 are the root of 9 of 0.0625.
        file.add(
            "SQRT",
            [Value(shape, "int8", 0.0625, -128)],
            Value(shape, "int8", float(rng.choice([0.25, 0.05]))),
        )
        for code in ("RELU_N1_TO_1", "RELU_0_TO_1"):
            file.add(code, [scaled(rng, shape, around=0.01)], scaled(rng, shape, around=0.01))
        file.add("EXP", [scaled(rng, shape)], scaled(rng, shape))
        file.add("LOG", [above], scaled(rng, shape))
        for approximate in (False, True):
            file.add("GELU", [scaled(rng, shape)], scaled(rng, shape), GeluOptions(approximate))
    file.check([oracle])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("oracle", BOTH)
def test_int16(oracle: Oracle, seed: int) -> None:
    rng, file, shape = np.random.default_rng(seed), File(), (40, 300)

    def drawn(around: float = 1e-3) -> Value:
        return scaled(rng, shape, "int16", around)

    for code in ("ABS", "RELU"):
        file.add(code, [drawn()], drawn())
    same = drawn()
    file.add("RELU6", [same], same)
    for alpha in (0.3, -0.2):
        file.add("LEAKY_RELU", [drawn()], drawn(), LeakyReluOptions(alpha))
    for around in (1e-4, 3e-4, 1e-3):
        file.add("LOGISTIC", [drawn(around)], Value(shape, "int16", 1 / 32768))
        file.add("TANH", [drawn(around)], Value(shape, "int16", 1 / 32768))
    file.add("SOFTMAX", [drawn()], Value(shape, "int16", 1 / 32768), SoftmaxOptions(1.0))
    file.add("SOFTMAX", [drawn()], Value(shape, "int16", 1 / 32768), SoftmaxOptions(0.7))
    file.check([oracle])
