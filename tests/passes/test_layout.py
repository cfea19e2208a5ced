# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden_files import Golden
from tests.passes.build import (
    Builder,
    assert_same,
    before_and_after,
    lines,
    ops_of,
    per_tensor,
    permuted_bytes,
)
from tinyet.ir import DType, Graph, Tensor
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.argmax import ArgMax
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.concat import Concat
from tinyet.ops.expand import Expand
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.pad import Pad
from tinyet.ops.permute import Permute, moves_nothing
from tinyet.ops.reshape import Reshape
from tinyet.ops.slice import Slice
from tinyet.ops.softmax import Softmax
from tinyet.ops.sum import Sum
from tinyet.passes.layout_apply import optimize_layout
from tinyet.passes.layout_domains import axis_groups

RELU = Clamp(0.0, math.inf)


def cnn(b: Builder, channels: int) -> Graph:
    """conv, relu, pool, residual add, concat, per-channel scale, global mean, flatten, linear, as torch has
    them."""
    x = b.input(1, channels, 12, 8)
    y = b.emit(RELU, b.torch_conv(x, 4, 3))
    pooled = b.emit(MaxPool2d(2, 2, kernel_h=2, kernel_w=2), b.permute(y, 0, 2, 3, 1))
    y = b.permute(pooled, 0, 3, 1, 2)
    z = b.emit(RELU, b.torch_conv(y, 4))
    y = b.emit(Add(), y, z)
    y = b.emit(Concat(1), y, b.torch_conv(y, 6))
    y = b.emit(Add(), y, b.random(10, 1, 1))
    y = b.emit(BatchNorm(1), y, b.random(10), b.random(10))
    y = b.emit(Slice(1, 1, 9), y)
    features = b.linear(b.reshape(y, 1, 8 * 5 * 3), 5)
    pooled = b.reshape(b.emit(Sum((2, 3), True), y), 1, 8)
    return b.graph(features, b.linear(pooled, 3))


def test_cnn_has_one_permute_at_its_input(golden: Golden) -> None:
    before = cnn(Builder(), 3)
    after = optimize_layout(before)
    assert_same(before, after)
    golden(before_and_after(before, after), "cnn.txt")
    assert ops_of(after).count("permute") == 1
    assert after.nodes[0].input(0) is after.inputs[0]


def test_one_channel_needs_none() -> None:
    before = cnn(Builder(), 1)
    after = optimize_layout(before)
    assert_same(before, after)
    assert "permute" not in ops_of(after)
    assert lines(after)[0] == "reshape(1x1x12x8) -> 1x12x8x1"


def test_flatten_goes_into_the_weights_through_pointwise_operators() -> None:
    b = Builder()
    y = b.torch_conv(b.permute(b.input(1, 4, 5, 3), 0, 3, 1, 2), 6)
    flat = b.emit(RELU, b.reshape(b.emit(RELU, y), 1, 120))
    before = b.graph(b.linear(flat, 7), b.linear(flat, 2))
    after = optimize_layout(before)
    assert_same(before, after)
    assert ops_of(after) == ["conv2d", "clamp", "reshape", "clamp", "linear", "linear"]


def test_flatten_that_is_an_output_keeps_its_order() -> None:
    b = Builder()
    flat = b.reshape(b.torch_conv(b.permute(b.input(1, 4, 5, 3), 0, 3, 1, 2), 6), 1, 120)
    before = b.graph(b.linear(flat, 7), flat)
    after = optimize_layout(before)
    assert_same(before, after)
    assert ops_of(after).count("permute") == 1


def test_int8_flatten_is_exact() -> None:
    b = Builder()
    x = b.input(1, 4, 3, 5, quant=per_tensor(0.1, 3))
    flat = b.reshape(b.permute(x, 0, 3, 1, 2), 1, 60)
    weights = b.const(b.rng.integers(-127, 128, (6, 60)), per_tensor(0.02))
    before = b.graph(b.emit(Linear(), flat, weights, quant=per_tensor(0.5, -4)))
    after = optimize_layout(before)
    assert_same(before, after)
    assert ops_of(after) == ["reshape", "linear"]


def test_batch_is_not_mixed_into_the_weights() -> None:
    """Only the order of what becomes one row may go into the weights, not that of the rows."""
    b = Builder()
    x = b.input(2, 3, 5)
    before = b.graph(b.linear(b.reshape(b.permute(x, 1, 0, 2), 3, 10), 4))
    after = optimize_layout(before)
    assert_same(before, after)
    assert ops_of(after) == ["permute", "reshape", "linear"]


def test_sequences_cross_their_reshapes() -> None:
    """A one-dimensional convolution is one of height 1: reshapes stand between the permutes."""

    def conv1d(b: Builder, x: Tensor, channels: int) -> Tensor:
        y = b.permute(x, 0, 2, 1)
        y = b.conv(b.reshape(y, 1, 1, *y.shape[1:]), channels)
        return b.permute(b.reshape(y, 1, *y.shape[2:]), 0, 2, 1)

    b = Builder()
    y = b.emit(RELU, conv1d(b, b.input(1, 3, 20), 4))
    y = b.emit(Add(), y, conv1d(b, y, 4))
    before = b.graph(b.emit(Mean((2,)), y))
    after = optimize_layout(before)
    assert_same(before, after, atol=1e-6)
    assert ops_of(after).count("permute") == 1


def test_channel_shuffle_moves_bytes_once() -> None:
    b = Builder()
    y = b.torch_conv(b.permute(b.input(1, 4, 5, 3), 0, 3, 1, 2), 6)
    y = b.permute(b.reshape(y, 1, 2, 3, 4, 5), 0, 2, 1, 3, 4)
    y = b.torch_conv(b.reshape(y, 1, 6, 4, 5), 4)
    before = b.graph(b.permute(y, 0, 2, 3, 1))
    after = optimize_layout(before)
    assert_same(before, after)
    assert ops_of(after) == ["conv2d", "reshape", "permute", "reshape", "conv2d"]
    assert permuted_bytes(after) == 4 * 120


def test_softmax_over_channels_becomes_one_over_the_last_axis() -> None:
    b = Builder()
    y = b.emit(Softmax(1), b.torch_conv(b.permute(b.input(1, 4, 5, 3), 0, 3, 1, 2), 6))
    before = b.graph(b.emit(ArgMax(1), y, dtype=DType.INT32))
    after = optimize_layout(before)
    assert_same(before, after, atol=1e-6)
    assert ops_of(after) == ["conv2d", "softmax", "argmax"]
    assert after.nodes[1].attrs == Softmax(3)


def test_smaller_side_of_a_quantize_is_permuted() -> None:
    b = Builder()
    x = b.permute(b.input(1, 3, 4, 5), 0, 2, 3, 1)
    before = b.graph(b.conv(b.dequantize(b.quantize(x, per_tensor(0.5))), 2))
    after = optimize_layout(before)
    assert_same(before, after)
    assert ops_of(after) == ["quantize", "permute", "dequantize", "conv2d"]


def test_permutes_that_cancel_or_merge() -> None:
    b = Builder()
    x = b.input(2, 3, 4)
    y = b.permute(b.permute(x, 2, 0, 1), 1, 2, 0)
    before = b.graph(b.emit(RELU, y), b.permute(b.permute(b.emit(RELU, x), 1, 0, 2), 2, 0, 1))
    after = optimize_layout(before)
    assert_same(before, after)
    assert ops_of(after).count("permute") == 1


def test_names_of_outputs_survive() -> None:
    b = Builder()
    y = b.permute(b.input(2, 3, 4), 2, 0, 1)
    before = b.graph(y)
    after = optimize_layout(before)
    assert [t.name for t in after.outputs] == [y.name]
    assert after.nodes[0].origins[0].aten == "permute"


@pytest.mark.parametrize(
    ("before", "after", "groups"),
    [
        ((2, 3, 4), (6, 4), [((0, 1), (0,)), ((2,), (1,))]),
        ((1, 6, 4), (2, 3, 1, 4), [((0, 1), (0, 1)), ((2,), (2, 3))]),
        ((4,), (4, 1), [((0,), (0,)), ((), (1,))]),
        ((), (1,), [((), (0,))]),
        ((4, 6), (3, 8), [((0, 1), (0, 1))]),
    ],
)
def test_axis_groups(
    before: tuple[int, ...], after: tuple[int, ...], groups: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    assert axis_groups(before, after) == groups


# ---------------------------------------------------------------- any little graph


KINDS = (
    *("permute", "permute", "permute", "relu", "add", "constant", "concat", "slice", "reduce", "reshape"),
    *("conv", "pad", "linear"),
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to a dozen operators on small values, permutes among them more often than not."""
    b = Builder(draw(st.integers(0, 2**32 - 1)))
    sizes = st.sampled_from([1, 2, 3, 4])
    quant = draw(st.sampled_from([None, per_tensor(0.5, 3)]))
    pool = [b.input(*draw(st.lists(sizes, min_size=4, max_size=4)), quant=quant)]
    for _ in range(draw(st.integers(1, 12))):
        x = pool[-1] if draw(st.booleans()) else draw(st.sampled_from(pool))
        grown = _grown(draw, b, x, pool)
        if grown.type.count <= 2000:
            pool.append(grown)
    others = draw(st.lists(st.sampled_from(pool), max_size=2))
    return b.graph(*dict.fromkeys([*others, pool[-1]]))


def _grown(draw: st.DrawFn, b: Builder, x: Tensor, pool: list[Tensor]) -> Tensor:
    """One more operator that takes x."""
    rank = len(x.shape)
    axis = draw(st.integers(0, max(rank - 1, 0)))
    kind = draw(st.sampled_from(KINDS))
    is_float = x.dtype is DType.FLOAT32
    if rank < 2 or kind == "relu":
        return b.emit(RELU, x)
    if kind == "permute":
        return b.permute(x, *draw(st.permutations(range(rank))))
    if kind == "add" and is_float:
        fitting = [t for t in pool if t.shape == x.shape]
        return b.emit(Add(), x, draw(st.sampled_from(fitting)))
    if kind == "constant" and is_float:
        shape = [draw(st.sampled_from([1, size])) for size in x.shape][draw(st.integers(0, rank)) :]
        return b.emit(Add(), x, b.random(*shape))
    if kind == "concat":
        return b.emit(Concat(axis), x, x)
    if kind == "slice":
        start = draw(st.integers(0, x.shape[axis] - 1))
        return b.emit(Slice(axis, start, draw(st.integers(start + 1, x.shape[axis]))), x)
    if kind == "reduce":
        axes = tuple(draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True)))
        return b.emit(
            draw(st.sampled_from([Sum, Amax] if is_float else [Amax]))(axes, draw(st.booleans())), x
        )
    if kind == "reshape":
        cut = draw(st.integers(0, rank - 1))
        merged = math.prod(x.shape[cut : cut + 2])
        return b.reshape(x, *x.shape[:cut], merged, *x.shape[cut + 2 :], *draw(st.sampled_from([(), (1,)])))
    if kind == "conv" and rank == 4 and is_float:
        return b.torch_conv(x, draw(st.integers(1, 3)))
    if kind == "pad":
        return b.emit(Pad(tuple(draw(st.sampled_from([(0, 0), (1, 0), (0, 2)])) for _ in x.shape)), x)
    if kind == "linear" and is_float:
        flat = b.reshape(x, x.shape[0], math.prod(x.shape[1:])) if draw(st.booleans()) else x
        return b.linear(flat, 3)
    return b.emit(Expand((2, *x.shape)), x) if rank < 4 else b.permute(x, *reversed(range(rank)))


def moved_bytes(graph: Graph) -> int:
    """Bytes of Permutes that move any, and a quarter of those of concatenations and slices of inner axes."""
    total = 0
    for node in graph.nodes:
        if isinstance(node.attrs, Permute) and not moves_nothing(node.input(0).shape, node.attrs.order):
            total += node.output.type.bytes
        if isinstance(node.attrs, Concat | Slice) and math.prod(node.output.shape[: node.attrs.axis]) != 1:
            total += node.output.type.bytes // 4
    return total


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_any_graph_computes_the_same_and_moves_no_more(before: Graph) -> None:
    after = optimize_layout(before)
    assert_same(before, after)
    assert moved_bytes(after) <= moved_bytes(before)
    for node in after.nodes:
        if isinstance(node.attrs, Permute):
            assert not moves_nothing(node.input(0).shape, node.attrs.order)
        # An input that leaves as an output keeps the node between them.
        if isinstance(node.attrs, Reshape) and node.output not in after.outputs:
            assert node.input(0).shape != node.output.shape


def test_random_inputs_are_not_trivial() -> None:
    """The comparisons above would be worth nothing on zeros."""
    b = Builder()
    assert len(np.unique(b.random(50).array)) > 3
