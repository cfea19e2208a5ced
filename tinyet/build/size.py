# SPDX-License-Identifier: Apache-2.0
"""What a firmware image costs: bytes of flash and RAM by section and by symbol, read from the ELF file.

Layouts of the file header, section headers and symbols: System V ABI, chapter 4 (32-bit, little endian).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tinyet.errors import ToolchainError

Where = Literal["flash", "ram"]

_ELF_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIIIIIIIII")
_SYMBOL = struct.Struct("<IIIBBH")

_SHT_SYMTAB, _SHT_NOBITS = 2, 8
_SHF_WRITE, _SHF_ALLOC = 1, 2
_STT_OBJECT, _STT_FUNC = 1, 2

# The linker script of every board reserves the stack between these two addresses.
_STACK_LIMIT, _STACK_TOP = "__stack_limit", "__stack_top"
# A linker script may also make sections of the room it reserves; they hold no data of the program.
_RESERVED = (".stack", ".heap")


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

    `ram` is static data; `stack` is what the linker script reserves beside it.
    """

    flash: int
    ram: int
    stack: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def largest(self, where: Where, count: int = 10) -> tuple[Symbol, ...]:
        """Return the largest symbols in flash or RAM, largest first, ties by name."""
        inside = [s for s in self.symbols if (s.section.in_flash if where == "flash" else s.section.in_ram)]
        return tuple(sorted(inside, key=lambda s: (-s.bytes, s.name))[:count])


def measure(elf: Path) -> Size:
    """Read the size of a firmware image.

    Raises ToolchainError when the file is not a 32-bit little-endian ELF file.
    """
    image = elf.read_bytes()
    try:
        return _measure(image)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise ToolchainError(
            what=f"not a 32-bit little-endian ELF file: {error}",
            where=str(elf),
            hint="build the firmware again",
        ) from error


def _measure(image: bytes) -> Size:
    if image[:6] != b"\x7fELF\x01\x01":
        raise ValueError("the magic number does not match")
    header = _ELF_HEADER.unpack_from(image)
    table, entry_size, count, names_index = header[6], header[11], header[12], header[13]
    # name, type, flags, address, offset, size, link, info, alignment, entry size
    headers = [_SECTION_HEADER.unpack_from(image, table + i * entry_size) for i in range(count)]
    names = headers[names_index][4]

    sections: dict[int, Section] = {}
    for index, (name_at, kind, flags, address, _, size, *_) in enumerate(headers):
        if not flags & _SHF_ALLOC or size == 0:
            continue
        name = _string(image, names + name_at)
        if name in _RESERVED:
            continue
        sections[index] = Section(
            name, address, size, in_flash=kind != _SHT_NOBITS, in_ram=bool(flags & _SHF_WRITE)
        )
    symbols: dict[tuple[str, int], Symbol] = {}
    stack = dict.fromkeys((_STACK_LIMIT, _STACK_TOP), 0)
    for name, value, size, info, home in _symbols(image, headers):
        if name in stack:
            stack[name] = value
        if size and info & 0xF in (_STT_OBJECT, _STT_FUNC) and home in sections:
            # Bit 0 of a function's address says "Thumb" and is no part of the address.
            address = value & ~1 if info & 0xF == _STT_FUNC else value
            symbols[name, address] = Symbol(name, address, size, sections[home])
    ordered = tuple(sorted(sections.values(), key=lambda s: (s.address, s.name)))
    return Size(
        flash=sum(s.bytes for s in ordered if s.in_flash),
        ram=sum(s.bytes for s in ordered if s.in_ram),
        stack=stack[_STACK_TOP] - stack[_STACK_LIMIT],
        sections=ordered,
        symbols=tuple(sorted(symbols.values(), key=lambda s: (s.address, s.name))),
    )


def _symbols(image: bytes, headers: list[tuple[int, ...]]) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield name, value, size, info and section index of each symbol in the symbol table."""
    for _, kind, _, _, offset, size, link, *_ in headers:
        if kind != _SHT_SYMTAB:
            continue
        names = headers[link][4]
        for at in range(offset, offset + size, _SYMBOL.size):
            name_at, value, length, info, _, home = _SYMBOL.unpack_from(image, at)
            yield _string(image, names + name_at), value, length, info, home


def _string(image: bytes, at: int) -> str:
    return image[at : image.index(b"\0", at)].decode()
