# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import operator
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawing, drawn, elementwise
from tests.ops.cases import Case, expected, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.compare import OP, Compare, Relation

torch = pytest.importorskip("torch")

FUNCTIONS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


@st.composite
def compare_nodes(draw: st.DrawFn) -> Case:
    """Operands of one shape, or one of them a single element; few different values, so that many are equal."""
    shape = draw(drawn.shapes(0, 3))
    dtype = draw(st.sampled_from((DType.FLOAT32, DType.INT32)))
    shapes = draw(st.sampled_from(((shape, shape), (shape, ()), ((1,), shape))))
    types = [TensorType(each, dtype) for each in shapes]
    seeds = [draw(drawn.seeds) for _ in types]
    arrays = [elementwise.values(t, seed) for t, seed in zip(types, seeds, strict=True)]
    arrays = [a if draw(st.booleans()) else np.asarray(a.astype(np.float64) / 1e9, a.dtype) for a in arrays]
    tensors = [Tensor(f"x{i}", t) for i, t in enumerate(types)]
    out = TensorType(((1,) if shape == () and shapes[0] == (1,) else shape), DType.INT32)
    relation: Relation = draw(st.sampled_from(get_args(Relation)))
    node = Node(Compare(relation), tuple(tensors), (Tensor("y", out),))
    assert OP.check(node) is None
    assert ops.infer(node) == (out.shape,)
    return Case(node, tuple(arrays))


test_host = bodies.host(compare_nodes())


@drawing.quick
@given(compare_nodes())
def test_torch(case: Case) -> None:
    assert isinstance(case.node.attrs, Compare)
    want = FUNCTIONS[case.node.attrs.relation](*(torch.from_numpy(x) for x in case.inputs))
    assert (expected(case.node, case.inputs)[0] == want.numpy()).all()


def test_refusals() -> None:
    x, y = tensor("x", (2, 3), DType.FLOAT32), tensor("y", (2, 3), DType.INT32)
    for other in ((3,), (3, 2)):
        with pytest.raises(UnsupportedShape, match="compare"):
            ops.infer(Node(Compare("equal"), (x, tensor("z", other, DType.FLOAT32)), (y,)))
    assert "float32 with int32" in str(OP.check(Node(Compare("equal"), (x, y), (y,))))
    assert "int32" in str(OP.check(Node(Compare("equal"), (x, x), (x,))))
