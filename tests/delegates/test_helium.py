# SPDX-License-Identifier: Apache-2.0
"""The int8 kernels of cortex_m for Helium: as plain C under sanitizers, and as machine code on an emulated Cortex-M55
by GCC and by clang. Those of recurrent layers are in test_recurrent.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import check_library, check_own
from tests.calls.exact import assert_drawn, assert_kernels
from tests.delegates import elementwise_nodes, test_cortex_m
from tests.delegates.convolution_nodes import conv2d_nodes, slab_nodes
from tests.delegates.elementwise_nodes import clamp, output_quant, quants
from tests.delegates.test_cortex_m import (
    any_depthwise_nodes,
    depthwise_nodes,
    layer,
    linear_nodes,
    only,
    row_nodes,
    with_nibbles,
)
from tests.ops import (
    drawing,
    test_batch_norm,
    test_dequantize,
    test_layer_norm,
    test_matmul,
    test_quantize,
)
from tests.ops.cases import Case
from tests.ops.test_half_even import even, even_too
from tinyet import ops
from tinyet.boards.cpus import Target
from tinyet.delegates import CORTEX_M
from tinyet.delegates.cortex_m import conv2d_mve, depthwise_mve, elementwise_mve
from tinyet.delegates.cortex_m.recurrent import GRU, LSTM, RNN
from tinyet.ir import Attrs, DType, Graph, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import NO_CLAMP
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.layer_norm import LayerNorm
from tinyet.ops.linear import Linear
from tinyet.ops.log_softmax import LITERT, LogSoftmax
from tinyet.ops.matmul import MatMul
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.permute import Permute
from tinyet.ops.prelu import PRelu
from tinyet.ops.shared.addition import Scaling
from tinyet.ops.shared.unary_functions import FunctionName
from tinyet.ops.softmax import Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.unary import Unary
from tinyet.opset import complaints
from tinyet.planning.kernel_selection import select_kernels

MVE = Target("host", frozenset({"dsp", "fpu", "mve"}))

# ---------------------------------------------------------------- drawing


@st.composite
def banded_nodes(draw: st.DrawFn) -> Case:
    """Depthwise, so large that it is computed in bands, the last of which overlaps the one before."""
    rng = drawing.random(draw)
    outs = draw(st.integers(33, 41)), draw(st.sampled_from((20, 31)))
    window, kernel, size = draw(test_cortex_m.windows(outs, st.sampled_from((1, 3)), 1))
    channels = draw(st.integers(2, 3))
    return layer(
        rng, Conv2d(**window, groups=channels, clamp=NO_CLAMP), (1, *size, channels), (channels, *kernel, 1)
    )


@st.composite
def even_row_nodes(draw: st.DrawFn) -> Case:
    """Depthwise, of two channels at a time, rows of whole eights of pixels."""
    rng = drawing.random(draw)
    stride, height = draw(st.sampled_from((1, 2))), draw(st.integers(5, 9))
    attrs = Conv2d(
        stride_h=stride,
        stride_w=stride,
        groups=4,
        pad_top=1,
        pad_bottom=1,
        pad_left=1,
        pad_right=1,
        clamp=NO_CLAMP,
    )
    return layer(rng, attrs, (1, height, draw(st.sampled_from((8, 16, 24))), 4), (4, 3, 3, 1))


def all_depthwise_nodes() -> st.SearchStrategy[Case]:
    few = banded_nodes()  # they take long
    return st.one_of(*5 * [depthwise_nodes()], *6 * [any_depthwise_nodes()], even_row_nodes(), few)


@st.composite
def many_output_nodes(draw: st.DrawFn) -> Case:
    """Sixteen outputs and more at a time, with and without a rest; rows of one part, of parts of the same size, and of
    two sizes; bounds of their own."""
    rng = drawing.random(draw)
    depth = draw(st.one_of(st.sampled_from((8, 112, 128, 144, 256, 272, 400)), st.integers(1, 400)))
    x = draw(st.sampled_from((1, 1, 2))), depth
    return layer(
        rng, Linear(), x, (draw(st.one_of(st.sampled_from((16, 24, 32)), st.integers(16, 40))), depth)
    )


def all_linear_nodes() -> st.SearchStrategy[Case]:
    many = many_output_nodes()
    return st.one_of(linear_nodes(), row_nodes(), many, many, linear_nodes().map(with_nibbles))


@st.composite
def same_nodes(draw: st.DrawFn) -> Case:
    """Sums and differences of one shape, mostly of several vectors; of small values, and of values so far above the
    output's that their factors have one bit less."""
    rng = drawing.random(draw)
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 40))
    scale = float(2.0 ** rng.uniform(-4, 4))
    a, b = (Tensor(n, TensorType(shape, DType.INT8, quants(rng, scale * rng.uniform(0.2, 1)))) for n in "ab")
    bounds = clamp(rng, scale)
    operator = draw(st.sampled_from((Add, Add, Sub)))
    found = output_quant(rng, scale * draw(st.sampled_from((0.4, 1.0))), bounds)
    node = drawing.node_of(operator(clamp=bounds), [a, b], found)
    return Case(node, tuple(drawing.int8_data(rng, shape) for _ in range(2)))


@st.composite
def wide_transposed_convolutions(draw: st.DrawFn) -> Case:
    """Strides as large as the kernel and others, channels in fours, whose windows are not copied, and others; rows of
    whole cells; several images."""
    if draw(st.integers(0, 2)) == 0:
        return draw(test_cortex_m.transposed_nodes())
    rng = drawing.random(draw)
    kernel, stride = draw(st.sampled_from(((2, 2), (3, 2), (4, 2), (3, 1), (1, 2), (5, 3), (3, 3), (2, 4))))
    crop = draw(st.integers(0, min(kernel - 1, 2)))
    size = draw(st.integers(2, 7)), draw(st.integers(4, 13))
    channels, outputs = draw(st.sampled_from((3, 4, 8, 16, 20, 32))), draw(st.integers(1, 9))
    more = -((size[1] - 1) * stride + kernel - 2 * crop) % stride
    attrs = ConvTranspose2d(
        stride_h=draw(st.sampled_from((stride, stride, 1))),
        stride_w=stride,
        pad_top=draw(st.integers(0, crop)),
        pad_bottom=draw(st.integers(0, crop)),
        pad_left=crop,
        pad_right=crop,
        out_pad_w=more,
        clamp=NO_CLAMP,
    )
    shape = draw(st.sampled_from((1, 1, 2))), *size, channels
    return layer(rng, attrs, shape, (outputs, kernel, kernel, channels))


@st.composite
def normalised_nodes(draw: st.DrawFn) -> Case:
    """Rows of one value to several hundred, of one value but for a few, of extremes, and of values close together;
    scales from which epsilon counts much to those where it is nothing."""
    if draw(st.booleans()):
        return draw(test_layer_norm.layer_norm_nodes((DType.INT8,)))
    rng = drawing.random(draw)
    count = draw(st.one_of(st.sampled_from((1, 2, 3, 4, 16, 64, 256, 1000)), st.integers(1, 80)))
    shape = draw(st.integers(1, 4)), count
    x = Tensor("x", TensorType(shape, DType.INT8, quants(rng, float(2.0 ** rng.uniform(-12, 2)))))
    weight = rng.normal(0, 1, count) * draw(st.sampled_from((1.0, 0.1, 10.0)))
    parameters = [
        constant(n, v.astype(np.float32)) for n, v in (("w", weight), ("b", rng.normal(0, 1, count)))
    ]
    out = quants(rng, float(np.abs(weight).max() * 2.0 ** rng.uniform(-8, -3)))
    node = drawing.node_of(
        LayerNorm(1, draw(st.sampled_from((1e-5, 1e-12, 0.1, 0.0)))), [x, *parameters], out
    )
    assume(not complaints(ops.op_of(node), node))
    data = drawing.int8_data(rng, shape)
    kind = draw(st.integers(0, 3))
    if kind:
        data[...] = rng.choice(((-128, 127), (5, 5, 5, 5, 6), (-128, -128, -127))[kind - 1], shape)
    return Case(node, (data,))


@st.composite
def prelu_nodes(draw: st.DrawFn, dtype: DType = DType.INT8) -> Case:
    """A slope for each value, row or column, negative ones and ones above 1 among them; outputs of about the input's
    scale, and of others."""
    rng = drawing.random(draw)
    rows, row = draw(st.integers(1, 4)), draw(st.integers(1, 40))
    shapes = (rows, row), draw(st.sampled_from(((rows, row), (1, row), (1, row), (rows, 1), (1, 1))))
    wide = dtype is DType.INT16

    def quant(scale: float) -> QuantParams:
        return QuantParams.per_tensor(scale / 256, 0) if wide else quants(rng, scale)

    x, slope = (
        Tensor(n, TensorType(shape, dtype, quant(scale)))
        for n, shape, scale in zip("xs", shapes, (0.1, float(2.0 ** rng.uniform(-9, -5))), strict=True)
    )
    out = quant(float(draw(st.sampled_from((0.1, 0.11, 0.05, 0.3)))))
    node = drawing.node_of(PRelu(), [x, slope], out)
    assume(not complaints(ops.op_of(node), node))
    return Case(node, tuple(drawing.integer_data(rng, shape, dtype) for shape in shapes))


@st.composite
def matmul_nodes(draw: st.DrawFn) -> Case:
    """Batches, the second matrix the same for some; depths of whole vectors and others, of one part and of two sizes;
    zero points of 0."""
    if draw(st.booleans()):
        return draw(test_matmul.matmul_nodes(DType.INT8))
    rng = drawing.random(draw)
    depth = draw(st.one_of(st.sampled_from((16, 32, 64, 128, 144, 272)), st.integers(1, 300)))
    rows, columns, batch = draw(st.integers(1, 5)), draw(st.integers(1, 35)), draw(st.integers(1, 3))
    zeros = [int(rng.choice([-128, 127, 0, 0, 5])) for _ in range(2)]
    shapes = (batch, rows, depth), (draw(st.sampled_from((1, batch))), depth, columns)
    a, b = (
        Tensor(n, TensorType(shape, DType.INT8, QuantParams.per_tensor(0.1, zero)))
        for n, shape, zero in zip("ab", shapes, zeros, strict=True)
    )
    scale = 0.01 * 74 * 74 * math.sqrt(depth) / 60 * float(rng.uniform(0.3, 3))
    node = drawing.node_of(MatMul(clamp(rng, scale)), [a, b], quants(rng, scale))
    data = [drawing.int8_data(rng, shape) for shape in shapes]
    if draw(st.integers(0, 4)) == 0:
        for each in data:
            each[...] = rng.choice([-128, 127], each.shape)
    return Case(node, tuple(data))


@st.composite
def rows_nodes(draw: st.DrawFn) -> Case:
    """Two operands, of which one may have values for rows or columns of the other; rows of several vectors, too."""
    case = draw(elementwise_nodes.elementwise_nodes())
    if draw(st.booleans()):
        return case
    rng, node = drawing.random(draw), case.node
    row = draw(st.integers(17, 50))
    inputs = [
        Tensor(t.name, TensorType((*t.shape[:-1], row if t.shape[-1] > 1 else 1), t.dtype, t.type.quant))
        for t in map(node.input, (0, 1))
    ]
    assume(any(t.shape[-1] == row for t in inputs))
    made = drawing.node_of(node.attrs, inputs, node.output.type.quant)
    return Case(made, tuple(drawing.int8_data(rng, t.shape) for t in inputs))


@st.composite
def transposed_nodes(draw: st.DrawFn, dtype: DType = DType.INT8) -> Case:
    """Images whose channels go last, or come first; matrices of one and of several vectors; many rows and columns."""
    rng = drawing.random(draw)
    batch, few, many = draw(st.integers(1, 2)), draw(st.integers(2, 40)), draw(st.integers(1, 60))
    last = draw(st.booleans())
    shape = (batch, few, many) if last else (batch, many, few)
    quant = quants(rng, 0.1) if dtype is DType.INT8 else QuantParams.per_tensor(0.1, 0)
    x = Tensor("x", TensorType(shape, dtype, quant))
    node = drawing.node_of(Permute((0, 2, 1)), [x], x.type.quant)
    return Case(node, (drawing.integer_data(rng, shape, dtype),))


@st.composite
def pooled_nodes(draw: st.DrawFn) -> Case:
    """Windows that lie in the image, and a few across its border; whole vectors of channels and others, near and
    far."""
    rng = drawing.random(draw)
    outs = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    window, kernel, size = draw(
        test_cortex_m.windows(outs, st.sampled_from((1, 2, 2, 3)), draw(st.sampled_from((1, 1, 2))))
    )
    channels = draw(st.one_of(st.sampled_from((8, 16, 16, 32, 40)), st.integers(4, 130)))
    x = test_cortex_m.activation(rng, (draw(st.integers(1, 2)), *size, channels))
    taps: dict[str, Any] = {**window, "kernel_h": kernel[0], "kernel_w": kernel[1]}
    attrs: Attrs = MaxPool2d(**taps)
    if draw(st.booleans()):
        attrs = AvgPool2d(**taps, count_include_pad=draw(st.booleans()), divisor=None)
    data = drawing.int8_data(rng, x.shape)
    if draw(st.integers(0, 3)) == 0:
        data[...] = draw(st.sampled_from((-128, 127)))
    return Case(drawing.node_of(attrs, [x], x.type.quant), (data,))


@cache
def all_pool_nodes() -> st.SearchStrategy[Case]:
    return st.one_of(test_cortex_m.window_nodes(), pooled_nodes(), pooled_nodes())


@st.composite
def softmax_nodes(draw: st.DrawFn) -> Case:
    """As for DSP; rows of one to three values, too, and of so many that their sum has one leading zero left, or that
    each has nothing."""
    if draw(st.integers(0, 2)) > 0:
        return draw(elementwise_nodes.softmax_nodes())
    rng = drawing.random(draw)
    depth = draw(st.sampled_from((1, 2, 3, 300, 1200, 4095)))
    shape = draw(st.integers(1, 2)), depth
    x = Tensor("x", TensorType(shape, DType.INT8, quants(rng, float(2.0 ** rng.uniform(-3, 2)))))
    node = drawing.node_of(Softmax(axis=1), [x], QuantParams.per_tensor(1 / 256, -128))
    data = drawing.int8_data(rng, shape)
    if draw(st.booleans()):
        data[...] = draw(st.sampled_from((-128, 0, 127)))
    return Case(node, (data,))


@st.composite
def scaled_softmax_nodes(draw: st.DrawFn) -> Case:
    """The nodes above, of other output scales: from those of which all but 0 is beyond int8 to those
    of which all is 0."""
    case, rng = draw(softmax_nodes()), drawing.random(draw)
    scale = float(2.0 ** draw(st.one_of(st.integers(-12, -6), st.floats(-12, -6), st.floats(-29.9, 4))))
    node = drawing.node_of(case.node.attrs, [case.node.input(0)], quants(rng, scale))
    assume(not complaints(ops.op_of(node), node))
    return Case(node, case.inputs)


@st.composite
def scaled_log_softmax_nodes(draw: st.DrawFn) -> Case:
    """Of any other output scale; of steps twice those of the input, whose largest value is so far above the others that
    the sum's logarithm is zero and every second output a half."""
    case = draw(softmax_nodes())
    x, scale, data = case.node.input(0), float(2.0 ** draw(st.floats(-10, 5))), case.inputs[0]
    if draw(st.booleans()):
        x, scale = Tensor("x", TensorType(x.shape, DType.INT8, QuantParams.per_tensor(8.0, 0))), 16.0
        data = np.minimum(data, 100).astype(np.int8)
        data[:, 0] = 121
    node = drawing.node_of(LogSoftmax(1), [x], QuantParams.per_tensor(scale, draw(st.integers(-9, 127))))
    assume(not complaints(ops.op_of(node), node))
    return Case(node, (data,))


@st.composite
def log_softmax_nodes(draw: st.DrawFn) -> Case:
    """Of LiteRT's output scale, the nodes above."""
    case, quant = draw(softmax_nodes()), QuantParams.per_tensor(*LITERT)
    return Case(drawing.node_of(LogSoftmax(1), [case.node.input(0)], quant), case.inputs)


@st.composite
def table_nodes(draw: st.DrawFn) -> Case:
    """All values, through a function."""
    rng = drawing.random(draw)
    count = 256 + draw(st.integers(-250, 5))
    x = Tensor("x", TensorType((count,), DType.INT8, quants(rng, float(2.0 ** rng.uniform(-8, -3)))))
    functions: tuple[FunctionName, ...] = ("sigmoid", "tanh", "abs", "hardswish", "exp")
    function = draw(st.sampled_from(functions))
    data = np.resize(np.arange(-128, 128), count).astype(np.int8)
    return Case(
        drawing.node_of(Unary(function), [x], quants(rng, float(2.0 ** rng.uniform(-8, -3)))), (data,)
    )


def all_table_nodes() -> st.SearchStrategy[Case]:
    return st.one_of(table_nodes(), elementwise_nodes.one_operand_nodes())


def bounded_nodes() -> st.SearchStrategy[Case]:
    return st.one_of(elementwise_nodes.one_operand_nodes(), elementwise_nodes.extremum_nodes())


def all_batch_norm_nodes() -> st.SearchStrategy[Case]:
    return st.one_of(elementwise_nodes.batch_norm_nodes(), test_batch_norm.batch_norm_nodes(DType.INT8))


def all_quantize_nodes() -> st.SearchStrategy[Case]:
    """Floats of all kinds, and halves of steps."""
    return st.one_of(test_quantize.quantize_nodes(), test_quantize.quantize_nodes(special=False))


NODES: dict[str, Callable[[], st.SearchStrategy[Case]]] = {
    "tinyet_max_pool2d_s8_mve": all_pool_nodes,
    "tinyet_avg_pool2d_s8_mve": all_pool_nodes,
    "tinyet_conv2d_s8_4x2_mve": conv2d_nodes,
    "tinyet_conv2d_s8_slabs_4x2_mve": slab_nodes,
    "tinyet_conv2d_s8_rne_slabs_4x2_mve": partial(even, slab_nodes),
    "tinyet_depthwise_s8_mve": all_depthwise_nodes,
    "tinyet_linear_s8_1x8_mve": all_linear_nodes,
    "tinyet_linear_s8_4x2_mve": all_linear_nodes,
    "tinyet_conv2d_s8_rne_4x2_mve": partial(even, conv2d_nodes),
    "tinyet_depthwise_s8_rne_mve": partial(even, all_depthwise_nodes),
    "tinyet_linear_s8_rne_1x8_mve": partial(even, all_linear_nodes),
    "tinyet_linear_s8_rne_4x2_mve": partial(even, all_linear_nodes),
    "tinyet_affine_s8_same_mve": partial(even_too, same_nodes),
    "tinyet_transpose_s8_mve": transposed_nodes,
    "tinyet_sum_s8_mve": elementwise_nodes.summed_nodes,
    "tinyet_sum_s8_rne_mve": partial(even, elementwise_nodes.summed_nodes),
    "tinyet_sum_s8_rows_mve": elementwise_nodes.summed_row_nodes,
    "tinyet_softmax_s8_mve": softmax_nodes,
    "tinyet_softmax_scaled_s8_mve": scaled_softmax_nodes,
    "tinyet_log_softmax_s8_mve": log_softmax_nodes,
    "tinyet_log_softmax_scaled_s8_mve": scaled_log_softmax_nodes,
    "tinyet_lut_s8_mve": all_table_nodes,
    "tinyet_resize_bilinear_s8_q4_mve": elementwise_nodes.bilinear_nodes,
    "tinyet_resize_bilinear_s8_q10_mve": elementwise_nodes.bilinear_nodes,
    "tinyet_layer_norm_s8_mve": normalised_nodes,
    "tinyet_prelu_s8_mve": prelu_nodes,
    "tinyet_matmul_s8_mve": matmul_nodes,
    "tinyet_conv_transpose2d_s8_4x2_mve": wide_transposed_convolutions,
    "tinyet_affine_s8_rows_mve": partial(even_too, rows_nodes),
    "tinyet_mul_s8_mve": rows_nodes,
    "tinyet_mul_s8_rne_mve": partial(even, rows_nodes),
    "tinyet_batch_norm_s8_mve": all_batch_norm_nodes,
    "tinyet_quantize_f32_s8_mve": all_quantize_nodes,
    "tinyet_dequantize_s8_f32_mve": test_dequantize.dequantize_nodes,
    "tinyet_maximum_s8_mve": elementwise_nodes.extremum_nodes,
    "tinyet_minimum_s8_mve": elementwise_nodes.extremum_nodes,
    "tinyet_clip_s8_mve": bounded_nodes,
    "tinyet_adaptive_avg_pool2d_s8_mve": partial(elementwise_nodes.adaptive_nodes, DType.INT8),
    "tinyet_copy_runs_mve": elementwise_nodes.run_nodes,
    "tinyet_amax_s8_mve": partial(elementwise_nodes.selected_nodes, Amax, DType.INT8),
    "tinyet_amin_s8_mve": partial(elementwise_nodes.selected_nodes, Amin, DType.INT8),
    "tinyet_argmax_s8_mve": partial(elementwise_nodes.selected_nodes, ArgMax, DType.INT8),
    "tinyet_argmax_s8_columns_mve": partial(elementwise_nodes.selected_nodes, ArgMax, DType.INT8),
}
"""Kernel → strategy."""

MADE = (
    "tinyet_max_pool2d_s8_mve",
    "tinyet_avg_pool2d_s8_mve",
    "tinyet_conv2d_s8_4x2_mve",
    "tinyet_depthwise_s8_mve",
    "tinyet_linear_s8_1x8_mve",
    "tinyet_linear_s8_4x2_mve",
    "tinyet_conv2d_s8_slabs_4x2_mve",
    "tinyet_conv2d_s8_rne_4x2_mve",
    "tinyet_conv2d_s8_rne_slabs_4x2_mve",
    "tinyet_depthwise_s8_rne_mve",
    "tinyet_linear_s8_rne_1x8_mve",
    "tinyet_linear_s8_rne_4x2_mve",
    "tinyet_matmul_s8_mve",
    "tinyet_conv_transpose2d_s8_4x2_mve",
)
"""Those for each call of which C is made."""


# ---------------------------------------------------------------- tests


def takes(symbol: str, case: Case) -> bool:
    kernels = only(symbol).kernels.get(type(case.node.attrs), ())
    return any(kernel.why_not(case.node, MVE) is None for kernel in kernels)


def test_every_kernel_has_nodes() -> None:
    symbols = {k.symbol for kernels in CORTEX_M.kernels.values() for k in kernels if "s16" not in k.dtypes}
    # Those of recurrent layers are in test_recurrent.py.
    elsewhere = {kernel.symbol for kernel in (*LSTM, *GRU, *RNN)} | set(test_cortex_m.NODES)
    assert {s for s in symbols if s.endswith("_mve")} - elsewhere == set(NODES)


@pytest.mark.parametrize("symbol", [symbol for symbol in NODES if symbol not in MADE])
def test_library_on_host(symbol: str) -> None:
    """Plain C in place of the instructions, under ASan and UBSan."""

    @settings(drawing.called, max_examples=20)
    @given(NODES[symbol]())
    def run(case: Case) -> None:
        assume(takes(symbol, case))
        assert_kernels([case], only(symbol), MVE)

    run()


EVEN = tuple(symbol for symbol in MADE if "_rne_" in symbol)
"""In C their sums are those of others."""


@pytest.mark.parametrize(
    "symbols", [*((symbol,) for symbol in MADE if symbol not in EVEN), EVEN], ids=lambda symbols: symbols[0]
)
def test_host(symbols: tuple[str, ...]) -> None:
    lists = drawing.many(st.one_of(*(NODES[symbol]() for symbol in symbols)))
    assert_drawn(
        lists,
        drawing.compiled,
        only(*symbols),
        MVE,
        lambda case: any(takes(symbol, case) for symbol in symbols),
    )


@pytest.mark.emulated
@pytest.mark.parametrize("symbol", [symbol for symbol in NODES if symbol not in MADE])
def test_library_on_the_device(symbol: str) -> None:
    check_library(NODES[symbol](), only(symbol), (board.M55, board.M55_CLANG), examples=12)


@pytest.mark.emulated
@pytest.mark.parametrize(("image", "count"), [(board.M55, 24), (board.M55_CLANG, 8)], ids=str)
def test_on_the_device(image: Image, count: int) -> None:
    check_own({symbol: NODES[symbol] for symbol in MADE}, only, image, count)


# ---------------------------------------------------------------- refusals


def pointwise(scale: float, bias: int = 0, weight: int = 64, relu: bool = False) -> Case:
    """Of one channel and four pixels."""
    x = Tensor("x", TensorType((1, 1, 4, 1), DType.INT8, QuantParams.per_tensor(1.0, 0)))
    weights = constant("w", np.full((1, 1, 1, 1), weight, np.int8), QuantParams.per_tensor(1.0, 0))
    attrs = Conv2d(clamp=(0.0, math.inf) if relu else NO_CLAMP)
    inputs = [x, weights, constant("b", np.array([bias], np.int32))]
    node = drawing.node_of(attrs, inputs, QuantParams.per_tensor(scale, -128 if relu else 0))
    return Case(node, ())


def test_refusals() -> None:
    kernel = conv2d_mve.KERNELS[0]
    assert kernel.why_not(pointwise(64.0).node, MVE) is None
    assert "no Helium" in str(kernel.why_not(pointwise(64.0).node, test_cortex_m.DSP))
    assert kernel.why_not(pointwise(2.01).node, MVE) is None
    assert "one half" in str(kernel.why_not(pointwise(2.0).node, MVE))
    # Whatever its factor, an output that is always the same is a bias.
    assert kernel.why_not(pointwise(1.01, bias=2**20, weight=1).node, MVE) is None
    assert "2**31" in str(kernel.why_not(pointwise(2.0**24, bias=2**31 - 1).node, MVE))


def test_plans_do_not_say_that_layers_are_not_rounded_to_even() -> None:
    node = pointwise(2.0).node
    graph = Graph("g", (node.input(0),), (node.output,), (node,))
    chosen = select_kernels(graph, MVE).candidates[graph.nodes[0]][0]
    assert any("one half" in refusal.reason for refusal in chosen.refusals)
    assert not any("s8_rne" in refusal.reason for refusal in chosen.refusals)


def test_in_place_where_one_band_is_enough() -> None:
    """A plane is a copy of its channel; with several bands the next one would see outputs."""
    found = {}
    for height in (8, 64):
        shape = 1, height, 32, 4
        attrs = Conv2d(groups=4, pad_top=1, pad_bottom=1, pad_left=1, pad_right=1, clamp=NO_CLAMP)
        rng = np.random.default_rng(0)
        node = layer(rng, attrs, shape, (4, 3, 3, 1)).node
        found[height] = depthwise_mve.replaces(node, 0)
    assert found == {8: True, 64: False}


def test_sums_of_scales_far_above_the_output() -> None:
    """Behind a residual block both operands may be rectified, with a scale twice the output's: int32 still has room."""
    rectified = Scaling((0.94, 1.985, 1.0), (-128, -128, -128), 1, (-128, 127))
    found = elementwise_mve.form_of(rectified)
    assert found is not None
    assert found.shift == 5
    assert elementwise_mve.form_of(Scaling((4.0, 4.0, 1.0), (0, 0, 0), 1, (-128, 127))) is None
