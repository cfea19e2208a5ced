# SPDX-License-Identifier: Apache-2.0
"""What computes nothing has no memory of its own: reshapes, slices, concatenations, windows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.test_memory_storage import Builder, Clamp, execute, plan_of
from tinyet.ir import Attrs, DType, Graph, Node, QuantParams, Tensor, TensorType, constant
from tinyet.memory import Storage
from tinyet.memory.views import views
from tinyet.ops import op_of as product_op
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.concat import Concat
from tinyet.ops.copy import Copy
from tinyet.ops.cumsum import CumSum
from tinyet.ops.expand import Expand
from tinyet.ops.flip import Flip
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.pad import Pad
from tinyet.ops.permute import Permute
from tinyet.ops.resize import Resize
from tinyet.ops.slice import Slice
from tinyet.ops.sum import Sum
from tinyet.ops.unfold import Unfold


def test_views_of_views() -> None:
    b = Builder()
    x = b.mix(b.input(4), shape=(4, 8))
    flat = b.reshape(x, 32)
    part = b.slice(flat, 8, 24)
    inner = b.slice(part, 4, 12)
    graph = b.graph(b.mix(inner, shape=(4,)), inner)
    plan = plan_of(graph)
    assert plan.elided == tuple(b.nodes[1:4])
    assert plan.offset(inner) == plan.offset(x) + 12
    assert plan.storage[inner] == Storage(plan.storage[x].block, 12)
    execute(graph, plan, {})


def test_a_slice_that_jumps_or_is_not_aligned_is_computed() -> None:
    b = Builder()
    x = b.mix(b.input(4), shape=(4, 8))
    columns = b.slice(x, 0, 4, axis=1)
    odd = b.slice(b.reshape(x, 32), 2, 6)
    graph = b.graph(columns, odd)
    assert plan_of(graph).elided == (b.nodes[2],)
    assert plan_of(graph, align=2).elided == (b.nodes[2], b.nodes[3])


def test_a_small_slice_of_a_large_tensor_is_copied_out() -> None:
    """As a view it would keep 1024 bytes alive through the rest, where 1000 more are needed."""
    b = Builder()
    large = b.mix(b.input(4), shape=(1024,))
    last = b.slice(large, 1020, 1024)
    other = b.mix(b.mix(last, shape=(500,)), shape=(500,))
    plan = plan_of(b.graph(b.mix(other, last, shape=(4,))))
    assert not plan.elided
    assert plan.arena_bytes == 1024 + 4


def test_concat_inputs_are_computed_in_their_window() -> None:
    b = Builder()
    x = b.input(4)
    parts = [b.mix(x, shape=(rows, 4)) for rows in (1, 2, 3)]
    whole = b.concat(*parts)
    graph = b.graph(b.mix(whole, shape=(4,)))
    plan = plan_of(graph)
    assert plan.elided == (b.nodes[3],)
    assert [plan.offset(p) - plan.offset(whole) for p in parts] == [0, 4, 12]
    assert plan.arena_bytes == 24 + 4
    execute(graph, plan, {})


def test_a_window_in_place() -> None:
    """The activation of a part writes straight into the window, over the part itself."""
    b = Builder()
    x = b.input(4)
    parts = [b.pointwise(b.mix(x, shape=(8,))) for _ in range(2)]
    graph = b.graph(b.concat(*parts))
    plan = plan_of(graph)
    assert (len(plan.elided), len(plan.overwrites)) == (1, 2)
    assert plan.arena_bytes == 16 + 4
    execute(graph, plan, {})


def test_concats_that_cannot_share_are_computed() -> None:
    b = Builder()
    x = b.mix(b.input(4), shape=(4,))
    y = b.mix(x, shape=(4,))
    twice = b.concat(x, x)
    one, other = b.concat(x, y), b.concat(y, x)
    fixed = b.concat(y, constant("k", np.zeros(4, np.int8)))
    graph = b.graph(twice, one, other, fixed)
    plan = plan_of(graph)
    # (x, y) can be windows; then (y, x) cannot, and nothing can lie twice in one tensor.
    assert plan.elided == (b.nodes[3],)
    execute(graph, plan, {})


def test_two_concats_can_overlap_on_the_part_that_they_share() -> None:
    b = Builder()
    seed = b.input(4)
    x, y, z = (b.mix(seed, shape=(4,)) for _ in range(3))
    graph = b.graph(b.concat(x, y), b.concat(y, z))
    plan = plan_of(graph)
    assert len(plan.elided) == 2
    assert plan.arena_bytes == 12 + 4
    execute(graph, plan, {})


def test_concat_of_the_pieces_of_a_tensor_is_that_tensor() -> None:
    b = Builder()
    x = b.input(8)
    graph = b.graph(b.mix(b.concat(b.slice(x, 0, 4), b.slice(x, 4, 8)), shape=(4,)))
    plan = plan_of(graph)
    assert len(plan.elided) == 3
    execute(graph, plan, {})
    exchanged = Builder()
    x = exchanged.input(8)
    both = [exchanged.slice(x, 4, 8), exchanged.slice(x, 0, 4)]
    graph = exchanged.graph(exchanged.concat(*both))
    execute(graph, plan_of(graph), {})
    assert len(plan_of(graph).elided) < 3


def test_inputs_and_outputs_that_are_each_other() -> None:
    b = Builder()
    x = b.input(8)
    view = b.reshape(x, 2, 4)
    y = b.pointwise(x)
    graph = b.graph(x, view, y, y)
    plan = plan_of(graph)
    assert plan.offset(x) == plan.offset(view) != plan.offset(y)
    assert plan.arena_bytes == 16
    assert plan.lifetimes[x].first == -1
    assert plan.lifetimes[x].last == plan.lifetimes[y].last == len(plan.calls) == 1
    execute(graph, plan, {})


def test_a_copy_has_bytes_of_its_own() -> None:
    b = Builder()
    x = b.input(8)
    (own,) = b.node(Copy(), [x], (8,))
    graph = b.graph(x, own)
    plan = plan_of(graph)
    assert plan.calls == (b.nodes[0],)
    assert plan.arena_bytes == 16
    execute(graph, plan, {})


def test_unused_inputs_stand_beside_the_others_at_the_start() -> None:
    b = Builder()
    x, unused = b.input(8), b.input(8)
    plan = plan_of(b.graph(b.mix(x, shape=(8,))))
    assert plan.offset(unused) != plan.offset(x)
    assert plan.arena_bytes == 16


def test_what_looks_like_a_move_on_most_values_is_computed() -> None:
    b = Builder()
    x = b.input(2)
    (y,) = b.node(Clamp(), [x], (2,))
    assert plan_of(b.graph(y)).calls == (b.nodes[0],)


IMAGE = (1, 4, 6, 3)
COMPUTES_NOTHING: tuple[Attrs, ...] = (
    Resize(4, 6, "bilinear", align_corners=False, half_pixel=True, ratio_h=1, ratio_w=1),
    Resize(4, 6, "bilinear", align_corners=True, half_pixel=False, ratio_h=1, ratio_w=1),
    Resize(4, 6, "nearest", align_corners=False, half_pixel=False, ratio_h=1, ratio_w=1),
    AvgPool2d(stride_h=1, stride_w=1, kernel_h=1, kernel_w=1),
    AdaptiveAvgPool2d(4, 6),
    MaxPool2d(stride_h=1, stride_w=1, kernel_h=1, kernel_w=1),
    Pad(((0, 0),) * 4),
    Pad(((0, 0),) * 4, "reflect"),
    Slice(1, 0, 4),
    Permute((0, 1, 2, 3)),
    Expand(IMAGE),
    Flip((0,)),
    Unfold(3, 1),
    Concat(1),
    Amax((0,), True),
    Mean((0,), True),
    Sum((0,), True),
    CumSum(0),
)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.FLOAT32])
def test_what_computes_nothing_has_a_place(dtype: DType) -> None:
    """Whether it is done without a call or not, which the check of the plan tries out on any bits."""
    quant = None if dtype is DType.FLOAT32 else QuantParams.per_tensor(0.5, 0)
    for attrs in COMPUTES_NOTHING:
        x = Tensor("x", TensorType(IMAGE, dtype, quant))
        draft = Node(attrs, (x,), (x,))
        ((*shape,),) = product_op(draft).infer(draft)
        y = Tensor("y", TensorType(tuple(shape), dtype, quant))
        plan = plan_of(Graph("g", (x,), (y,), (Node(attrs, (x,), (y,)),)))
        arithmetic = isinstance(attrs, (Resize, AvgPool2d, AdaptiveAvgPool2d)) and dtype is DType.FLOAT32
        if product_op(draft).same_scale and not (arithmetic and getattr(attrs, "mode", "") != "nearest"):
            assert not plan.calls, attrs


@pytest.mark.parametrize("kind", [Amin, Amax])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.FLOAT32])
def test_an_extremum_is_never_taken_for_a_slice(kind: type[Amin] | type[Amax], dtype: DType) -> None:
    """However few elements there are, the extremum of random values may stand at one place each time."""
    quant = None if dtype is DType.FLOAT32 else QuantParams.per_tensor(0.5, 0)
    for count in range(2, 40):
        x, y = Tensor("x", TensorType((count,), dtype, quant)), Tensor("y", TensorType((), dtype, quant))
        node = Node(kind((0,), False), (x,), (y,))
        assert views(node, product_op(node)) is None, count
