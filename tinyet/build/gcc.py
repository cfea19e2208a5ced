# SPDX-License-Identifier: Apache-2.0
"""Builds a bare-metal firmware with the compiler alone: one command, no project, no build system."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinyet import assets
from tinyet.boards import Board
from tinyet.boards.linker import linker_script
from tinyet.build import process

HARNESS_DEFINES = (("TINYET_TRACE", "1"),)

_COMPILE_SECONDS = 300.0


def support_sources(board: Board, *, harness: bool = True) -> list[Path]:
    """The C files of tinyet's own that a firmware for the board includes."""
    own = board.support_sources + (board.harness_sources if harness else ())
    return [assets.path("firmware") / source for source in own]


def compiler(
    board: Board,
    defines: Sequence[tuple[str, str]] = (),
    *,
    harness: bool = True,
    flags: Sequence[str] = ("-O2",),
) -> list[str]:
    """The compiler and its flags, but for the model's include directories; arguments as for `build_firmware`."""
    firmware = assets.path("firmware")
    return [
        board.toolchain.compiler,
        *board.machine_flags,
        *("-std=c11", "-g", "-ffunction-sections", "-fdata-sections", "-ffp-contract=off"),
        *flags,
        *(
            f"-D{name}={value}"
            for name, value in (*board.defines, *(HARNESS_DEFINES if harness else ()), *defines)
        ),
        *(f"-I{path}" for path in (firmware / "include", firmware / "platform")),
    ]


def build_firmware(
    board: Board,
    sources: Sequence[Path],
    include_dirs: Sequence[Path],
    out_dir: Path,
    defines: Sequence[tuple[str, str]] = (),
    *,
    harness: bool = True,
    flags: Sequence[str] = ("-O2",),
    support: Sequence[Path] | None = None,
) -> Path:
    """Compile and link `sources` with the board's support files; return the path of `out_dir`/firmware.elf.

    sources: the model, its kernels, and model_desc.c; without the harness, a file with main() instead.
    harness: add the harness, and turn its trace on in all sources.
    flags:   after the default ones, so that they win.
    support: the objects of `support_sources`, where `compiler` has made them before; None compiles them.
    Raises ToolchainError with the compiler's messages.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    script = out_dir / "linker.ld"
    script.write_text(linker_script(board), encoding="utf-8", newline="\n")
    elf = out_dir / "firmware.elf"
    process.run(
        [
            *compiler(board, defines, harness=harness, flags=flags),
            *(f"-I{path}" for path in include_dirs),
            *(support_sources(board, harness=harness) if support is None else support),
            *sources,
            *board.toolchain.library_flags,
            *("-nostartfiles", "-Wl,--gc-sections", "-Wl,--fatal-warnings"),
            f"-T{script}",
            *("-o", elf),
        ],
        timeout=_COMPILE_SECONDS,
        what=f"building the firmware for {board.name}",
    )
    return elf
