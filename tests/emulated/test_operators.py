# SPDX-License-Identifier: Apache-2.0
"""Every library kernel on emulated cores, call by call. Generated models are in test_generated.py."""

from __future__ import annotations

import pytest

from tests.calls import board
from tests.calls.emulated import EXAMPLES, check_library
from tests.delegates import test_cortex_m
from tests.ops.strategies import strategy_of
from tinyet.ops import OPS

MANY_KINDS = ("conv2d", "conv_transpose2d", "linear", "matmul", "unary")
"""Operators with a kernel for each of many kinds of nodes."""


@pytest.mark.emulated
@pytest.mark.parametrize("name", [op.name for op in OPS if any(kernel.sources for kernel in op.kernels)])
def test_portable(name: str) -> None:
    check_library(strategy_of(name), examples=80 if name in MANY_KINDS else EXAMPLES)


@pytest.mark.emulated
@pytest.mark.parametrize(
    "symbols",
    [s for s in test_cortex_m.GROUPS if test_cortex_m.LIBRARY & {*s} and not s[0].endswith("_mve")],
    ids=lambda symbols: symbols[0],
)
def test_dsp(symbols: tuple[str, ...]) -> None:
    """The instructions themselves, also of kernels that would not be chosen."""
    alone = test_cortex_m.only(*(test_cortex_m.LIBRARY & {*symbols}))
    check_library(test_cortex_m.NODES[symbols[0]](), alone, board.DSP)
