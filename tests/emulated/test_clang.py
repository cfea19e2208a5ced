# SPDX-License-Identifier: Apache-2.0
"""Clang in GCC's place: a network through a CMake project, and what Clang must not do. Operators are tested in
test_operators.py and test_own_functions.py by both compilers, trained networks in tests/acceptance/test_cores.py."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import tinyet
from tests import small
from tests.ops.emulated import require_emulator
from tinyet import assets
from tinyet.boards import load_board
from tinyet.build import clang, cmake
from tinyet.build.process import run
from tinyet.delegates import kernel_sources
from tinyet.emit.project import Kind
from tinyet.errors import ToolchainError, UsageError

pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed"),
]


def test_a_network_through_a_cmake_project(tmp_path: Path) -> None:
    require_emulator()
    # A space in the path, for what CMake makes of it.
    project = tinyet.generate(small.program(), "mps2_an386", tmp_path / "a project", kind="cmake")
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
        project = tinyet.generate(program, board, tmp_path / f"{kind}-{board}", kind=kind)
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
