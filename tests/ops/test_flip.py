# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.flip import Flip

torch = pytest.importorskip("torch")


@st.composite
def flip_nodes(draw: st.DrawFn, dtypes: tuple[DType, ...] = drawn.MOVABLE) -> Case:
    shape = draw(drawn.shapes(1, 5, 7))
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    type_ = draw(drawn.types(shape, dtypes))
    return drawn.case_of(Flip(tuple(sorted(axes))), [type_], type_, draw(drawn.seeds))


test_host = bodies.host(flip_nodes())


@settings(max_examples=60, deadline=None)
@given(flip_nodes(tuple(dtype for dtype in drawn.MOVABLE if dtype is not DType.UINT32)))
def test_torch(case: Case) -> None:
    assert isinstance(case.node.attrs, Flip)
    wanted = torch.flip(torch.from_numpy(case.inputs[0]), case.node.attrs.axes).numpy()
    assert (expected(case.node, case.inputs)[0] == wanted).all()


@pytest.mark.parametrize("axes", [(), (2,), (-1,), (1, 0), (1, 1)])
def test_axes_that_are_none_are_refused(axes: tuple[int, ...]) -> None:
    x = tensor("x", (2, 3), DType.FLOAT32)
    with pytest.raises(UnsupportedShape, match="axes"):
        ops.infer(Node(Flip(axes), (x,), (x,)))
