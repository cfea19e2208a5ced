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
from tinyet.ir import Node
from tinyet.ops.expand import Expand

torch = pytest.importorskip("torch")


@st.composite
def expand_nodes(draw: st.DrawFn) -> Case:
    shape = draw(drawn.shapes(0, 5, 4))
    have = tuple(1 if draw(st.booleans()) else size for size in shape)[draw(st.integers(0, len(shape))) :]
    type_ = draw(drawn.types(have, drawn.MOVABLE))
    return drawn.case_of(Expand(shape), [type_], type_, draw(drawn.seeds))


test_host = bodies.host(expand_nodes())


@given(expand_nodes())
def test_torch(case: Case) -> None:
    want = torch.from_numpy(case.inputs[0]).expand(case.node.output.shape).numpy()
    assert np.array_equal(expected(case.node, case.inputs)[0], want)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (3, 3), (2, 3, 1), (0, 3)])
def test_refusals(shape: tuple[int, ...]) -> None:
    node = Node(Expand(shape), (tensor("x", (2, 3), scale=1.0),), (tensor("y", shape, scale=1.0),))
    with pytest.raises(UnsupportedShape, match="cannot be broadcast"):
        ops.infer(node)
