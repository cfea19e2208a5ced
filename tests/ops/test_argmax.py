# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.calls.exact import assert_kernels
from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, TensorType
from tinyet.ops.argmax import OP, ArgMax

torch = pytest.importorskip("torch")


@st.composite
def argmax_nodes(draw: st.DrawFn, dtypes: tuple[DType, ...] = (*drawn.REDUCIBLE, DType.INT32)) -> Case:
    shape = draw(drawn.shapes(1, 4, 8))
    attrs = ArgMax(draw(st.integers(0, len(shape) - 1)), draw(st.booleans()))
    out = TensorType((), DType.INT32)
    return drawn.case_of(attrs, [draw(drawn.types(shape, dtypes))], out, draw(drawn.seeds))


test_host = bodies.host(argmax_nodes())


def node_of(shape: tuple[int, ...], axis: int, dtype: DType = DType.FLOAT32) -> Node:
    out = tensor("y", (*shape[:axis], *shape[axis + 1 :]), DType.INT32)
    return Node(ArgMax(axis), (tensor("x", shape, dtype, 1.0 if dtype is DType.INT8 else None),), (out,))


def test_nan_and_ties() -> None:
    x = np.array([[1, np.nan, np.inf, np.nan], [3, 3, 2, 3], [-0.0, 0.0, 0.0, -0.0]], np.float32)
    case = Case(node_of((3, 4), 1), (x,))
    assert expected(case.node, case.inputs)[0].tolist() == [1, 0, 0]
    assert_kernels([case])


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@settings(max_examples=60, deadline=None)
@given(argmax_nodes((DType.INT8,)))
def test_litert(case: Case) -> None:
    x, attrs = case.node.input(0), case.node.attrs
    assert isinstance(attrs, ArgMax)
    shape = (*x.shape[: attrs.axis], *x.shape[attrs.axis + 1 :])
    specs = [
        litert.TensorSpec(x.shape, x.dtype.numpy, x.type.scale, x.type.zero_point, data=case.inputs[0]),
        litert.TensorSpec((1,), np.int32, data=[attrs.axis]),
    ]
    (want,) = litert.run("ARG_MAX", specs, [litert.TensorSpec(shape, np.int32)], output_type="int32")
    assert np.array_equal(expected(case.node, case.inputs)[0].reshape(shape), want)


@given(argmax_nodes())
def test_torch(case: Case) -> None:
    """torch does not promise which of equal elements it names, so the elements are compared."""
    attrs, x = case.node.attrs, case.inputs[0]
    assert isinstance(attrs, ArgMax)
    want = torch.from_numpy(x).argmax(attrs.axis, keepdim=True).numpy()
    got = expected(case.node, case.inputs)[0].astype(np.int64).reshape(want.shape)
    taken = np.take_along_axis(x, got, attrs.axis), np.take_along_axis(x, want, attrs.axis)
    assert np.array_equal(*taken)


def test_refusals() -> None:
    with pytest.raises(UnsupportedShape, match="no axis 2"):
        ops.infer(node_of((2, 3), 2))
    assert "no uint8 form" in str(OP.check(node_of((2, 3), 1, DType.UINT8)))
