# SPDX-License-Identifier: Apache-2.0
"""The symbols of an ELF file. pyelftools parses each by its general description of records, which for a firmware of
some thousand symbols takes longer than all else that is read of it."""

from __future__ import annotations

import struct
from typing import NamedTuple

from elftools.common.exceptions import ELFError
from elftools.elf.sections import SymbolTableSection

OBJECT, FUNCTION, FILE = 1, 2, 4
"""Types of symbols: STT_OBJECT, STT_FUNC, STT_FILE."""
LOCAL, GLOBAL, WEAK = 0, 1, 2
"""How symbols are bound: STB_LOCAL, …"""
_UNDEFINED, _FIRST_RESERVED = 0, 0xFF00


class Symbol(NamedTuple):
    """section: the number of the one that it is in; None for those that are in none: undefined, absolute, common."""

    name: str
    value: int
    size: int
    type: int
    bind: int
    section: int | None


def symbols_of(table: SymbolTableSection) -> list[Symbol]:
    """In their order. Raises ELFError for a table that is cut off."""
    image = table.elffile
    order, wide = "<" if image.little_endian else ">", image.elfclass == 64
    record = struct.Struct(order + ("IBBHQQ" if wide else "IIIBBH"))
    image.stream.seek(0)
    data = image.stream.read()
    start, names, step = table["sh_offset"], table.stringtable["sh_offset"], table["sh_entsize"]
    found = []
    for at in range(start, start + table.num_symbols() * step, step):
        if at + record.size > len(data):
            raise ELFError(f"section {table.name} is cut off")
        if wide:
            name, info, _, home, value, size = record.unpack_from(data, at)
        else:
            name, value, size, info, _, home = record.unpack_from(data, at)
        section = home if _UNDEFINED < home < _FIRST_RESERVED else None
        end = data.find(b"\0", names + name)
        text = data[names + name : end].decode(errors="replace") if end >= 0 else ""
        found.append(Symbol(text, value, size, info & 0xF, info >> 4, section))
    return found
