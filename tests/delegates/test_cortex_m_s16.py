# SPDX-License-Identifier: Apache-2.0
"""The kernels of cortex_m for int16 activations, as plain C under sanitizers. As machine code:
tests/emulated/test_own_functions.py. Those for Helium are in test_helium_s16.py."""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.calls.exact import assert_drawn, assert_kernels
from tests.delegates import test_cortex_m as s8
from tests.ops import drawing
from tests.ops.cases import HOST_WITH_DSP, Case
from tinyet import ops
from tinyet.delegates import CORTEX_M
from tinyet.delegates.cortex_m import conv2d, conv2d_s16, rounding_s16
from tinyet.ir import Array, DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import NO_CLAMP, Int64, requantize_64
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.ops.shared.integers import sum_range
from tinyet.opset import complaints

# ---------------------------------------------------------------- drawing


def with_int16(case: Case, rng: np.random.Generator) -> Case:
    """The same layer with int16 activations of the same range, where that is a valid node."""
    node = widened_node(case.node)
    assume(not complaints(ops.op_of(node), node))
    return Case(node, (drawing.integer_data(rng, node.input(0).shape, DType.INT16),))


def widened_node(of: Node) -> Node:
    """With int16 activations of the same range: sums of 256 times the size, with steps as much finer."""
    x, w, bias = of.inputs
    assert x is not None
    assert w is not None
    inputs = [
        Tensor("x", TensorType(x.shape, DType.INT16, QuantParams.per_tensor(1.0, 0))),
        w,
        None if bias is None else constant("b", bias.array.astype(np.int64) << 8),
    ]
    quant = QuantParams.per_tensor(of.output.type.scale, 0)
    output = Tensor("y", TensorType(of.output.shape, DType.INT16, quant))
    return of.replace(inputs=inputs, outputs=[output])


def of_extremes(case: Case, rng: np.random.Generator) -> Case:
    """The same with the largest weights of one sign and the largest inputs of one: sums as large as can be."""
    x, w, *bias = case.node.inputs
    assert w is not None
    array = np.where(rng.random(w.shape) < 0.99, rng.choice([-128, 127]), 0).astype(np.int8)
    # Full-scale inputs times full-scale weights of this depth are about the largest output.
    scale = 127 * array[0].size * max(w.type.quant.scale if w.type.quant else (1.0,)) * rng.uniform(0.5, 2)
    out = TensorType(case.node.output.shape, DType.INT16, QuantParams.per_tensor(scale, 0))
    inputs = [x, constant("w", array, w.type.quant), *bias]
    node = case.node.replace(inputs=inputs, outputs=[Tensor("y", out)])
    assume(not complaints(ops.op_of(node), node))
    data = np.where(rng.random(case.inputs[0].shape) < 0.99, rng.choice([-32768, 32767]), 1)
    return Case(node, (data.astype(np.int16),))


@st.composite
def gemm_nodes(draw: st.DrawFn) -> Case:
    """As in int8, and now and then with more channels than 32 bits hold sums of."""
    rng = drawing.random(draw)
    if draw(st.integers(0, 3)) > 0:
        return with_int16(draw(s8.gemm_nodes()), rng)
    channels, kernel = draw(
        st.sampled_from(((516, 1), (520, 1), (1032, 1), (60, 3), (120, 3), (230, 3), (1030, 1)))
    )
    x = 1, kernel, 3 + kernel, channels
    case = s8.layer(rng, Conv2d(), x, (draw(st.integers(1, 3)), kernel, kernel, channels))
    wide = with_int16(case, rng)
    return of_extremes(wide, rng) if draw(st.booleans()) else wide


@st.composite
def linear_nodes(draw: st.DrawFn) -> Case:
    """As in int8, and now and then deeper than 32 bits hold sums of."""
    rng = drawing.random(draw)
    kind = draw(st.integers(0, 3))
    if kind == 0:
        x = draw(st.sampled_from((1, 2, 5))), draw(st.sampled_from((513, 516, 600, 1029, 1537, 2500)))
        wide = with_int16(s8.layer(rng, Linear(), x, (draw(st.integers(1, 9)), x[1])), rng)
        return of_extremes(wide, rng) if draw(st.booleans()) else wide
    return with_int16(draw(s8.linear_nodes() if kind == 1 else s8.row_nodes()), rng)


def with_zeros(case: Case) -> Case:
    """The same with one channel of zeros and the largest bias, which no input changes."""
    x, w, bias = case.node.inputs
    if bias is None or w is None:
        return case
    array, biases = w.array.copy(), bias.array.copy()
    array[-1], biases[-1] = 0, 2**31 - 1
    inputs = [x, constant("w", array, w.type.quant), constant("b", biases)]
    node = case.node.replace(inputs=inputs)
    assume(not complaints(ops.op_of(node), node))
    return Case(node, case.inputs)


@st.composite
def depthwise_nodes(draw: st.DrawFn) -> Case:
    case = with_int16(draw(s8.depthwise_nodes(nibbles=False)), drawing.random(draw))
    return with_zeros(case) if draw(st.integers(0, 5)) == 0 else case


@st.composite
def any_depthwise_nodes(draw: st.DrawFn) -> Case:
    case = with_int16(draw(s8.any_depthwise_nodes(nibbles=False)), drawing.random(draw))
    return with_zeros(case) if draw(st.integers(0, 5)) == 0 else case


NODES = {
    "tinyet_depthwise_s16_chw_3x3_dsp": depthwise_nodes,
    "tinyet_depthwise_s16_chw_dsp": any_depthwise_nodes,
    "tinyet_linear_s16_1x4_dsp": linear_nodes,
    "tinyet_linear_s16_w16_1x4_dsp": linear_nodes,
    "tinyet_linear_s16_4x2_dsp": linear_nodes,
    "tinyet_linear_s16_w16_4x2_dsp": linear_nodes,
    "tinyet_conv2d_s16_direct_4x2_dsp": gemm_nodes,
    "tinyet_conv2d_s16_im2col_4x2_dsp": gemm_nodes,
    "tinyet_conv2d_s16_w16_direct_4x2_dsp": gemm_nodes,
    "tinyet_conv2d_s16_w16_im2col_4x2_dsp": gemm_nodes,
}
"""Kernel → strategy."""


# ---------------------------------------------------------------- tests


def test_every_kernel_has_nodes() -> None:
    all_kernels = [kernel for kernels in CORTEX_M.kernels.values() for kernel in kernels]
    symbols = {kernel.symbol for kernel in all_kernels if kernel.dtypes == "s16"}
    assert {symbol for symbol in symbols if not symbol.endswith("_mve")} == set(NODES)


@pytest.mark.parametrize("symbol", NODES)
def test_host(symbol: str) -> None:
    """Plain C in place of the instructions, under ASan and UBSan."""
    alone = s8.only(symbol)
    lists = drawing.many(NODES[symbol]())
    assert_drawn(lists, drawing.emulated, alone, HOST_WITH_DSP, partial(s8.takes, alone))


# ---------------------------------------------------------------- exactness


def rounded(r: rounding_s16.Rounding16, sums: Int64) -> Int64:
    """tinyet_round_s16_dsp in Python: (sums, channels) → outputs. Fails where a step would leave int32."""
    upper = sums * r.multiplier + (2**31 if r.exponent == 0 else 0) >> 32
    upper += 1 << (r.exponent - 1) if r.exponent else 0
    assert np.all(np.abs(upper) < 2**31)
    return np.asarray(np.clip(upper >> r.exponent, r.low, r.high), np.int64)


@drawing.quick
@given(st.integers(0, 2**32 - 1), st.integers(0, 16), st.integers(0, 16), st.booleans())
def test_rounding_is_requantization(seed: int, least: int, spread: int, relu: bool) -> None:
    """At every boundary between two outputs, for multipliers at both ends of their range and factors as far apart as
    they may be."""
    rng = np.random.default_rng(seed)
    count, depth = 12, int(rng.choice([1, 9, 64, 500]))
    weights = rng.integers(-127, 128, (count, depth)).astype(np.int64)
    bias = rng.integers(-(2**20), 2**20, count)
    ends = [2**30, 2**30 + 1, 2**30 + 2**15, 2**31 - 2**15 - 1, 2**31 - 1, int(rng.integers(2**30, 2**31))]
    multiplier = rng.choice(ends, count)
    shift = -(1 + least + rng.integers(0, spread + 1, count))
    clamp = (0 if relu else -32768, 32767)
    r = rounding_s16.choose(weights, bias, multiplier, shift, clamp)
    assert r.refusal is None
    smallest, largest = sum_range(weights, bias, DType.INT16.range)
    short = np.minimum((multiplier + 2**15) >> 16, 32767)
    for c in range(count):
        q = np.concatenate([[-32769, -32768, -1, 0, 1, 32766, 32767], rng.integers(-32768, 32768, 60)])
        total = 15 - int(shift[c])
        first = ((q << total) - (1 << (total - 1))) // int(short[c])  # around the least sum that gives q
        sums = np.concatenate([(first[:, None] + np.arange(-2, 3)).ravel(), np.arange(-20, 20)])
        sums = np.append(sums[(sums >= smallest[c]) & (sums <= largest[c])], [smallest[c], largest[c]])
        want = np.clip(requantize_64(sums, multiplier[c], shift[c]), *clamp)
        one = dataclasses.replace(r, multiplier=r.multiplier[c])
        live = bool(r.weights[c].any())
        np.testing.assert_array_equal(rounded(one, sums if live else np.full_like(sums, r.bias[c])), want)


def layer(weights: Array, scale: float, bias: int = 0) -> Node:
    """A 1x1 convolution of four pixels, of weights (out, in)."""
    out_c, in_c = weights.shape
    inputs = [
        Tensor("x", TensorType((1, 1, 4, in_c), DType.INT16, QuantParams.per_tensor(1.0, 0))),
        constant("w", weights.reshape(out_c, 1, 1, in_c).astype(np.int8), QuantParams.per_tensor(1.0, 0)),
        constant("b", np.full(out_c, bias, np.int64)),
    ]
    return drawing.node_of(Conv2d(clamp=NO_CLAMP), inputs, QuantParams.per_tensor(scale, 0))


@pytest.mark.parametrize("clamp", [(40, math.inf), (-math.inf, -40), (40, 4000)], ids=str)
def test_clamps_of_one_sign(clamp: tuple[float, float]) -> None:
    """Which no tile has: C clamps what it leaves, of an odd number of channels, too. In steps of the output."""
    rng, scale = np.random.default_rng(3), 2.0**9
    plain = layer(rng.integers(-128, 128, (3, 9)), scale)
    node = plain.replace(attrs=Conv2d(clamp=(clamp[0] * scale, clamp[1] * scale)))
    assert conv2d_s16.leaves_clamp(rounding_s16.rounding(node))
    case = Case(node, (drawing.integer_data(rng, node.input(0).shape, DType.INT16),))
    for weights in ("", "_w16"):
        alone = s8.only(f"tinyet_conv2d_s16{weights}_direct_4x2_dsp")
        assert s8.takes(alone, case)
        assert_kernels([case], alone, HOST_WITH_DSP)


def test_sums_are_divided_where_32_bits_are_not_enough() -> None:
    """The last sum that fits, the first that does not, and biases beside both."""

    def parts(depth: int, bias: int = 0, scale: float = 2.0**9) -> int:
        node = layer(np.full((2, depth), -128), scale, bias)
        r = rounding_s16.rounding(node)
        return len(conv2d_s16.parts(r, conv2d_s16.of_rows(conv2d.geometry(node))))

    assert parts(510) == 1
    assert parts(510, 2 * 128 * 2**15 - 1) == 1
    assert parts(510, 2 * 128 * 2**15) > 1
    assert parts(512) > 1
    assert parts(1020) == 2
    assert parts(64, 2**31, 2.0**17) == 0
    assert parts(16 * 512) == 0
    assert "32 bits" in str(conv2d_s16.refuse_rows(layer(np.full((2, 16 * 512), -128), 2.0**9), s8.DSP))


def test_products_of_parts_fit_64_bits() -> None:
    """Two parts of sums up to just below 2**31 fit beside the largest factor and the rounding; three do not."""
    r = rounding_s16.choose(
        np.full((1, 4), 127, np.int64),
        np.zeros(1, np.int64),
        np.array([2**31 - 1]),
        np.array([-1]),
        (-32768, 32767),
    )
    assert r.multiplier[0] == 32767 << 16
    part = np.full((1, 2**9 - 4), 128, np.int64)
    assert rounding_s16.parts_refusal(r, [part, part]) is None
    assert rounding_s16.parts_refusal(r, [part] * 3) == "products of more than 64 bits"


def test_what_rounding_refuses() -> None:
    def refusal(*shifts: int) -> str | None:
        count = len(shifts)
        weights, bias = np.full((count, 500), 127, np.int64), np.zeros(count, np.int64)
        multiplier = np.full(count, 3 * 2**29)
        return rounding_s16.choose(weights, bias, multiplier, np.array(shifts), (-32768, 32767)).refusal

    assert refusal(-1, -17) is None
    assert refusal(-2, -18) is None
    assert refusal(-1, -18) == "the factors of its channels are too far apart"
    assert refusal(0, -10) == "a factor of one half or more"
    assert refusal(-1, -40) is None, "a channel of zeros only is told by its bias"
