# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing, drawn
from tests.ops.cases import Case, expected, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.gather import OP, Gather

torch = pytest.importorskip("torch")


@st.composite
def gather_nodes(draw: st.DrawFn, beyond: int = 1 << 20) -> Case:
    """Both forms, and rows of few bytes and of many; places reach `beyond` both ends, a few of them, and are constants
    in some cases."""
    shape = draw(drawn.shapes(1, 4))
    rows = draw(st.booleans())
    axis = draw(st.integers(0, len(shape) - 1))
    if rows and draw(st.booleans()):
        shape = (*shape[: axis + 1], draw(st.integers(8, 10)))
    type_ = draw(drawn.types(shape, drawn.MOVABLE))
    size, count = shape[axis], draw(st.integers(1, 6))
    form = (count,) if rows else (*shape[:axis], count, *shape[axis + 1 :])
    rng = np.random.default_rng(draw(drawn.seeds))
    places = np.asarray(rng.integers(-size, size, form), np.int32)
    outside = np.asarray(rng.integers(-beyond, beyond + 1, form), np.int32)
    places = np.where(rng.random(form) < 0.1, outside, places) if beyond else places
    held = places if draw(st.booleans()) else None
    x, where = Tensor("x", type_), Tensor("places", TensorType(form, DType.INT32), held)
    out = (*shape[:axis], count, *shape[axis + 1 :])
    node = Node(Gather(axis), (x, where), (Tensor("y", TensorType(out, type_.dtype, type_.quant)),))
    assert OP.check(node) is None
    assert ops.infer(node) == (out,)
    data = drawn.values(type_, draw(drawn.seeds))
    return Case(node, (data, places) if held is None else (data,))


test_host = bodies.host(gather_nodes())


@drawing.quick
@given(gather_nodes(beyond=0))
def test_torch(case: Case) -> None:
    """torch.gather takes no place below 0."""
    attrs = case.node.attrs
    assert isinstance(attrs, Gather)
    where = case.node.input(1)
    places = (where.array if where.is_constant else case.inputs[1]) % case.node.input(0).shape[attrs.axis]
    x = torch.from_numpy(case.inputs[0].astype(np.float64))
    index = torch.from_numpy(places.astype(np.int64))
    want = x.index_select(attrs.axis, index) if places.ndim == 1 else x.gather(attrs.axis, index)
    got = expected(case.node, case.inputs)[0].astype(np.float64)
    np.testing.assert_array_equal(got, want.numpy())


def test_places_outside_take_the_nearest() -> None:
    x, y = tensor("x", (3,), DType.INT32), tensor("y", (6,), DType.INT32)
    node = Node(Gather(0), (x, tensor("p", (6,), DType.INT32)), (y,))
    places = np.array([-(2**31), -4, -1, -3, 3, 2**31 - 1], np.int32)
    assert expected(node, (np.array([1, 2, 3], np.int32), places))[0].tolist() == [1, 1, 3, 1, 3, 3]


def test_refusals() -> None:
    x, y = tensor("x", (2, 3), DType.FLOAT32), tensor("y", (2, 4), DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match="no axis 2"):
        ops.infer(Node(Gather(2), (x, tensor("p", (4,), DType.INT32)), (y,)))
    with pytest.raises(UnsupportedShape, match="places of shape"):
        ops.infer(Node(Gather(1), (x, tensor("p", (1, 4), DType.INT32)), (y,)))
    assert "int32" in str(OP.check(Node(Gather(1), (x, tensor("p", (4,), DType.FLOAT32)), (y,))))
    coarse, fine = tensor("a", (2, 3), scale=0.5), tensor("b", (2, 4), scale=0.25)
    assert "one type" in str(OP.check(Node(Gather(1), (coarse, tensor("p", (4,), DType.INT32)), (fine,))))
