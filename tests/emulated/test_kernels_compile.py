# SPDX-License-Identifier: Apache-2.0
"""Every kernel source is clean C11 and C++17: for Arm cores with and without DSP instructions, RISC-V, this machine."""

from __future__ import annotations

import itertools
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tinyet import assets
from tinyet.assets import kernel_sources
from tinyet.boards import load_board
from tinyet.build import clang

FLAGS = (
    *(
        "-O2",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wsign-conversion",
        "-Wshadow",
        "-Wcast-qual",
        "-Wcast-align",
    ),
    *("-Wundef", "-Wdouble-promotion", "-Werror", "-ffp-contract=off"),
)
LANGUAGES = {
    "gcc": ("-x", "c", "-std=c11"),
    "g++": ("-x", "c++", "-std=c++17", "-Wuseless-cast"),
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
def test_clean(board: str, compiler: str, tmp_path: Path) -> None:
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
    sources = [str(source) for source in kernel_sources.write(tmp_path, kernel_sources.names())]
    include = assets.path("firmware") / "include"
    flags = [*map(str, machine), *FLAGS, "-I", str(include), "-fsyntax-only"]
    command = [prefix + compiler, *LANGUAGES[compiler], *flags]
    if compiler == "clang":
        command = without_driver(command, sources[0])
    done = subprocess.run([*command, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def without_driver(command: list[str], source: str) -> list[str]:
    """The compiler that clang's driver starts for a source, which takes all at once: most of the time is its start."""
    said = subprocess.run([*command, "-###", source], capture_output=True, text=True, check=True).stderr
    words = shlex.split(said.splitlines()[-1])
    assert "-cc1" in words, said
    return [word for word in words if word != source]


TWO_CALLS = """
#include "tinyet_concat.h"
int8_t arena[2048];
void layer(const int8_t *in, int8_t *out);
TINYET_FUNCTION void join(const void *a, const void *b, void *out) {
  tinyet_concat_part(a, out, 0u, 4u, 8u, 64u);
  tinyet_concat_part(b, out, 4u, 4u, 8u, 64u);
}
void model(void);
void model(void) {
  layer(arena + 16, arena + 512);
  join(arena + 512, arena + 768, arena);
  layer(arena, arena + 1024);
  join(arena + 512, arena + 768, arena);
  layer(arena, arena + 1024);
}
"""


@pytest.mark.emulated
@pytest.mark.parametrize("board", ["nrf51_dk", "mps2_an386"])
def test_two_layers_that_are_one_call_are_both_there(board: str, tmp_path: Path) -> None:
    """Of a copy of a function for addresses that are always the same, GCC 12 leaves the calls away."""
    toolchain = load_board(board).toolchain
    if shutil.which(toolchain.compiler) is None:
        pytest.skip(f"{toolchain.compiler} is not installed")
    source = tmp_path / "model.c"
    source.write_text(TWO_CALLS, encoding="utf-8")
    include = assets.path("firmware") / "include"
    command = [toolchain.compiler, *load_board(board).machine_flags, "-O2", "-S", "-o", "-"]
    done = subprocess.run(
        [*command, "-I", str(include), str(source)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\nmodel:")[1].count("\tjoin") == 2
