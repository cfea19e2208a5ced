# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.ops import bodies, drawn, elementwise
from tests.ops.cases import Case, expected, tensor
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.to_float import OP, ToFloat


@st.composite
def to_float_nodes(draw: st.DrawFn) -> Case:
    shape = draw(drawn.shapes(0, 3))
    x = TensorType(shape, DType.INT32)
    node = Node(ToFloat(), (Tensor("x", x),), (Tensor("y", TensorType(shape, DType.FLOAT32)),))
    return Case(node, (drawn.values(x, draw(drawn.seeds)),))


test_host = bodies.host(elementwise.lists(to_float_nodes()))


def test_ties_go_to_even() -> None:
    """Beyond 24 bits not every integer has a float32."""
    node = Node(ToFloat(), (tensor("x", (5,), DType.INT32),), (tensor("y", (5,), DType.FLOAT32),))
    numbers = np.array([2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 1, -(2**31)], np.int32)
    assert expected(node, (numbers,))[0].tolist() == [2**24, 2**24 + 4, -(2**24), 2.0**31, -(2.0**31)]


def test_types() -> None:
    x, y = tensor("x", (2,), DType.INT32), tensor("y", (2,), DType.FLOAT32)
    assert "int32 into float32" in str(OP.check(Node(ToFloat(), (y,), (y,))))
    assert "int32 into float32" in str(OP.check(Node(ToFloat(), (x,), (x,))))
