# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tests.oracle import litert
from tinyet import ops
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node
from tinyet.ops.shared.movement import Loop, Move
from tinyet.ops.slice import Slice, plan_of


@st.composite
def slice_nodes(draw: st.DrawFn, dtypes: tuple[DType, ...] = drawn.MOVABLE) -> Case:
    shape = draw(drawn.shapes(1, 5, 7))
    axis = draw(st.integers(0, len(shape) - 1))
    start = draw(st.integers(0, shape[axis] - 1))
    stop = draw(st.integers(start + 1, shape[axis]))
    type_ = draw(drawn.types(shape, dtypes))
    attrs = Slice(axis, start, stop, draw(st.integers(1, 3)))
    return drawn.case_of(attrs, [type_], type_, draw(drawn.seeds))


test_host = bodies.host(slice_nodes())


@pytest.mark.skipif(not litert.available(), reason="needs ai-edge-litert")
@settings(max_examples=60, deadline=None)
@given(slice_nodes((DType.INT8, DType.INT16)))
def test_litert(case: Case) -> None:
    x, out, attrs = case.node.input(0), case.node.output, case.node.attrs
    assert isinstance(attrs, Slice)
    begin, end, step = np.zeros(len(x.shape), int), np.array(x.shape), np.ones(len(x.shape), int)
    begin[attrs.axis], end[attrs.axis], step[attrs.axis] = attrs.start, attrs.stop, attrs.step
    quant = x.type.scale, x.type.zero_point
    specs = [litert.TensorSpec(x.shape, x.dtype.numpy, *quant, data=case.inputs[0])]
    specs += [litert.TensorSpec((len(v),), np.int32, data=v) for v in (begin, end, step)]
    (want,) = litert.run("STRIDED_SLICE", specs, [litert.TensorSpec(out.shape, out.dtype.numpy, *quant)])
    assert np.array_equal(expected(case.node, case.inputs)[0], want)


def node_of(attrs: Slice) -> Node:
    return Node(attrs, (tensor("x", (4, 6), scale=1.0),), (tensor("y", (1, 1), scale=1.0),))


def test_rows_of_a_split_are_one_copy() -> None:
    split = Node(Slice(0, 1, 3), (tensor("x", (4, 6), scale=1.0),), (tensor("y", (2, 6), scale=1.0),))
    assert plan_of(split) == Move((Loop(12, 1, 1),), 6)


@pytest.mark.parametrize(
    "attrs",
    [Slice(2, 0, 1), Slice(0, 0, 5), Slice(0, 2, 2), Slice(0, -1, 2), Slice(1, 0, 6, 0), Slice(1, 5, 0, -1)],
)
def test_refusals(attrs: Slice) -> None:
    with pytest.raises(UnsupportedShape, match=r"no axis 2|is empty or leaves it"):
        ops.infer(node_of(attrs))
