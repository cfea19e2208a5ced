# SPDX-License-Identifier: Apache-2.0
"""Every operator on an emulated Cortex-M4 and M0: cases drawn by the operator's own strategy, bit for bit."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.ops.cases import Case, assert_exact
from tests.ops.emulated import require_emulator
from tests.ops.strategies import strategy_of
from tinyet.ops import OPS

# The smallest board has 32 KB of RAM; inputs and outputs of all cases are alive at the same time.
ROOM = 9000


def fitting(cases: list[Case]) -> list[Case]:
    """As many of the cases, from the front, as the smallest board can hold."""
    chosen: list[Case] = []
    total = 0
    for case in cases:
        total += sum(t.type.bytes + 4 for t in (*case.node.inputs, *case.node.outputs) if t is not None)
        if total > ROOM and chosen:
            break
        chosen.append(case)
    return chosen


@pytest.mark.emulated
@pytest.mark.parametrize("board", ["mps2_an386", "nrf51_dk"])
@pytest.mark.parametrize("name", [op.name for op in OPS])
def test_operator(name: str, board: str) -> None:
    require_emulator()

    @settings(
        max_examples=2,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(st.lists(strategy_of(name), min_size=12, max_size=24))
    def check(cases: list[Case]) -> None:
        assert_exact(fitting(cases), on=board)

    check()
