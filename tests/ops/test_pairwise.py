# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import get_args

import numpy as np
from hypothesis import strategies as st

from tests.ops import bodies, drawn, elementwise
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.ir import DType, Node, Tensor, TensorType
from tinyet.ops.pairwise import OP, PairFunction, Pairwise


@st.composite
def pairwise_nodes(draw: st.DrawFn) -> Case:
    """Operands of one shape, or one of them a single element; small numbers, whose quotients are many, and any."""
    shape = draw(drawn.shapes(0, 3))
    shapes = draw(st.sampled_from(((shape, shape), (shape, ()), ((1,), shape))))
    types = [TensorType(each, DType.INT32) for each in shapes]
    arrays = [elementwise.values(t, draw(drawn.seeds)) for t in types]
    arrays = [a if draw(st.booleans()) else np.asarray(a % 7 - 3, np.int32) for a in arrays]
    tensors = [Tensor(f"x{i}", t) for i, t in enumerate(types)]
    out = TensorType(((1,) if shape == () and shapes[0] == (1,) else shape), DType.INT32)
    function: PairFunction = draw(st.sampled_from(get_args(PairFunction)))
    node = Node(Pairwise(function), tuple(tensors), (Tensor("y", out),))
    assert OP.check(node) is None
    assert ops.infer(node) == (out.shape,)
    return Case(node, tuple(arrays))


test_host = bodies.host(pairwise_nodes())


def test_ends_of_the_range() -> None:
    """What wraps, and what is divided by 0."""
    least, most = -(2**31), 2**31 - 1
    a = np.array([most, least, least, 7, -7, -7, 5], np.int32)
    b = np.array([1, 1, -1, 2, 2, 0, -3], np.int32)
    wanted: dict[PairFunction, list[int]] = {
        "add": [least, least + 1, most, 9, -5, -7, 2],
        "sub": [most - 1, most, least + 1, 5, -9, -7, 8],
        "mul": [most, least, least, 14, -14, 0, -15],
        "div": [most, least, least, 3, -3, 0, -1],
        "floor_div": [most, least, least, 3, -4, 0, -2],
        "floor_mod": [0, 0, 0, 1, 1, 0, -1],
        "shift_left": [-2, 0, 0, 28, -28, -7, 0],
        "shift_right": [most >> 1, least >> 1, -1, 1, -2, -7, 0],
    }
    x, y = tensor("x", (7,), DType.INT32), tensor("y", (7,), DType.INT32)
    for function, want in wanted.items():
        node = Node(Pairwise(function), (x, y), (tensor("out", (7,), DType.INT32),))
        assert ops.evaluate(node, [a, b])[0].tolist() == want, function


def test_refusals() -> None:
    x, y = tensor("x", (2, 3), DType.FLOAT32), tensor("y", (2, 3), DType.INT32)
    assert "int32" in str(OP.check(Node(Pairwise("add"), (x, y), (y,))))
