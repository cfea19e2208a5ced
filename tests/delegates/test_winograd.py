# SPDX-License-Identifier: Apache-2.0
"""Winograd convolutions in integers: the identity, the proof of exactness and what it refuses, and the extremes."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import assert_own, of_image, skip_missing
from tests.delegates.test_cortex_m import DSP, only
from tests.ops import drawing
from tests.ops.cases import Case, assert_exact
from tinyet import assets
from tinyet.delegates.cortex_m import winograd
from tinyet.delegates.cortex_m.rounding import Form, choose
from tinyet.ir import DType, Node, QuantParams, Tensor, TensorType, constant
from tinyet.numerics import NO_CLAMP, Int64
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared.winograd import F2, F4, Transform, transformed_weights

TRANSFORMS = pytest.mark.parametrize("f", [F2, F4], ids=["2x2", "4x4"])


def layer(
    weights: Int64, bias: Int64, batch: int = 1, relu: bool = False, scale: float = 1.0, side: int = 6
) -> Node:
    """Without padding. weights: (out_c, 3, 3, in_c). Outputs are sums times `scale`."""
    x = Tensor(
        "x", TensorType((batch, side, side, weights.shape[3]), DType.INT8, QuantParams.per_tensor(1.0, 3))
    )
    w = constant("w", weights.astype(np.int8), QuantParams.per_tensor(1.0, 0))
    b = constant("b", bias.astype(np.int32))
    out = QuantParams.per_tensor(1.0 / scale, -128 if relu else 0)
    clamp = (0.0, float("inf")) if relu else NO_CLAMP
    return drawing.node_of(Conv2d(clamp=clamp), [x, w, b], out)


@TRANSFORMS
def test_identity(f: Transform) -> None:
    """Both sides are linear in the kernel and in the pixels, so that it holds for a basis is a proof for all."""
    side = f.tile + 2
    kernels = np.eye(9, dtype=np.int64).reshape(9, 3, 3)
    pixels = np.eye(side * side, dtype=np.int64).reshape(-1, side, side)
    left = np.einsum("ai,kij,bj->kab", f.weights, kernels, f.weights)
    right = np.einsum("ai,pij,bj->pab", f.inputs, pixels, f.inputs)
    got = np.einsum("ya,kpab,xb->kpyx", f.outputs, left[:, None] * right[None], f.outputs)
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (3, 3), axis=(1, 2))
    want = np.einsum("kij,pyxij->kpyx", kernels, windows)
    np.testing.assert_array_equal(got, want * 2**f.power * f.odd)
    assert f.odd * f.inverse % 2**32 == 1


def test_lift_is_the_header_s() -> None:
    text = (assets.path("firmware") / "include" / "tinyet_winograd_dsp.h").read_text(encoding="utf-8")
    found = re.search(r"TINYET_DSP_LIFT = (\d+)", text)
    assert found is not None
    assert int(found[1]) == F4.lift


@TRANSFORMS
@pytest.mark.parametrize("relu", [True, False])
def test_any_int8_weights_have_room(f: Transform, relu: bool) -> None:
    """All extreme kernels at once, with a shift before the multiplication of the most that F(2x2) allows."""
    signs = np.array(np.meshgrid(*[[-128, 127]] * 9)).reshape(9, -1).T
    weights = signs.reshape(-1, 3, 3, 1)
    node = layer(weights, np.zeros(len(weights), np.int64), relu=relu, scale=2.0**-9)
    r = winograd.chosen_rounding(f, node)
    assert r.form is (Form.ONE_SIDED if relu else Form.TWO_SIDED)
    assert winograd.exact(f, winograd.weights_of(f, node, r), r) is None


def test_what_the_proof_refuses() -> None:
    """Each condition fails by itself."""
    weights = np.full((1, 3, 3, 4), -128)
    r = choose(
        weights.reshape(1, -1), np.zeros(1, np.int64), np.array([2**30]), np.array([-8]), 0, (-128, 127)
    )

    def complaint(f: Transform) -> str | None:
        return winograd.exact(f, transformed_weights(f, weights), r)

    assert complaint(F4) is None
    assert "weights leave int16" in str(complaint(dataclasses.replace(F4, weights=F4.weights * 2)))
    assert "inputs leave int16" in str(complaint(dataclasses.replace(F4, inputs=F4.inputs * 2)))
    low, high = winograd.transformed_range(F4)
    assert complaint(dataclasses.replace(F4, lift=-int(low.min()))) is None
    assert "negative" in str(complaint(dataclasses.replace(F4, lift=-int(low.min()) - 1)))
    assert complaint(dataclasses.replace(F4, lift=2**15 - 1 - int(high.max()))) is None
    assert "inputs leave int16" in str(complaint(dataclasses.replace(F4, lift=2**15 - int(high.max()))))


def near_the_limit(f: Transform, over: int) -> Node:
    """A layer whose largest sum is `over` more than what 32 bits have room for."""
    weights = np.array([1, -1, 2, 127, -128, 0, 5, 7, -9]).reshape(1, 3, 3, 1)
    # The zero point 3 is folded into the bias.
    reach = int(np.where(weights > 0, 127 * weights, -128 * weights).sum()) - 3 * int(weights.sum())
    limit = 1 << 31 - f.power
    # The output goes from 64 to 65 on the way, or it would be a constant, of which nothing is computed.
    return layer(weights, np.array([limit - 1 - reach + over]), scale=64.5 / (limit - 10000), side=f.tile + 2)


@TRANSFORMS
def test_sums_that_would_overflow_are_refused(f: Transform) -> None:
    assert winograd.refuse(f, near_the_limit(f, 0), DSP) is None
    assert "leaves int32" in str(winograd.refuse(f, near_the_limit(f, 1), DSP))
    deep = layer(np.full((2, 3, 3, 240), 127), np.zeros(2, np.int64), scale=2.0**-16)
    assert winograd.refuse(F2, deep, DSP) is None
    assert "leaves int32" in str(winograd.refuse(F4, deep, DSP))


def extremes(f: Transform, at_once: int = 144) -> list[Case]:
    """Inputs that drive every transformed value to both its ends, so many at once; the most channels; a sum at the
    limit."""
    side = f.tile + 2
    signs = np.einsum("pi,qj->pqij", f.inputs, f.inputs).reshape(-1, 1, side, side, 1)
    pictures = np.where(np.concatenate([signs, -signs]) > 0, 127, -128)
    # Both halves of a pair at one end, and each at another end than its neighbour.
    other = np.where(signs > 0, -128, 127)
    both = np.concatenate([pictures, np.concatenate([pictures[: len(signs)], other])])[:, 0]
    mixed = np.concatenate([both, both[::-1]], axis=3)
    rng = np.random.default_rng(5)
    found = []
    for relu in (True, False):
        weights = rng.choice([-128, 127], (3, 3, 3, 6))
        data = np.concatenate([mixed, mixed[:, :, :, ::-1], mixed], axis=3).astype(np.int8)
        bias = rng.integers(-999, 999, 3)
        parts = [data[i : i + at_once] for i in range(0, len(data), at_once)]
        found += [Case(layer(weights, bias, len(part), relu, 2.0**-11, side), (part,)) for part in parts]
    most_channels = rng.integers(-20, 21, (1, 3, 3, 504))
    data = rng.integers(-128, 128, (1, side, side, 504)).astype(np.int8)
    found.append(Case(layer(most_channels, np.zeros(1, np.int64), scale=2.0**-14, side=side), (data,)))
    limit = near_the_limit(f, 0)
    most = np.where(np.array([1, -1, 2, 127, -128, 0, 5, 7, -9]) > 0, 127, -128).reshape(3, 3)
    data = np.tile(most, (2, 2))[:side, :side].reshape(1, side, side, 1).astype(np.int8)
    return [*found, Case(limit, (data,))]


@TRANSFORMS
def test_extremes(f: Transform) -> None:
    assert_exact(extremes(f), delegates=(only(winograd.symbol_of(f)),))
    if f.tile == 4:
        assert_exact(extremes(f), delegates=(only(winograd.NARROW_F4),))


@pytest.mark.emulated
@pytest.mark.parametrize("image", [board.M4, board.M7, board.M33], ids=str)
def test_extremes_emulated(image: Image) -> None:
    skip_missing([image])
    found = [
        attempt
        for f, symbol in (
            (F2, winograd.symbol_of(F2)),
            (F4, winograd.symbol_of(F4)),
            (F4, winograd.NARROW_F4),
        )
        for case in extremes(f)
        for attempt in of_image(case, only(symbol), image)
    ]
    assert_own(found, image)


def test_every_reason_to_refuse() -> None:
    kernel = np.ones((2, 3, 3, 4), np.int64)
    plain = layer(kernel, np.zeros(2, np.int64))
    reasons = {
        "only 3x3": layer(np.ones((2, 2, 3, 4), np.int64), np.zeros(2, np.int64)),
        "3x3 output pixels, needs 4x4": layer(kernel, np.zeros(2, np.int64), side=5),
        "input channels are too many": layer(np.ones((1, 3, 3, 505), np.int64), np.zeros(1, np.int64)),
    }
    assert winograd.refuse(F4, plain, DSP) is None
    for reason, node in reasons.items():
        assert reason in str(winograd.refuse(F4, node, DSP))
    x, w, b = plain.inputs
    for reason, attrs in {
        "stride 1": Conv2d(stride_h=2),
        "dilation 1": Conv2d(dilation_w=2, pad_left=2),
    }.items():
        assert x is not None
        node = drawing.node_of(attrs, [x, w, b], plain.output.type.quant)
        assert reason in str(winograd.refuse(F2, node, DSP))
    grouped = drawing.node_of(
        Conv2d(groups=2),
        [x, constant("w", np.ones((2, 3, 3, 2), np.int8), QuantParams.per_tensor(1.0, 0)), b],
        plain.output.type.quant,
    )
    assert "one group" in str(winograd.refuse(F2, grouped, DSP))
