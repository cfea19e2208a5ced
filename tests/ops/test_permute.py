# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops import bodies, drawn
from tests.ops.cases import Case, expected, tensor
from tinyet import ops
from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import DType, Node, TensorType
from tinyet.ops.permute import OP, Permute, moves_nothing, plan_of
from tinyet.ops.shared.movement import Loop, Move, strides
from tinyet.ops.shared.transposition import Transposition, cycles, transposition

torch = pytest.importorskip("torch")


@st.composite
def permute_nodes(draw: st.DrawFn) -> Case:
    shape = draw(drawn.shapes(0, 6))
    order = tuple(draw(st.permutations(range(len(shape)))))
    type_ = draw(drawn.types(shape, drawn.MOVABLE))
    return drawn.case_of(Permute(order), [type_], type_, draw(drawn.seeds))


def permute(shape: tuple[int, ...], *order: int) -> Node:
    out = tuple(shape[axis] for axis in order)
    return Node(Permute(order), (tensor("x", shape, scale=1.0),), (tensor("y", out, scale=1.0),))


test_host = bodies.host(permute_nodes())


@given(permute_nodes())
def test_torch(case: Case) -> None:
    assert isinstance(case.node.attrs, Permute)
    want = torch.from_numpy(case.inputs[0]).permute(case.node.attrs.order).numpy()
    assert np.array_equal(expected(case.node, case.inputs)[0], want)


@given(permute_nodes())
def test_moving_nothing_is_told_from_the_bytes(case: Case) -> None:
    """An array of distinct elements keeps its bytes exactly when the rule and the plan say so."""
    assert isinstance(case.node.attrs, Permute)
    shape, order = case.node.input(0).shape, case.node.attrs.order
    distinct = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    same = np.array_equal(distinct.transpose(order).ravel(), distinct.ravel())
    assert moves_nothing(shape, order) == same == plan_of(case.node).is_copy


def test_plan_is_short() -> None:
    # NCHW to NHWC is one transposed matrix: batch and image dimensions are merged; the long loop is inside.
    assert plan_of(permute((1, 3, 32, 32), 0, 2, 3, 1)) == Move((Loop(3, 1024, 1), Loop(1024, 1, 3)))
    # Rows that stay whole are copied whole.
    assert plan_of(permute((5, 4, 8), 1, 0, 2)) == Move((Loop(4, 8, 40), Loop(5, 32, 8), Loop(8, 1, 1)))
    for order in itertools.permutations(range(3)):
        assert len(plan_of(permute((1, 7, 1), *order)).loops) == 1


def test_transpositions_are_told_from_the_bytes() -> None:
    for shape, order, found in (
        ((1, 3, 32, 32), (0, 2, 3, 1), Transposition(1, 3, 1024, 1)),
        ((1, 64, 4, 16), (0, 2, 1, 3), Transposition(1, 64, 4, 16)),
        ((1, 64, 4, 16), (0, 2, 3, 1), Transposition(1, 64, 64, 1)),
        ((5, 4, 6), (0, 2, 1), Transposition(5, 4, 6, 1)),
        ((5, 4, 6, 2), (0, 2, 1, 3), Transposition(5, 4, 6, 2)),
        ((5, 4, 6), (2, 1, 0), None),
        ((1, 7, 1), (0, 2, 1), None),  # which moves nothing
    ):
        assert transposition(plan_of(permute(shape, *order))) == found


@given(st.integers(2, 40), st.integers(2, 40))
def test_cycles_are_counted(rows: int, columns: int) -> None:
    left, lengths = set(range(rows * columns)), list[int]()
    while left:
        first = place = min(left)
        length = 0
        while place in left:
            left.remove(place)
            place = place % rows * columns + place // rows
            length += 1
        assert place == first
        lengths.append(length)
    assert cycles(Transposition(1, rows, columns, 1)) == (len(lengths), lengths.count(1))


def test_strides() -> None:
    assert strides((2, 3, 4)) == (12, 4, 1)


def test_refusals() -> None:
    with pytest.raises(UnsupportedShape, match="no order of 3 dimensions"):
        ops.infer(permute((2, 3, 4), 0, 1, 1))
    backwards = permute((2,) * 7, *reversed(range(7)))
    assert "7 dimensions move" in str(OP.kernels[0].why_not(backwards, Target("cortex-m4", frozenset())))
    x, y = tensor("x", (2, 2), scale=1.0), tensor("y", (2, 2), scale=0.5)
    assert "quantized alike" in str(OP.check(Node(Permute((1, 0)), (x,), (y,))))
    z = tensor("z", (2, 2), DType.FLOAT32)
    assert "cannot turn" in str(OP.check(Node(Permute((1, 0)), (x,), (z,))))
    assert TensorType((2, 2), DType.FLOAT32) == z.type
