# SPDX-License-Identifier: Apache-2.0
"""Dead code, constants, common subexpressions, reshapes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.passes.build import Builder, assert_same, lines, ops_of, origins_of, per_tensor
from tinyet.ir import Tensor
from tinyet.ops.add import Add
from tinyet.ops.clamp import Clamp
from tinyet.ops.copy import Copy
from tinyet.ops.expand import Expand
from tinyet.ops.mean import Mean
from tinyet.passes import fold_constants
from tinyet.passes.common_subexpressions import share_common_subexpressions
from tinyet.passes.dead_code import eliminate_dead_code
from tinyet.passes.merge_reshapes import merge_reshapes
from tinyet.passes.sink_reshapes import sink_reshapes

RELU = Clamp(0.0, math.inf)


def test_dead_code() -> None:
    b = Builder()
    x, unused = b.input(2, 3), b.input(4)
    y = b.emit(RELU, x)
    b.emit(RELU, b.emit(Mean((0,)), y))
    before = b.graph(y)
    after = eliminate_dead_code(before)
    assert_same(before, after)
    assert ops_of(after) == ["clamp"]
    assert after.inputs == (x, unused)


def test_constants_are_folded_through_chains() -> None:
    b = Builder()
    c = b.emit(RELU, b.reshape(b.const([[-1, 2], [3, -4]]), 4))
    before = b.graph(b.emit(Add(), b.input(3, 4), c))
    after = fold_constants.before_lowering(before)
    assert_same(before, after)
    assert ops_of(after) == ["add"]
    assert after.nodes[0].input(1).array.tolist() == [0, 2, 3, 0]
    assert after.nodes[0].input(1).name == c.name


def test_a_sequence_keeps_the_shape_of_a_line() -> None:
    b = Builder()
    x, y = b.input(1, 1, 5, 3), b.input(1, 1, 5, 3)
    added = b.emit(Add(), b.reshape(x, 1, 5, 3), b.reshape(y, 1, 5, 3))
    scaled = b.emit(RELU, b.emit(Add(), added, b.const([1.0, 2.0, 3.0])))
    before = b.graph(b.emit(Mean((2,)), b.reshape(scaled, 1, 1, 5, 3)), b.emit(Mean((1,)), scaled))
    after = sink_reshapes(before)
    assert_same(before, after)
    assert ops_of(after) == ["add", "add", "clamp", "reshape", "mean", "mean"]
    assert [node.output.shape for node in after.nodes[:3]] == [(1, 1, 5, 3)] * 3
    assert [node.output.name for node in after.nodes[:3]] == [
        added.name,
        before.nodes[3].output.name,
        scaled.name,
    ]


@pytest.mark.parametrize(
    "made",
    [
        lambda b, short: b.emit(Add(), short, b.input(1, 5, 3)),  # one of two comes in another shape
        lambda b, short: b.emit(RELU, b.emit(Mean((1,)), short)),
        lambda b, short: b.emit(RELU, short),  # an output of the graph
        lambda b, short: b.emit(RELU, b.emit(RELU, b.reshape(short, 1, 15))),
    ],
)
def test_reshapes_are_not_sunk_behind_what_depends_on_the_shape(
    made: Callable[[Builder, Tensor], Tensor],
) -> None:
    b = Builder()
    y = made(b, b.reshape(b.input(1, 1, 5, 3), 1, 5, 3))
    before = b.graph(y)
    assert sink_reshapes(before) is before


def test_a_constant_output_is_folded() -> None:
    b = Builder()
    b.input(1)
    after = fold_constants.before_lowering(b.graph(b.emit(RELU, b.const([-1.0, 1.0]))))
    assert [node.op for node in after.nodes] == ["copy"]
    assert after.nodes[0].input(0).array.tolist() == [0, 1]


def test_a_constant_is_quantized_but_not_dequantized_before_integers_are_formed() -> None:
    b = Builder()
    q = b.quantize(b.const([0.5, -1.0]), per_tensor(0.25, 1))
    before = b.graph(b.emit(Add(), b.input(2), b.dequantize(q)))
    after = fold_constants.before_lowering(before)
    assert_same(before, after)
    assert ops_of(after) == ["dequantize", "add"]
    assert after.nodes[0].input(0).array.tolist() == [3, -3]
    last = fold_constants.after_lowering(after)
    assert_same(before, last)
    assert ops_of(last) == ["add"]


def test_a_constant_that_would_grow_is_left_alone() -> None:
    b = Builder()
    before = b.graph(
        b.emit(Expand((10, 100)), b.const(np.ones((1, 100)))), b.emit(Expand((8, 2)), b.const([1, 2]))
    )
    after = fold_constants.before_lowering(before)
    assert lines(after) == ["expand(1x100) -> 10x100", "copy(8x2) -> 8x2"]


def test_equal_computations_are_shared() -> None:
    b = Builder()
    x = b.input(2, 3)
    first = b.emit(Add(), b.emit(RELU, x, name="a1"), b.const([1, 2, 3]))
    second = b.emit(Add(), b.emit(RELU, x, name="a2"), b.const([1, 2, 3]))
    other = b.emit(Add(), b.emit(Clamp(0.0, 6.0), x), b.const([1, 2, 4]))
    before = b.graph(b.emit(Add(), b.emit(Add(), first, second), other))
    after = share_common_subexpressions(before)
    assert_same(before, after)
    assert ops_of(after) == ["clamp", "add", "clamp", "add", "add", "add"]
    assert origins_of(after, "clamp")[0] == ["a1", "a2"]
    assert after.nodes[4].inputs[0] is after.nodes[4].inputs[1]


def test_equal_outputs_are_kept_apart() -> None:
    b = Builder()
    x = b.input(2, 3)
    before = b.graph(b.emit(RELU, x), b.emit(RELU, x))
    after = share_common_subexpressions(before)
    assert after.outputs == before.outputs


def test_another_output_scale_is_another_computation() -> None:
    b = Builder()
    x = b.input(2, 3)
    before = b.graph(*(b.dequantize(b.quantize(x, per_tensor(scale))) for scale in (0.5, 0.25)))
    assert ops_of(share_common_subexpressions(before)) == ops_of(before)


def test_reshapes_of_reshapes() -> None:
    b = Builder()
    x = b.input(2, 3, 4)
    there = b.reshape(b.reshape(x, 6, 4), 24)
    back = b.reshape(there, 2, 3, 4)
    copied = b.emit(Copy(), b.emit(RELU, back))
    before = b.graph(b.emit(RELU, copied), b.reshape(there, 4, 6))
    after = merge_reshapes(before)
    assert_same(before, after)
    assert ops_of(after) == ["clamp", "clamp", "reshape"]
    assert after.nodes[0].input(0) is x
    assert [len(origins) for origins in origins_of(after, "reshape")] == [3]


def test_an_output_that_is_an_input_keeps_its_copy() -> None:
    b = Builder()
    x = b.input(2, 3)
    before = b.graph(b.emit(Copy(), x), b.reshape(x, 2, 3))
    assert ops_of(merge_reshapes(before)) == ["copy", "reshape"]
