# SPDX-License-Identifier: Apache-2.0
"""Flash and stack as they are known before a build, and limits that are kept."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from tests import small
from tests.emulated.test_code_size import pairs
from tinyet.boards import Board, load_board
from tinyet.budget.fit import FitRequest, Limits, check_fit, fitted, objective_of
from tinyet.budget.room import HARNESS_STACK, Room, room_of
from tinyet.budget.tables import Core, around_table, core_table, table_of
from tinyet.delegates import CORTEX_M, PORTABLE
from tinyet.deployment import Deployment, deploy
from tinyet.errors import FitError, UsageError
from tinyet.ir import Graph
from tinyet.ops.tree_ensemble import BRANCHES, SIGNATURES
from tinyet.opset import cost
from tinyet.projects.one import generate

M4 = load_board("mps2_an386")
# One board for each table.
BOARDS = ("microbit", "mps2_an385", "mps2_an386", "mps3_an547", "riscv32_virt", "xtensa_lx60")
GRAPHS = {"small": small.graph(), "wide": small.graph(hidden=64), "pairs": pairs().graph}


def table(board: Board) -> Core:
    found = core_table(table_of(board.target))
    assert found is not None, board.name
    return found


@pytest.mark.parametrize("name", [*BOARDS, "arduino_uno"])
def test_every_kernel_is_in_the_table(name: str) -> None:
    board = load_board(name)
    core = table(board)
    homes = [home for home in (PORTABLE, CORTEX_M) if home.supports(board.target) is None]
    symbols = {
        kernel.symbol
        for home in homes
        for kernels in home.kernels.values()
        for kernel in kernels
        if "mve" in board.target.features or not kernel.symbol.endswith("_mve")
    }
    # What nobody has measured on a core is not chosen there.
    rates = cost.measured(cost.core_of(board.target))
    stated = set() if rates is None else rates.kernels.keys()
    symbols -= {f"{BRANCHES}_{dtypes}" for dtypes in SIGNATURES} - stated
    # Of these the function has the name of what it computes.
    families = {"tinyet_compare", "tinyet_mul_s8", "tinyet_binary_s32", "tinyet_unary_f32"}
    assert symbols - families <= core.library.keys() | core.made.keys()
    assert all(need in core.sizes for function in core.library.values() for need in function.needs)
    assert not board.bare_metal or around_table(board) is not None


def test_every_bare_metal_board_has_what_its_firmware_is_made_of() -> None:
    """And a board that differs in what its firmware is made of has none."""
    other = dataclasses.replace(M4, counter="another")
    assert around_table(other) is None
    room = room_of(deploy(GRAPHS["small"], other.target), other)
    assert (room.flash.around, room.static) == (None, 0)
    assert room.flash.stated == room.flash.constants + room.flash.code


def placed(graph: Graph, limits: Limits, optimize: str) -> tuple[Deployment, Room]:
    deployment = fitted(FitRequest(graph, M4, objective_of(M4, optimize, limits), limits))
    check_fit(deployment, M4, limits)
    return deployment, room_of(deployment, M4, stack=limits.stack)


def ram(deployment: Deployment, room: Room) -> int:
    return deployment.plan.arena_bytes + deployment.state_bytes + room.static + room.stack.total


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_accepted_fits_and_what_fits_is_accepted(name: str) -> None:
    """Limits from below the smallest choice to above the fastest one; the smallest is always found, and the fastest
    where there is room for it."""
    graph, rng = GRAPHS[name], np.random.default_rng(3)
    fast, room = placed(graph, Limits(), "speed")
    most = room.flash.at_most
    nothing = Limits(max_flash=1)
    least = room_of(
        fitted(FitRequest(graph, M4, objective_of(M4, "size", nothing), nothing)), M4
    ).flash.at_most
    for limit in [least, most, *rng.integers(least, most + 200, 6).tolist()]:
        for optimize in ("speed", "balanced"):
            _, found = placed(graph, Limits(max_flash=limit), optimize)
            assert found.flash.at_most <= limit
    again, _ = placed(graph, Limits(max_flash=most), "speed")
    assert [s.choice.kernel.symbol for s in again.steps] == [s.choice.kernel.symbol for s in fast.steps]
    with pytest.raises(FitError, match="flash: constants"):
        placed(graph, Limits(max_flash=least - 700), "speed")


@pytest.mark.parametrize("name", GRAPHS)
def test_ram_counts_the_stack_that_the_chosen_kernels_take(name: str) -> None:
    graph = GRAPHS[name]
    most = ram(*placed(graph, Limits(), "balanced"))
    for limit in range(most, most - 600, -120):
        try:
            deployment, room = placed(graph, Limits(max_ram=limit), "balanced")
        except FitError:
            break
        assert ram(deployment, room) <= limit
        assert room.stack.total < M4.stack_bytes
    with pytest.raises(FitError, match="stack of an inference"):
        placed(graph, Limits(max_ram=1024), "balanced")
    # What is reserved for callers is there for data where less of it is asked for.
    limits = Limits(max_ram=most - 1024 + HARNESS_STACK, stack=HARNESS_STACK)
    assert ram(*placed(graph, limits, "balanced")) <= most - 1024 + HARNESS_STACK


def test_the_reserve_is_in_the_project(tmp_path: Path) -> None:
    for stack in (None, 2048):
        project = generate(small.program(), M4, tmp_path / "p", kind="cmake", stack=stack)
        total = project.room.stack.total
        assert project.board.stack_bytes == total
        assert project.limits.stack == stack
        assert project.room.stack.caller == (stack or 1024)
        (script,) = project.path.rglob("linker.ld")
        assert f". += {total};" in script.read_text()
        assert json.loads((project.path / "tinyet.json").read_text())["stack_bytes"] == total
    with pytest.raises(UsageError, match="stack is a whole number from 384 on"):
        generate(small.program(), M4, tmp_path / "q", stack=100)
    # A framework decides where its stack lies: what the board's file says counts.
    uno = generate(small.program(), "nano_33_ble", tmp_path / "a", kind="arduino")
    assert uno.board.stack_bytes == load_board("nano_33_ble").stack_bytes
