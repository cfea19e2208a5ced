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
    return drawn.case_of(Cast(), [TensorType(shape, DType.UINT8)], real, draw(drawn.seeds))


test_host = bodies.host(st.lists(cast_nodes(), min_size=5, max_size=20))


def test_every_byte_is_its_number() -> None:
    node = Node(Cast(), (tensor("x", (256,), DType.UINT8),), (tensor("y", (256,), DType.FLOAT32),))
    assert expected(node, (np.arange(256).astype(np.uint8),))[0].tolist() == list(range(256))


def test_types() -> None:
    for dtype in (DType.INT8, DType.INT32, DType.FLOAT32):
        node = Node(Cast(), (tensor("x", (2,), dtype),), (tensor("y", (2,), DType.FLOAT32),))
        assert "casts uint8 to float32" in str(OP.check(node))
