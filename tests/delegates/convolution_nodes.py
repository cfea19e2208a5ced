# SPDX-License-Identifier: Apache-2.0
"""Drawn convolutions for the kernels for Helium."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from tests.delegates import test_cortex_m
from tests.delegates.elementwise_nodes import clamp
from tests.delegates.test_cortex_m import gemm_nodes, layer, pointwise_nodes, with_nibbles
from tests.ops import drawing
from tests.ops.cases import Case
from tinyet.numerics import NO_CLAMP
from tinyet.ops.conv2d import Conv2d


@st.composite
def deep_nodes(draw: st.DrawFn) -> Case:
    """Depths of whole vectors, whose windows are not copied pixel by pixel: rows of fewer than four pixels and of more,
    padding on all sides, strides, dilation, windows that move down several times."""
    rng = drawing.random(draw)
    outs = draw(st.sampled_from((1, 2, 9, 14))), draw(st.sampled_from((1, 3, 4, 7, 9)))
    kernels = st.sampled_from((1, 2, 3, 3, 5))
    window, kernel, size = draw(test_cortex_m.windows(outs, kernels, draw(st.sampled_from((1, 1, 2)))))
    channels = draw(st.sampled_from((16, 32, 64, 20, 24)))
    x, weights = (draw(st.integers(1, 2)), *size, channels), (draw(st.integers(1, 13)), *kernel, channels)
    return layer(rng, Conv2d(**window, clamp=NO_CLAMP), x, weights)


@st.composite
def wide_nodes(draw: st.DrawFn) -> Case:
    """Pixels so far apart that pointers move between them."""
    rng = drawing.random(draw)
    channels = draw(st.sampled_from((256, 344, 512, 1100)))
    x = 1, 1, draw(st.integers(4, 6)), channels
    return layer(rng, Conv2d(clamp=NO_CLAMP), x, (draw(st.sampled_from((4, 7, 8))), 1, 1, channels))


@st.composite
def many_pixel_nodes(draw: st.DrawFn) -> Case:
    """So many pixels that the outputs of all channels are straight code; depths that leave lanes for biases."""
    rng = drawing.random(draw)
    outs = draw(st.integers(11, 13)), draw(st.sampled_from((12, 13)))
    window: dict[str, Any] = {}
    kernel, size = (1, 1), outs
    if draw(st.booleans()):
        window, kernel, size = draw(test_cortex_m.windows(outs, st.sampled_from((1, 3)), 1))
    channels = draw(st.sampled_from((3, 4, 8, 8, 12, 16, 24)))
    outputs = draw(st.sampled_from((4, 8, 13, 36)))
    return layer(rng, Conv2d(**window, clamp=NO_CLAMP), (1, *size, channels), (outputs, *kernel, channels))


@st.composite
def grouped_nodes(draw: st.DrawFn) -> Case:
    """Two groups and more, of one channel and several, padded, with strides; outputs that are no multiple of four."""
    rng = drawing.random(draw)
    outs = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    window, kernel, size = draw(test_cortex_m.windows(outs, st.sampled_from((1, 1, 3)), 1))
    groups, own, made = (
        draw(st.integers(2, 5)),
        draw(st.sampled_from((1, 2, 3, 4, 8))),
        draw(st.integers(1, 5)),
    )
    attrs = Conv2d(**window, groups=groups, clamp=NO_CLAMP)
    return layer(rng, attrs, (1, *size, groups * own), (groups * made, *kernel, own))


@st.composite
def slab_nodes(draw: st.DrawFn) -> Case:
    """Of two slabs and more of whole vectors, each of one group to all of its channels."""
    rng = drawing.random(draw)
    outs = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    window, kernel, size = draw(test_cortex_m.windows(outs, st.sampled_from((1, 1, 3)), 1))
    own, slabs = draw(st.sampled_from((1, 2, 3, 4, 8, 16, 32))), draw(st.integers(2, 3))
    groups, made = slabs * math.lcm(own, 16) // own, draw(st.integers(1, 3))
    attrs = Conv2d(**window, groups=groups, clamp=clamp(rng, 1.0))
    return layer(rng, attrs, (1, *size, groups * own), (groups * made, *kernel, own))


def conv2d_nodes() -> st.SearchStrategy[Case]:
    few = many_pixel_nodes()
    drawn = st.one_of(
        gemm_nodes(), pointwise_nodes(), deep_nodes(), few, few, deep_nodes(), wide_nodes(), grouped_nodes()
    )
    return st.one_of(drawn, drawn, drawn, drawn.map(with_nibbles))
