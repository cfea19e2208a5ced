# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import Node
from tinyet.ops.copy import Copy
from tinyet.ops.reshape import Reshape


@st.composite
def reshape_nodes(draw: st.DrawFn) -> Case:
    shape = draw(drawn.shapes(0, 4))
    target = tuple(draw(st.permutations(shape)))
    cut = draw(st.integers(0, len(target)))
    target = (*target[:cut], math.prod(target[cut:]))
    type_ = draw(drawn.types(shape, drawn.MOVABLE))
    return drawn.case_of(Reshape(target), [type_], type_, draw(drawn.seeds))


@st.composite
def copy_nodes(draw: st.DrawFn) -> Case:
    type_ = draw(drawn.types(draw(drawn.shapes(0, 4)), drawn.MOVABLE))
    return drawn.case_of(Copy(), [type_], type_, draw(drawn.seeds))


test_host = bodies.host(reshape_nodes() | copy_nodes())


@given(reshape_nodes() | copy_nodes())
def test_bytes_stay(case: Case) -> None:
    assert expected(case.node, case.inputs)[0].tobytes() == case.inputs[0].tobytes()


def test_copy_has_its_own_bytes() -> None:
    x = np.zeros((2, 2), np.int8)
    node = Node(Copy(), (tensor("x", (2, 2), scale=1.0),), (tensor("y", (2, 2), scale=1.0),))
    assert not np.shares_memory(ops.evaluate(node, [x])[0], x)


@pytest.mark.parametrize("shape", [(5,), (2, 2), (-1, 6), (0, 6)])
def test_refusals(shape: tuple[int, ...]) -> None:
    node = Node(Reshape(shape), (tensor("x", (2, 3), scale=1.0),), (tensor("y", shape, scale=1.0),))
    with pytest.raises(UnsupportedShape, match="not as many elements"):
        ops.infer(node)
