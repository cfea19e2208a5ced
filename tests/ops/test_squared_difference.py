# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.ops import bodies, elementwise
from tests.ops.cases import Case, tensor
from tinyet import ops
from tinyet.ir import DType, Node
from tinyet.ops.squared_difference import OP, SquaredDifference


def squared_difference_nodes() -> st.SearchStrategy[Case]:
    return elementwise.pair(st.just(SquaredDifference()), elementwise.INTEGERS)


test_host = bodies.host(squared_difference_nodes())


def test_by_hand() -> None:
    """(2 - 5)² and (-1 - 3)² at scale 1/8, of numbers at scale 1/4."""
    a, b = tensor("a", (2,), scale=0.25), tensor("b", (2,), scale=0.25)
    node = Node(SquaredDifference(), (a, b), (tensor("y", (2,), scale=0.125, zero_point=-128),))
    (found,) = ops.evaluate(node, [np.array([8, -4], np.int8), np.array([20, 12], np.int8)])
    assert found.tolist() == [9 * 8 - 128, 16 * 8 - 128]


def test_refusals() -> None:
    real = tensor("x", (2,), DType.FLOAT32)
    assert "multiplied" in str(OP.check(Node(SquaredDifference(), (real, real), (real,))))
