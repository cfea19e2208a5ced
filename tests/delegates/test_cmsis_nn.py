# SPDX-License-Identifier: Apache-2.0
"""The kernels of the delegate cmsis_nn: as plain C under sanitizers, and as machine code of every kind of core."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.delegates.cmsis_nodes import NODES, only
from tests.ops import drawing
from tests.ops.cases import Case, assert_exact
from tests.ops.emulated import require_emulator
from tinyet import assets
from tinyet.boards import Target, load_board
from tinyet.delegates import CMSIS_NN, Delegate

pytestmark = pytest.mark.skipif(
    assets.cmsis_nn_dir() is None, reason=f"the sources of CMSIS-NN {assets.CMSIS_NN_VERSION} are not here"
)

DSP = Target("cortex-m4", frozenset({"dsp"}))
BOARDS = ("nrf51_dk", "mps2_an386", "mps2_an505", "mps3_an547")

# Its code for the host takes the scratch memory of another function.
NOT_ON_HOST = {"arm_convolve_1_x_n_s8"}
FUNCTIONS = {k.symbol for kernels in CMSIS_NN.kernels.values() for k in kernels}


def taken(cases: list[Case], delegate: Delegate, target: Target) -> list[Case]:
    """Those of the cases that the delegate takes."""
    return [
        case
        for case in cases
        if any(k.why_not(case.node, target) is None for k in delegate.kernels.get(type(case.node.attrs), ()))
    ]


def test_every_function_has_nodes() -> None:
    assert set(NODES) == FUNCTIONS


@pytest.mark.parametrize("function", sorted(FUNCTIONS - NOT_ON_HOST))
def test_host(function: str) -> None:
    """The library as plain C under ASan and UBSan; also functions that would not be chosen."""
    alone = only(function)

    @settings(max_examples=3, deadline=None)
    @given(drawing.many(NODES[function]()))
    def run(cases: list[Case]) -> None:
        mine = taken(cases, alone, DSP)
        assume(mine)
        assert_exact(mine, delegates=(alone,))

    run()


GROUPS = {
    "convolutions": [name for name in NODES if "convolve" in name or "depthwise" in name],
    "products": [name for name in NODES if "fully" in name or "matmul" in name or "transpose_conv" in name],
    "others": [name for name in NODES if not any(w in name for w in ("conv", "fully", "matmul"))],
}


@pytest.mark.emulated
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("group", GROUPS)
def test_emulated(group: str, board: str) -> None:
    """The machine code, each node by the function that the delegate chooses for the core."""
    require_emulator()
    target = load_board(board).target
    # The M0's board has 32 KB of RAM, where all inputs and outputs lie at once.
    count = 2 if board == "nrf51_dk" else 6
    strategies = [st.lists(NODES[name](), min_size=count, max_size=count) for name in GROUPS[group]]

    @settings(
        max_examples=2,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(st.tuples(*strategies))
    def run(drawn: tuple[list[Case], ...]) -> None:
        mine = [case for part in drawn for case in taken(part, CMSIS_NN, target)]
        assume(mine)
        assert_exact(mine, on=board, delegates=(CMSIS_NN,))

    run()
