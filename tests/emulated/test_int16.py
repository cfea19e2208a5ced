# SPDX-License-Identifier: Apache-2.0
"""int16 operators on every kind of core: without and with DSP instructions (M0; M4, M33) and with vectors (M55)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.emulated.test_operators import fitting
from tests.ops.cases import Case, assert_exact
from tests.ops.emulated import require_emulator
from tests.ops.strategies import strategy_of
from tests.ops.test_conv2d import conv2d_nodes
from tests.ops.test_conv_transpose2d import conv_transpose2d_nodes
from tests.ops.test_linear import linear_nodes
from tests.ops.test_matmul import matmul_nodes
from tinyet.ir import DType

# Operators whose strategies draw several types: enough examples that some are int16.
OTHERS = (
    "add",
    "avg_pool2d",
    "dequantize",
    "max_pool2d",
    "mean",
    "mul",
    "quantize",
    "requantize",
    "softmax",
    "unary",
)
layers = st.tuples(
    conv2d_nodes(DType.INT16, "1x1"),
    conv2d_nodes(DType.INT16, "depthwise"),
    conv2d_nodes(DType.INT16, "grouped"),
    conv2d_nodes(DType.INT16, "any"),
    conv_transpose2d_nodes(DType.INT16),
    linear_nodes(DType.INT16),
    linear_nodes(DType.INT16),
    matmul_nodes(DType.INT16),
)
values = st.tuples(*(st.lists(strategy_of(name), min_size=6, max_size=6) for name in OTHERS))
once = settings(
    max_examples=2,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
    database=None,
)


def is_int16(case: Case) -> bool:
    return any(t is not None and t.dtype is DType.INT16 for t in (*case.node.inputs, *case.node.outputs))


@pytest.mark.emulated
@pytest.mark.parametrize("board", ["nrf51_dk", "mps2_an386", "mps2_an505", "mps3_an547"])
def test_int16(board: str) -> None:
    require_emulator()

    @once
    @given(layers, values)
    def check(weighted: tuple[Case, ...], others: tuple[list[Case], ...]) -> None:
        cases = [*weighted, *(case for drawn in others for case in drawn if is_int16(case))]
        assert_exact(fitting(cases) if board == "nrf51_dk" else cases, on=board)

    check()
