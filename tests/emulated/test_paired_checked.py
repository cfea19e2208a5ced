# SPDX-License-Identifier: Apache-2.0
"""tinyet_conv2d_s8_paired_checked_8x1 with sums at both ends of 20 bits, on emulated boards: in assembly and in C."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import kernels
from tests.ops import paired_checked
from tests.ops.emulated import require_emulator
from tinyet.boards import load_board
from tinyet.delegates import Delegate
from tinyet.ir import Array, Graph, Node
from tinyet.ops import OPS
from tinyet.ops.conv2d import Conv2d

SYMBOL = "tinyet_conv2d_s8_paired_checked_8x1"


def drawn(node: Node) -> Array:
    return np.random.default_rng(3).integers(-128, 128, node.input(0).shape, np.int8)


@pytest.mark.emulated
@pytest.mark.parametrize("board_name", ["mps2_an385", "riscv32_virt"])
def test_sums_at_their_ends(board_name: str) -> None:
    """Of 21 pixels the last five are a tile whose other pixels are made up; windows are of a padded copy, of the image
    where that is too large, and with gaps."""
    require_emulator(board_name)
    board = load_board(board_name)
    of_symbol = {kernel.symbol: kernel for op in OPS for kernel in op.kernels}
    only = Delegate("only", {Conv2d: (of_symbol[SYMBOL],)})
    nodes = [paired_checked.node(taps, seed) for taps, seed in ((64, 1), (45, 2), (3, 3))]
    cases = [(node, paired_checked.farthest(node)) for node in nodes]
    for columns, dilation in ((9, 1), (200, 1), (9, 2)):
        node = paired_checked.windows(columns, dilation)
        cases.append((node, drawn(node)))
    for node, x in cases:
        graph = Graph("checked", (node.input(0),), (node.output,), (node,))
        measured = kernels.run(graph, [x], board, [only])
        assert [step.choice.kernel.symbol for step in measured.deployment.steps] == [SYMBOL]
