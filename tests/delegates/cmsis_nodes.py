# SPDX-License-Identifier: Apache-2.0
"""Strategies that draw nodes for every kernel of the delegate cmsis_nn, most of which it takes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from tests.delegates.elementwise_nodes import clamp, output_quant, quants
from tests.delegates.test_cortex_m import (
    activation,
    depthwise_nodes,
    gemm_nodes,
    layer,
    linear_nodes,
    windows,
)
from tests.ops import drawing
from tests.ops.cases import Case
from tests.ops.test_avg_pool2d import avg_pool2d_nodes
from tests.ops.test_conv2d import conv2d_nodes
from tests.ops.test_int4 import int4
from tests.ops.test_linear import linear_nodes as per_channel_linear_nodes
from tests.ops.test_max_pool2d import max_pool2d_nodes
from tinyet.delegates import CMSIS_NN, Delegate
from tinyet.ir import Array, DType, QuantParams, Tensor, TensorType
from tinyet.numerics import NO_CLAMP
from tinyet.ops.add import Add
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.matmul import MatMul
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.maximum import Maximum
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.pad import Pad
from tinyet.ops.permute import Permute
from tinyet.ops.softmax import OUT_SCALE, OUT_ZERO_POINT, Softmax


def only(function: str) -> Delegate:
    """The delegate without its other functions."""
    by_op = {
        op: tuple(k for k in kernels if k.symbol == function) for op, kernels in CMSIS_NN.kernels.items()
    }
    return Delegate("only", {op: kernels for op, kernels in by_op.items() if kernels}, files=CMSIS_NN.files)


@st.composite
def pointwise_nodes(draw: st.DrawFn) -> Case:
    """1x1 kernels with a stride of 1 or more, images of a few pixels."""
    rng = drawing.random(draw)
    strides = draw(st.sampled_from(((1, 1), (1, 1), (2, 2), (3, 1), (1, 2))))
    channels = draw(st.one_of(st.sampled_from((4, 16, 32)), st.integers(1, 37)))
    x = draw(st.integers(1, 2)), draw(st.integers(1, 6)), draw(st.integers(1, 7)), channels
    weights = draw(st.integers(1, 11)), 1, 1, channels
    return layer(rng, Conv2d(stride_h=strides[0], stride_w=strides[1]), x, weights)


@st.composite
def one_row_nodes(draw: st.DrawFn) -> Case:
    """Convolutions of one row: as long as the padding is nearly the same on both sides, MVE has code for them."""
    rng = drawing.random(draw)
    stride, taps, pad = draw(st.integers(1, 3)), draw(st.integers(1, 7)), draw(st.integers(0, 3))
    width = draw(st.integers(taps, 24))
    channels = draw(st.sampled_from((4, 8, 12, 1, 2, 20)))
    attrs = Conv2d(pad_left=pad, pad_right=pad + draw(st.integers(0, 1)), stride_w=stride)
    x, weights = (draw(st.integers(1, 2)), 1, width, channels), (draw(st.integers(1, 9)), 1, taps, channels)
    return layer(rng, attrs, x, weights)


@st.composite
def grouped_nodes(draw: st.DrawFn) -> Case:
    """Several groups of several input channels, or of one with several output channels each."""
    rng = drawing.random(draw)
    groups, group_in = draw(st.integers(2, 4)), draw(st.sampled_from((1, 1, 2, 3, 4)))
    outs = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    window, kernel, size = draw(windows(outs, st.integers(1, 4), draw(st.sampled_from((1, 1, 2)))))
    count = groups * draw(st.integers(1, 8))
    x = draw(st.sampled_from((1, 1, 2))), *size, groups * group_in
    return layer(rng, Conv2d(**window, groups=groups, clamp=NO_CLAMP), x, (count, *kernel, group_in))


@st.composite
def wide_depthwise_nodes(draw: st.DrawFn) -> Case:
    """One channel a group and any kernel, up to more channels than the vector code takes at a time."""
    rng = drawing.random(draw)
    outs = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    window, kernel, size = draw(windows(outs, st.integers(1, 5), 1))
    channels = draw(st.one_of(st.integers(2, 40), st.sampled_from((16, 64, 124, 125, 130))))
    return layer(
        rng, Conv2d(**window, groups=channels, clamp=NO_CLAMP), (1, *size, channels), (channels, *kernel, 1)
    )


@st.composite
def transpose_conv_nodes(draw: st.DrawFn) -> Case:
    """Every stride, with cropping and output padding now and then."""
    rng = drawing.random(draw)
    strides = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    kernel = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    channels = draw(st.one_of(st.sampled_from((4, 16, 20)), st.integers(1, 9)))
    crop = [draw(st.sampled_from((0, 0, 0, 1))) for _ in range(4)]
    # The library makes outputs of whole strides: a kernel shorter than the stride is padded to it.
    more = [max(s - k, 0) if draw(st.booleans()) else 0 for s, k in zip(strides, kernel, strict=True)]
    attrs = ConvTranspose2d(
        stride_h=strides[0],
        stride_w=strides[1],
        pad_top=crop[0],
        pad_bottom=crop[1],
        pad_left=crop[2],
        pad_right=crop[3],
        out_pad_h=more[0],
        out_pad_w=more[1],
    )
    x = draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(1, 6)), channels
    return layer(rng, attrs, x, (draw(st.integers(1, 9)), *kernel, channels))


def pair_quant(rng: np.random.Generator, dtype: DType, scale: float) -> QuantParams:
    return quants(rng, scale) if dtype is DType.INT8 else QuantParams.per_tensor(scale, 0)


@st.composite
def sum_nodes(draw: st.DrawFn, dtype: DType = DType.INT8) -> Case:
    rng = drawing.random(draw)
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    scale = float(2.0 ** rng.uniform(-4, 4))
    a, b = (
        Tensor(n, TensorType(shape, dtype, pair_quant(rng, dtype, scale * rng.uniform(0.2, 1)))) for n in "ab"
    )
    node = drawing.node_of(Add(clamp=clamp(rng, scale)), [a, b], pair_quant(rng, dtype, scale))
    return Case(node, (drawing.data(rng, shape, dtype), drawing.data(rng, shape, dtype)))


@st.composite
def product_nodes(draw: st.DrawFn, dtype: DType = DType.INT8) -> Case:
    """In int8 also with an output scale so small that products are shifted to the left."""
    rng = drawing.random(draw)
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    a, b = (Tensor(n, TensorType(shape, dtype, pair_quant(rng, dtype, rng.uniform(0.2, 1)))) for n in "ab")
    scale = float(rng.choice([1.0, 20.0, 100.0, 0.01 if dtype is DType.INT8 else 1e4]))
    node = drawing.node_of(Mul(clamp=clamp(rng, scale)), [a, b], pair_quant(rng, dtype, scale))
    return Case(node, (drawing.data(rng, shape, dtype), drawing.data(rng, shape, dtype)))


def extreme_nodes(attrs: type[Minimum] | type[Maximum]) -> Callable[[], st.SearchStrategy[Case]]:
    @st.composite
    def nodes(draw: st.DrawFn) -> Case:
        """Equal shapes, a row or a column of the other operand, or one value."""
        rng = drawing.random(draw)
        rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 19))
        other = draw(st.sampled_from(((rows, columns), (columns,), (rows, 1), (1,), (1, 1))))
        shapes = draw(st.permutations([(rows, columns), other]))
        quant = quants(rng, 0.5)
        a, b = (Tensor(n, TensorType(s, DType.INT8, quant)) for n, s in zip("ab", shapes, strict=True))
        node = drawing.node_of(attrs(), [a, b], quant)
        return Case(node, tuple(drawing.int8_data(rng, s) for s in shapes))

    return nodes


@st.composite
def average_nodes(draw: st.DrawFn) -> Case:
    """Padding does not count, or there is none; channels beyond one vector; also one extreme value throughout."""
    rng = drawing.random(draw)
    size = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    window = draw(drawing.windows(*size, kernel=4, dilation=1, inside=True))
    x = activation(rng, (draw(st.integers(1, 2)), *size, draw(st.sampled_from((1, 3, 4, 7, 16, 21, 33)))))
    node = drawing.node_of(AvgPool2d(**window, count_include_pad=draw(st.booleans())), [x], x.type.quant)
    data = drawing.int8_data(rng, x.shape)
    if draw(st.booleans()):
        data[...] = draw(st.sampled_from((-128, 127)))
    return Case(node, (data,))


@st.composite
def maximum_pool_nodes(draw: st.DrawFn) -> Case:
    rng = drawing.random(draw)
    size = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    window = draw(drawing.windows(*size, kernel=4, dilation=1, inside=True))
    x = activation(rng, (draw(st.integers(1, 2)), *size, draw(st.sampled_from((1, 3, 4, 7, 16, 21, 33)))))
    node = drawing.node_of(MaxPool2d(**window), [x], x.type.quant)
    return Case(node, (drawing.int8_data(rng, x.shape),))


@st.composite
def softmax_nodes(draw: st.DrawFn) -> Case:
    rng = drawing.random(draw)
    shape = (draw(st.integers(1, 4)), draw(st.one_of(st.integers(1, 40), st.sampled_from((64, 511)))))
    x = Tensor("x", TensorType(shape, DType.INT8, quants(rng, float(2.0 ** rng.uniform(-12, 3.9)))))
    out = QuantParams.per_tensor(OUT_SCALE, OUT_ZERO_POINT)
    data = drawing.int8_data(rng, shape)
    if draw(st.booleans()):
        data[...] = draw(st.sampled_from((-128, 127)))
    return Case(drawing.node_of(Softmax(1), [x], out), (data,))


@st.composite
def pad_nodes(draw: st.DrawFn) -> Case:
    rng = drawing.random(draw)
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    pads = tuple((draw(st.integers(0, 3)), draw(st.integers(0, 3))) for _ in shape)
    x = activation(rng, shape)
    node = drawing.node_of(Pad(pads, value=float(rng.choice([0.0, -1e9, 3.0]))), [x], x.type.quant)
    return Case(node, (drawing.int8_data(rng, shape),))


@st.composite
def permute_nodes(draw: st.DrawFn) -> Case:
    rng = drawing.random(draw)
    shape = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 5, 8, 19)), min_size=2, max_size=5)))
    shape = shape if math.prod(shape) <= 2000 else shape[:3]
    x = activation(rng, shape)
    node = drawing.node_of(Permute(tuple(draw(st.permutations(range(len(shape)))))), [x], x.type.quant)
    return Case(node, (drawing.int8_data(rng, shape),))


@st.composite
def concat_nodes(draw: st.DrawFn) -> Case:
    """One input is constant or comes twice, so that something has to be copied."""
    rng = drawing.random(draw)
    rest = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    axis = draw(st.integers(0, len(rest)))
    quant = quants(rng, 0.5)
    shapes = [(*rest[:axis], draw(st.integers(1, 6)), *rest[axis:]) for _ in range(draw(st.integers(1, 3)))]
    inputs = [Tensor(f"x{i}", TensorType(s, DType.INT8, quant)) for i, s in enumerate(shapes)]
    node = drawing.node_of(Concat(axis), [*inputs, inputs[0]], quant)
    return Case(node, tuple(drawing.int8_data(rng, s) for s in shapes))


BATCHES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((3,), (3,)),
    ((2,), ()),
    ((), (3,)),
    ((2, 3), (2, 3)),
    ((2, 3), (1, 3)),
    ((2, 1), (2, 3)),
)


@st.composite
def matmul_nodes(draw: st.DrawFn) -> Case:
    """Batches that broadcast in either direction; the second matrix constant or not."""
    rng = drawing.random(draw)
    rows, depth, columns = (draw(st.integers(1, top)) for top in (5, 40, 9))
    leading = draw(st.sampled_from(BATCHES))
    shapes = (*leading[0], rows, depth), (*leading[1], depth, columns)
    a, b = (Tensor(n, TensorType(s, DType.INT8, quants(rng, 0.1))) for n, s in zip("ab", shapes, strict=True))
    arrays: list[Array] = [drawing.int8_data(rng, s) for s in shapes]
    if draw(st.booleans()):
        b = Tensor("b", b.type, arrays.pop())
    scale = 0.01 * 70 * 60 * math.sqrt(depth) / float(rng.choice([50, 200]))
    bounds = clamp(rng, scale)
    node = drawing.node_of(MatMul(clamp=bounds), [a, b], output_quant(rng, scale, bounds))
    return Case(node, tuple(np.asarray(x) for x in arrays))


NODES: dict[str, Callable[[], st.SearchStrategy[Case]]] = {
    "arm_convolve_s8": lambda: st.one_of(gemm_nodes(), grouped_nodes(), transpose_conv_nodes()),
    "arm_convolve_1x1_s8_fast": pointwise_nodes,
    "arm_convolve_1x1_s8": pointwise_nodes,
    "arm_convolve_1_x_n_s8": one_row_nodes,
    "arm_depthwise_conv_3x3_s8": depthwise_nodes,
    "arm_depthwise_conv_s8_opt": lambda: st.one_of(depthwise_nodes(), wide_depthwise_nodes()),
    "arm_depthwise_conv_s8": lambda: st.one_of(depthwise_nodes(), grouped_nodes()),
    "arm_transpose_conv_s8": transpose_conv_nodes,
    "arm_fully_connected_s8": linear_nodes,
    "arm_fully_connected_per_channel_s8": linear_nodes,
    "arm_batch_matmul_s8": matmul_nodes,
    "arm_elementwise_add_s8": sum_nodes,
    "arm_elementwise_mul_s8": product_nodes,
    "arm_minimum_s8": extreme_nodes(Minimum),
    "arm_maximum_s8": extreme_nodes(Maximum),
    "arm_avgpool_s8": average_nodes,
    "arm_max_pool_s8": maximum_pool_nodes,
    "arm_softmax_s8": softmax_nodes,
    "arm_pad_s8": pad_nodes,
    "arm_transpose_s8": permute_nodes,
    "arm_concatenation_s8_x": concat_nodes,
    "arm_convolve_s16": lambda: st.one_of(conv2d_nodes(DType.INT16), per_channel_linear_nodes(DType.INT16)),
    "arm_depthwise_conv_s16": lambda: conv2d_nodes(DType.INT16, "depthwise"),
    "arm_fully_connected_s16": lambda: per_channel_linear_nodes(DType.INT16),
    "arm_convolve_s4": lambda: st.one_of(gemm_nodes(), pointwise_nodes()).map(int4),
    "arm_fully_connected_s4": lambda: linear_nodes().map(int4),
    "arm_elementwise_add_s16": lambda: sum_nodes(DType.INT16),
    "arm_elementwise_mul_s16": lambda: product_nodes(DType.INT16),
    "arm_avgpool_s16": lambda: avg_pool2d_nodes(DType.INT16, dilation=1),
    "arm_max_pool_s16": lambda: max_pool2d_nodes(DType.INT16, dilation=1),
}
"""Function → nodes, many of which it takes."""
