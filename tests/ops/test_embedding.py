# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.embedding import OP, Embedding

torch = pytest.importorskip("torch")


@st.composite
def embedding_nodes(draw: st.DrawFn, beyond: int = 0) -> Case:
    """Indices reach `beyond` rows past both ends of the table."""
    rows, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    type_ = draw(drawn.types((rows, width), drawn.REDUCIBLE))
    table = Tensor("table", type_, drawn.values(type_, draw(drawn.seeds)))
    shape = draw(drawn.shapes(0, 3))
    indices = np.random.default_rng(draw(drawn.seeds)).integers(-beyond, rows + beyond, shape, np.int32)
    x = Tensor("x", TensorType(shape, DType.INT32))
    out = Tensor("y", TensorType((*shape, width), type_.dtype, type_.quant))
    node = Node(Embedding(), (x, table), (out,))
    assert OP.check(node) is None
    return Case(node, (np.asarray(indices, np.int32).reshape(shape),))


test_host = bodies.host(embedding_nodes(beyond=3))


@given(embedding_nodes())
def test_torch(case: Case) -> None:
    table = torch.from_numpy(case.node.input(1).array)
    want = table[torch.from_numpy(case.inputs[0]).long()].numpy()
    assert np.array_equal(expected(case.node, case.inputs)[0], want)


def test_indices_outside_take_the_nearest_row() -> None:
    table = Tensor("t", TensorType((3, 1), DType.FLOAT32), np.array([[1], [2], [3]], np.float32))
    node = Node(Embedding(), (tensor("x", (4,), DType.INT32), table), (tensor("y", (4, 1), DType.FLOAT32),))
    got = expected(node, (np.array([-(2**31), -1, 3, 2**31 - 1], np.int32),))[0]
    assert got.ravel().tolist() == [1, 1, 3, 3]


def test_refusals() -> None:
    x, y = tensor("x", (4,), DType.INT32), tensor("y", (4, 2), DType.FLOAT32)
    table = Tensor("t", TensorType((6,), DType.FLOAT32), np.zeros(6, np.float32))
    with pytest.raises(UnsupportedShape, match="2 dimensions, has 1"):
        ops.infer(Node(Embedding(), (x, table), (y,)))
    moving = tensor("t", (3, 2), DType.FLOAT32)
    assert "constant" in str(OP.check(Node(Embedding(), (x, moving), (y,))))
    assert "int32" in str(OP.check(Node(Embedding(), (tensor("x", (4,), DType.FLOAT32), moving), (y,))))
