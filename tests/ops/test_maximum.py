# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import drawing, elementwise
from tests.ops.cases import Case, assert_exact, tensor
from tests.oracle import litert
from tinyet.ir import DType, Node
from tinyet.ops.maximum import OP, Maximum

torch = pytest.importorskip("torch")


def maximum_nodes(
    dtypes: tuple[DType, ...] = elementwise.ALL, constants: bool = True
) -> st.SearchStrategy[Case]:
    return elementwise.pair(st.just(Maximum()), dtypes, same_scale=True, constants=constants)


@drawing.compiled
@given(elementwise.lists(maximum_nodes()))
def test_host(cases: list[Case]) -> None:
    assert_exact(cases)


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(maximum_nodes(elementwise.INTEGERS, constants=False))
def test_litert(case: Case) -> None:
    assert np.array_equal(elementwise.reference(case), elementwise.run_litert("MAXIMUM", case))


@drawing.quick
@given(maximum_nodes((DType.FLOAT32,), constants=False))
def test_torch(case: Case) -> None:
    """Equal, NaN included."""
    elementwise.matches_torch(case, torch.maximum)


def test_scales_must_agree() -> None:
    node = Node(
        Maximum(),
        (tensor("a", (2,), scale=0.1), tensor("b", (2,), scale=0.2)),
        (tensor("y", (2,), scale=0.1),),
    )
    assert "share one quantization" in str(OP.check(node))
