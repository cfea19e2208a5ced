# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, QuantParams
from tinyet.ops.cumsum import CumSum

torch = pytest.importorskip("torch")


@st.composite
def cumsum_nodes(draw: st.DrawFn, dtype: DType | None = None) -> Case:
    kind = dtype or draw(st.sampled_from((DType.INT8, DType.FLOAT32)))
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    x = draw(drawing.activations("x", shape, kind))
    # Sums are larger than what is summed.
    quant = QuantParams.per_tensor(draw(st.floats(1e-3, 5.0)), draw(drawing.zero_points))
    attrs = CumSum(draw(st.integers(0, len(shape) - 1)))
    node = drawing.node_of(attrs, [x], quant if kind is DType.INT8 else None)
    return Case(node, (drawing.data(drawing.random(draw), shape, kind),))


test_host = bodies.host(cumsum_nodes())


@drawing.quick
@given(cumsum_nodes(DType.FLOAT32))
def test_torch(case: Case) -> None:
    attrs, x = case.node.attrs, case.inputs[0]
    assert isinstance(attrs, CumSum)
    wanted = torch.cumsum(torch.from_numpy(x), attrs.axis).numpy()
    np.testing.assert_allclose(drawing.reference(case), wanted, rtol=1e-6, atol=1e-5)


def test_int8_by_hand() -> None:
    """Scale 0.5 in and 1 out: the sums 1, 3, 4 of (q - 1) become 0.5, 1.5, 2 and round away from zero."""
    x, y = tensor("x", (3,), scale=0.5, zero_point=1), tensor("y", (3,), scale=1.0, zero_point=-2)
    (out,) = ops.evaluate(Node(CumSum(0), (x,), (y,)), [np.array([2, 3, 2], np.int8)])
    assert out.tolist() == [-1, 0, 0]


def test_a_wrong_axis_is_refused() -> None:
    x = tensor("x", (2, 3), DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match="no axis 2"):
        ops.infer(Node(CumSum(2), (x,), (x,)))
