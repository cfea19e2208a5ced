# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing, elementwise
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet.ir import DType, Node
from tinyet.ops.clamp import OP, Clamp

torch = pytest.importorskip("torch")
BOUNDS = {(0.0, np.inf): "RELU", (0.0, 6.0): "RELU6"}
attributes = st.sampled_from([*elementwise.ACTIVATIONS, (-0.3, 0.7)]).map(lambda bounds: Clamp(*bounds))


def clamp_nodes(dtypes: tuple[DType, ...] = elementwise.ALL) -> st.SearchStrategy[Case]:
    """With the input's scale at the output, as in most graphs, and with another."""
    return st.one_of(
        elementwise.single(attributes, dtypes, keep_quant=True), elementwise.single(attributes, dtypes)
    )


test_host = bodies.host(clamp_nodes())

# The kernel that can do without equal scales and without a table.
test_arithmetic_kernel = bodies.one_kernel(OP, "tinyet_requantize_s8", clamp_nodes((DType.INT8,)))


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(elementwise.single(st.sampled_from(list(BOUNDS)).map(lambda b: Clamp(*b)), elementwise.INTEGERS))
def test_litert(case: Case) -> None:
    attrs = case.node.attrs
    assert isinstance(attrs, Clamp)
    want = elementwise.run_litert(BOUNDS[attrs.low, attrs.high], case)
    assert np.array_equal(elementwise.reference(case), want)


@drawing.quick
@given(clamp_nodes((DType.FLOAT32,)))
def test_torch(case: Case) -> None:
    attrs = case.node.attrs
    assert isinstance(attrs, Clamp)
    elementwise.matches_torch(case, lambda x: torch.clamp(x, attrs.low, attrs.high))


def test_empty_range() -> None:
    node = Node(Clamp(1.0, 0.0), (tensor("x", (2,), DType.FLOAT32),), (tensor("y", (2,), DType.FLOAT32),))
    assert "empty range" in str(OP.check(node))
