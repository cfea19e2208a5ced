# SPDX-License-Identifier: Apache-2.0
"""Builds a bare-metal firmware with the compiler alone: no project, no build system."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from tinyet import assets
from tinyet.boards import Board
from tinyet.boards.cpus import CLANG_LINK_FLAGS
from tinyet.boards.linker import linker_script
from tinyet.build import clang, objects, process

HARNESS_DEFINES = (("TINYET_TRACE", "1"),)

_LINK_SECONDS = 300.0

_DEBUG_INFORMATION = "-g"

SIMULATED_RAM_END = 0xC0FF
"""The last address of the RAM that simavr gives a chip: its addresses reach further than its own RAM."""
_SIMULATED_STACK_BYTES = 0x1000
_DATA_REGION = 0x60
"""Where the region of data begins for the linker scripts of AVR; data itself begins behind the registers."""


def build_firmware(
    board: Board,
    sources: Sequence[Path],
    include_dirs: Sequence[Path],
    out_dir: Path,
    defines: Sequence[tuple[str, str]] = (),
    *,
    harness: bool = True,
    flags: Sequence[str] = (),
    compiler: str = clang.GCC,
) -> Path:
    """Compile and link `sources` with the board's support files; return the path of `out_dir`/firmware.elf.

    sources: the model, its kernels, and model_desc.c; without the harness, a file with main() instead.
    harness: add the harness, and turn its trace on in all sources.
    flags:   after the default ones, so that they win; none for the optimization that is usual on the board.
    compiler: "gcc", or "clang" (clang-16, ...) for a board with a Cortex-M; GCC links in any case.
    Raises ToolchainError with the compiler's messages.
    """
    if board.simavr is not None:
        return _build_for_simavr(board, sources, include_dirs, out_dir, defines, flags, harness=harness)
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
        *_compile_flags("c11", flags or (board.toolchain.optimization,), all_defines, include_dirs),
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


def _compile_flags(
    standard: str, flags: Sequence[str], defines: Sequence[tuple[str, str]], include_dirs: Sequence[Path]
) -> list[str]:
    firmware = assets.path("firmware")
    return [
        *(f"-std={standard}", _DEBUG_INFORMATION, "-ffp-contract=off"),
        *("-ffunction-sections", "-fdata-sections", *flags),
        *(f"-D{name}={value}" for name, value in defines),
        *(f"-I{path}" for path in (firmware / "include", firmware / "platform", *include_dirs)),
    ]


def _build_for_simavr(
    board: Board,
    sources: Sequence[Path],
    include_dirs: Sequence[Path],
    out_dir: Path,
    defines: Sequence[tuple[str, str]],
    flags: Sequence[str],
    *,
    harness: bool,
) -> Path:
    """What `build_firmware` makes, for the chip that simavr simulates: startup code and linker script are
    avr-libc's."""
    assert board.simavr is not None
    firmware = assets.path("firmware")
    target = dataclasses.replace(board.target, mcu=board.simavr.mcu)
    linker = [board.toolchain.compiler, *target.machine_flags, *board.toolchain.library_flags]
    clock = ("TINYET_CLOCK_HZ", f"{board.clock_hz}u")
    all_defines = (clock, *(HARNESS_DEFINES if harness else ()), *defines)
    command = [
        *linker,
        # __flash, in which constants are, is no word of standard C.
        *_compile_flags("gnu11", flags or (board.toolchain.optimization,), all_defines, include_dirs),
    ]
    what = f"building the firmware for {board.name}"
    own = ("platform/tinyet_simavr.c", *(board.harness_sources if harness else ()))
    all_sources = [*(firmware / source for source in own), *sources]
    limit = SIMULATED_RAM_END + 1 - _SIMULATED_STACK_BYTES
    symbols = {
        "__stack": SIMULATED_RAM_END,
        "tinyet_stack_limit": limit,
        "__DATA_REGION_LENGTH__": limit - _DATA_REGION,
    }
    elf = out_dir / "firmware.elf"
    link: list[str | Path] = [
        *linker,
        *objects.compile_objects(command, all_sources, out_dir / "objects", what=what),
        "-Wl,--gc-sections",
        *(f"-Wl,--defsym={name}={value:#x}" for name, value in symbols.items()),
        *("-lm", "-o", elf),
    ]
    process.run(link, timeout=_LINK_SECONDS, what=what)
    process.check_made(elf, link, what=what)
    return elf
