# SPDX-License-Identifier: Apache-2.0
"""Runs an AVR board in simavr, whose simulated clock counts the cycles that Microchip's table gives each instruction.

simavr's own program takes no input for a chip's serial port. So the library has a program of ours around it, one file
of C that is compiled each time; the firmware reads the count from it.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path
from typing import Literal

from tinyet import assets
from tinyet.boards import Board, Simavr
from tinyet.build import process
from tinyet.build.gcc import SIMULATED_RAM_END
from tinyet.build.size import check_elf
from tinyet.device.child import Child
from tinyet.device.links import PipeLink
from tinyet.errors import EmulatorError, MissingTool, ToolchainError

# On a slow host; of the simulated serial port a byte takes 80 cycles.
BYTES_PER_SECOND = 2000.0

_WHAT = "running an AVR in simavr"
_SOURCE = "tinyet_simavr.c"
_BUILD_SECONDS = 60.0
# Of the simulated clock: without end. The host has deadlines of its own.
_SECONDS = "1e9"

_KEEP: list[tempfile.TemporaryDirectory[str]] = []


def ticks_per_instruction(board: Board) -> float | None:
    """None: what is counted are the cycles of the core's clock."""
    _machine(board)
    return None


def start(board: Board, elf: Path, count: Literal["cycles", "instructions"] = "cycles") -> PipeLink:
    """Start simavr with a firmware that `gcc.build_firmware` has made for the board; return the link to its serial
    port. count: what the firmware's counter shows. Raises EmulatorError, ToolchainError."""
    machine = _machine(board)
    check_elf(elf)
    words = [str(runner()), str(elf.resolve()), machine.mcu, str(board.clock_hz), _SECONDS]
    return PipeLink(Child([*words, str(SIMULATED_RAM_END), count], pipes=True))


@functools.cache
def runner() -> Path:
    """The program around the library, compiled once a process. Raises MissingTool, with all that is missing, and
    ToolchainError."""
    compiler = "gcc" if shutil.which("gcc") else "cc"
    if shutil.which(compiler) is None:
        raise MissingTool(
            f"{_WHAT} needs a C compiler for this machine (gcc or cc)", "PATH", process.install_command("cc")
        )
    holder = tempfile.TemporaryDirectory(prefix="tinyet-simavr-")
    _KEEP.append(holder)
    out = Path(holder.name) / "tinyet_simavr"
    command: list[str | Path] = [
        compiler,
        "-std=gnu11",
        "-O2",
        assets.path("simavr") / _SOURCE,
        "-o",
        out,
        "-lsimavr",
    ]
    try:
        process.run(command, timeout=_BUILD_SECONDS, what=_WHAT)
    except ToolchainError as error:
        if "simavr" not in f"{error}":
            raise
        raise MissingTool(
            f"{_WHAT} needs its library, with headers", "libsimavr", process.install_command("simavr")
        ) from error
    process.check_made(out, command, what=_WHAT)
    return out


def _machine(board: Board) -> Simavr:
    if board.simavr is None:
        raise EmulatorError(
            what=f"simavr has no chip for the board {board.name}",
            hint="add a [simavr] table to the board file, or run on: "
            + (", ".join(board.emulators) or "serial:PORT"),
        )
    return board.simavr
