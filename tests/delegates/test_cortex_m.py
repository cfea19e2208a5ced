# SPDX-License-Identifier: Apache-2.0
"""The kernels of cortex_m, as plain C under sanitizers. As machine code: in tests/emulated, functions of the library in
test_operators.py, the others in test_own_functions.py."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.calls.exact import assert_drawn, assert_kernels
from tests.delegates.elementwise_nodes import (
    batch_norm_nodes,
    bilinear_nodes,
    clamp,
    elementwise_nodes,
    extremum_nodes,
    one_operand_nodes,
    output_quant,
    quants,
    softmax_nodes,
)
from tests.delegates.recurrent_nodes import recurrent_nodes
from tests.ops import drawing
from tests.ops.cases import HOST_WITH_DSP, Case, assert_exact
from tests.ops.test_conv2d import conv2d_nodes
from tinyet.boards.cpus import Target
from tinyet.delegates import CORTEX_M, Delegate
from tinyet.delegates.cortex_m import FOR_FLASH, conv2d_s8, conv2d_tiles, conv_transpose2d, resize
from tinyet.ir import Array, Attrs, DType, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import NO_CLAMP
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.sum import Sum

DSP = Target("cortex-m4", frozenset({"dsp"}))
BOARDS = ("mps2_an386", "mps2_an500", "mps2_an505")

# ---------------------------------------------------------------- drawing


def edge_weights(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Uniform, or extremes only, or few that are not zero; now and then a channel of zeros."""
    kind = rng.integers(3)
    if kind == 0:
        values = rng.integers(-127, 128, shape)
    elif kind == 1:
        values = rng.choice([-128, 127, 0], shape)
    else:
        values = np.where(rng.random(shape) < 0.1, rng.integers(-127, 128, shape), 0)
    values[rng.random(shape[0]) < 0.1] = 0
    return values.astype(np.int8)


def edge_scales(rng: np.random.Generator, count: int, typical: float) -> tuple[float, ...]:
    """Around `typical`; powers of two (multipliers of 2**30, exact ties), or just below; some spread wide."""
    powers = 2.0 ** np.round(np.log2(typical * rng.uniform(0.5, 2, count)))
    plain = typical * rng.uniform(0.4, 1.0, count)
    wide = typical * 2.0 ** rng.uniform(-12, 4, count)
    scales = np.select(
        [rng.random(count) < p for p in (0.3, 0.4, 0.05)], [powers, powers * (1 - 2**-24), wide], plain
    )
    return tuple(float(s) for s in scales)


def weighted(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Tensor, Tensor | None, float]:
    """Weights, bias, and an output scale, for an input scale of 1, with which outputs about fill int8."""
    w = edge_weights(rng, shape)
    depth = math.prod(shape[1:])
    spread = 70 * 60 * math.sqrt(depth)
    per_channel = bool(rng.integers(2))
    scales = edge_scales(rng, shape[0] if per_channel else 1, 1 / 64)
    weights = constant("w", w, QuantParams(scales, (0,) * len(scales), 0 if per_channel else None))
    bias = rng.integers(-int(spread), int(spread), shape[0]).astype(np.int32)
    bias[rng.random(shape[0]) < 0.05] = rng.choice([-(2**24), 2**24])
    out = spread / 64 / float(rng.choice([1, 50, 100, 400]))
    # A power of two now and then, so that rescaled sums hit the exact middle between two outputs.
    out = 2.0 ** round(math.log2(out)) if rng.random() < 0.5 else out
    return weights, constant("b", bias) if rng.random() < 0.8 else None, out


def activation(rng: np.random.Generator, shape: tuple[int, ...]) -> Tensor:
    return Tensor("x", TensorType(shape, DType.INT8, quants(rng, 1.0)))


def layer(
    rng: np.random.Generator,
    attrs: Conv2d | ConvTranspose2d | Linear,
    x: tuple[int, ...],
    weights: tuple[int, ...],
) -> Case:
    """A layer of these shapes with a clamp of its own, whose outputs about fill int8."""
    w, bias, scale = weighted(rng, weights)
    bounds = clamp(rng, scale)
    inputs = [activation(rng, x), w, bias]
    node = drawing.node_of(dataclasses.replace(attrs, clamp=bounds), inputs, output_quant(rng, scale, bounds))
    return Case(node, (drawing.int8_data(rng, x),))


@st.composite
def windows(
    draw: st.DrawFn, outs: tuple[int, int], kernel: st.SearchStrategy[int], dilation: int
) -> tuple[dict[str, Any], tuple[int, int], tuple[int, int]]:
    """Attributes of a Window, its kernel, and an input size that gives `outs` output pixels."""
    found: dict[str, int] = {}
    sizes, kernels = [], []
    for letter, sides, out in (("h", ("top", "bottom"), outs[0]), ("w", ("left", "right"), outs[1])):
        step, stride, taps = draw(st.integers(1, dilation)), draw(st.integers(1, 3)), draw(kernel)
        seen = (out - 1) * stride + (taps - 1) * step + 1
        before = draw(st.integers(0, min(3, seen - 1)))
        after = draw(st.integers(0, min(3, seen - 1 - before)))
        found |= {f"pad_{sides[0]}": before, f"pad_{sides[1]}": after}
        found |= {f"stride_{letter}": stride, f"dilation_{letter}": step}
        sizes.append(seen - before - after + draw(st.integers(0, stride - 1)))
        kernels.append(taps)
    return found, (kernels[0], kernels[1]), (sizes[0], sizes[1])


@st.composite
def gemm_nodes(draw: st.DrawFn) -> Case:
    """Convolutions of one group, most of them with four output pixels a row and more."""
    rng = drawing.random(draw)
    outs = draw(st.integers(1, 5)), draw(st.sampled_from((4, 8, 7, 11, 4, 8, 5, 2)))
    window, kernel, size = draw(windows(outs, st.integers(1, 4), draw(st.sampled_from((1, 1, 2)))))
    channels = draw(st.one_of(st.sampled_from((4, 8, 16)), st.integers(1, 24)))
    x, weights = (draw(st.integers(1, 2)), *size, channels), (draw(st.integers(1, 9)), *kernel, channels)
    return layer(rng, Conv2d(**window, clamp=NO_CLAMP), x, weights)


@st.composite
def pointwise_nodes(draw: st.DrawFn) -> Case:
    """Pointwise convolutions of few input channels, and now and then of more than are widened in straight code."""
    rng = drawing.random(draw)
    channels = draw(st.sampled_from((1, 2, 3, 4, 5, 6, 7, 8, 40, 44, 64)))
    x = draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(4, 9)), channels
    return layer(rng, Conv2d(clamp=NO_CLAMP), x, (draw(st.integers(1, 20)), 1, 1, channels))


def two_nodes() -> st.SearchStrategy[Case]:
    return st.one_of(gemm_nodes(), pointwise_nodes())


def with_nibbles(case: Case) -> Case:
    """The same layer with int4 weights; in two of three of -7 and more, as quantizers make them."""
    x, w, *bias = case.node.inputs
    assert w is not None
    narrow = w.array.astype(np.int8) >> 4
    if narrow.sum(dtype=np.int64) % 3:
        narrow = np.maximum(narrow, -7)
    weights = Tensor("w", TensorType(w.shape, DType.INT4, w.type.quant), narrow)
    return Case(case.node.replace(inputs=[x, weights, *bias]), case.inputs)


@st.composite
def nibble_nodes(draw: st.DrawFn) -> Case:
    return with_nibbles(draw(gemm_nodes()))


def or_nibbles(nodes: Callable[[], st.SearchStrategy[Case]]) -> Callable[[], st.SearchStrategy[Case]]:
    """The same layers, some of them with int4 weights: for kernels that take these as bytes and as int16, too."""

    return functools.wraps(nodes)(lambda: st.one_of(nodes(), nodes(), nodes().map(with_nibbles)))


@st.composite
def transposed_nodes(draw: st.DrawFn) -> Case:
    """Decoders' layers, and those with phases of few taps or none, cropped and with rows and columns to spare."""
    rng = drawing.random(draw)
    attrs: dict[str, int] = {}
    sizes, kernels = [], []
    for letter, sides, least in (("h", ("top", "bottom"), 1), ("w", ("left", "right"), 2)):
        kernel, stride = draw(st.integers(1, 5)), draw(st.integers(1, 3))
        size = draw(st.integers(1, 4)) + least
        spare = draw(st.integers(0, stride - 1))
        room = (size - 1) * stride + kernel + spare - least * stride
        before = draw(st.integers(0, max(0, min(kernel, room))))
        after = draw(st.integers(0, max(0, min(kernel, room - before))))
        attrs |= {f"pad_{sides[0]}": before, f"pad_{sides[1]}": after}
        attrs |= {f"stride_{letter}": stride, f"out_pad_{letter}": spare}
        sizes.append(size)
        kernels.append(kernel)
    channels = draw(st.one_of(st.sampled_from((4, 8, 16)), st.integers(1, 24)))
    x, weights = (draw(st.integers(1, 2)), *sizes, channels), (draw(st.integers(1, 9)), *kernels, channels)
    return layer(rng, ConvTranspose2d(**attrs, clamp=NO_CLAMP), x, weights)


@st.composite
def winograd_nodes(draw: st.DrawFn) -> Case:
    """3x3 of stride 1 with output tiles that fit, that overlap, and whose pixels are all padding; few and many
    channels, more than are multiplied in straight code."""
    rng = drawing.random(draw)
    window: dict[str, Any] = {}
    sizes = []
    for before, after in (("top", "bottom"), ("left", "right")):
        out = draw(st.sampled_from((2, 3, 4, 5, 6, 8, 11, 17)))
        pads = draw(st.integers(0, min(5, out + 1))), draw(st.integers(0, min(2, out + 1)))
        pads = pads if sum(pads) <= out + 1 else (0, 0)
        window |= {f"pad_{before}": pads[0], f"pad_{after}": pads[1]}
        sizes.append(out + 2 - sum(pads))
    channels = draw(st.one_of(st.sampled_from((4, 8, 16)), st.integers(1, 24), st.sampled_from((68, 132))))
    x, weights = (draw(st.integers(1, 2)), *sizes, channels), (draw(st.integers(1, 5)), 3, 3, channels)
    return layer(rng, Conv2d(**window, clamp=NO_CLAMP), x, weights)


@st.composite
def depthwise_nodes(draw: st.DrawFn, *, nibbles: bool = True) -> Case:
    """3x3 with a stride of 1 or 2 along at least one axis; now and then large enough for several tiles, or of int4."""
    rng = drawing.random(draw)
    largest = draw(st.sampled_from((5, 9, 9, 30)))
    outs = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    window, kernel, size = draw(windows(outs, st.just(3), draw(st.sampled_from((1, 1, 2)))))
    channels = draw(st.integers(2, 9))
    x = draw(st.integers(1, 2)), *size, channels
    case = layer(rng, Conv2d(**window, groups=channels, clamp=NO_CLAMP), x, (channels, *kernel, 1))
    return with_nibbles(case) if nibbles and draw(st.integers(0, 3)) == 0 else case


@st.composite
def any_depthwise_nodes(draw: st.DrawFn, *, nibbles: bool = True) -> Case:
    """Kernels along both axes and along one, dilated further than they are wide, with several outputs a channel; also
    of int4."""
    rng = drawing.random(draw)
    largest = draw(st.sampled_from((3, 6, 12)))
    outs = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    taps = draw(st.sampled_from((st.integers(1, 5), st.just(3), st.sampled_from((1, 9, 20)))))
    window, kernel, size = draw(windows(outs, taps, draw(st.sampled_from((1, 2, 5)))))
    channels, multiplier = draw(st.integers(2, 9)), draw(st.sampled_from((1, 1, 2, 3)))
    x, weights = (draw(st.integers(1, 2)), *size, channels), (channels * multiplier, *kernel, 1)
    case = layer(rng, Conv2d(**window, groups=channels, clamp=NO_CLAMP), x, weights)
    return with_nibbles(case) if nibbles and draw(st.integers(0, 3)) == 0 else case


@st.composite
def linear_nodes(draw: st.DrawFn) -> Case:
    """One to nine rows."""
    rng = drawing.random(draw)
    depth = draw(st.one_of(st.sampled_from((16, 64)), st.integers(1, 90)))
    x = draw(st.sampled_from((1, 1, 2, 5, 9))), depth
    return layer(rng, Linear(), x, (draw(st.integers(1, 11)), depth))


@st.composite
def row_nodes(draw: st.DrawFn) -> Case:
    """As quantizers make them: weights of -127 … 127, all of int8 used, or ReLU above its lower end. Depths of
    no and of several turns of the loops, and numbers of outputs with and without a rest."""
    rng = drawing.random(draw)
    depth = draw(st.one_of(st.sampled_from((8, 64, 72, 144, 320)), st.integers(1, 400)))
    count, rows = draw(st.integers(1, 13)), draw(st.sampled_from((1, 1, 1, 2, 5)))
    values = rng.integers(-127, 128, (count, depth)) * (rng.random((count, 1)) < 0.95)
    scale = 70 * 60 * math.sqrt(depth) / 64 / float(rng.choice([1, 50, 100]))
    scales = np.minimum(edge_scales(rng, count, 1 / 64), scale / 20)
    weights = constant("w", values.astype(np.int8), QuantParams(tuple(scales.tolist()), (0,) * count, 0))
    bias = constant("b", rng.integers(-(2**15), 2**15, count).astype(np.int32))
    relu = bool(rng.integers(2))
    quant = QuantParams.per_tensor(scale, -128) if relu else quants(rng, scale)
    made = Linear((0.0, math.inf) if relu else NO_CLAMP)
    node = drawing.node_of(made, [activation(rng, (rows, depth)), weights, bias], quant)
    return Case(node, (drawing.int8_data(rng, (rows, depth)),))


def many_row_nodes() -> st.SearchStrategy[Case]:
    """Several rows, which are pixels: of any weights, and as quantizers make them."""
    return st.one_of(linear_nodes(), row_nodes()).filter(lambda case: case.node.output.shape[0] > 1)


@st.composite
def nibble_linear_nodes(draw: st.DrawFn) -> Case:
    """Few inputs, and so many that sums of digits have 64 bits."""
    if draw(st.integers(0, 3)) > 0:
        return with_nibbles(draw(st.one_of(linear_nodes(), row_nodes())))
    x = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((500, 517, 1040, 2500)))
    return with_nibbles(layer(drawing.random(draw), Linear(), x, (draw(st.integers(1, 9)), x[1])))


@st.composite
def pool_nodes(draw: st.DrawFn) -> Case:
    """Averages, means and sums over whole images, also of one extreme value throughout."""
    rng = drawing.random(draw)
    large = st.sampled_from(((16, 16), (31, 8), (31, 16), (23, 33)))  # around what is summed in parts
    height, width = draw(st.one_of(st.tuples(st.integers(1, 15), st.integers(1, 17)), large))
    x = activation(rng, (draw(st.integers(1, 2)), height, width, draw(st.integers(4, 11))))
    kind = draw(st.integers(0, 2))
    if kind == 0:
        divisor = draw(st.sampled_from((None, None, 7)))
        node = drawing.node_of(AvgPool2d(kernel_h=height, kernel_w=width, divisor=divisor), [x], x.type.quant)
    elif kind == 1:
        node = drawing.node_of(Mean((1, 2), draw(st.booleans())), [x], quants(rng, 0.7))
    else:
        node = drawing.node_of(Sum((1, 2), draw(st.booleans())), [x], quants(rng, 0.7 * height * width))
    data = drawing.int8_data(rng, x.shape)
    if draw(st.booleans()):
        data[...] = draw(st.sampled_from((-128, 127)))
    return Case(node, (data,))


@st.composite
def window_nodes(draw: st.DrawFn) -> Case:
    """Pools with sliding windows, small and large, in the image, across its border and, for maxima, outside."""
    rng = drawing.random(draw)
    x = activation(rng, (*draw(drawing.images), draw(st.integers(4, 11))))
    largest = draw(st.booleans())
    kernel = draw(st.sampled_from((3, 3, 6)))
    _, height, width, _ = x.shape
    window = draw(drawing.windows(height, width, kernel=kernel, dilation=2, inside=not largest))
    attrs: Attrs = MaxPool2d(**window)
    if not largest:
        divisor = draw(st.sampled_from((None, None, 1, 40, 1000)))
        attrs = AvgPool2d(**window, count_include_pad=draw(st.booleans()), divisor=divisor)
    data = drawing.int8_data(rng, x.shape)
    if draw(st.booleans()):
        data[...] = draw(st.sampled_from((-128, 127)))
    return Case(drawing.node_of(attrs, [x], x.type.quant), (data,))


NODES = {
    "tinyet_conv2d_s8_packed_3x2_dsp": gemm_nodes,
    "tinyet_conv2d_s8_w4_2x4_dsp": nibble_nodes,
    "tinyet_conv2d_s8_w16_im2col_2x2_dsp": or_nibbles(two_nodes),
    "tinyet_conv2d_s8_packed_2x4_dsp": or_nibbles(two_nodes),
    "tinyet_conv2d_s8_w16_im2col_2x2_windows_dsp": or_nibbles(gemm_nodes),
    "tinyet_conv2d_s8_packed_2x4_windows_dsp": or_nibbles(gemm_nodes),
    "tinyet_conv2d_s8_packed_4x2_dsp": or_nibbles(two_nodes),
    "tinyet_conv2d_s8_packed_2x4_short_dsp": or_nibbles(two_nodes),
    "tinyet_conv2d_s8_packed_2x4_ram_dsp": or_nibbles(two_nodes),
    "tinyet_conv2d_1x1_s8_w16_k8_dsp": or_nibbles(pointwise_nodes),
    "tinyet_conv2d_s8_w16_winograd_f2x2_dsp": or_nibbles(winograd_nodes),
    "tinyet_conv2d_s8_winograd_f2x2_dsp": or_nibbles(winograd_nodes),
    "tinyet_conv2d_s8_winograd_f4x4_dsp": or_nibbles(winograd_nodes),
    "tinyet_conv2d_s8_w16_winograd_f4x4_dsp": or_nibbles(winograd_nodes),
    "tinyet_conv_transpose2d_s8_w16_polyphase_2x2_dsp": transposed_nodes,
    "tinyet_conv_transpose2d_s8_polyphase_2x4_dsp": transposed_nodes,
    "tinyet_conv_transpose2d_s8_polyphase_2x4_short_dsp": transposed_nodes,
    "tinyet_conv_transpose2d_s8_polyphase_4x2_dsp": transposed_nodes,
    "tinyet_depthwise_s8_chw_3x3_dsp": depthwise_nodes,
    "tinyet_depthwise_s8_w16_chw_3x3_dsp": depthwise_nodes,
    "tinyet_depthwise_s8_chw_dsp": any_depthwise_nodes,
    "tinyet_linear_s8_packed_1x4_dsp": or_nibbles(row_nodes),
    "tinyet_linear_s8_packed_1x4_k160_dsp": or_nibbles(row_nodes),
    "tinyet_linear_s8_w16_1x4_dsp": or_nibbles(row_nodes),
    "tinyet_linear_s8_1x4_dsp": linear_nodes,
    "tinyet_linear_s8_packed_4x2_dsp": or_nibbles(many_row_nodes),
    "tinyet_linear_s8_packed_2x4_dsp": or_nibbles(many_row_nodes),
    "tinyet_linear_s8_w16_2x2_dsp": or_nibbles(many_row_nodes),
    "tinyet_affine_s8_same_dsp": elementwise_nodes,
    "tinyet_affine_s8_per_row_dsp": elementwise_nodes,
    "tinyet_affine_s8_per_column_dsp": elementwise_nodes,
    "tinyet_affine_s8_unary_dsp": one_operand_nodes,
    "tinyet_mul_s8_same_dsp": elementwise_nodes,
    "tinyet_mul_s8_per_row_dsp": elementwise_nodes,
    "tinyet_mul_s8_per_column_dsp": elementwise_nodes,
    "tinyet_maximum_s8_same_dsp": extremum_nodes,
    "tinyet_minimum_s8_same_dsp": extremum_nodes,
    "tinyet_affine_s8_channels_last_dsp": batch_norm_nodes,
    "tinyet_affine_s8_channels_first_dsp": batch_norm_nodes,
    "tinyet_clip_s8_dsp": one_operand_nodes,
    "tinyet_resize_bilinear_s8_q4_dsp": bilinear_nodes,
    "tinyet_resize_bilinear_s8_q10_dsp": bilinear_nodes,
    "tinyet_softmax_s8_dsp": softmax_nodes,
    "tinyet_linear_s8_w4_1x4_dsp": nibble_linear_nodes,
    "tinyet_linear_s8_w4_2x4_dsp": nibble_linear_nodes,
    "tinyet_max_pool2d_s8_dsp": window_nodes,
    "tinyet_avg_pool2d_s8_dsp": window_nodes,
    "tinyet_average_s8_dsp": pool_nodes,
    "tinyet_sum_s8_dsp": pool_nodes,
    "tinyet_gru_s8_dsp": recurrent_nodes,
    "tinyet_lstm_s8_dsp": recurrent_nodes,
    "tinyet_lstm_projected_s8_dsp": recurrent_nodes,
    "tinyet_lstm_s8_lut_dsp": recurrent_nodes,
    "tinyet_rnn_s8_dsp": recurrent_nodes,
}
"""Kernel → strategy."""

COMPETING = (
    *conv2d_s8.KERNELS,
    *conv2d_tiles.KERNELS,
    *FOR_FLASH,
    *conv_transpose2d.KERNELS,
    *resize.KERNELS,
)
ALONE = [k.symbol for k in COMPETING]
"""Kernels for the same nodes: which of them is chosen is a matter of what they cost."""

TOGETHER = (
    *(elementwise_nodes, extremum_nodes, one_operand_nodes, batch_norm_nodes),
    *(pool_nodes, window_nodes, recurrent_nodes),
)
"""Strategies whose kernels do not compete for nodes: they are tested together."""

GROUPS = [
    *((symbol,) for symbol, nodes in NODES.items() if nodes not in TOGETHER),
    *(tuple(symbol for symbol, found in NODES.items() if found is nodes) for nodes in TOGETHER),
]


# ---------------------------------------------------------------- tests


def only(*symbols: str) -> Delegate:
    """The delegate without its other kernels."""
    by_op = {op: tuple(k for k in kernels if k.symbol in symbols) for op, kernels in CORTEX_M.kernels.items()}
    return Delegate("only", {op: kernels for op, kernels in by_op.items() if kernels})


def takes(delegate: Delegate, case: Case) -> bool:
    kernels = delegate.kernels.get(type(case.node.attrs), ())
    return any(kernel.why_not(case.node, DSP) is None for kernel in kernels)


def test_every_kernel_has_nodes() -> None:
    """Those for int16 activations are in test_cortex_m_s16.py, those for Helium in test_helium.py and
    test_recurrent.py."""
    all_kernels = [k for kernels in CORTEX_M.kernels.values() for k in kernels if k.dtypes != "s16"]
    symbols = {kernel.symbol for kernel in all_kernels}
    assert {s for s in symbols if not s.endswith("_mve")} == set(NODES)


HELPED = {
    "tinyet_conv2d_s8_winograd_f4x4_dsp",
    *(symbol for symbol, nodes in NODES.items() if nodes is recurrent_nodes),
}
"""Kernels for whose calls C is made, and that call a function of the library."""
LIBRARY = {
    k.symbol for kernels in CORTEX_M.kernels.values() for k in kernels if k.sources and k.symbol in NODES
} - HELPED
"""Kernels that are functions of the library; for each call of the others C is made."""


@pytest.mark.parametrize("symbols", [s for s in GROUPS if LIBRARY & {*s}], ids=lambda symbols: symbols[0])
def test_library_on_host(symbols: tuple[str, ...]) -> None:
    """Plain C in place of the instructions, under ASan and UBSan; also kernels that would not be chosen."""
    alone = only(*(LIBRARY & {*symbols}))

    @drawing.called
    @given(NODES[symbols[0]]())
    def run(case: Case) -> None:
        assume(takes(alone, case))
        assert_kernels([case], alone, HOST_WITH_DSP)

    run()


@pytest.mark.parametrize("symbols", [s for s in GROUPS if {*s} - LIBRARY], ids=lambda symbols: symbols[0])
def test_host(symbols: tuple[str, ...]) -> None:
    """Those that are made for each call."""
    alone = only(*({*symbols} - LIBRARY))

    drawn = drawing.emulated if symbols[0] in ALONE else drawing.compiled
    lists = drawing.many(NODES[symbols[0]]())
    assert_drawn(lists, drawn, alone, HOST_WITH_DSP, functools.partial(takes, alone))


def test_four_pixels_that_begin_before_the_rows_in_scratch() -> None:
    """Of nine pixels the last four begin in the row before the one whose rows were copied last."""
    alone = only("tinyet_conv2d_s8_packed_4x2_dsp")
    attrs = Conv2d(pad_top=1, pad_bottom=1, pad_left=1, pad_right=1)
    drawn = (layer(np.random.default_rng(seed), attrs, (1, 3, 3, 40), (4, 3, 3, 40)) for seed in range(20))
    cases = [case for case in drawn if takes(alone, case)]
    assert cases
    assert_kernels(cases[:3], alone, HOST_WITH_DSP)


def test_host_conv2d_like_portable() -> None:
    """The nodes that the portable kernels are tested with; what the delegate refuses, they take."""

    @drawing.compiled
    @given(drawing.many(conv2d_nodes(DType.INT8)))
    def run(cases: list[Case]) -> None:
        assert_exact(cases, delegates=(CORTEX_M,))

    run()


def test_kernels_for_flash_are_never_first() -> None:
    """What they take, a kernel before them takes, too."""

    @drawing.quick
    @given(st.one_of(two_nodes(), winograd_nodes(), linear_nodes(), row_nodes()))
    def run(case: Case) -> None:
        kernels = [k for k in CORTEX_M.kernels[type(case.node.attrs)] if k.why_not(case.node, DSP) is None]
        assert not kernels or kernels[0] not in FOR_FLASH

    run()


def test_two_weights_in_an_int16() -> None:
    """What the shared convolution refuses, and the last that it takes."""

    def reason(a: int, b: int, bias: int = 0, scale: float = 64.0, pixels: int = 3) -> str | None:
        w = np.array([a, b], np.int8).reshape(2, 1, 1, 1)
        weights = constant("w", w, QuantParams.per_tensor(1.0, 0))
        inputs = [
            Tensor("x", TensorType((1, 1, pixels, 1), DType.INT8, QuantParams.per_tensor(1.0, 0))),
            weights,
            constant("b", np.array([bias, 0], np.int32)),
        ]
        out = QuantParams.per_tensor(scale, -128)
        return conv2d_s8.refuse(drawing.node_of(Conv2d(clamp=(0.0, math.inf)), inputs, out), DSP)

    assert reason(-1, -127) is None
    assert reason(1, -128) is None
    assert "-128" in str(reason(-1, -128))
    # Sums around the middle between two outputs, just below 2**23 and above.
    assert reason(127, 1, bias=255 * 2**15, scale=2.0**16) is None
    assert "leaves int32" in str(reason(127, 1, bias=129 * 2**16, scale=2.0**17))
    assert "needs 3" in str(reason(1, 1, pixels=2))
