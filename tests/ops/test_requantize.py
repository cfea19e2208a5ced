# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.ops import drawing, elementwise
from tests.ops.cases import Case, assert_exact, tensor
from tests.oracle import litert
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.requantize import OP, Requantize


@st.composite
def requantize_nodes(draw: st.DrawFn, kinds: tuple[DType, ...] = (DType.INT8, DType.INT16)) -> Case:
    """From and to any of the types."""
    case = draw(elementwise.single(st.just(Requantize()), kinds))
    dtype = draw(st.sampled_from(kinds))
    out = TensorType(case.node.output.shape, dtype, draw(elementwise.quants(dtype)))
    node = case.node.replace(outputs=[Tensor("y", out)])
    assume(OP.check(node) is None)
    return Case(node, case.inputs)


@drawing.compiled
@given(elementwise.lists(requantize_nodes()))
def test_host(cases: list[Case]) -> None:
    assert_exact(cases)


@drawing.compiled
@given(elementwise.lists(requantize_nodes((DType.INT8,))))
def test_arithmetic_kernel(cases: list[Case]) -> None:
    """The kernel without a table, on tensors of any size."""
    with drawing.only_kernel(OP.kernels[1], Requantize):
        deployment = assert_exact(cases)
    assert {s.choice.kernel.symbol for s in deployment.steps} == {"tinyet_requantize_s8"}


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(requantize_nodes())
def test_litert(case: Case) -> None:
    assert np.array_equal(elementwise.reference(case), elementwise.run_litert("QUANTIZE", case))


def test_equal_scales_shift_by_the_zero_points() -> None:
    node = Node(
        Requantize(), (tensor("x", (256,), scale=0.3, zero_point=5),), (tensor("y", (256,), scale=0.3),)
    )
    x = np.arange(-128, 128).astype(np.int8)
    assert np.array_equal(elementwise.reference(Case(node, (x,))), np.clip(x.astype(int) - 5, -128, 127))


def test_ratio_too_large() -> None:
    node = Node(Requantize(), (tensor("x", (2,), scale=1e4),), (tensor("y", (2,), scale=1e-4),))
    assert "too small" in str(OP.check(node))
