# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.ops import along_axis, bodies, elementwise
from tests.ops.cases import Case, assert_exact
from tinyet.ir import DType, QuantParams
from tinyet.ops.log_softmax import LogSoftmax

torch = pytest.importorskip("torch")
OUT = QuantParams.per_tensor(1 / 16, 127)


def log_softmax_nodes(
    dtypes: tuple[DType, ...] = elementwise.BOTH, last: bool = False
) -> st.SearchStrategy[Case]:
    return along_axis.nodes(LogSoftmax, {DType.INT8: OUT}, dtypes, last)


test_host = bodies.host(elementwise.lists(log_softmax_nodes()))

test_litert = bodies.equals_litert("LOG_SOFTMAX", log_softmax_nodes((DType.INT8,), last=True))

# The error is that of the terms, which may cancel.
test_torch = along_axis.close_to_torch(torch.log_softmax, log_softmax_nodes((DType.FLOAT32,)), 1e-6, 2e-6)


def test_many_equal() -> None:
    case = along_axis.all_equal(LogSoftmax, OUT)
    assert set(elementwise.reference(case).ravel().tolist()) == {-6}
    assert_exact([case])


def test_refusals() -> None:
    along_axis.expect_refusals(LogSoftmax, OUT)
