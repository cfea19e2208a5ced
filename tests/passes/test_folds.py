# SPDX-License-Identifier: Apache-2.0
"""Batch norms into weights, clamps into producers, pads into windows."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.passes.build import Builder, assert_same, ops_of, origins_of, per_tensor
from tinyet.ir import Attrs, Tensor
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.pad import Pad
from tinyet.passes.fold_batch_norm import fold_batch_norm
from tinyet.passes.fold_pad import fold_pad
from tinyet.passes.fuse_clamp import compose, fuse_clamp

RELU = Clamp(0.0, math.inf)
RELU6 = Clamp(0.0, 6.0)
POOL = MaxPool2d(2, 2, kernel_h=2, kernel_w=2)


# ---------------------------------------------------------------- batch norm


def norm(b: Builder, x: Tensor, attrs: BatchNorm) -> Tensor:
    channels = x.shape[attrs.axis]
    return b.emit(attrs, x, b.const(b.rng.normal(1, 0.5, channels)), b.const(b.rng.normal(0, 1, channels)))


@pytest.mark.parametrize("with_bias", [True, False])
def test_batch_norm_behind_weighted_operators(with_bias: bool) -> None:
    b = Builder()
    image, rows = b.input(1, 5, 6, 4), b.input(3, 7)

    def weighted(attrs: Attrs, x: Tensor, *shape: int) -> Tensor:
        return b.emit(attrs, x, b.random(*shape), b.random(shape[0]) if with_bias else None)

    before = b.graph(
        norm(b, weighted(Conv2d(2, 1, groups=2), image, 6, 3, 2, 2), BatchNorm(3, (0.0, 6.0))),
        norm(b, weighted(ConvTranspose2d(2, 2), image, 3, 2, 2, 4), BatchNorm(3)),
        norm(b, weighted(Linear(), rows, 5, 7), BatchNorm(1)),
    )
    after = fold_batch_norm(before)
    # Values reach about 200, float32 has 24 bits: a rounding of 1e-5, a few of which add up.
    assert_same(before, after, atol=1e-4)
    assert ops_of(after) == ["conv2d", "conv_transpose2d", "linear"]
    assert isinstance(after.nodes[0].attrs, Conv2d)
    assert after.nodes[0].attrs.clamp == (0.0, 6.0)
    assert [o.aten for o in after.nodes[0].origins] == ["conv2d", "batch_norm"]


def test_two_batch_norms_fold_one_after_the_other() -> None:
    b = Builder()
    y = norm(b, norm(b, b.conv(b.input(1, 3, 3, 2), 4), BatchNorm(3)), BatchNorm(3))
    before = b.graph(y)
    after = fold_batch_norm(before)
    assert_same(before, after, atol=1e-4)
    assert ops_of(after) == ["conv2d"]


def test_batch_norm_that_must_stay() -> None:
    b = Builder()
    shared = b.conv(b.input(1, 3, 3, 2), 3)
    clamped = b.emit(Conv2d(clamp=(0.0, math.inf)), b.input(1, 3, 3, 2), b.random(4, 1, 1, 2))
    square = b.conv(b.input(1, 3, 3, 2), 3)
    before = b.graph(
        norm(b, shared, BatchNorm(3)), shared, norm(b, clamped, BatchNorm(3)), norm(b, square, BatchNorm(1))
    )
    assert ops_of(fold_batch_norm(before)) == ops_of(before)


# ---------------------------------------------------------------- clamp


def test_float_clamps_fuse_across_movers() -> None:
    b = Builder()
    x = b.input(1, 4, 4, 2)
    conv = b.emit(RELU, b.conv(x, 3))
    pooled = b.emit(RELU6, b.permute(b.emit(POOL, b.conv(x, 3)), 0, 3, 1, 2))
    added = b.emit(RELU6, b.emit(RELU, b.emit(Add(), b.reshape(conv, 1, 4, 12), b.random(12))))
    before = b.graph(pooled, added)
    after = fuse_clamp(before)
    assert_same(before, after)
    assert "clamp" not in ops_of(after)
    assert [key.rstrip("0123456789") for key in origins_of(after, "add")[0]] == ["add", "clamp", "clamp"]


def test_a_clamp_of_a_shared_value_stays() -> None:
    b = Builder()
    y = b.conv(b.input(1, 4, 4, 2), 3)
    pooled = b.emit(POOL, y)
    before = b.graph(b.emit(RELU, y), b.emit(RELU, pooled), b.emit(RELU, b.emit(Mean((1,)), pooled)))
    assert ops_of(fuse_clamp(before)) == ops_of(before)


bounds = st.tuples(st.floats(-9, 9) | st.just(-math.inf), st.floats(-9, 9) | st.just(math.inf)).map(
    lambda pair: (min(pair), max(pair))
)


@given(bounds, bounds)
def test_compose(first: tuple[float, float], second: tuple[float, float]) -> None:
    x = np.linspace(-10, 10, 101)
    assert np.array_equal(np.clip(np.clip(x, *first), *second), np.clip(x, *compose(first, second)))


@given(bounds, bounds, st.floats(0.01, 0.2), st.integers(-128, 127))
def test_int8_clamps_fuse_exactly(
    first: tuple[float, float], second: tuple[float, float], scale: float, zero_point: int
) -> None:
    b = Builder()
    quant = per_tensor(scale, zero_point)
    x, y = b.input(100, quant=per_tensor(0.1, -7)), b.input(100, quant=per_tensor(0.05, 9))
    before = b.graph(b.emit(Clamp(*second), b.emit(Add(first), x, y, quant=quant)))
    after = fuse_clamp(before)
    assert_same(before, after)
    assert ops_of(after) == ["add"]


def test_int8_clamp_that_does_nothing() -> None:
    b = Builder()
    x = b.input(2, 3, quant=per_tensor(0.1, -128))
    before = b.graph(b.emit(Mean((0,), True), b.emit(RELU, x)), b.emit(RELU, x), b.emit(RELU6, x))
    after = fuse_clamp(before)
    assert_same(before, after)
    # The second one makes an output out of an input, the third cuts off 6.1 … 25.5.
    assert ops_of(after) == ["mean", "clamp", "clamp"]


def test_int8_clamp_that_changes_the_scale_is_not_exact() -> None:
    b = Builder()
    x = b.input(2, 3, quant=per_tensor(0.1, -128))
    y = b.emit(Add(), x, x, quant=per_tensor(0.3, 0))
    before = b.graph(b.emit(RELU, y, quant=per_tensor(0.2, -128)))
    assert ops_of(fuse_clamp(before)) == ["add", "clamp"]


# ---------------------------------------------------------------- pad


def pad(
    b: Builder,
    x: Tensor,
    *pads: tuple[int, int],
    value: float = 0.0,
    mode: Literal["constant", "reflect", "replicate"] = "constant",
) -> Tensor:
    return b.emit(Pad(pads, mode, value), x)


IMAGE = ((0, 0), (1, 2), (0, 1), (0, 0))


def test_pads_go_into_windows() -> None:
    b = Builder()
    x = pad(b, b.input(1, 5, 6, 3), *IMAGE)
    average = AvgPool2d(kernel_h=2, kernel_w=2, count_include_pad=False)
    lowest = pad(b, b.input(1, 5, 6, 3), *IMAGE, value=-math.inf)
    before = b.graph(
        b.conv(x, 4, 3, pad_top=1, pad_left=2),
        b.emit(average, pad(b, b.input(1, 5, 6, 3), (0, 0), (1, 1), (0, 1), (0, 0))),
        b.emit(AvgPool2d(kernel_h=4, kernel_w=3, pad_top=1, pad_bottom=1), x),
        b.emit(MaxPool2d(kernel_h=3, kernel_w=3), lowest),
    )
    after = fold_pad(before)
    assert_same(before, after)
    assert ops_of(after) == ["conv2d", "avg_pool2d", "avg_pool2d", "max_pool2d"]
    conv = after.nodes[0].attrs
    assert isinstance(conv, Conv2d)
    assert (conv.pad_top, conv.pad_bottom, conv.pad_left, conv.pad_right) == (2, 2, 2, 1)
    assert [o.aten for o in after.nodes[0].origins] == ["pad", "conv2d"]


def test_int8_pad_of_the_zero_point() -> None:
    b = Builder()
    x = pad(b, b.input(1, 5, 6, 3, quant=per_tensor(0.1, 17)), *IMAGE)
    weights = b.const(b.rng.integers(-127, 128, (4, 3, 3, 3)), per_tensor(0.01))
    average = b.emit(AvgPool2d(kernel_h=3, kernel_w=2), x)
    before = b.graph(b.emit(Conv2d(), x, weights, quant=per_tensor(0.2, 5)), average)
    after = fold_pad(before)
    assert_same(before, after)
    assert ops_of(after) == ["avg_pool2d", "conv2d"]


def test_pads_of_sequences_go_into_windows() -> None:
    """A causal convolution: zeros before the first step, then an axis more. Others may read the padded sequence."""
    b = Builder()
    x = pad(b, b.input(1, 7, 3), (0, 0), (4, 0), (0, 0))
    images = [b.reshape(x, 1, 1, 11, 3), b.reshape(x, 1, 11, 1, 3)]
    before = b.graph(
        b.emit(Conv2d(dilation_w=2), images[0], b.random(2, 1, 3, 3), b.random(2)),
        b.emit(Conv2d(dilation_h=2), images[1], b.random(2, 3, 1, 3), b.random(2)),
    )
    after = fold_pad(before)
    assert_same(before, after)
    assert ops_of(after) == ["reshape", "conv2d", "reshape", "conv2d"]
    first, second = (n.attrs for n in after.nodes if isinstance(n.attrs, Conv2d))
    assert isinstance(first, Conv2d)
    assert isinstance(second, Conv2d)
    assert (first.pad_left, first.pad_right, second.pad_top, second.pad_bottom) == (4, 0, 4, 0)


@pytest.mark.parametrize(
    "before",
    [
        lambda b, x: b.conv(b.reshape(pad(b, x, *IMAGE), 1, 6, 7, 3), 2),
        lambda b, x: b.conv(pad(b, x, *IMAGE, value=1.0), 2),
        lambda b, x: b.conv(pad(b, x, *IMAGE, mode="replicate"), 2),
        lambda b, x: b.conv(pad(b, x, (0, 0), (-1, 1), (0, 0), (0, 0)), 2),
        lambda b, x: b.conv(pad(b, x, (0, 0), (1, 1), (0, 0), (0, 1)), 2),
        lambda b, x: b.emit(AvgPool2d(kernel_h=2, kernel_w=2), pad(b, x, *IMAGE)),
        lambda b, x: b.emit(MaxPool2d(kernel_h=2, kernel_w=2), pad(b, x, *IMAGE)),
        lambda b, x: b.emit(
            AvgPool2d(kernel_h=2, kernel_w=2, pad_top=1, count_include_pad=False), pad(b, x, *IMAGE)
        ),
    ],
)
def test_pads_that_must_stay(before) -> None:  # type: ignore[no-untyped-def]
    b = Builder()
    graph = b.graph(before(b, b.input(1, 4, 5, 3)))
    assert ops_of(fold_pad(graph))[0] == "pad"
