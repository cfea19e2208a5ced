# SPDX-License-Identifier: Apache-2.0
"""Kernels of five pixels in three words with sums at both ends of 19 bits, on emulated boards: in assembly and in C."""

from __future__ import annotations

import pytest

from benchmarks import kernels
from tests.ops import test_depthwise_fives, test_paired_fives
from tests.ops.emulated import require_emulator
from tinyet.boards import load_board

CASES = {
    test_paired_fives.SYMBOL: (
        test_paired_fives.ALONE,
        [*test_paired_fives.ways(), *test_paired_fives.windows(), *test_paired_fives.divided()],
    ),
    test_depthwise_fives.SYMBOL: (test_depthwise_fives.ALONE, test_depthwise_fives.ways()[::2]),
}
"""Numbers of taps, channels and pixels of all kinds; windows that reach out of the image; all strides."""


@pytest.mark.emulated
@pytest.mark.parametrize("symbol", CASES)
@pytest.mark.parametrize("board_name", ["mps2_an385", "mps2_an386", "riscv32_virt"])
def test_sums_at_their_ends(board_name: str, symbol: str) -> None:
    require_emulator(board_name)
    alone, cases = CASES[symbol]
    graph = kernels.side_by_side([case.node for case in cases])
    measured = kernels.run(graph, [case.inputs[0] for case in cases], load_board(board_name), [alone])
    assert {step.choice.kernel.symbol for step in measured.deployment.steps} == {symbol}
