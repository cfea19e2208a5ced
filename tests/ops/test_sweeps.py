# SPDX-License-Identifier: Apache-2.0
"""What portable kernels say that they read after they write: computed with the output as near as they allow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops import drawing, overlapping
from tests.ops.cases import HOST, Case, run_on_host
from tests.ops.emulated import require_emulator, run_deployment
from tests.ops.overlapping import Placed
from tests.ops.test_adaptive_avg_pool2d import adaptive_avg_pool2d_nodes
from tests.ops.test_avg_pool2d import avg_pool2d_nodes
from tests.ops.test_conv2d import conv2d_nodes
from tests.ops.test_int4 import int4
from tests.ops.test_max_pool2d import max_pool2d_nodes
from tinyet import ops
from tinyet.boards import load_board
from tinyet.boards.cpus import Target
from tinyet.ir import Attrs, DType
from tinyet.ops import OPS
from tinyet.ops.adaptive_avg_pool2d import AdaptiveAvgPool2d
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.shared.window import Window

BOARDS = ("mps2_an385", "mps2_an386", "riscv32_virt")

NODES = {
    "conv2d": conv2d_nodes(),
    "depthwise": conv2d_nodes(kind="depthwise"),
    "conv2d_int4": conv2d_nodes(DType.INT8).map(int4),
    "max_pool2d": max_pool2d_nodes(),
    "avg_pool2d": avg_pool2d_nodes(),
    "adaptive_avg_pool2d": adaptive_avg_pool2d_nodes(),
}
"""Strategies."""

STATED = {k.symbol for op in OPS for k in op.kernels if k.sweep is not None}

SILENT = {
    "tinyet_conv_transpose2d_s8",
    "tinyet_conv_transpose2d_s16",
    "tinyet_conv_transpose2d_f32",
    "tinyet_dynamic_conv2d_f32",
    "tinyet_dynamic_depthwise_f32",
}
"""Portable kernels of windows that promise nothing yet."""


def placed(cases: Sequence[Case], target: Target, less: int = 0) -> list[Placed]:
    """By every portable kernel that takes a case and states a sweep; `less` pixels of the input too near."""
    found = []
    for case in cases:
        for kernel in ops.op_of(case.node).kernels:
            distance = None if kernel.why_not(case.node, target) else overlapping.stated(case, kernel)
            if distance is not None:
                x = case.node.input(0)
                found.append(Placed(case, kernel, distance - less * x.shape[-1] * x.dtype.bytes))
    return found


def lists(name: str, count: int = 30) -> st.SearchStrategy[list[Case]]:
    return st.lists(NODES[name], min_size=count, max_size=count)


@pytest.mark.parametrize("name", NODES)
def test_host(name: str) -> None:
    """Under ASan and UBSan."""

    @drawing.emulated
    @given(lists(name))
    def run(cases: list[Case]) -> None:
        assert not overlapping.wrong(placed(cases, HOST), HOST, run_on_host)

    run()


@pytest.mark.emulated
@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("board", BOARDS)
def test_emulated(name: str, board: str) -> None:
    require_emulator(board)
    target = load_board(board).target

    @drawing.emulated
    @given(lists(name))
    def run(cases: list[Case]) -> None:
        chosen = placed(cases, target)
        assert not overlapping.wrong(chosen, target, lambda d, raw: run_deployment(d, [[raw]], board)[0])

    run()


@st.composite
def steep(draw: st.DrawFn, dtype: DType) -> list[Case]:
    """Layers of which every output pixel lies behind what it is made of, where it lies over the input."""
    shape = (2, 5, 6, 7)
    x = draw(drawing.activations("x", shape, dtype))
    around: dict[str, Any] = {f"pad_{side}": 1 for side in ("top", "bottom", "left", "right")}

    def case(attrs: Attrs, weights: tuple[int, ...] = ()) -> Case:
        inputs, quant = [x], x.type.quant
        if weights:
            w = draw(drawing.weights(weights, dtype))
            inputs, quant = [x, w], draw(drawing.quants_of_sums(x, w))
        return Case(
            drawing.node_of(attrs, inputs, quant), (drawing.data(drawing.random(draw), shape, dtype),)
        )

    return [
        case(Conv2d(**around), (9, 3, 3, 7)),
        case(Conv2d(), (7, 1, 1, 7)),
        case(Conv2d(**around, groups=7), (7, 3, 3, 1)),
        case(MaxPool2d(**around, kernel_h=3, kernel_w=3)),
        case(AvgPool2d(**around, kernel_h=3, kernel_w=3)),
        case(AdaptiveAvgPool2d(8, 11)),
    ]


@settings(drawing.emulated, derandomize=True, max_examples=1)
@given(st.tuples(steep(DType.INT8), steep(DType.INT16), steep(DType.FLOAT32)))
def test_too_near_is_caught(cases: tuple[list[Case], ...]) -> None:
    """Statements that are two pixels short, of every kernel: some leave one to spare, since a channel is read before it
    is written."""
    all_cases = [case for some in cases for case in some] + [int4(case) for case in cases[0][:3]]
    assert not overlapping.wrong(placed(all_cases, HOST), HOST, run_on_host)
    short = placed(all_cases, HOST, less=2)
    assert {p.kernel.symbol for p in short} == STATED
    caught = overlapping.wrong(short, HOST, run_on_host)
    assert {line.split(":")[0] for line in caught} == STATED


def test_every_kernel_of_a_window_states_a_sweep() -> None:
    windows = {k.symbol for op in OPS if issubclass(op.attrs, Window) for k in op.kernels}
    assert windows - STATED == SILENT
