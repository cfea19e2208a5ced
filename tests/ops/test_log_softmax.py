# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import along_axis, bodies, elementwise
from tests.ops.cases import Case
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType
from tinyet.ops.log_softmax import LogSoftmax

torch = pytest.importorskip("torch")
OUT = QuantParams.per_tensor(1 / 16, 127)


def log_softmax_nodes(
    dtypes: tuple[DType, ...] = elementwise.BOTH, last: bool = False, scaled: bool = True
) -> st.SearchStrategy[Case]:
    return along_axis.nodes(
        LogSoftmax, {DType.INT8: OUT}, dtypes, last, {DType.INT8: 1e-4} if scaled else None
    )


test_host = bodies.host(log_softmax_nodes())

test_litert = bodies.equals_litert("LOG_SOFTMAX", log_softmax_nodes((DType.INT8,), last=True, scaled=False))

# The error is that of the terms, which may cancel.
test_torch = along_axis.close_to_torch(
    torch.log_softmax, log_softmax_nodes((DType.FLOAT32,), scaled=False), 1e-6, 2e-6
)


def exact(x: along_axis.Floats) -> along_axis.Floats:
    shifted = x - x.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def test_other_output_scales_are_as_accurate_as_their_steps() -> None:
    """Near and far below LiteRT's -16 … 0, of few and of many classes."""
    cases = [
        along_axis.rows(LogSoftmax, DType.INT8, scale, QuantParams.per_tensor(out, zero_point), depth)
        for scale, out, zero_point, depth in (
            (0.01, 0.02, 127, 10), (0.9, 0.95, 127, 10), (15.9, 16.0, 127, 5), (1e-3, 0.04, 127, 4095),
            (1e-6, 0.003, 127, 2), (0.03, 0.01, 0, 4), (2.0, 2.5, -20, 30),
        )
    ]  # fmt: skip
    assert max(along_axis.errors(cases, exact)) < 0.52
    assert_kernels(cases)


def test_many_equal() -> None:
    case = along_axis.all_equal(LogSoftmax, OUT)
    assert set(elementwise.reference(case).ravel().tolist()) == {-6}
    assert_kernels([case])


def test_refusals() -> None:
    along_axis.expect_refusals(LogSoftmax, OUT)


def test_litert_has_differences_that_are_at_the_end_of_the_range() -> None:
    """At LiteRT's scale its own arithmetic counts, by which -15.625 below the largest is the end: -128, not -123."""
    quant = QuantParams.per_tensor(1 / 8, -28)
    x, y = (Tensor(name, TensorType((1, 3), DType.INT8, q)) for name, q in (("x", quant), ("y", OUT)))
    case = Case(Node(LogSoftmax(axis=1), (x,), (y,)), (np.array([[-123, 2, -75]], np.int8),))
    assert elementwise.reference(case).tolist() == [[-128, 127, -27]]
    assert_kernels([case])
