# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tinyet.ir import DType, Node, QuantParams, Shape, Tensor, TensorType
from tinyet.ops.cast import OP, Cast

FORMS = sorted((k.dtypes.split("_") for k in OP.kernels), key=str)
DTYPES = {dtype.suffix: dtype for dtype in DType}


def number(shape: Shape, dtype: DType) -> TensorType:
    """A type of what stands for itself."""
    quantized = dtype in (DType.INT8, DType.INT16)
    return TensorType(shape, dtype, QuantParams.per_tensor(1.0, 0) if quantized else None)


@st.composite
def cast_nodes(draw: st.DrawFn) -> Case:
    shape, form = draw(drawn.shapes(0, 4)), draw(st.sampled_from(FORMS))
    x, out = (number(shape, DTYPES[suffix]) for suffix in form)
    return drawn.case_of(Cast(), [x], out, draw(drawn.seeds))


test_host = bodies.host(cast_nodes())


def test_every_byte_is_its_number() -> None:
    node = Node(Cast(), (tensor("x", (256,), DType.UINT8),), (tensor("y", (256,), DType.FLOAT32),))
    assert expected(node, (np.arange(256).astype(np.uint8),))[0].tolist() == list(range(256))


def test_ties_go_to_even() -> None:
    """Beyond 24 bits not every integer has a float32."""
    node = Node(Cast(), (tensor("x", (5,), DType.INT32),), (tensor("y", (5,), DType.FLOAT32),))
    numbers = np.array([2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 1, -(2**31)], np.int32)
    assert expected(node, (numbers,))[0].tolist() == [2**24, 2**24 + 4, -(2**24), 2.0**31, -(2.0**31)]


def test_integers_keep_their_lowest_bits() -> None:
    numbers = np.array([-1, 127, 128, -129, 2**31 - 1], np.int32)
    for dtype, wanted in (
        (DType.INT8, [-1, 127, -128, 127, -1]),
        (DType.UINT32, [2**32 - 1, 127, 128, 2**32 - 129, 2**31 - 1]),
    ):
        node = Node(Cast(), (tensor("x", (5,), DType.INT32),), (Tensor("y", number((5,), dtype)),))
        assert OP.check(node) is None
        assert expected(node, (numbers,))[0].tolist() == wanted


def test_what_stands_for_reals_is_refused() -> None:
    node = Node(Cast(), (tensor("x", (2,), DType.INT8, 0.5),), (tensor("y", (2,), DType.INT32),))
    assert "to be dequantized" in str(OP.check(node))


def test_types() -> None:
    for dtype in (DType.INT8, DType.FLOAT32):
        node = Node(Cast(), (tensor("x", (2,), dtype),), (tensor("y", (2,), DType.FLOAT32),))
        assert "casts uint8 and int32 to float32" in str(OP.check(node))
