# SPDX-License-Identifier: Apache-2.0
"""The cost of a firmware image: bytes of flash and RAM by section and by symbol, read from the ELF file."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tinyet.boards import Memory
from tinyet.errors import ToolchainError
from tinyet.files import elf_symbols

Where = Literal["flash", "ram"]

# Names that `sample.h` defines. GCC may put a number behind a local name.
_SAMPLE = re.compile(r"_sample_\d+(\.\d+)?$")

# The linker script of every board reserves the stack between these two addresses.
_STACK_LIMIT, _STACK_TOP = "__stack_limit", "__stack_top"
# A linker script may also make sections of the room it reserves; they hold no data of the program.
_RESERVED = (".stack", ".heap")
_BUILD_AGAIN = "build it again"


@dataclass(frozen=True)
class Section:
    """An allocated section; `.data` lies in RAM and, as its initial value, in flash."""

    name: str
    address: int
    bytes: int
    in_flash: bool
    in_ram: bool


@dataclass(frozen=True)
class Symbol:
    """A function or object of known size, and the section it lies in."""

    name: str
    address: int
    bytes: int
    section: Section


@dataclass(frozen=True)
class Size:
    """The cost of an image in bytes.

    `ram` is static data; `stack` is the linker script's reserve beside it.
    """

    flash: int
    ram: int
    stack: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    @property
    def sample(self) -> int:
        """Bytes of flash that hold the demonstration's input, which is no part of the model."""
        return sum(s.bytes for s in self.symbols if s.section.in_flash and _SAMPLE.search(s.name))

    def bytes_in(self, memories: Sequence[Memory]) -> int:
        """Static data that lies in any of these memories."""
        return sum(
            section.bytes
            for section in self.sections
            if section.in_ram and any(m.origin <= section.address < m.end for m in memories)
        )

    def largest(self, where: Where, count: int = 10) -> tuple[Symbol, ...]:
        """Return the largest symbols in flash or RAM, largest first, ties by name."""
        inside = [s for s in self.symbols if (s.section.in_flash if where == "flash" else s.section.in_ram)]
        return tuple(sorted(inside, key=lambda s: (-s.bytes, s.name))[:count])


def is_elf(path: Path) -> bool:
    """Whether there is an ELF file at a place."""
    try:
        check_elf(path)
    except ToolchainError:
        return False
    return True


def check_elf(elf: Path) -> None:
    """Raise ToolchainError when there is no ELF file at a place: nothing, an empty file, another kind of file."""
    try:
        with elf.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise ToolchainError(
            f"the firmware cannot be read: {error.strerror}", str(elf), _BUILD_AGAIN
        ) from error
    if start != b"\x7fELF":
        kind = "an empty file" if not start else "no ELF file"
        raise ToolchainError(f"the firmware is {kind}", str(elf), _BUILD_AGAIN)


def measure(elf: Path) -> Size:
    """Read the size of a firmware image.

    Raises ToolchainError when the file is not a 32-bit little-endian ELF file, or not all of one.
    """
    try:
        return _measure(ELFFile(io.BytesIO(elf.read_bytes())))
    except ELFError as error:
        raise ToolchainError(
            what=f"not a 32-bit little-endian ELF file: {error}",
            where=str(elf),
            hint="build the firmware again",
        ) from error


def _measure(image: ELFFile) -> Size:
    if image.elfclass != 32 or not image.little_endian:
        raise ELFError(f"{image.elfclass} bits, {'little' if image.little_endian else 'big'} endian")
    parts = list(image.iter_sections())
    if not parts:
        raise ELFError("it has no sections")
    for part in parts:
        if part["sh_type"] != "SHT_NOBITS" and part["sh_offset"] + part["sh_size"] > image.stream_len:
            raise ELFError(f"section {part.name} is cut off")

    sections = {
        index: Section(
            part.name,
            part["sh_addr"],
            part["sh_size"],
            in_flash=part["sh_type"] != "SHT_NOBITS",
            in_ram=bool(part["sh_flags"] & SH_FLAGS.SHF_WRITE),
        )
        for index, part in enumerate(parts)
        if part["sh_flags"] & SH_FLAGS.SHF_ALLOC and part["sh_size"] and part.name not in _RESERVED
    }
    symbols: dict[tuple[str, int], Symbol] = {}
    stack = dict.fromkeys((_STACK_LIMIT, _STACK_TOP), 0)
    tables = (
        part for part in parts if isinstance(part, SymbolTableSection) and part["sh_type"] == "SHT_SYMTAB"
    )
    for symbol in (symbol for table in tables for symbol in elf_symbols.symbols(table)):
        home = None if symbol.section is None else sections.get(symbol.section)
        if symbol.name in stack:
            stack[symbol.name] = symbol.value
        if symbol.size and symbol.kind in ("STT_OBJECT", "STT_FUNC") and home:
            # Bit 0 of a function's address says "Thumb" and is no part of the address.
            address = symbol.value & ~1 if symbol.kind == "STT_FUNC" else symbol.value
            symbols[symbol.name, address] = Symbol(symbol.name, address, symbol.size, home)
    ordered = tuple(sorted(sections.values(), key=lambda s: (s.address, s.name)))
    return Size(
        flash=sum(s.bytes for s in ordered if s.in_flash),
        ram=sum(s.bytes for s in ordered if s.in_ram),
        stack=stack[_STACK_TOP] - stack[_STACK_LIMIT],
        sections=ordered,
        symbols=tuple(sorted(symbols.values(), key=lambda s: (s.address, s.name))),
    )
