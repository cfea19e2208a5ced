# SPDX-License-Identifier: Apache-2.0
"""Operators whose integer factors are TensorFlow Lite Micro's, or multiplied by a number: the portable C against the
reference. That the reference gives TFLM's bits, tests of the importer of .tflite files show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.calls.exact import assert_kernels
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.ir import Attrs, DType, Node, Tensor
from tinyet.ops.clamp import Clamp
from tinyet.ops.mul import Mul
from tinyet.ops.prelu import PRelu
from tinyet.ops.softmax import OP, Softmax
from tinyet.ops.unary import Unary

SHAPE = (9, 300)


def drawn(
    rng: np.random.Generator, name: str, dtype: DType, scale: float | None = None, zero_point: int = 3
) -> Tensor:
    fine = 1e-3 if dtype is DType.INT16 else 0.05
    chosen = float(fine * np.exp(rng.uniform(-1, 1))) if scale is None else scale
    return tensor(name, SHAPE, dtype, chosen, 0 if dtype is DType.INT16 else zero_point)


def case(rng: np.random.Generator, attrs: Attrs, inputs: Sequence[Tensor], out: Tensor) -> Case:
    node = Node(attrs, tuple(inputs), (out,))
    assert ops.op_of(node).check(node) is None
    arrays = [rng.integers(*x.dtype.range, x.shape, endpoint=True).astype(x.dtype.numpy) for x in inputs]
    return Case(node, tuple(arrays))


def cases(rng: np.random.Generator, dtype: DType) -> list[Case]:
    found = []
    for attrs, count in (
        (Mul(tflm=True), 2),
        (PRelu(tflm=True), 2),
        (Clamp(0.0, tflm=True), 1),
        (Unary("abs", tflm=True), 1),
        (Unary("leaky_relu", 0.3, tflm=True), 1),
        (Unary("leaky_relu", -0.2, tflm=True), 1),
    ):
        inputs = [drawn(rng, f"x{index}", dtype) for index in range(count)]
        found.append(case(rng, attrs, inputs, drawn(rng, "y", dtype)))
    scale, zero_point = (1 / 256, -128) if dtype is DType.INT8 else (1 / 32768, 0)
    out = drawn(rng, "y", dtype, scale, zero_point)
    softmaxes = (Softmax(1, 0.7), Softmax(1, 1.3, True))
    return found + [case(rng, attrs, [drawn(rng, "x", dtype)], out) for attrs in softmaxes]


def test_host() -> None:
    rng = np.random.default_rng(0)
    assert_kernels(cases(rng, DType.INT8) + cases(rng, DType.INT16))


@pytest.mark.parametrize("beta", [0.0, -1.0, float("inf")])
def test_beta(beta: float) -> None:
    x = tensor("x", (4,), scale=0.1)
    node = Node(Softmax(0, beta), (x,), (tensor("y", (4,), scale=1 / 256, zero_point=-128),))
    assert "beta" in str(OP.check(node))


def test_floats_are_multiplied_before() -> None:
    x = tensor("x", (4,), DType.FLOAT32)
    assert "before" in str(OP.check(Node(Softmax(0, 0.5), (x,), (x,))))
