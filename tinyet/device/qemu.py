# SPDX-License-Identifier: Apache-2.0
"""Runs a board in QEMU, with time that is a count of instructions.

With `-icount shift=N` each instruction takes 2^N ns of QEMU's virtual time, independent of the host. The board's
counter runs in that time, so the ticks between two readings give the number of instructions, exactly when an
instruction lasts at least two ticks: reading cuts less than one tick off each end, and rounding finds the whole
number. N = 9 makes it 8 ticks for the slowest counter here (16 MHz) and 86 for the fastest (168 MHz).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinyet.boards import SEMIHOSTING, Board, Qemu
from tinyet.build import process
from tinyet.build.size import check_elf
from tinyet.device.child import Child
from tinyet.device.links import PipeLink
from tinyet.errors import EmulatorError

# The emulated UART's least rate, on a slow host. Virtual UARTs know no baud rate.
BYTES_PER_SECOND = 5000.0

_ICOUNT_SHIFT = 9


def _machine(board: Board) -> Qemu:
    if board.qemu is None:
        raise EmulatorError(
            what=f"QEMU has no machine for the board {board.name}",
            hint="add a [qemu] table to the board file, or run on: "
            + (", ".join(board.emulators) or "serial:PORT"),
        )
    return board.qemu


def ticks_per_instruction(board: Board) -> float:
    """Ticks of the board's counter an instruction."""
    return _machine(board).counter_hz * (1 << _ICOUNT_SHIFT) / 1e9


def command(board: Board, elf: Path, options: Sequence[str] = ()) -> list[str]:
    """The words that start QEMU with the firmware, whose stream is QEMU's standard input and output.

    Raises EmulatorError, ToolchainError.
    """
    machine = _machine(board)
    check_elf(elf)
    tool = process.find_tool(str(board.toolchain.qemu), what=f"running {board.name} in QEMU")
    stdio = ("-chardev", "stdio,id=uart,signal=off")
    unused = tuple(word for _ in range(machine.serial) for word in ("-serial", "null"))
    stream = (*stdio, *unused, "-serial", "chardev:uart")
    if board.uart is not None and board.uart.driver == SEMIHOSTING:
        # The firmware opens the standard streams of this process by itself.
        stream = ("-semihosting-config", "enable=on,target=native", *unused, "-serial", "null")
    return [
        str(tool),
        *("-M", machine.machine, *machine.args),
        *("-display", "none", "-monitor", "none", "-net", "none"),
        *options,
        *stream,
        *("-kernel", str(elf.resolve())),
    ]


def start(board: Board, elf: Path, plugin: Sequence[str] = ()) -> PipeLink:
    """Start QEMU with the firmware and return the link to its UART. Raises EmulatorError, ToolchainError.

    plugin: the path of a shared object and its arguments. Time is the host's then: a plugin that counts needs no
    counter, and QEMU would cut blocks of code where a timer is due.
    """
    counted = ("-icount", f"shift={_ICOUNT_SHIFT},sleep=off,align=off")
    # In a list of arguments QEMU reads two commas as one that belongs to the argument.
    loaded = ("-plugin", "file=" + ",".join(word.replace(",", ",,") for word in plugin))
    return PipeLink(Child(command(board, elf, loaded if plugin else counted), pipes=True))
