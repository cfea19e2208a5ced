# SPDX-License-Identifier: Apache-2.0
"""Clang as the compiler of Cortex-M firmware: the C library and the linker stay those of GCC's toolchain."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tinyet.boards import Board
from tinyet.build import process
from tinyet.errors import ToolchainError, UsageError

GCC = "gcc"
_SECONDS = 60.0


def check_compiler(compiler: str, board: Board) -> None:
    """Raise UsageError for a name that is neither gcc nor clang (clang-16, ...), and for clang where it is not used."""
    if compiler == GCC:
        return
    if not re.fullmatch(r"clang(-\d+)?", compiler):
        raise UsageError(
            f"there is no compiler {compiler!r}", hint="gcc, clang, or one version of it: clang-16"
        )
    if board.target.clang_flags is None:
        raise UsageError(
            f"clang is for Cortex-M, and {board.name} has a core of another family: {board.cpu}",
            hint="leave the compiler out",
        )


def command(board: Board, compiler: str) -> list[str | Path]:
    """Clang with its flags for the board's core, and where the C library's headers are.

    Raises UsageError as check_compiler does, ToolchainError when one of the two compilers is missing.
    """
    check_compiler(compiler, board)
    assert board.target.clang_flags is not None
    process.find_tool(compiler, what=f"compiling for {board.name}")
    headers = [word for place in _library_headers(board) for word in ("-isystem", place)]
    return [compiler, *board.target.clang_flags, *headers]


def _library_headers(board: Board) -> list[Path]:
    """The directories of the C library's headers, as GCC searches them; without those of GCC's own headers."""
    gcc = board.toolchain.compiler
    said = process.run(
        [gcc, *board.machine_flags, *board.toolchain.library_flags, "-E", "-Wp,-v", "-xc", os.devnull],
        timeout=_SECONDS,
        # Its answer is searched for English words.
        env={**os.environ, "LC_ALL": "C"},
        what=f"asking {gcc} for the C library",
    ).stderr
    _, _, listed = said.partition("#include <...> search starts here:\n")
    places = re.findall(r"^ (\S.*)$", listed, re.MULTILINE)
    found = [
        Path(place)
        for place in places
        if any(Path(place, name).is_file() for name in ("newlib.h", "string.h"))
    ]
    if not found:
        raise ToolchainError(
            f"{gcc} has no C library for {board.cpu}", gcc, process.install_command("newlib")
        )
    return found
