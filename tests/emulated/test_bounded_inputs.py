# SPDX-License-Identifier: Apache-2.0
"""A kernel that relies on what its inputs can be, with inputs that reach it, on emulated boards."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import kernels
from tests.ops import bounded
from tests.ops.emulated import require_emulator
from tinyet.boards import load_board
from tinyet.delegates import Delegate
from tinyet.ops import OPS
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.shared import paired

SYMBOLS = "tinyet_conv2d_s8_paired_runs_6x2", "tinyet_depthwise_s8"


@pytest.mark.emulated
@pytest.mark.parametrize("board_name", ["riscv32_virt", "mps2_an385"])
def test_inputs_at_their_bounds(board_name: str) -> None:
    """In the assembly and in C; of 25 pixels the last is a tile of its own, whose other pixels are made up."""
    require_emulator(board_name)
    board = load_board(board_name)
    of_symbol = {kernel.symbol: kernel for op in OPS for kernel in op.kernels}
    only = Delegate("only", {Conv2d: tuple(of_symbol[symbol] for symbol in SYMBOLS)})
    for channels, seed in ((64, 11), (12, 12), (7, 13)):
        graph = bounded.network(channels, seed)
        measured = kernels.run(graph, [bounded.farthest(graph)], board, [only])
        steps = {step.node: step.choice.kernel.symbol for step in measured.deployment.steps}
        assert tuple(steps[node] for node in reversed(graph.nodes)) == SYMBOLS
        runs = paired.in_runs(graph.nodes[1])
        assert runs.is_centred == (channels % 4 == 0)
        values = bounded.bounds_of(graph.nodes[1])
        assert np.any(values.high < 127)
