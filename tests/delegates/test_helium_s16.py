# SPDX-License-Identifier: Apache-2.0
"""The kernels of cortex_m with int16 activations for Helium: as plain C under sanitizers, and as machine code on an
emulated Cortex-M55 by GCC and by clang."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import check_library, check_own
from tests.calls.exact import assert_drawn, assert_kernels
from tests.delegates import convolution_nodes, elementwise_nodes, test_cortex_m_s16, test_helium
from tests.delegates.elementwise_nodes import pairs_of_shapes, quants
from tests.delegates.test_cortex_m import DSP, only, pointwise_nodes, row_nodes
from tests.delegates.test_cortex_m_s16 import layer, with_int16
from tests.delegates.test_helium import MVE
from tests.ops import (
    drawing,
    test_batch_norm,
    test_dequantize,
    test_gru,
    test_log_bands,
    test_lstm,
    test_matmul,
    test_rnn,
)
from tests.ops.cases import Case
from tinyet import ops
from tinyet.delegates import CORTEX_M
from tinyet.delegates.cortex_m import conv2d_s16_mve, log_bands_mve
from tinyet.ir import Array, Attrs, DType, Node, QuantParams, Shape, Tensor, TensorType, constant
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.clamp import Clamp
from tinyet.ops.matmul import MatMul
from tinyet.ops.mul import Mul
from tinyet.ops.requantize import Requantize
from tinyet.ops.shared.unary_functions import FunctionName
from tinyet.ops.softmax import Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.unary import Unary
from tinyet.opset import complaints

Nodes = Callable[[], st.SearchStrategy[Case]]

# ---------------------------------------------------------------- drawing


@st.composite
def widened(draw: st.DrawFn, nodes: Nodes) -> Case:
    """Layers that are drawn for int8, with int16 activations."""
    return with_int16(draw(nodes()), drawing.random(draw))


def conv2d_nodes() -> st.SearchStrategy[Case]:
    few = widened(convolution_nodes.many_pixel_nodes)
    deep = widened(convolution_nodes.deep_nodes)
    return st.one_of(
        test_cortex_m_s16.gemm_nodes(),
        widened(pointwise_nodes),
        deep,
        deep,
        few,
        widened(convolution_nodes.wide_nodes),
        widened(convolution_nodes.grouped_nodes),
    )


def linear_nodes() -> st.SearchStrategy[Case]:
    many = widened(test_helium.many_output_nodes)
    return st.one_of(test_cortex_m_s16.linear_nodes(), widened(row_nodes), many, many)


def depthwise_nodes() -> st.SearchStrategy[Case]:
    drawn = test_cortex_m_s16.depthwise_nodes(), test_cortex_m_s16.any_depthwise_nodes()
    rows, few = widened(test_helium.even_row_nodes), widened(test_helium.banded_nodes)  # they take long
    return st.one_of(*5 * drawn, rows, few)


@st.composite
def pool_nodes(draw: st.DrawFn) -> Case:
    """Windows in the image and across its border, as they are drawn for int8; of extremes alone, too."""
    case = draw(test_helium.all_pool_nodes())
    rng, shape = drawing.random(draw), case.node.input(0).shape
    x = activation("x", shape, 0.01)
    node = drawing.node_of(case.node.attrs, [x], x.type.quant)
    assume(not complaints(ops.op_of(node), node))
    data = of_all_values(rng, shape)
    if draw(st.integers(0, 3)) == 0:
        data[...] = draw(st.sampled_from((-32768, 32767)))
    return Case(node, (data,))


def activation(name: str, shape: Shape, scale: float) -> Tensor:
    return Tensor(name, TensorType(shape, DType.INT16, QuantParams.per_tensor(scale, 0)))


def of_all_values(rng: np.random.Generator, shape: Shape) -> Array:
    """With both ends of the range, and values near zero."""
    data = drawing.integer_data(rng, shape, DType.INT16)
    near = rng.integers(-9, 10, shape)
    ends = rng.choice([-32768, 32767], shape)
    return np.select([rng.random(shape) < 0.2, rng.random(shape) < 0.2], [near, ends], data).astype(np.int16)


@st.composite
def two_operand_nodes(draw: st.DrawFn) -> Case:
    """Of one shape, or one with values for rows or columns of the other: sums and differences of equal scales and of
    others, the larger first or second; products."""
    rng = drawing.random(draw)
    shapes = draw(pairs_of_shapes())
    operator = draw(st.sampled_from((Add, Sub, Sub, Mul, Mul)))
    scales = [float(2.0 ** rng.uniform(-12, 2)) for _ in range(2)]
    if draw(st.integers(0, 2)) == 0:
        scales[1] = scales[0]
    out = max(scales) * float(2.0 ** rng.uniform(-3, 3))
    if operator is Mul:
        out = scales[0] * scales[1] * float(2.0 ** rng.uniform(1, 17))
    bounds = [(-np.inf, np.inf), (0.0, np.inf), (-900 * out, 5000 * out)][int(rng.integers(3))]
    operands = [
        activation(name, shape, scale) for name, shape, scale in zip("ab", shapes, scales, strict=True)
    ]
    node = drawing.node_of(operator(clamp=bounds), operands, QuantParams.per_tensor(out, 0))
    assume(not complaints(ops.op_of(node), node))
    return Case(node, tuple(of_all_values(rng, shape) for shape in shapes))


@st.composite
def extremum_nodes(draw: st.DrawFn) -> Case:
    """The larger and the lesser of two tensors, or of one and a constant."""
    case = draw(elementwise_nodes.extremum_nodes())
    rng, quant = drawing.random(draw), QuantParams.per_tensor(0.5, 0)
    inputs = [
        constant(t.name, of_all_values(rng, t.shape), quant)
        if t.is_constant
        else activation(t.name, t.shape, 0.5)
        for t in map(case.node.input, (0, 1))
    ]
    node = drawing.node_of(case.node.attrs, inputs, quant)
    return Case(node, tuple(of_all_values(rng, x.shape) for x in case.inputs))


@st.composite
def mixed_nodes(draw: st.DrawFn, shape: Shape) -> Case:
    """From int8 to int16, and back; with bounds and without."""
    rng = drawing.random(draw)
    wide = float(2.0 ** rng.uniform(-12, 2))
    narrow = wide * float(2.0 ** rng.uniform(-12, 20))
    small = Tensor("s", TensorType(shape, DType.INT8, quants(rng, narrow)))
    large = activation("l", shape, wide)
    x, out = (small, large) if draw(st.booleans()) else (large, small)
    low, high = draw(st.sampled_from((-np.inf, 0.0, -70 * wide))), draw(st.sampled_from((np.inf, 90 * wide)))
    attrs: Attrs = Requantize() if draw(st.booleans()) else Clamp(low, high)
    node = Node(attrs, (x,), (Tensor("y", out.type),))
    assume(not complaints(ops.op_of(node), node))
    data = of_all_values(rng, shape) if x is large else drawing.int8_data(rng, shape)
    return Case(node, (data,))


@st.composite
def one_operand_nodes(draw: st.DrawFn) -> Case:
    """Bounds in one scale; other scales, larger and smaller ones."""
    rng = drawing.random(draw)
    shape = draw(st.integers(1, 3)), draw(st.integers(1, 40))
    if draw(st.booleans()):
        return draw(mixed_nodes(shape))
    x = activation("x", shape, float(2.0 ** rng.uniform(-12, 2)))
    out = x.type.scale * float(2.0 ** rng.uniform(-14, 20))
    attrs: Attrs = Requantize()
    if draw(st.integers(0, 2)) > 0:
        out = x.type.scale if draw(st.booleans()) else out
        attrs = Clamp(
            draw(st.sampled_from((-np.inf, 0.0, -700 * out))), draw(st.sampled_from((np.inf, 6000 * out)))
        )
    node = drawing.node_of(attrs, [x], QuantParams.per_tensor(out, 0))
    assume(not complaints(ops.op_of(node), node))
    return Case(node, (of_all_values(rng, shape),))


@st.composite
def table_nodes(draw: st.DrawFn, functions: tuple[FunctionName, ...]) -> Case:
    """Sigmoid and tanh at LiteRT's output scale, arguments beyond their tables, too; others by straight pieces."""
    rng = drawing.random(draw)
    shape = draw(st.integers(1, 3)), draw(st.integers(1, 40))
    function = draw(st.sampled_from(functions))
    x = activation("x", shape, float(2.0 ** draw(st.sampled_from((-11, -12, rng.uniform(-15, -9))))))
    out = 2.0**-15 if function in ("sigmoid", "tanh") else float(2.0 ** rng.uniform(-15, -9))
    node = drawing.node_of(Unary(function), [x], QuantParams.per_tensor(out, 0))
    assume(not complaints(ops.op_of(node), node))
    return Case(node, (of_all_values(rng, shape),))


@st.composite
def as_summed(draw: st.DrawFn, nodes: Nodes) -> Case:
    """Means and sums that are drawn for int8; of equal scales, too, where means of powers of two are halves."""
    case = draw(nodes())
    rng, shape = drawing.random(draw), case.node.input(0).shape
    x = activation("x", shape, 0.003)
    scale = case.node.output.type.scale * float(rng.uniform(0.01, 2))
    out = QuantParams.per_tensor(draw(st.sampled_from((scale, x.type.scale))), 0)
    node = drawing.node_of(case.node.attrs, [x], out)
    assume(not complaints(ops.op_of(node), node))
    return Case(node, (of_all_values(rng, shape),))


@st.composite
def matmul_nodes(draw: st.DrawFn) -> Case:
    """One row or column, odd and even numbers of them; depths of whole eights and others; batches, the second matrix
    the same for some; sums of extremes."""
    if draw(st.booleans()):
        return draw(test_matmul.matmul_nodes(DType.INT16))
    rng = drawing.random(draw)
    depth = draw(st.one_of(st.sampled_from((8, 16, 64, 300)), st.integers(1, 80)))
    rows, columns, batch = draw(st.integers(1, 6)), draw(st.integers(1, 20)), draw(st.integers(1, 3))
    shapes = (batch, rows, depth), (draw(st.sampled_from((1, batch))), depth, columns)
    a, b = (activation(n, shape, 0.01) for n, shape in zip("ab", shapes, strict=True))
    out = 1e-4 * 32768 * float(2.0 ** rng.uniform(-2, 3)) * depth
    bounds = [(-np.inf, np.inf), (0.0, np.inf), (-900 * out, 5000 * out)][int(rng.integers(3))]
    node = drawing.node_of(MatMul(clamp=bounds), [a, b], QuantParams.per_tensor(out, 0))
    assume(not complaints(ops.op_of(node), node))
    return Case(node, tuple(of_all_values(rng, shape) for shape in shapes))


@st.composite
def softmax_nodes(draw: st.DrawFn) -> Case:
    """Rows of whole eights and others, of scales whose differences are shifted to the left and to the right; of values
    close to each other, and of extremes alone."""
    rng = drawing.random(draw)
    depth = draw(st.one_of(st.integers(1, 40), st.sampled_from((64, 301, 4000))))
    shape, tflm = (draw(st.integers(1, 4)), depth), draw(st.booleans())
    x = activation("x", shape, float(2.0 ** rng.uniform(-19, 1.5)))
    node = drawing.node_of(Softmax(1, tflm=tflm), [x], QuantParams.per_tensor(2.0**-15, 0))
    assume(not complaints(ops.op_of(node), node))
    data = of_all_values(rng, shape)
    kind = draw(st.integers(0, 4))
    if kind:
        data[...] = rng.choice(((-32768, 32767), (5, 6), (32700, 32701, 31000), (-9, -9))[kind - 1], shape)
    return Case(node, (data,))


@st.composite
def scaled_softmax_nodes(draw: st.DrawFn) -> Case:
    """The nodes above, of other output scales: from those of which all but 0 is beyond int16 to the largest."""
    case = draw(softmax_nodes())
    scale = float(
        2.0 ** draw(st.one_of(st.integers(-28, -16), st.floats(-19, -14.01), st.floats(-29, -14.01)))
    )
    node = drawing.node_of(case.node.attrs, [case.node.input(0)], QuantParams.per_tensor(scale, 0))
    assume(not complaints(ops.op_of(node), node))
    return Case(node, case.inputs)


def lstm_nodes() -> st.SearchStrategy[Case]:
    """Inputs and units of one eight and several, with and without a rest; four units that are left."""
    sizes = st.sampled_from(((8, 24), (20, 17), (33, 12), (16, 40)))
    return st.one_of(
        test_lstm.lstm_nodes(DType.INT16),
        sizes.flatmap(lambda pair: test_lstm.lstm_nodes(DType.INT16, sizes=pair)),
    )


@st.composite
def batch_norm_nodes(draw: st.DrawFn) -> Case:
    """Channels last, in fours and with a rest, and others; all values of the input."""
    case = draw(test_batch_norm.batch_norm_nodes(DType.INT16))
    rng, node = drawing.random(draw), case.node
    if draw(st.booleans()):
        shape = draw(st.integers(1, 3)), draw(st.integers(1, 20)), draw(st.integers(1, 9))
        axis = draw(st.sampled_from((1, 2, 2)))
        factors = [
            constant(n, rng.uniform(-1, 2, shape[axis]).astype(np.float32) * by)
            for n, by in (("m", 1), ("o", draw(st.sampled_from((1, 30, 100)))))
        ]
        x = activation("x", shape, 0.001)
        node = drawing.node_of(BatchNorm(axis), [x, *factors], QuantParams.per_tensor(0.002, 0))
        assume(not complaints(ops.op_of(node), node))
    return Case(node, (of_all_values(rng, node.input(0).shape),))


@st.composite
def bilinear_nodes(draw: st.DrawFn) -> Case:
    """Images as they are drawn for int8, of any number of channels; of extremes alone, and of pairs whose middle is
    halfway between two outputs."""
    case = draw(elementwise_nodes.bilinear_nodes())
    rng = drawing.random(draw)
    shape = *case.node.input(0).shape[:3], draw(st.integers(1, 11))
    x = activation("x", shape, 0.01)
    data = of_all_values(rng, shape)
    kind = draw(st.integers(0, 2))
    if kind:
        data[...] = rng.choice([-32768, 32767] if kind == 1 else [-2, -1, 0, 1], shape)
    return Case(drawing.node_of(case.node.attrs, [x], x.type.quant), (data,))


def log_bands_nodes() -> st.SearchStrategy[Case]:
    """Whole frames, and such as end within a quarter; each radix beside the first stage, and behind others."""
    sizes = st.sampled_from(test_log_bands.SIZES_OF_VECTORS)
    drawn = sizes.flatmap(lambda pair: test_log_bands.log_bands_nodes(sizes=pair))
    return st.one_of(drawn, drawn, drawn, test_log_bands.quiet_beside_loud())


NODES: dict[str, Nodes] = {
    "tinyet_depthwise_s16_mve": depthwise_nodes,
    "tinyet_conv2d_s16_4x2_mve": conv2d_nodes,
    "tinyet_linear_s16_1x8_mve": linear_nodes,
    "tinyet_linear_s16_4x2_mve": linear_nodes,
    "tinyet_conv2d_s16_slabs_4x2_mve": lambda: widened(convolution_nodes.slab_nodes),
    "tinyet_conv_transpose2d_s16_4x2_mve": lambda: widened(test_helium.wide_transposed_convolutions),
    "tinyet_max_pool2d_s16_mve": pool_nodes,
    "tinyet_avg_pool2d_s16_mve": pool_nodes,
}
"""Kernel → strategy."""
LIBRARY: dict[str, Nodes] = {
    "tinyet_add_s16_mve": two_operand_nodes,
    "tinyet_add_s16_per_row_mve": two_operand_nodes,
    "tinyet_mul_s16_mve": two_operand_nodes,
    "tinyet_maximum_s16_mve": extremum_nodes,
    "tinyet_minimum_s16_mve": extremum_nodes,
    "tinyet_requantize_s16_mve": one_operand_nodes,
    "tinyet_requantize_s16_s8_mve": one_operand_nodes,
    "tinyet_requantize_s8_s16_mve": one_operand_nodes,
    "tinyet_quantize_f32_s16_mve": test_helium.all_quantize_nodes,
    "tinyet_dequantize_s16_f32_mve": test_dequantize.dequantize_nodes,
    "tinyet_clip_s16_mve": lambda: st.one_of(one_operand_nodes(), extremum_nodes()),
    "tinyet_sum_s16_mve": partial(as_summed, elementwise_nodes.summed_nodes),
    "tinyet_sum_s16_rows_mve": partial(as_summed, elementwise_nodes.summed_row_nodes),
    "tinyet_transpose_s16_mve": partial(test_helium.transposed_nodes, DType.INT16),
    "tinyet_prelu_s16_mve": partial(test_helium.prelu_nodes, DType.INT16),
    "tinyet_lut_s16_mve": partial(table_nodes, ("exp", "gelu", "hardswish", "square", "elu", "log")),
    "tinyet_sigmoid_s16_mve": partial(table_nodes, ("sigmoid",)),
    "tinyet_tanh_s16_mve": partial(table_nodes, ("tanh",)),
    "tinyet_matmul_s16_mve": matmul_nodes,
    "tinyet_softmax_s16_mve": softmax_nodes,
    "tinyet_softmax_scaled_s16_mve": scaled_softmax_nodes,
    "tinyet_log_bands_s16_mve": log_bands_nodes,
    "tinyet_adaptive_avg_pool2d_s16_mve": partial(elementwise_nodes.adaptive_nodes, DType.INT16),
    "tinyet_copy_runs_mve": elementwise_nodes.run_nodes,
    "tinyet_amax_s16_mve": partial(elementwise_nodes.selected_nodes, Amax, DType.INT16),
    "tinyet_amin_s16_mve": partial(elementwise_nodes.selected_nodes, Amin, DType.INT16),
    "tinyet_argmax_s16_mve": partial(elementwise_nodes.selected_nodes, ArgMax, DType.INT16),
    "tinyet_argmax_s16_columns_mve": partial(elementwise_nodes.selected_nodes, ArgMax, DType.INT16),
    "tinyet_conv2d_s16_wide_mve": conv2d_nodes,
    "tinyet_linear_s16_wide_mve": linear_nodes,
    "tinyet_resize_bilinear_s16_q8_mve": bilinear_nodes,
    "tinyet_resize_bilinear_s16_q10_mve": bilinear_nodes,
    "tinyet_batch_norm_s16_mve": batch_norm_nodes,
    "tinyet_lstm_s16_mve": lstm_nodes,
    "tinyet_gru_s16_mve": partial(test_gru.gru_nodes, DType.INT16),
    "tinyet_rnn_s16_mve": partial(test_rnn.rnn_nodes, DType.INT16),
}
"""The same of those for whose calls no C is made."""


# ---------------------------------------------------------------- tests


def takes(symbol: str, case: Case) -> bool:
    kernels = only(symbol).kernels.get(type(case.node.attrs), ())
    return any(kernel.why_not(case.node, MVE) is None for kernel in kernels)


def test_every_kernel_has_nodes() -> None:
    found = [kernel for kernels in CORTEX_M.kernels.values() for kernel in kernels]
    assert {k.symbol for k in found if "s16" in k.dtypes and k.symbol.endswith("_mve")} == {*NODES, *LIBRARY}


@pytest.mark.parametrize("symbol", NODES)
def test_host(symbol: str) -> None:
    lists = drawing.many(NODES[symbol]())
    assert_drawn(lists, drawing.compiled, only(symbol), MVE, partial(takes, symbol))


@pytest.mark.parametrize("symbol", LIBRARY)
def test_library_on_host(symbol: str) -> None:
    """Plain C in place of the instructions, under ASan and UBSan."""

    @settings(drawing.called, max_examples=40)
    @given(LIBRARY[symbol]())
    def run(case: Case) -> None:
        assume(takes(symbol, case))
        assert_kernels([case], only(symbol), MVE)

    run()


@pytest.mark.emulated
@pytest.mark.parametrize("symbol", LIBRARY)
def test_library_on_the_device(symbol: str) -> None:
    check_library(LIBRARY[symbol](), only(symbol), (board.M55, board.M55_CLANG), examples=40)


@pytest.mark.emulated
@pytest.mark.parametrize(("image", "count"), [(board.M55, 24), (board.M55_CLANG, 8)], ids=str)
def test_on_the_device(image: Image, count: int) -> None:
    check_own(NODES, only, image, count)


# ---------------------------------------------------------------- refusals


def test_refusals() -> None:
    def refused(depth: int, scale: float, weight: int = 127) -> str | None:
        return conv2d_s16_mve.refuse(layer(np.full((4, depth), weight), scale), MVE)

    assert refused(510, 2.0**9) is None
    assert "32 bits" in str(refused(520, 2.0**9))
    assert "no Helium" in str(conv2d_s16_mve.refuse(layer(np.full((4, 8), 1), 2.0**9), DSP))
    assert "one half" in str(refused(64, 1.0))


@pytest.mark.parametrize(
    ("length", "size", "why"),
    [
        *((512, 400, None), (400, 400, None), (8, 8, None)),
        *((12, 12, "multiple of 8"), (32768, 32768, "multiple of 8"), (512, 401, "quarters")),
        *((512, 120, "quarters"), (512, 402, "quarters"), (400, 398, "quarters")),
    ],
)
def test_spectra_that_are_refused(length: int, size: int, why: str | None) -> None:
    node = test_log_bands.node_of((1,), np.ones(size), np.ones((1, length // 2 + 1)), length, 1.0)
    for target, reason in ((MVE, why), (DSP, "no Helium")):
        found = log_bands_mve.refuse(node, target)
        assert found is None if reason is None else reason in str(found)
