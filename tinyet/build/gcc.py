# SPDX-License-Identifier: Apache-2.0
"""Builds a bare-metal firmware with the compiler alone: no project, no build system."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinyet import assets
from tinyet.boards import Board
from tinyet.boards.cpus import CLANG_LINK_FLAGS
from tinyet.boards.linker import linker_script
from tinyet.build import clang, objects, process

HARNESS_DEFINES = (("TINYET_TRACE", "1"),)

_LINK_SECONDS = 300.0


def build_firmware(
    board: Board,
    sources: Sequence[Path],
    include_dirs: Sequence[Path],
    out_dir: Path,
    defines: Sequence[tuple[str, str]] = (),
    *,
    harness: bool = True,
    flags: Sequence[str] = ("-O2",),
    compiler: str = clang.GCC,
) -> Path:
    """Compile and link `sources` with the board's support files; return the path of `out_dir`/firmware.elf.

    sources: the model, its kernels, and model_desc.c; without the harness, a file with main() instead.
    harness: add the harness, and turn its trace on in all sources.
    flags:   after the default ones, so that they win.
    compiler: "gcc", or "clang" (clang-16, ...) for a board with a Cortex-M; GCC links in any case.
    Raises ToolchainError with the compiler's messages.
    """
    firmware = assets.path("firmware")
    out_dir.mkdir(parents=True, exist_ok=True)
    script = out_dir / "linker.ld"
    script.write_text(linker_script(board), encoding="utf-8", newline="\n")
    elf = out_dir / "firmware.elf"
    own = board.support_sources + (board.harness_sources if harness else ())
    all_defines = (*board.defines, *(HARNESS_DEFINES if harness else ()), *defines)
    gcc_only = compiler == clang.GCC
    linker = [board.toolchain.compiler, *board.machine_flags, *board.toolchain.library_flags]
    command = [
        *(linker if gcc_only else clang.command(board, compiler)),
        *("-std=c11", "-g", "-ffunction-sections", "-fdata-sections", "-ffp-contract=off"),
        *flags,
        *(f"-D{name}={value}" for name, value in all_defines),
        *(f"-I{path}" for path in (firmware / "include", firmware / "platform", *include_dirs)),
    ]
    what = f"building the firmware for {board.name}"
    all_sources = [*(firmware / source for source in own), *sources]
    link = [
        *linker,
        *objects.compile_objects(command, all_sources, out_dir / "objects", what=what),
        *(
            "-nostartfiles",
            "-Wl,--gc-sections",
            "-Wl,--fatal-warnings",
            *(() if gcc_only else CLANG_LINK_FLAGS),
        ),
        f"-T{script}",
        *("-o", elf),
    ]
    process.run(link, timeout=_LINK_SECONDS, what=what)
    process.check_made(elf, link, what=what)
    return elf
