# SPDX-License-Identifier: Apache-2.0
"""Every library kernel on emulated cores, call by call. Generated models are in test_generated.py."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from tests.calls import board
from tests.calls.emulated import EXAMPLES, check_library
from tests.delegates import test_cortex_m
from tests.delegates.test_winograd import extremes
from tests.ops import (
    test_depthwise_bytes,
    test_depthwise_fives,
    test_depthwise_threes,
    test_outer_threes,
    test_paired_fives,
    test_paired_threes,
    test_paired_twos,
)
from tests.ops.strategies import strategy_of
from tests.ops.test_packed_twos import few_channels, few_large_weights, lines
from tests.ops.test_winograd_words import in_upper_halves, ways
from tinyet.ops import OPS
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared.winograd import F4

MANY_KINDS = ("conv2d", "conv_transpose2d", "linear", "matmul", "unary")
"""Operators with a kernel for each of many kinds of nodes."""
WINOGRAD = [kernel for op in OPS for kernel in op.kernels if kernel.symbol.endswith("winograd_f4x4")]
PAIRED = [kernel for op in OPS for kernel in op.kernels if "_s8_paired_" in kernel.symbol]


@pytest.mark.emulated
@pytest.mark.parametrize("name", [op.name for op in OPS if any(kernel.sources for kernel in op.kernels)])
def test_portable(name: str) -> None:
    check_library(strategy_of(name), examples=80 if name in MANY_KINDS else EXAMPLES)


@pytest.mark.emulated
@pytest.mark.parametrize(
    "symbols",
    [s for s in test_cortex_m.GROUPS if test_cortex_m.LIBRARY & {*s}],
    ids=lambda symbols: symbols[0],
)
def test_dsp(symbols: tuple[str, ...]) -> None:
    """The instructions themselves, also of kernels that would not be chosen."""
    alone = test_cortex_m.only(*(test_cortex_m.LIBRARY & {*symbols}))
    check_library(test_cortex_m.NODES[symbols[0]](), alone, board.DSP)


@pytest.mark.emulated
def test_pairs_of_pixels_with_a_few_large_weights() -> None:
    """Those that the paired kernels take by themselves; drawn weights are hardly ever like that."""
    check_library(few_large_weights(), PAIRED, (board.M4, board.M4_CLANG, board.RISCV), examples=8)


@pytest.mark.emulated
def test_three_pixels_in_two_words() -> None:
    """One part of the taps and several, direct tiles, halves below zero and none, six pixels and fewer."""
    cases = [*test_paired_threes.ways(), *(test_paired_threes.halves(depth, depth) for depth in (20, 300))]
    cases += [test_paired_threes.mixed(True, pixels) for pixels in ((1, 2), (3, 3), (3, 5))]
    threes = test_paired_threes.ALONE.kernels[Conv2d]
    check_library(
        st.sampled_from(cases), threes, (board.M4, board.M4_CLANG, board.RISCV), examples=len(cases)
    )
    twos = test_paired_twos.ALONE.kernels[Conv2d]
    cases = test_paired_threes.ways(test_paired_twos.OF_SUMS)
    check_library(st.sampled_from(cases), twos, (board.M4, board.XTENSA), examples=len(cases))


@pytest.mark.emulated
@pytest.mark.parametrize("layers", ["made", "drawn"])
def test_six_sums_in_two_products(layers: str) -> None:
    """One part of the taps and several, direct tiles and others, windows at borders. Both ways of its loads."""
    cases = test_outer_threes.cases()
    check_library(
        st.sampled_from(cases) if layers == "made" else strategy_of("conv2d"),
        test_outer_threes.ALONE.kernels[Conv2d],
        (board.M3, board.M4, board.M4_CLANG),
        examples=len(cases),
    )


@pytest.mark.emulated
@pytest.mark.parametrize("layers", ["made", "drawn"])
def test_five_pixels_in_three_words(layers: str) -> None:
    """One part of the taps and two, windows at borders, of padded copies and of images, tiles of fewer pixels."""
    cases = [*test_paired_fives.ways(), *test_paired_fives.windows(), *test_paired_fives.divided()]
    check_library(
        st.sampled_from(cases) if layers == "made" else test_paired_fives.layers(),
        test_paired_fives.ALONE.kernels[Conv2d],
        (board.M3, board.M4_CLANG, board.RISCV),
        examples=len(cases),
    )


@pytest.mark.emulated
@pytest.mark.parametrize("layers", ["made", "drawn"])
def test_five_bands_in_three_words(layers: str) -> None:
    """Images of all remainders, strides and borders."""
    made = test_depthwise_fives.ways()
    check_library(
        st.sampled_from(made) if layers == "made" else lines(),
        test_depthwise_fives.ALONE.kernels[Conv2d],
        (board.M3, board.M4_CLANG, board.RISCV),
        examples=2 * EXAMPLES,
    )


@pytest.mark.emulated
@pytest.mark.parametrize("layers", ["made", "drawn"])
def test_three_bands_in_two_words(layers: str) -> None:
    """Images of all remainders, strides and borders."""
    made = test_depthwise_threes.ways()
    threes = test_depthwise_threes.ALONE.kernels[Conv2d]
    check_library(
        st.sampled_from(made) if layers == "made" else lines(),
        threes,
        (board.M4, board.M4_CLANG, board.RISCV),
        examples=2 * EXAMPLES,
    )


@pytest.mark.emulated
@pytest.mark.parametrize("layers", ["any", "few large weights", "few channels", "depthwise"])
def test_two_outputs_in_runs_of_taps(layers: str) -> None:
    """By themselves: of drawn layers others are asked first. Where few weights are large, runs are of three taps."""
    twos = [kernel for op in OPS for kernel in op.kernels if kernel.symbol.endswith("_twos")]
    cases = {
        "any": strategy_of("conv2d"),
        "few large weights": few_large_weights(),
        "few channels": few_channels(),
        "depthwise": lines(),
    }
    check_library(
        cases[layers], twos, (board.M0,), examples=4 * EXAMPLES if layers == "depthwise" else EXAMPLES
    )


@pytest.mark.emulated
def test_depthwise_planes_of_bytes() -> None:
    """Each stride, of four channels together and of fewer, also of kernels that would not be chosen; and images that
    no window sees."""
    cases = [*test_depthwise_bytes.ways(), *test_depthwise_bytes.unseen()]
    alone = test_depthwise_bytes.ALONE.kernels[Conv2d]
    check_library(st.sampled_from(cases), alone, (board.M0, board.XTENSA), examples=len(cases))
    neighbours = test_depthwise_bytes.NEIGHBOURS.kernels[Conv2d]
    check_library(st.sampled_from(cases), neighbours, (board.M3, board.RISCV), examples=len(cases))


@pytest.mark.emulated
def test_winograd_by_words() -> None:
    """By itself: of drawn convolutions few are 3x3 of stride 1."""
    images = (board.M4, board.M4_CLANG, board.M0, board.RISCV, board.XTENSA)
    check_library(test_cortex_m.winograd_nodes(), WINOGRAD, images, examples=EXAMPLES)
    check_library(
        st.sampled_from(extremes(F4)), WINOGRAD, (board.M4, board.RISCV, board.XTENSA), examples=EXAMPLES
    )
    check_library(st.sampled_from(extremes(F4, at_once=36)), WINOGRAD, (board.M0,), examples=EXAMPLES)


@pytest.mark.emulated
def test_winograd_s_weights_in_parts() -> None:
    """And transformed inputs of all tiles at their ends, which drawn ones are not; on M0 those that have room."""
    cases = [*ways(), *(in_upper_halves(case) for case in extremes(F4, at_once=18))]
    check_library(
        st.sampled_from(cases), WINOGRAD, (board.M4, board.RISCV, board.XTENSA), examples=len(cases)
    )
