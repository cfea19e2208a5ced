# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tinyet.ir import DType, Node, TensorType
from tinyet.ops.cast import OP, Cast


@st.composite
def cast_nodes(draw: st.DrawFn) -> Case:
    shape = draw(drawn.shapes(0, 4))
    real = TensorType(shape, DType.FLOAT32)
    x = TensorType(shape, draw(st.sampled_from([DType.UINT8, DType.INT32])))
    return drawn.case_of(Cast(), [x], real, draw(drawn.seeds))


test_host = bodies.host(st.lists(cast_nodes(), min_size=5, max_size=20))


def test_every_byte_is_its_number() -> None:
    node = Node(Cast(), (tensor("x", (256,), DType.UINT8),), (tensor("y", (256,), DType.FLOAT32),))
    assert expected(node, (np.arange(256).astype(np.uint8),))[0].tolist() == list(range(256))


def test_ties_go_to_even() -> None:
    """Beyond 24 bits not every integer has a float32."""
    node = Node(Cast(), (tensor("x", (5,), DType.INT32),), (tensor("y", (5,), DType.FLOAT32),))
    numbers = np.array([2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 1, -(2**31)], np.int32)
    assert expected(node, (numbers,))[0].tolist() == [2**24, 2**24 + 4, -(2**24), 2.0**31, -(2.0**31)]


def test_types() -> None:
    for dtype in (DType.INT8, DType.FLOAT32):
        node = Node(Cast(), (tensor("x", (2,), dtype),), (tensor("y", (2,), DType.FLOAT32),))
        assert "casts uint8 and int32 to float32" in str(OP.check(node))
