# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import drawing, elementwise
from tests.ops.cases import Case, assert_exact
from tests.oracle import litert
from tinyet.ir import DType
from tinyet.ops.sub import OP, Sub

torch = pytest.importorskip("torch")


def sub_nodes(dtypes: tuple[DType, ...] = elementwise.ALL, constants: bool = True) -> st.SearchStrategy[Case]:
    return elementwise.pair(st.builds(Sub, elementwise.clamps), dtypes, constants=constants)


@drawing.compiled
@given(elementwise.lists(sub_nodes()))
def test_host(cases: list[Case]) -> None:
    assert_exact(cases)


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(sub_nodes(elementwise.INTEGERS, constants=False))
def test_litert(case: Case) -> None:
    attrs = case.node.attrs
    assert isinstance(attrs, Sub)
    want = elementwise.run_litert("SUB", case, activation=elementwise.ACTIVATIONS[attrs.clamp])
    assert np.array_equal(elementwise.reference(case), want)


@drawing.quick
@given(elementwise.pair(st.just(Sub()), (DType.FLOAT32,), constants=False))
def test_torch(case: Case) -> None:
    """One IEEE operation: equal."""
    elementwise.matches_torch(case, torch.sub)


@drawing.compiled
@given(elementwise.lists(sub_nodes((DType.INT8,))))
def test_specification_kernel(cases: list[Case]) -> None:
    """The kernel for scales without an exact affine form, on all scales."""
    kernel = next(k for k in OP.kernels if k.symbol == "tinyet_sub_s8")
    with drawing.only_kernel(kernel, Sub):
        deployment = assert_exact(cases)
    assert {s.choice.kernel.symbol for s in deployment.steps} == {"tinyet_sub_s8"}
