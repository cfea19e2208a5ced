# SPDX-License-Identifier: Apache-2.0
"""Runs a board in QEMU, with time that is a count of instructions.

With `-icount shift=N` each instruction takes 2^N ns of QEMU's virtual time, independent of the host. The board's
counter runs in that time, so the ticks between two readings give the number of instructions, exactly when an
instruction lasts at least two ticks: reading cuts less than one tick off each end, and rounding finds the whole
number. N = 9 makes it 8 ticks for the slowest counter here (16 MHz) and 86 for the fastest (168 MHz).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tinyet.boards import Board, Qemu
from tinyet.build import process
from tinyet.build.size import check_elf
from tinyet.device.child import Child
from tinyet.device.links import PipeLink
from tinyet.errors import EmulatorError
from tinyet.files import elf_symbols

# The emulated UART's least rate, on a slow host. Virtual UARTs know no baud rate.
BYTES_PER_SECOND = 5000.0

_ICOUNT_SHIFT = 9

_SEMIHOSTING = "tinyet_semihosting"
_COPY = "firmware.elf"


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


def with_semihosting(elf: Path) -> bytes | None:
    """The firmware file of a harness that takes its stream from QEMU itself (tinyet_semihosting.c); None where it is
    no such firmware."""
    data = bytearray(elf.read_bytes())
    try:
        image = ELFFile(io.BytesIO(data))
        table = image.get_section_by_name(".symtab")
        symbols = elf_symbols.symbols(table) if isinstance(table, SymbolTableSection) else []
        found = next((symbol for symbol in symbols if symbol.name == _SEMIHOSTING), None)
        if found is None or found.section is None:
            return None
        section = image.get_section(found.section)
        at = section["sh_offset"] + found.value - section["sh_addr"]
    except (ELFError, KeyError, TypeError, ValueError):
        return None
    if not 0 <= at <= len(data) - 4:
        return None
    data[at : at + 4] = (1).to_bytes(4, "little")
    return bytes(data)


def command(board: Board, elf: str, options: Sequence[str] = (), *, semihosting: bool = False) -> list[str]:
    """The words that start QEMU with the firmware, whose stream is QEMU's standard input and output: the board's UART,
    or semihosting, for a file of `with_semihosting`. elf: a path, as QEMU will see it.

    Raises EmulatorError, ToolchainError.
    """
    machine = _machine(board)
    tool = process.find_tool(str(board.toolchain.qemu), what=f"running {board.name} in QEMU")
    stdio = ("-chardev", "stdio,id=uart,signal=off")
    unused = tuple(word for _ in range(machine.serial) for word in ("-serial", "null"))
    stream = (*stdio, *unused, "-serial", "chardev:uart")
    if semihosting:
        # The firmware opens the standard streams of this process by itself.
        stream = ("-semihosting-config", "enable=on,target=native", *unused, "-serial", "null")
    return [
        str(tool),
        *("-M", machine.machine, *machine.args),
        *("-display", "none", "-monitor", "none", "-net", "none"),
        *options,
        *stream,
        *("-kernel", elf),
    ]


def start(board: Board, elf: Path, plugin: Sequence[str] = ()) -> PipeLink:
    """Start QEMU with the firmware and return the link to its UART. Raises EmulatorError, ToolchainError.

    plugin: the path of a shared object and its arguments. Time is the host's then: a plugin that counts needs no
    counter, and QEMU would cut blocks of code where a timer is due.
    """
    counted = ("-icount", f"shift={_ICOUNT_SHIFT},sleep=off,align=off")
    # In a list of arguments QEMU reads two commas as one that belongs to the argument.
    loaded = ("-plugin", "file=" + ",".join(word.replace(",", ",,") for word in plugin))
    return PipeLink(child(board, elf, loaded if plugin else counted))


def child(board: Board, elf: Path, options: Sequence[str] = ()) -> Child:
    """QEMU with the firmware, as a process whose standard input and output are the firmware's stream. Raises
    EmulatorError, ToolchainError."""
    check_elf(elf)
    copy = with_semihosting(elf)
    if copy is None:
        return Child(command(board, str(elf.resolve()), options), pipes=True)
    return Child(command(board, _COPY, options, semihosting=True), pipes=True, files={_COPY: copy})
