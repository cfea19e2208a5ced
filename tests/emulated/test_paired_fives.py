# SPDX-License-Identifier: Apache-2.0
"""tinyet_conv2d_s8_paired_fives_5x2 with sums at both ends of 19 bits, on emulated boards: in assembly and in C."""

from __future__ import annotations

import pytest

from benchmarks import kernels
from tests.ops.emulated import require_emulator
from tests.ops.test_paired_fives import ALONE, SYMBOL, ways, windows
from tinyet.boards import load_board


@pytest.mark.emulated
@pytest.mark.parametrize("board_name", ["mps2_an385", "mps2_an386", "riscv32_virt"])
def test_sums_at_their_ends(board_name: str) -> None:
    """Numbers of taps and pixels of all kinds; windows that reach out of the image."""
    require_emulator(board_name)
    cases = [*ways(), *windows()]
    graph = kernels.side_by_side([case.node for case in cases])
    measured = kernels.run(graph, [case.inputs[0] for case in cases], load_board(board_name), [ALONE])
    assert {step.choice.kernel.symbol for step in measured.deployment.steps} == {SYMBOL}
