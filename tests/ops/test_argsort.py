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
from tinyet.ir import Array, DType, Node, TensorType
from tinyet.ops.argsort import OP, ArgSort

torch = pytest.importorskip("torch")

FORMS = (*drawn.REDUCIBLE, DType.INT32)


def with_ties(x: Array, seed: int) -> Array:
    """Some elements repeated; among floats NaN and zeros of both signs."""
    rng = np.random.default_rng(seed)
    few = rng.choice(x.ravel(), x.shape)
    if x.dtype.kind == "f":
        few = np.where(rng.random(x.shape) < 0.3, rng.choice([np.nan, 0.0, -0.0, np.inf], x.shape), few)
    return np.asarray(np.where(rng.random(x.shape) < 0.5, few, x), x.dtype)


@st.composite
def argsort_nodes(draw: st.DrawFn, dtypes: tuple[DType, ...] = FORMS) -> Case:
    shape = draw(drawn.shapes(1, 4, 8))
    axis = draw(st.integers(0, len(shape) - 1))
    attrs = ArgSort(axis, draw(st.integers(1, shape[axis])), draw(st.booleans()))
    seed = draw(drawn.seeds)
    case = drawn.case_of(attrs, [draw(drawn.types(shape, dtypes))], TensorType((), DType.INT32), seed)
    return Case(case.node, (with_ties(case.inputs[0], seed),))


test_host = bodies.host(argsort_nodes())


@drawing.quick
@given(argsort_nodes((DType.FLOAT32, DType.INT32)))
def test_torch(case: Case) -> None:
    attrs = case.node.attrs
    assert isinstance(attrs, ArgSort)
    x = torch.from_numpy(case.inputs[0])
    order = torch.sort(x, dim=attrs.axis, descending=attrs.descending, stable=True).indices
    want = order.narrow(attrs.axis, 0, attrs.count).numpy()
    np.testing.assert_array_equal(expected(case.node, case.inputs)[0], want)


def test_refusals() -> None:
    x, y = tensor("x", (2, 3), DType.FLOAT32), tensor("y", (2, 3), DType.INT32)
    with pytest.raises(UnsupportedShape, match="no axis 2"):
        ops.infer(Node(ArgSort(2, 1, True), (x,), (y,)))
    for count in (0, 4):
        with pytest.raises(UnsupportedShape, match=f"{count} of 3 elements"):
            ops.infer(Node(ArgSort(1, count, True), (x,), (y,)))
    assert "no uint8 form" in str(
        OP.check(Node(ArgSort(1, 1, True), (tensor("b", (2, 3), DType.UINT8),), (y,)))
    )
    assert "int32" in str(OP.check(Node(ArgSort(1, 1, True), (x,), (x,))))
