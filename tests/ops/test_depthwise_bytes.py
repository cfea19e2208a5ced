# SPDX-License-Identifier: Apache-2.0
"""Depthwise layers whose channels are planes of bytes: strides by rows and by columns, with outputs beyond both bounds,
and outputs over the first bytes of larger inputs. On boards they are in tests/emulated/test_operators.py."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from tests.calls.encoding import Placement, Shared
from tests.calls.exact import assert_kernels, placements
from tests.delegates.test_winograd import layer
from tests.ops import drawing
from tests.ops.cases import Case, assert_exact
from tinyet.boards.cpus import HOST
from tinyet.delegates import Delegate
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import depthwise_planes, packed_words
from tinyet.ops.shared.conv2d_words import KERNELS, by_channels
from tinyet.ops.shared.two_products import Rescaling

SYMBOL = "tinyet_depthwise_s8_chw_3x3"
ALONE = Delegate("alone", {Conv2d: tuple(k for k in KERNELS if k.symbol == SYMBOL)})
NEIGHBOURS = Delegate(
    "neighbours", {Conv2d: tuple(k for k in KERNELS if k.symbol.endswith(("_chw_3x3_2x1", "_cwh_3x3_2x1")))}
)
"""Kernels that compute neighbouring outputs at a time, down the image or along its rows."""
SIZES = [(1, 1), (3, 5), (4, 2), (7, 9), (9, 4)]
"""Of images, which are padded to at least a window."""


def ways() -> list[Case]:
    """Three channels or eight, two images."""
    cases = []
    for k, (stride_h, stride_w, relu, size) in enumerate(
        itertools.product((1, 2, 3, 4), (1, 2), (True, False), SIZES)
    ):
        rng, channels = np.random.default_rng(k), 8 if k % 3 == 0 else 3
        weights = rng.integers(-128, 128, (channels, 3, 3, 1))
        drawn = layer(weights, rng.integers(-9000, 9000, channels), relu=relu, scale=0.004)
        x, attrs = drawn.input(0), drawn.attrs
        assert isinstance(attrs, Conv2d)
        x = replace(x, type=replace(x.type, shape=(2, *size, channels)))
        before, behind = (k % 2, 1 - k % 2) if min(size) > 1 else (1, 1)
        attrs = replace(attrs, groups=channels, stride_h=stride_h, stride_w=stride_w)
        attrs = replace(attrs, pad_top=before, pad_bottom=behind, pad_left=before, pad_right=behind)
        node = drawing.node_of(attrs, [x, *drawn.inputs[1:]], drawn.output.type.quant)
        cases.append(Case(node, (rng.integers(-128, 128, x.shape).astype(np.int8),)))
    return cases


def unseen() -> list[Case]:
    """Of images of which no window sees a row, or a column: all that they see is padding. Four channels and three."""
    cases = []
    for k, (channels, (top, left), (stride_h, stride_w)) in enumerate(
        itertools.product((4, 3), ((4, 1), (1, 4), (5, 5), (8, 1), (1, 8)), ((1, 5), (5, 1), (5, 5)))
    ):
        rng = np.random.default_rng(k)
        weights = rng.integers(-60, 61, (channels, 3, 3, 1))
        drawn = layer(weights, rng.integers(-9000, 9000, channels), relu=True, scale=0.004)
        x, attrs = drawn.input(0), drawn.attrs
        assert isinstance(attrs, Conv2d)
        size = [5 if pad == 1 else 1 for pad in (top, left)]
        x = replace(x, type=replace(x.type, shape=(2, *size, channels)))
        attrs = replace(attrs, groups=channels, pad_top=top, pad_left=left)
        attrs = replace(attrs, stride_h=stride_h, stride_w=stride_w)
        node = drawing.node_of(attrs, [x, *drawn.inputs[1:]], drawn.output.type.quant)
        _, out_h, out_w, _ = node.output.shape
        if (out_h - 1) * stride_h + 3 <= top or (out_w - 1) * stride_w + 3 <= left:
            cases.append(Case(node, (rng.integers(-128, 128, x.shape).astype(np.int8),)))
    return cases


def test_images_that_no_window_sees() -> None:
    """Nothing is copied of them, and their stated work is not less than none."""
    kernels = [kernel for kernel in KERNELS if kernel.replaces is by_channels]
    cases = unseen()
    assert len(cases) > 12
    assert_kernels(cases, kernels)
    for kernel, case in itertools.product(kernels, cases):
        if kernel.why_not(case.node, HOST) is None:
            assert kernel.cost_model is not None
            assert min(kernel.cost_model.work(case.node).values()) >= 0, kernel.symbol


def test_smaller_outputs_over_their_inputs() -> None:
    """Of every kernel that takes a channel at a time; calls.exact sees what is written behind the output, too."""
    kernels = [kernel for kernel in KERNELS if kernel.replaces is by_channels]
    cases = ways()
    smaller = [case for case in cases if case.node.output.type.bytes < case.node.input(0).type.bytes]
    assert len(smaller) > len(cases) // 2
    for kernel in kernels:
        taken = [case for case in smaller if kernel.why_not(case.node, HOST) is None]
        assert len(taken) >= 5, kernel.symbol
        assert all(Placement((Shared(0, 0, 0),)) in placements(case, kernel) for case in taken)
        assert_kernels(taken, [kernel])


def test_ways() -> None:
    """Halves below zero are seen in some and not in others."""
    found = [packed_words.rescaling(case.node) for case in ways()]
    assert {isinstance(sums, Rescaling) and sums.two_sided for sums in found} == {False, True}
    assert_exact(ways(), delegates=(ALONE,))


def test_constants_have_no_more_than_their_layer_needs() -> None:
    """Two words a channel where all sums begin with all that is added to them; weights and their power are bytes."""
    taken = [case.node for case in ways() if depthwise_planes.refuse(case.node) is None]
    seen = set()
    for node in taken:
        stream, weights = depthwise_planes.constants(node)
        channels, words = stream.data.shape
        seen.add(words)
        assert words == (2 if depthwise_planes.folded(node).found.all() else 4)
        assert weights.data.dtype == np.int8
        assert weights.data.shape == (channels, 10)
    assert seen == {2, 4}
