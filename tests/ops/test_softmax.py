# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import drawing, drawn, elementwise
from tests.ops.cases import Case, assert_exact, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, QuantParams, Tensor, TensorType
from tinyet.ops.softmax import OP, Softmax

torch = pytest.importorskip("torch")
OUT = {DType.INT8: QuantParams.per_tensor(1 / 256, -128), DType.INT16: QuantParams.per_tensor(2.0**-15, 0)}


@st.composite
def softmax_nodes(draw: st.DrawFn, dtypes: tuple[DType, ...] = elementwise.ALL, last: bool = False) -> Case:
    """Scales from where everything counts to where only the maximum does; rows of equal values among the
    data."""
    shape = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple))
    axis = len(shape) - 1 if last else draw(st.integers(0, len(shape) - 1))
    dtype = draw(st.sampled_from(dtypes))
    data: Array
    if dtype is DType.FLOAT32:
        x = TensorType(shape, dtype)
        data = np.random.default_rng(draw(drawn.seeds)).normal(0, 20, shape).astype(np.float32)
        out = TensorType(shape, dtype)
    else:
        wide = dtype is DType.INT16
        scale = draw(elementwise.scales(1e-6, 1.0) if wide else elementwise.scales(1e-4, 8.0))
        quant = QuantParams.per_tensor(scale, 0 if wide else draw(elementwise.zero_points))
        x, out = TensorType(shape, dtype, quant), TensorType(shape, dtype, OUT[dtype])
        data = drawn.values(x, draw(drawn.seeds)) >> draw(st.sampled_from((0, 4, 7)))  # type: ignore[operator]
    return Case(Node(Softmax(axis), (Tensor("x", x),), (Tensor("y", out),)), (data,))


@drawing.compiled
@given(elementwise.lists(softmax_nodes()))
def test_host(cases: list[Case]) -> None:
    assert_exact(cases)


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@drawing.quick
@given(softmax_nodes(elementwise.INTEGERS, last=True))
def test_litert(case: Case) -> None:
    assert np.array_equal(elementwise.reference(case), elementwise.run_litert("SOFTMAX", case))


@drawing.quick
@given(softmax_nodes((DType.FLOAT32,)))
def test_torch(case: Case) -> None:
    """Against float64. The exponential of a difference far below 0 carries the error of the difference:
    2**-24 of it."""
    attrs = case.node.attrs
    assert isinstance(attrs, Softmax)
    want = torch.softmax(torch.from_numpy(case.inputs[0]).double(), attrs.axis).numpy()
    got = elementwise.reference(case)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-37)


def test_many_equal() -> None:
    """The largest depth, all at the maximum: sums and shifts are at their ends."""
    x = np.full((1, 4095), 9, np.int8)
    node = Node(
        Softmax(1),
        (tensor("x", (1, 4095), scale=0.1),),
        (Tensor("y", TensorType((1, 4095), DType.INT8, OUT[DType.INT8])),),
    )
    case = Case(node, (x,))
    assert set(elementwise.reference(case).ravel().tolist()) == {-128}
    # In int16 the sum has room for more: each of 5000 is 6.55 steps.
    shape, wide = (1, 5000), DType.INT16
    out = Tensor("y", TensorType(shape, wide, OUT[wide]))
    many = Case(Node(Softmax(1), (tensor("x", shape, wide, 1e-3),), (out,)), (np.full(shape, 900, np.int16),))
    assert set(elementwise.reference(many).ravel().tolist()) == {7}
    assert_exact([case, many])


def test_refusals() -> None:
    node = Node(
        Softmax(0),
        (tensor("x", (4096,), scale=0.1),),
        (Tensor("y", TensorType((4096,), DType.INT8, OUT[DType.INT8])),),
    )
    assert "at most 4095" in str(OP.check(node))
    node = Node(Softmax(0), (tensor("x", (4,), scale=0.1),), (tensor("y", (4,), scale=0.1),))
    assert "scale must be" in str(OP.check(node))
    steep = Node(
        Softmax(0), (tensor("x", (4,), scale=16.0),), (tensor("y", (4,), scale=1 / 256, zero_point=-128),)
    )
    assert "too large" in str(OP.check(steep))
    nearly = Node(Softmax(0), (tensor("x", (4,), scale=15.9),), steep.outputs)
    assert OP.check(nearly) is None
    np.testing.assert_array_equal(
        ops.evaluate(nearly, [np.array([3, -4, 2, 3], np.int8)])[0], np.array([0, -128, -128, 0], np.int8)
    )
    with pytest.raises(UnsupportedShape, match="no axis 1"):
        ops.infer(Node(Softmax(1), (tensor("x", (4,), scale=0.1),), (tensor("y", (4,), scale=0.1),)))
