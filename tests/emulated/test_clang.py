# SPDX-License-Identifier: Apache-2.0
"""Clang in GCC's place, on Cortex-M4 and Cortex-M55: every operator bit for bit, with the cores' own instructions and
without a warning; a network through a CMake project. Trained networks are in tests/acceptance/test_cores.py."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis.strategies import SearchStrategy

import tinyet
from tests import small
from tests.delegates import cmsis_nodes, elementwise_nodes, test_cortex_m
from tests.emulated.test_riscv import drawn, drawn_of
from tests.ops.cases import Case, assert_exact
from tests.ops.emulated import require_emulator, run_emulated
from tinyet import assets
from tinyet.assets import kernel_sources
from tinyet.boards import load_board
from tinyet.build import clang, cmake
from tinyet.build.process import run
from tinyet.delegates import CMSIS_NN, CORTEX_M, Delegate
from tinyet.delegates.cortex_m import FOR_FLASH
from tinyet.emit.project import Kind
from tinyet.errors import ToolchainError, UsageError
from tinyet.ops import OPS

STRICT = ("-O2", "-g1", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror")

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed"),
]


# What each delegate has instructions of its own for.
DSP = (
    test_cortex_m.gemm_nodes,
    test_cortex_m.depthwise_nodes,
    test_cortex_m.any_depthwise_nodes,
    test_cortex_m.linear_nodes,
    test_cortex_m.row_nodes,
    elementwise_nodes.elementwise_nodes,
    elementwise_nodes.extremum_nodes,
    elementwise_nodes.one_operand_nodes,
    elementwise_nodes.batch_norm_nodes,
    elementwise_nodes.bilinear_nodes,
    elementwise_nodes.softmax_nodes,
    test_cortex_m.pool_nodes,
)
HELIUM = (
    cmsis_nodes.pointwise_nodes,
    cmsis_nodes.wide_depthwise_nodes,
    cmsis_nodes.sum_nodes,
    cmsis_nodes.maximum_pool_nodes,
    cmsis_nodes.softmax_nodes,
)


@pytest.mark.parametrize(
    ("board", "delegate", "own"),
    [("mps2_an386", CORTEX_M, DSP), ("mps3_an547", CMSIS_NN, HELIUM)],
    ids=["cortex-m4", "cortex-m55"],
)
def test_operators(board: str, delegate: Delegate, own: Sequence[Callable[[], SearchStrategy[Case]]]) -> None:
    require_emulator(board)
    if delegate is CMSIS_NN and assets.cmsis_nn_dir() is None:
        pytest.skip("CMSIS-NN is not on this machine")
    cases = [case for op in OPS for case in drawn_of(op.name)[-2:]]
    cases += [case for nodes in own for case in drawn(nodes())]
    on = functools.partial(
        run_emulated, board_name=board, delegates=(delegate,), compiler="clang", flags=STRICT
    )
    deployment = assert_exact(cases, on=on)
    assert {step.choice.kernel.delegate for step in deployment.steps} == {"portable", delegate.name}


@pytest.mark.parametrize("symbol", [kernel.symbol for kernel in FOR_FLASH])
def test_kernels_for_flash(symbol: str) -> None:
    """Their multiply loops take all registers."""
    require_emulator("mps2_an386")
    alone = test_cortex_m.only(symbol)
    cases = drawn(test_cortex_m.NODES[symbol]().filter(lambda case: test_cortex_m.takes(alone, case)))
    on = functools.partial(
        run_emulated, board_name="mps2_an386", delegates=(alone,), compiler="clang", flags=STRICT
    )
    assert_exact(cases, on=on)


def test_a_network_through_a_cmake_project(tmp_path: Path) -> None:
    require_emulator()
    # A space in the path, for what CMake makes of it.
    project = tinyet.generate(small.program(), "mps2_an386", tmp_path / "a project", project="cmake")
    compilers = []
    for compiler in ("clang", "gcc", "clang"):
        project.build(compiler=compiler)
        result = project.validate(small.images(2), on="qemu", sqnr_samples=0)
        assert result.bit_exact, result.first_mismatch
        assert result.stack_bytes is not None
        debug_text = cmake.elf_path(project.path, project.board, "small_app").read_bytes()
        compilers.append("clang" if b"clang version" in debug_text else "gcc")
    assert compilers == ["clang", "gcc", "clang"]


def test_what_clang_is_not_for(tmp_path: Path) -> None:
    program = small.program()
    refused: tuple[tuple[str, Kind, str, str], ...] = (
        ("mps2_an386", "platformio", "clang", "a platformio project chooses its compiler itself"),
        ("mps2_an386", "cmake", "tcc", "there is no compiler 'tcc'"),
        ("riscv32_virt", "cmake", "clang", "clang is for Cortex-M"),
    )
    for board, kind, compiler, words in refused:
        project = tinyet.generate(program, board, tmp_path / f"{kind}-{board}", project=kind)
        with pytest.raises(UsageError, match=words):
            project.build(compiler=compiler)
    with pytest.raises(ToolchainError, match="clang-999 is not installed"):
        tinyet.open_project(tmp_path / "cmake-mps2_an386").build(compiler="clang-999")


@pytest.mark.parametrize("compiler", ["clang", "gcc"])
def test_floats_are_not_computed_in_helium_vectors(compiler: str, tmp_path: Path) -> None:
    """Those take subnormal numbers for zero. Both compilers would use them."""
    require_emulator("mps3_an547")
    board = load_board("mps3_an547")
    words = (
        [board.toolchain.compiler, *board.machine_flags]
        if compiler == "gcc"
        else clang.command(board, compiler)
    )
    names = ("unary_f32", "linear_f32", "layer_norm_f32", "resize_bilinear_f32")
    flags = ["-std=c11", "-O3", "-ffp-contract=off", f"-I{assets.path('firmware') / 'include'}"]
    for source in kernel_sources.write(tmp_path, [f"tinyet_{name}.c" for name in names]):
        out = source.with_suffix(".s")
        run([*words, *flags, "-S", source, "-o", out], timeout=60, what="compiling for a test")
        assert not re.findall(r"^\tv(?!mov)\S*\.f32\S*\s+q.*", out.read_text(), re.MULTILINE)
