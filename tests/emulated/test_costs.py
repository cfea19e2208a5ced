# SPDX-License-Identifier: Apache-2.0
"""What kernels say that they cost, against what the emulator counts and the compiler makes, on layers of known
networks.

`python benchmarks/costs.py` does the same over a grid of drawn shapes for each kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks import cost_code, costs, kernels
from benchmarks.cost_grids import DRAWN
from tests.ops.cases import arenas_of_any_size
from tests.ops.emulated import require_emulator
from tinyet.boards import Board, Flash, load_board
from tinyet.boards.cpus import Target
from tinyet.delegates import CORTEX_M, PORTABLE, Delegate
from tinyet.deployment import Step
from tinyet.ir import Array, Attrs, Graph, Node
from tinyet.ops.add import Add
from tinyet.ops.mul import Mul
from tinyet.ops.tree_ensemble import BRANCHES, SIGNATURES
from tinyet.opset import Cost, Definition, Kernel, cost

ALL, EACH, DRAWN_EACH = 0.03, 0.07, 0.13
"""Largest error of the sum of all layers, of one of a known network, and of one of any shape."""
WRAPPERS = 0.09
"""Of the code of all wrappers: what is stated to the byte, printed functions, is not among it."""
BY_VALUES = {
    *("tinyet_maximum_s8", "tinyet_minimum_s8"),
    *(f"{BRANCHES}_{dtypes}" for dtypes in SIGNATURES),
}
"""Kernels that jump over half of their work by what they read, or are branches that a compiler arranges: of a layer
nothing but an average can be stated."""
UNROLLED = {
    "tinyet_conv2d_s8_winograd_f4x4_dsp",
    "tinyet_conv2d_s8_w16_winograd_f4x4_dsp",
    "tinyet_conv2d_s8_packed_2x4_ram_dsp",
}
"""Kernels whose loops a compiler unrolls or copies for some shapes: their code is stated to a third or so, instructions
by a percent less exactly than others'."""
WITHOUT_DSP = {
    "tinyet_conv2d_s8_packed_words",
    "tinyet_conv2d_1x1_s8_packed_words",
    "tinyet_linear_s8_packed_words",
    "tinyet_conv2d_s8_4x4",
    "tinyet_depthwise_s8_chw_3x3",
}
"""Kernels that nobody has measured on cores with DSP, which have better ones."""
MADE_FOR = {
    "tinyet_linear_s8_two_taps": {"cortex-m0", "cortex-m3", "rv32imac", "xtensa-lx106"},
    "tinyet_conv2d_s8_packed_twos": {"cortex-m0"},
    "tinyet_conv2d_1x1_s8_packed_twos": {"cortex-m0"},
    "tinyet_conv2d_s8_paired_4x2": {"cortex-m3"},
    "tinyet_conv2d_s8_outer_threes_3x4": {"cortex-m3", "cortex-m4-dsp"},
    "tinyet_conv2d_s8_paired_threes_6x2": {"xtensa-lx106"},
    "tinyet_conv2d_s8_paired_threes_6x4": {"cortex-m3", "rv32imac"},
    "tinyet_conv2d_s8_paired_fours_4x1": {"cortex-m3"},
    "tinyet_conv2d_s8_paired_checked_8x1": {"cortex-m3"},
    "tinyet_conv2d_s8_paired_fives_5x2": {"cortex-m3"},
    "tinyet_depthwise_s8_cwh_3x3_2x1": {"cortex-m3"},
    "tinyet_conv2d_s8_w16_winograd_f4x4": {"cortex-m0", "cortex-m3", "rv32imac", "xtensa-lx106"},
    "tinyet_conv2d_s8_winograd_f4x4": {"cortex-m0", "cortex-m3", "rv32imac", "xtensa-lx106"},
    "tinyet_depthwise_s8_chw_3x3_2x1": {"cortex-m3", "rv32imac"},
    "tinyet_depthwise_s8_chw_3x3_threes": {"cortex-m3"},
    "tinyet_depthwise_s8_chw_3x3_fives": {"cortex-m3"},
    "tinyet_depthwise_s8_chw_3x3_twos": {"cortex-m0"},
    "tinyet_conv2d_s8_bytes_4x1": {"avr5"},
    "tinyet_depthwise_s8_bytes": {"avr5"},
    "tinyet_depthwise_s8_bytes_3x3": {"avr5"},
    "tinyet_linear_s8_bytes": {"avr5"},
}
"""Kernels that are measured on the cores that have assembly of theirs alone: others would not choose them for time, but
for a few bytes."""
SLOW = Flash(wait_states=5, line_bytes=16, code_lines=64, data_lines=8, prefetch=True)
"""A flash that waits, as of an STM32F446 at its fastest clock."""


def layers_and_kernels(target: Target) -> list[tuple[Node, Delegate, Kernel]]:
    """Each layer, with each kernel that can compute it; layers of one shape once."""
    found = {}
    homes = [delegate for delegate in (CORTEX_M, PORTABLE) if delegate.supports(target) is None]
    for node in [node for model in kernels.MODELS.values() for node in model]:
        for delegate in homes:
            for kernel in delegate.kernels[type(node.attrs)]:
                core = cost.core_of(target)
                elsewhere = core not in MADE_FOR.get(kernel.symbol, {core}) or (
                    "dsp" in target.features and kernel.symbol in WITHOUT_DSP
                )
                if kernel.cost_model is not None and not elsewhere and kernel.why_not(node, target) is None:
                    found[str(node.attrs), node.input(0).shape, node.outputs[0].shape, kernel.symbol] = (
                        node,
                        delegate,
                        kernel,
                    )
    return list(found.values())


def only(numbers: set[int], kernel: Kernel) -> Kernel:
    """A kernel for the layers of these numbers alone."""

    def refuse(node: Node, _target: Target) -> str | None:
        return None if int(node.outputs[0].name[1:]) in numbers else "another kernel's"

    return dataclasses.replace(kernel, refuse=refuse)


def run(cases: Sequence[tuple[Node, Delegate, Kernel]], board: Board) -> tuple[kernels.Measured, Graph]:
    """One firmware of all nodes, each computed by its kernel."""
    graph = kernels.side_by_side([node for node, _, _ in cases])
    delegates = []
    for home in (CORTEX_M, PORTABLE):
        numbers: dict[type[Attrs], dict[str, set[int]]] = {}
        for number, (node, delegate, kernel) in enumerate(cases):
            if delegate is home:
                of_symbol = numbers.setdefault(type(node.attrs), {})
                of_symbol.setdefault(kernel.symbol, set()).add(number)
        chosen = {
            attrs: tuple(
                only(of_symbol[kernel.symbol], kernel)
                for kernel in home.kernels[attrs]
                if kernel.symbol in of_symbol
            )
            for attrs, of_symbol in numbers.items()
        }
        delegates.append(Delegate(f"some_{home.name}", chosen, files=home.files))
    rng = np.random.default_rng(3)
    with arenas_of_any_size():
        arrays = costs.inputs_of(graph, rng)
        return kernels.run(graph, arrays, board, delegates, with_time=True), graph


def compared(step: Step, count: int, board: Board, limit: float = EACH) -> Cost:
    """What a layer's kernel states, which is near what was counted."""
    kernel = step.choice.kernel
    said = kernel.cost(step.node, board.target, step.call)
    assert said is not None, kernel.symbol
    assert said.scratch == step.call.scratch_bytes
    limit += 0.01 * (kernel.symbol in UNROLLED)
    assert kernel.symbol in BY_VALUES or abs(said.instructions / count - 1) <= limit, (
        f"{kernel.symbol}, {step.node.input(0).shape} to {step.node.outputs[0].shape}, {step.node.attrs}: "
        f"{said.instructions} stated, {count} counted"
    )
    return said


def check_cycles(measured: kernels.Measured, board: Board, each: float) -> None:
    """The cycles that kernels state are near those estimated of the firmware, with a flash that waits and without."""
    for flash in (None, SLOW):
        target = dataclasses.replace(board.target, flash=flash)
        stated, estimated = 0, 0.0
        for step, time in zip(measured.deployment.steps, measured.time, strict=True):
            kernel, own = step.choice.kernel, time.cycles[cost.cycles_of(target)]
            waits = 0.0
            if flash is not None:
                lines = time.jumped_lines + time.data_lines
                waits = flash.waits(lines, time.next_lines, own / max(time.bytes, 1))
            said = kernel.cost(step.node, target, step.call)
            assert said is not None
            assert said.cycles is not None
            assert kernel.symbol in BY_VALUES or abs(said.cycles / (own + waits) - 1) <= each, (
                f"{kernel.symbol}, {step.node.input(0).shape} to {step.node.outputs[0].shape}, {step.node.attrs}: "
                f"{said.cycles} cycles stated, {own} + {waits:.0f} estimated"
            )
            stated, estimated = stated + said.cycles, estimated + own + waits
        assert abs(stated / estimated - 1) <= ALL


@pytest.mark.parametrize(
    ("board_name", "of_so_many"),
    [
        ("mps2_an386", 2),
        ("mps2_an505", 5),
        ("mps2_an385", 2),
        ("microbit", 2),
        ("riscv32_virt", 2),
        ("xtensa_lx60", 2),
    ],
)
def test_costs_of_known_layers(board_name: str, of_so_many: int) -> None:
    """On cores that have rates of their own, and on one that has those of another."""
    board = costs.with_memory(load_board(board_name))
    require_emulator(board.name)
    measured, graph = run(layers_and_kernels(board.target)[::of_so_many], board)
    sizes, text = cost_code.own_code(measured.deployment, graph, board)
    functions = cost_code.wrappers(measured.deployment, sizes, text)
    stated, counted, constants = 0, 0, 0
    code: dict[Definition, int] = {}
    for step, count in zip(measured.deployment.steps, measured.counts, strict=True):
        said = compared(step, count, board)
        stated, counted = stated + said.instructions, counted + count
        constants += said.constants
        if isinstance(step.call.symbol, Definition) and step.choice.kernel.symbol not in UNROLLED:
            code.setdefault(step.call.symbol, said.code)
    assert abs(stated / counted - 1) <= ALL
    if cost.counts_cycles(board.target):
        check_cycles(measured, board, 2 * EACH)
    # Each wrapper's call is some 20 bytes more.
    compiled = sum(functions[made] + 20 for made in code)
    assert abs(sum(code.values()) - compiled) <= WRAPPERS * compiled
    of_calls = sum(c.data.nbytes for step in measured.deployment.steps for c in step.call.constants)
    assert constants == of_calls + measured.deployment.parameter_bytes


def test_a_board_with_memory_counts_the_same() -> None:
    """The instructions of a core are those of another that runs its code."""
    require_emulator("microbit")
    own = load_board("microbit")
    nodes = [kernels.conv((8, 8, 8), 10, (3, 3)), kernels.conv((8, 8, 8), 0, (3, 3)), kernels.linear(64, 10)]
    graph = kernels.side_by_side(nodes)
    rng = np.random.default_rng(5)
    arrays: list[Array] = [rng.integers(-128, 128, t.shape).astype(np.int8) for t in graph.inputs]
    counts = [kernels.run(graph, arrays, board, [PORTABLE]).counts for board in (own, costs.with_memory(own))]
    assert counts[0] == counts[1]


def drawn_layers(board: Board) -> list[tuple[Node, Delegate, Kernel]]:
    """Of operators that the known networks do not have, or only with operands of one shape: some nodes for each kernel
    that states a cost."""
    table = cost.measured(cost.core_of(board.target))
    assert table is not None
    of_symbol: dict[str, tuple[type[Attrs], Delegate, Kernel]] = {}
    for home in (CORTEX_M, PORTABLE):
        for attrs in (*DRAWN, Add, Mul) if home.supports(board.target) is None else ():
            for kernel in home.kernels.get(attrs, ()):
                if kernel.symbol in table.kernels:
                    of_symbol.setdefault(kernel.symbol, (attrs, home, kernel))
    return [
        (node, home, kernel)
        for attrs, home, kernel in of_symbol.values()
        for node in costs.grid(attrs, kernel, board, costs.COMPARE, 2)
    ]


@pytest.mark.parametrize("board_name", ["mps2_an386", "riscv32_virt"])
def test_costs_of_drawn_layers(board_name: str) -> None:
    board = load_board(board_name)
    require_emulator(board_name)
    measured, _ = run(drawn_layers(board), board)
    found = zip(measured.deployment.steps, measured.counts, strict=True)
    stated = {step: compared(step, count, board, DRAWN_EACH).instructions for step, count in found}
    assert len({step.choice.kernel.symbol for step in stated}) > 12
    assert abs(sum(stated.values()) / sum(measured.counts) - 1) <= ALL
    if cost.counts_cycles(board.target):
        check_cycles(measured, board, 2 * DRAWN_EACH)
