# SPDX-License-Identifier: Apache-2.0
"""What kernels of cortex_m say that they read after they write: computed with the output as near as they allow it, and
exactly over the input where they allow that. Drawn calls are tested in all placements with the kernels themselves, here
and on emulated boards. This file has large images, statements that are wrong, and what the statements are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.delegates import test_cortex_m as s8
from tests.delegates import test_cortex_m_s16 as s16
from tests.ops import drawing, overlapping
from tests.ops.cases import CALLED, HOST_WITH_DSP, Case, run_on_host
from tests.ops.overlapping import Placed
from tinyet.boards.cpus import Target
from tinyet.delegates import CORTEX_M
from tinyet.delegates.cortex_m import conv_transpose2d, conv_transpose2d_mve, slabs_mve
from tinyet.ir import DType
from tinyet.numerics import NO_CLAMP
from tinyet.ops import conv2d
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.resize import Resize
from tinyet.ops.shared.window import Window
from tinyet.opset import Kernel

ALL = [k for kernels in CORTEX_M.kernels.values() for k in kernels]
KERNELS = [k for k in ALL if not k.symbol.endswith("_mve")]  # those for Helium: test_helium.py
STATED = list(dict.fromkeys(k.symbol for k in KERNELS if k.access_order is not None))
NODES = {**s8.NODES, **s16.NODES}
BY_ROWS = {"tinyet_resize_bilinear_s8_q10_dsp", "tinyet_resize_bilinear_s8_q4_dsp"}
SILENT = {
    *(k.symbol for k in (*conv_transpose2d.KERNELS, *conv_transpose2d_mve.KERNELS, *slabs_mve.KERNELS)),
    "tinyet_depthwise_s8_mve",
    "tinyet_depthwise_s8_rne_mve",
    "tinyet_depthwise_s16_mve",
    "tinyet_conv2d_s8_winograd_f4x4_dsp",
}
"""Of windows, those that promise nothing: phase after phase of some pixels, one channel, a few of them, a slab."""


def placed(symbol: str, cases: Sequence[Case], target: Target) -> list[Placed]:
    """By that kernel, where it takes a case and states an access order."""
    found = []
    for case, kernel in taken(symbol, cases, target):
        distance = overlapping.stated(case, kernel)
        if distance is not None:
            found.append(Placed(case, kernel, distance))
    return found


def replaced(symbol: str, cases: Sequence[Case], target: Target) -> list[Placed]:
    return [
        Placed(case, kernel, 0)
        for case, kernel in taken(symbol, cases, target)
        if kernel.replaces is not None and kernel.replaces(case.node, 0)
    ]


def taken(symbol: str, cases: Sequence[Case], target: Target) -> list[tuple[Case, Kernel]]:
    return [
        (case, kernel)
        for case in cases
        for kernel in CORTEX_M.kernels.get(type(case.node.attrs), ())
        if kernel.symbol == symbol and kernel.why_not(case.node, target) is None
    ]


@st.composite
def tiles(draw: st.DrawFn, dtype: DType, kernel: int) -> Case:
    """Depthwise layers of images that are large enough for several tiles, most of them with an output as large as the
    input: what may lie exactly over it."""
    rng = drawing.random(draw)
    size, channels = (
        (draw(st.integers(20, 34)), draw(st.integers(20, 34))),
        draw(st.sampled_from((4, 8, 6, 5))),
    )
    stride = draw(st.sampled_from((1, 1, 1, 2)))
    before = draw(st.sampled_from((kernel // 2, kernel // 2, kernel // 2, 0, kernel - 1)))
    window: dict[str, Any] = {"stride_h": stride, "stride_w": stride, "pad_top": before, "pad_left": before}
    window |= {"pad_bottom": kernel - 1 - before, "pad_right": kernel - 1 - before}
    batch = draw(st.integers(1, 2))
    attrs = Conv2d(**window, groups=channels, clamp=NO_CLAMP)
    case = s8.layer(rng, attrs, (batch, *size, channels), (channels, kernel, kernel, 1))
    return s16.with_int16(case, rng) if dtype is DType.INT16 else case


REPLACING = list(dict.fromkeys(k.symbol for k in KERNELS if k.replaces is not None))


def large(symbol: str) -> st.SearchStrategy[list[Case]]:
    dtype = DType.INT16 if "s16" in symbol else DType.INT8
    return st.lists(tiles(dtype, 3 if "3x3" in symbol else 5), min_size=10, max_size=10)


@pytest.mark.parametrize("symbol", REPLACING)
def test_tiles_on_host(symbol: str) -> None:
    """Exactly over the input, and below it; and a pixel beside where it may lie, which is caught."""
    seen: list[Placed] = []
    caught: list[str] = []

    @settings(drawing.emulated, derandomize=True, max_examples=2)
    @given(large(symbol))
    def run(cases: list[Case]) -> None:
        exact = replaced(symbol, cases, HOST_WITH_DSP)
        assert not overlapping.wrong(
            [*exact, *placed(symbol, cases, HOST_WITH_DSP)], HOST_WITH_DSP, run_on_host
        )
        seen.extend(exact)
        beside = [
            replace(p, dependence_distance=p.case.node.input(0).shape[-1]) for p in exact if p.case.inputs
        ]
        caught.extend(overlapping.wrong(beside, HOST_WITH_DSP, run_on_host))

    run()
    assert seen
    assert caught


def sides(pad: int) -> dict[str, Any]:
    return {f"pad_{side}": pad for side in ("top", "bottom", "left", "right")}


@st.composite
def steep(draw: st.DrawFn) -> list[Case]:
    """Layers of which every output pixel lies behind what it is made of, where it lies over the input."""
    rng = drawing.random(draw)
    shape = (2, 9, 12, 6)
    # Straight code for 160 inputs takes none that is clamped within int8.
    found = [s8.layer(rng, Linear(), (9, 160), (160, 160)) for _ in range(8)]
    x = s8.activation(rng, shape)
    data = drawing.int8_data(rng, shape)
    for _ in range(3):
        of_one = [
            s8.layer(rng, Conv2d(**sides(1)), shape, (6, 3, 3, 6)),
            s8.layer(rng, Conv2d(), shape, (6, 1, 1, 6)),
            s8.layer(rng, Linear(), (9, 22), (22, 22)),
        ]
        found += of_one + [s8.with_nibbles(case) for case in of_one]
        for channels, kernel in ((4, 3), (2, 3), (4, 5), (2, 5)):
            attrs = Conv2d(**sides(kernel // 2), groups=channels)
            found.append(s8.layer(rng, attrs, (2, 9, 8, channels), (channels, kernel, kernel, 1)))
        found += [s16.with_int16(case, rng) for case in found if case.node.input(0).dtype is DType.INT8]
    found += [
        Case(drawing.node_of(attrs, [x], x.type.quant), (data,))
        for attrs in (
            MaxPool2d(**sides(1), kernel_h=3, kernel_w=3),
            AvgPool2d(**sides(1), kernel_h=3, kernel_w=3),
            AvgPool2d(kernel_h=9, kernel_w=12),
            Mean((1, 2)),
            Resize(18, 24, "bilinear", False, False, 0.5, 0.5),
        )
    ]
    return found


@settings(drawing.emulated, derandomize=True, max_examples=1)
@given(steep())
def test_too_near_is_caught(cases: list[Case]) -> None:
    """Statements that are one and two pixels short, or, of kernels that go by rows, a row."""
    chosen = [(p, p.case.node.input(0)) for s in STATED for p in placed(s, cases, HOST_WITH_DSP)]
    short = [
        replace(p, dependence_distance=p.dependence_distance - pixels * x.shape[-1] * x.dtype.bytes)
        for p, x in chosen
        for pixels in ((1, 2, x.shape[-2] + 2) if p.kernel.symbol in BY_ROWS else (1, 2))
    ]
    caught = overlapping.wrong(short, HOST_WITH_DSP, partial(run_on_host, extra=CALLED))
    assert {line.split(":")[0] for line in caught} == set(STATED)


def test_every_kernel_of_a_window_says_what_it_reads() -> None:
    windows = [k for op, kernels in CORTEX_M.kernels.items() if issubclass(op, Window) for k in kernels]
    assert {k.symbol for k in windows if k.access_order is None} == SILENT


@pytest.mark.parametrize(
    ("symbol", "size", "weights", "stride", "most"),
    [
        ("tinyet_conv2d_s8", (32, 32, 16), (16, 3, 3, 16), 1, 35 * 16),
        ("tinyet_conv2d_s8_packed_4x2_dsp", (32, 32, 16), (16, 3, 3, 16), 1, 35 * 16),
        ("tinyet_conv2d_s8_packed_3x2_dsp", (32, 32, 16), (16, 3, 3, 16), 1, 36 * 16),
        ("tinyet_conv2d_s8_w16_im2col_2x2_dsp", (32, 32, 16), (16, 3, 3, 16), 1, 35 * 16),
        ("tinyet_conv2d_s8_w16_winograd_f2x2_dsp", (32, 32, 16), (16, 3, 3, 16), 1, 66 * 16),
        ("tinyet_conv2d_s8_packed_4x2_dsp", (32, 32, 16), (32, 3, 3, 16), 2, 16),
        ("tinyet_conv2d_s8_packed_4x2_dsp", (24, 24, 16), (16, 1, 1, 16), 1, 0),
        ("tinyet_conv2d_s8_packed_4x2_dsp", (24, 24, 16), (96, 1, 1, 16), 1, 24 * 24 * 80),
        ("tinyet_depthwise_s8", (32, 32, 16), (16, 3, 3, 1), 1, 35 * 16),
        ("tinyet_depthwise_s8_chw_3x3_dsp", (48, 48, 16), (16, 3, 3, 1), 2, 2 * 24 * 16),
        ("tinyet_depthwise_s8_chw_3x3_dsp", (48, 48, 48), (48, 3, 3, 1), 2, 2 * 24 * 48),
    ],
)
def test_distances_are_of_use(
    symbol: str, size: tuple[int, int, int], weights: tuple[int, int, int, int], stride: int, most: int
) -> None:
    """A row and some pixels, or less, of what networks are made of."""
    around = sides(weights[1] // 2)
    attrs = Conv2d(**around, stride_h=stride, stride_w=stride, groups=size[2] // weights[3])
    case = s8.layer(np.random.default_rng(0), attrs, (1, *size), weights)
    kernel = next(k for k in (*KERNELS, *conv2d.OP.kernels) if k.symbol == symbol)
    distance = overlapping.stated(case, kernel)
    assert distance is not None
    assert distance <= most
