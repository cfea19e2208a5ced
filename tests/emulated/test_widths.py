# SPDX-License-Identifier: Apache-2.0
"""int16 activations and int4 weights cost at most 1.35 times as many instructions as int8, layer by layer."""

from __future__ import annotations

import pytest

from benchmarks import widths
from tests.ops.emulated import require_emulator
from tinyet.boards import load_board
from tinyet.delegates import CORTEX_M

MOST = 1.35


@pytest.mark.emulated
def test_layers_cost_little_more_than_in_int8() -> None:
    """By kernels whose weights lie in flash as they are. The dearest: a row of 64 inputs, whose nibbles are parted."""
    require_emulator()
    found = widths.measured(load_board("mps2_an386"), widths.compact(CORTEX_M))
    dear = {
        (name, kernel): round(count / base, 3)
        for name, ((_, base), *others) in found.items()
        for kernel, count in others
        if count > MOST * base
    }
    assert not dear
