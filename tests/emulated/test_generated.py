# SPDX-License-Identifier: Apache-2.0
"""Generated models with a layer of every operator on every kind of core, by the kernels that a project would get: the
same bits, no warning, the stack that their code says. Every kernel by itself is in test_operators.py."""

from __future__ import annotations

import functools

import pytest

from tests.calls.board import M0, M4, M4_CLANG, M55, M55_CLANG, RISCV, STRICT, XTENSA, Image
from tests.calls.emulated import drawn_cases, skip_missing
from tests.delegates import cmsis_nodes, elementwise_nodes, test_cortex_m
from tests.ops.cases import Case, assert_exact
from tests.ops.emulated import run_emulated
from tests.ops.strategies import strategy_of
from tinyet import assets
from tinyet.delegates import CMSIS_NN, CORTEX_M, Delegate
from tinyet.ops import OPS

DSP = (
    test_cortex_m.gemm_nodes,
    test_cortex_m.depthwise_nodes,
    test_cortex_m.linear_nodes,
    test_cortex_m.row_nodes,
    test_cortex_m.pool_nodes,
    elementwise_nodes.elementwise_nodes,
    elementwise_nodes.bilinear_nodes,
    elementwise_nodes.softmax_nodes,
)
HELIUM = (
    cmsis_nodes.pointwise_nodes,
    cmsis_nodes.wide_depthwise_nodes,
    cmsis_nodes.sum_nodes,
    cmsis_nodes.maximum_pool_nodes,
    cmsis_nodes.softmax_nodes,
)
SMALL_BYTES = 9000
"""Of tensors, for a board with 32 KB: inputs and outputs of all cases are alive at the same time."""


@functools.cache
def some_of(name: str) -> list[Case]:
    return drawn_cases(strategy_of(name), 6)


def fitting(cases: list[Case]) -> list[Case]:
    """As many of the cases, the smallest first, as a small board can hold."""

    def size(case: Case) -> int:
        return sum(t.type.bytes + 4 for t in (*case.node.inputs, *case.node.outputs) if t is not None)

    chosen: list[Case] = []
    for case in sorted(cases, key=size):
        if sum(map(size, [*chosen, case])) > SMALL_BYTES:
            break
        chosen.append(case)
    return chosen


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("image", "delegate"),
    [
        (M0, None),
        (M4, CORTEX_M),
        (M4_CLANG, CORTEX_M),
        (M55, CMSIS_NN),
        (M55_CLANG, CMSIS_NN),
        (RISCV, None),
        (XTENSA, None),
    ],
    ids=lambda value: str(value) if isinstance(value, Image) else getattr(value, "name", "portable"),
)
def test_every_operator(image: Image, delegate: Delegate | None) -> None:
    skip_missing([image])
    if delegate is CMSIS_NN and assets.cmsis_nn_dir() is None:
        pytest.skip(f"the sources of CMSIS-NN {assets.CMSIS_NN_VERSION} are not here")
    cases = [case for op in OPS for case in some_of(op.name)[-2:]]
    for nodes in DSP if delegate is CORTEX_M else HELIUM if delegate is CMSIS_NN else ():
        cases += drawn_cases(nodes(), 2)
    on = functools.partial(
        run_emulated,
        board_name=image.board_name,
        delegates=(delegate,) if delegate else (),
        compiler=image.compiler,
        flags=STRICT,
    )
    deployment = assert_exact(fitting(cases) if image is M0 else cases, on=on)
    used = {step.choice.kernel.delegate for step in deployment.steps}
    assert used == {"portable", *([delegate.name] if delegate else [])}
