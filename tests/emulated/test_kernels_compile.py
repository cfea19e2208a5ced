# SPDX-License-Identifier: Apache-2.0
"""Every kernel source is clean C11 and C++17: for Arm cores with and without DSP instructions, RISC-V, this machine."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tinyet import assets
from tinyet.boards import load_board

FLAGS = ("-O2", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror", "-ffp-contract=off")
LANGUAGES = {"gcc": ("-x", "c", "-std=c11"), "g++": ("-x", "c++", "-std=c++17")}


@pytest.mark.emulated
@pytest.mark.parametrize("compiler", list(LANGUAGES))
@pytest.mark.parametrize("board", ["host", "nrf51_dk", "mps2_an386", "mps3_an547", "riscv32_virt"])
def test_clean(board: str, compiler: str) -> None:
    prefix = ""
    machine: tuple[str, ...] = ()
    if board != "host":
        toolchain = load_board(board).toolchain
        prefix, machine = toolchain.prefix, (*load_board(board).machine_flags, *toolchain.library_flags)
    if shutil.which(prefix + compiler) is None:
        pytest.skip(f"{prefix}{compiler} is not installed")
    firmware = assets.path("firmware")
    sources = [str(path) for path in sorted((firmware / "src").glob("*.c"))]
    command = [prefix + compiler, *LANGUAGES[compiler], *machine, *FLAGS, "-I", str(firmware / "include")]
    done = subprocess.run([*command, "-fsyntax-only", *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
