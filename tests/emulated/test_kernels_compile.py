# SPDX-License-Identifier: Apache-2.0
"""Every kernel source is clean C11 and C++17: for Arm cores with and without DSP instructions, RISC-V, this machine."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from tinyet import assets
from tinyet.boards import load_board
from tinyet.build import clang

FLAGS = ("-O2", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror", "-ffp-contract=off")
LANGUAGES = {
    "gcc": ("-x", "c", "-std=c11"),
    "g++": ("-x", "c++", "-std=c++17"),
    "clang": ("-x", "c", "-std=c11"),
}


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("board", "compiler"),
    [
        *itertools.product(["host", "nrf51_dk", "mps2_an386", "mps3_an547", "riscv32_virt"], ["gcc", "g++"]),
        *itertools.product(["nrf51_dk", "mps3_an547"], ["clang"]),
    ],
)
def test_clean(board: str, compiler: str) -> None:
    prefix = ""
    machine: list[str | Path] = []
    if compiler == "clang":
        for tool in (compiler, load_board(board).toolchain.compiler):
            if shutil.which(tool) is None:
                pytest.skip(f"{tool} is not installed")
        machine = clang.command(load_board(board), compiler)[1:]
    elif board != "host":
        toolchain = load_board(board).toolchain
        prefix, machine = toolchain.prefix, [*load_board(board).machine_flags, *toolchain.library_flags]
    if shutil.which(prefix + compiler) is None:
        pytest.skip(f"{prefix}{compiler} is not installed")
    firmware = assets.path("firmware")
    sources = [str(path) for path in sorted((firmware / "src").glob("*.c"))]
    command = [prefix + compiler, *LANGUAGES[compiler], *machine, *FLAGS, "-I", str(firmware / "include")]
    done = subprocess.run([*command, "-fsyntax-only", *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
