# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import drawing, elementwise
from tests.ops.cases import Case, assert_exact, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.mul import Mul

torch = pytest.importorskip("torch")


def mul_nodes(dtypes: tuple[DType, ...] = elementwise.ALL, constants: bool = True) -> st.SearchStrategy[Case]:
    return elementwise.pair(st.builds(Mul, elementwise.clamps), dtypes, constants=constants)


@drawing.compiled
@given(elementwise.lists(mul_nodes()))
def test_host(cases: list[Case]) -> None:
    assert_exact(cases)


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(mul_nodes(elementwise.INTEGERS, constants=False))
def test_litert(case: Case) -> None:
    attrs = case.node.attrs
    assert isinstance(attrs, Mul)
    want = elementwise.run_litert("MUL", case, activation=elementwise.ACTIVATIONS[attrs.clamp])
    assert np.array_equal(elementwise.reference(case), want)


@drawing.quick
@given(elementwise.pair(st.just(Mul()), (DType.FLOAT32,), constants=False))
def test_torch(case: Case) -> None:
    """One IEEE operation: equal."""
    elementwise.matches_torch(case, torch.mul)


def test_shapes() -> None:
    node = Node(Mul(), (tensor("a", (2, 3)), tensor("b", (4,))), (tensor("y", (2, 3)),))
    with pytest.raises(UnsupportedShape, match="do not broadcast"):
        ops.infer(node)
