# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import drawing, drawn, elementwise
from tests.ops.cases import Case, assert_exact, tensor
from tests.oracle import litert
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.dequantize import OP, Dequantize


@st.composite
def dequantize_nodes(draw: st.DrawFn) -> Case:
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple))
    dtype = draw(st.sampled_from((DType.INT8, DType.INT16)))
    x = TensorType(shape, dtype, draw(elementwise.quants(dtype)))
    out = Tensor("y", TensorType(shape, DType.FLOAT32))
    return Case(Node(Dequantize(), (Tensor("x", x),), (out,)), (drawn.values(x, draw(drawn.seeds)),))


@drawing.compiled
@given(elementwise.lists(dequantize_nodes()))
def test_host(cases: list[Case]) -> None:
    assert_exact(cases)


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(dequantize_nodes())
def test_litert(case: Case) -> None:
    assert np.array_equal(elementwise.reference(case), elementwise.run_litert("DEQUANTIZE", case))


def test_types() -> None:
    node = Node(Dequantize(), (tensor("x", (2,), DType.FLOAT32),), (tensor("y", (2,), DType.FLOAT32),))
    assert "dequantizes int8 or int16 to float32" in str(OP.check(node))
