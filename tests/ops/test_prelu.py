# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing, elementwise
from tests.ops.cases import Case, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.prelu import PRelu

torch = pytest.importorskip("torch")


def prelu_nodes(
    dtypes: tuple[DType, ...] = elementwise.ALL, constants: bool = True
) -> st.SearchStrategy[Case]:
    return elementwise.pair(st.just(PRelu()), dtypes, constants=constants, covering=True)


test_host = bodies.host(prelu_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(prelu_nodes((DType.INT8,), constants=False))
def test_litert(case: Case) -> None:
    x, slope = case.node.inputs
    assert x is not None
    assert slope is not None
    inputs = [elementwise.spec(t, a) for t, a in zip((x, slope), case.inputs, strict=True)]
    (want,) = litert.run("PRELU", inputs, [elementwise.spec(case.node.output)])
    assert np.array_equal(elementwise.reference(case), want.reshape(x.shape))


test_torch = bodies.equals_torch(
    lambda x, slope: torch.where(x >= 0, x, slope * x), prelu_nodes((DType.FLOAT32,), constants=False)
)


def test_slope_must_not_widen() -> None:
    node = Node(PRelu(), (tensor("x", (1, 3)), tensor("s", (2, 3))), (tensor("y", (2, 3)),))
    with pytest.raises(UnsupportedShape, match="does not broadcast"):
        ops.infer(node)
