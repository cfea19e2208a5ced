# SPDX-License-Identifier: Apache-2.0
"""What kernels of cortex_m say that they read after they write: computed with the output as near as they allow it, and
exactly over the input where they allow that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given

from tests.delegates import test_cortex_m as s8
from tests.delegates import test_cortex_m_s16 as s16
from tests.ops import drawing, overlapping
from tests.ops.cases import HOST_WITH_DSP, Case, run_on_host
from tests.ops.emulated import require_emulator, run_deployment
from tests.ops.overlapping import Placed
from tinyet.boards import load_board
from tinyet.boards.cpus import Target
from tinyet.delegates import CORTEX_M

KERNELS = [k for kernels in CORTEX_M.kernels.values() for k in kernels]
STATED = list(dict.fromkeys(k.symbol for k in KERNELS if k.sweep is not None))
NODES = {**s8.NODES, **s16.NODES}


def placed(symbol: str, cases: Sequence[Case], target: Target, less: int = 0) -> list[Placed]:
    found = []
    for case in cases:
        for kernel in CORTEX_M.kernels.get(type(case.node.attrs), ()):
            if kernel.symbol != symbol or kernel.why_not(case.node, target) is not None:
                continue
            distance = overlapping.stated(case, kernel)
            if distance is not None:
                x = case.node.input(0)
                found.append(Placed(case, kernel, distance - less * x.shape[-1] * x.dtype.bytes))
            if kernel.replaces is not None and kernel.replaces(case.node, 0) and not less:
                found.append(Placed(case, kernel, 0))
    return found


@pytest.mark.parametrize("symbol", STATED)
def test_host(symbol: str) -> None:
    """Plain C in place of the instructions, under ASan and UBSan."""

    @drawing.emulated
    @given(drawing.many(NODES[symbol]()))
    def run(cases: list[Case]) -> None:
        chosen = placed(symbol, cases, HOST_WITH_DSP)
        assume(chosen)
        assert not overlapping.wrong(chosen, HOST_WITH_DSP, run_on_host)

    run()


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("symbol", "board"), [(symbol, s8.BOARDS[i % len(s8.BOARDS)]) for i, symbol in enumerate(STATED)]
)
def test_emulated(symbol: str, board: str) -> None:
    """The instructions themselves."""
    require_emulator()
    target = load_board(board).target

    @drawing.emulated
    @given(drawing.many(NODES[symbol]()))
    def run(cases: list[Case]) -> None:
        chosen = placed(symbol, cases, target)
        assume(chosen)
        assert not overlapping.wrong(chosen, target, lambda d, raw: run_deployment(d, [[raw]], board)[0])

    run()
