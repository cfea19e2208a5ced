# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tinyet import ops
from tinyet.boards.cpus import HOST
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.ops.lookup import OP, Lookup

_FLIP = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)


@st.composite
def lookup_nodes(draw: st.DrawFn) -> Case:
    """Tables of one row or, of bytes, a row a channel, along any axis; every third is byte - 128."""
    shape = draw(drawn.shapes(0, 4))
    axis = draw(st.integers(0, max(len(shape) - 1, 0)))
    source = draw(st.sampled_from((DType.UINT8, DType.INT8)))
    dtype = draw(st.sampled_from((DType.INT8, DType.INT16, DType.UINT8)))
    quant = None if dtype is DType.UINT8 else draw(drawn.quants(dtype))
    one_row: bool = source is DType.INT8 or draw(st.booleans())
    rows = 1 if one_row or not shape else shape[axis]
    kind = TensorType((rows, 256), dtype, quant)
    data = drawn.values(kind, draw(drawn.seeds))
    if dtype is DType.INT8 and draw(st.integers(0, 2)) == 0:
        data = np.repeat(_FLIP, rows, axis=0)
    x = TensorType(shape, source, None if source is DType.UINT8 else draw(drawn.quants(source)))
    node = Node(
        Lookup(axis),
        (Tensor("x", x), Tensor("t", kind, data)),
        (Tensor("y", TensorType(shape, dtype, quant)),),
    )
    assert OP.check(node) is None
    return Case(node, (drawn.values(x, draw(drawn.seeds)),))


test_host = bodies.host(lookup_nodes())


def _node(table: Tensor, shape: tuple[int, ...] = (2, 3), axis: int = 1, out: Tensor | None = None) -> Node:
    result = out or Tensor("y", TensorType(shape, table.dtype, table.type.quant))
    return Node(Lookup(axis), (tensor("x", shape, DType.UINT8), table), (result,))


def test_a_row_for_each_channel() -> None:
    quant = QuantParams.per_tensor(0.5, 1)
    rows = np.stack([np.arange(-128, 128), -np.arange(-127, 129), np.full(256, 7)]).clip(-128, 127)
    node = _node(constant("t", rows.astype(np.int8), quant))
    got = expected(node, (np.array([[0, 0, 0], [255, 255, 255]], np.uint8),))[0]
    assert got.tolist() == [[-128, 127, 7], [127, -128, 7]]


def test_byte_less_128_needs_no_table() -> None:
    quant = QuantParams.per_tensor(1 / 255, -128)
    node = _node(constant("t", _FLIP, quant))
    flip, general = OP.kernels[0], OP.kernels[1]
    assert flip.why_not(node, HOST) is None
    assert flip.lower(node, HOST).constants == ()
    other = _FLIP.copy()
    other[0, 3] += 1
    assert "another than byte - 128" in str(flip.why_not(_node(constant("t", other, quant)), HOST))
    assert general.why_not(node, HOST) is None


def test_refusals() -> None:
    quant = QuantParams.per_tensor(1.0, 0)
    table = constant("t", _FLIP, quant)
    with pytest.raises(UnsupportedShape, match="3 channels"):
        ops.infer(_node(constant("t", np.zeros((2, 256), np.int8), quant)))
    with pytest.raises(UnsupportedShape, match="axis 2 of 2"):
        ops.infer(_node(table, axis=2))
    assert "one type and quantization" in str(OP.check(_node(table, out=tensor("y", (2, 3), scale=2.0))))
    moving = Tensor("t", TensorType((1, 256), DType.INT8, quant))
    assert "must be a constant" in str(OP.check(_node(moving)))
    node = _node(table).replace(inputs=(tensor("x", (2, 3), DType.INT32), table))
    assert "looks up int8 and plain uint8, not int32" in str(OP.check(node))
    three = constant("t", np.repeat(_FLIP, 3, axis=0), quant)
    node = _node(three).replace(inputs=(tensor("x", (2, 3), scale=1.0), three))
    assert "one table for all" in str(OP.check(node))


def test_int8_in_the_order_of_bytes() -> None:
    quant = QuantParams.per_tensor(1.0, 0)
    table = constant("t", np.arange(-128, 128, dtype=np.int8).reshape(1, 256), quant)
    node = _node(table, (3,), 0).replace(inputs=(tensor("x", (3,), scale=1.0), table))
    assert expected(node, (np.array([0, 127, -128], np.int8),))[0].tolist() == [-128, -1, 0]
