# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.unfold import Unfold

torch = pytest.importorskip("torch")


@st.composite
def unfold_nodes(draw: st.DrawFn, dtypes: tuple[DType, ...] = drawn.MOVABLE) -> Case:
    shape = draw(drawn.shapes(1, 4, 7))
    axis = draw(st.integers(0, len(shape) - 1))
    size = draw(st.integers(1, shape[axis]))
    dilation = draw(st.integers(1, (shape[axis] - 1) // (size - 1) if size > 1 else 3))
    type_ = draw(drawn.types(shape, dtypes))
    attrs = Unfold(axis, size, draw(st.integers(1, 3)), dilation)
    return drawn.case_of(attrs, [type_], type_, draw(drawn.seeds))


test_host = bodies.host(unfold_nodes())


@settings(max_examples=60, deadline=None)
@given(unfold_nodes())
def test_torch(case: Case) -> None:
    """torch has no dilation here: of wider windows, every so many elements."""
    a, x = case.node.attrs, torch.from_numpy(case.inputs[0])
    assert isinstance(a, Unfold)
    wide = x.unfold(a.axis, (a.size - 1) * a.dilation + 1, a.step)
    assert np.array_equal(expected(case.node, case.inputs)[0], wide[..., :: a.dilation].numpy())


@pytest.mark.parametrize(
    "attrs",
    [Unfold(2, 1), Unfold(1, 4), Unfold(1, 0), Unfold(1, 2, 0), Unfold(1, 2, 1, 3), Unfold(1, 2, 1, 0)],
)
def test_windows_that_do_not_fit_are_refused(attrs: Unfold) -> None:
    x = tensor("x", (2, 3), DType.FLOAT32)
    with pytest.raises(UnsupportedShape):
        ops.infer(Node(attrs, (x,), (x,)))
