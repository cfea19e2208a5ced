# SPDX-License-Identifier: Apache-2.0
"""The kernels of cortex_m with int16 activations for Helium: as plain C under sanitizers, and as machine code on an
emulated Cortex-M55 by GCC and by clang."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.calls import board
from tests.calls.board import Image
from tests.calls.emulated import check_own
from tests.calls.exact import assert_kernels
from tests.delegates import test_cortex_m_s16, test_helium
from tests.delegates.test_cortex_m import DSP, only
from tests.delegates.test_cortex_m_s16 import layer, with_int16
from tests.delegates.test_helium import MVE
from tests.ops import drawing
from tests.ops.cases import Case
from tinyet.delegates import CORTEX_M
from tinyet.delegates.cortex_m import conv2d_s16_mve

# ---------------------------------------------------------------- drawing


@st.composite
def widened(draw: st.DrawFn, nodes: Callable[[], st.SearchStrategy[Case]]) -> Case:
    """Layers that are drawn for int8, with int16 activations."""
    return with_int16(draw(nodes()), drawing.random(draw))


def conv2d_nodes() -> st.SearchStrategy[Case]:
    few = widened(test_helium.many_pixel_nodes)
    deep = widened(test_helium.deep_nodes)
    return st.one_of(
        test_cortex_m_s16.gemm_nodes(),
        widened(test_helium.pointwise_nodes),
        deep,
        deep,
        few,
        widened(test_helium.wide_nodes),
    )


def linear_nodes() -> st.SearchStrategy[Case]:
    many = widened(test_helium.many_output_nodes)
    return st.one_of(test_cortex_m_s16.linear_nodes(), widened(test_helium.row_nodes), many, many)


def depthwise_nodes() -> st.SearchStrategy[Case]:
    drawn = test_cortex_m_s16.depthwise_nodes(), test_cortex_m_s16.any_depthwise_nodes()
    rows, few = widened(test_helium.even_row_nodes), widened(test_helium.banded_nodes)  # they take long
    return st.one_of(*5 * drawn, rows, few)


NODES = {
    "tinyet_depthwise_s16_mve": depthwise_nodes,
    "tinyet_conv2d_s16_4x2_mve": conv2d_nodes,
    "tinyet_linear_s16_1x8_mve": linear_nodes,
    "tinyet_linear_s16_4x2_mve": linear_nodes,
}
"""Kernel → strategy."""


# ---------------------------------------------------------------- tests


def takes(symbol: str, case: Case) -> bool:
    kernels = only(symbol).kernels.get(type(case.node.attrs), ())
    return any(kernel.why_not(case.node, MVE) is None for kernel in kernels)


def test_every_kernel_has_nodes() -> None:
    found = [kernel for kernels in CORTEX_M.kernels.values() for kernel in kernels]
    assert {k.symbol for k in found if k.dtypes == "s16" and k.symbol.endswith("_mve")} == set(NODES)


@pytest.mark.parametrize("symbol", NODES)
def test_host(symbol: str) -> None:
    @drawing.compiled
    @given(drawing.many(NODES[symbol]()))
    def run(cases: list[Case]) -> None:
        taken = [case for case in cases if takes(symbol, case)]
        assume(taken)
        assert_kernels(taken, only(symbol), MVE)

    run()


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
