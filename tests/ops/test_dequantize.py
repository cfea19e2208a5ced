# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import strategies as st

from tests.ops import bodies, drawn, elementwise
from tests.ops.cases import Case, tensor
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.dequantize import OP, Dequantize


@st.composite
def dequantize_nodes(draw: st.DrawFn) -> Case:
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple))
    dtype = draw(st.sampled_from((DType.INT8, DType.INT16)))
    x = TensorType(shape, dtype, draw(elementwise.quants(dtype)))
    out = Tensor("y", TensorType(shape, DType.FLOAT32))
    return Case(Node(Dequantize(), (Tensor("x", x),), (out,)), (drawn.values(x, draw(drawn.seeds)),))


test_host = bodies.host(dequantize_nodes())

test_litert = bodies.equals_litert("DEQUANTIZE", dequantize_nodes())


def test_types() -> None:
    node = Node(Dequantize(), (tensor("x", (2,), DType.FLOAT32),), (tensor("y", (2,), DType.FLOAT32),))
    assert "dequantizes int8 or int16 to float32" in str(OP.check(node))
