# SPDX-License-Identifier: Apache-2.0
"""Symbols are what pyelftools reads, one by one."""

from __future__ import annotations

import io
import struct
import sys
from pathlib import Path

import pytest
from elftools.common.exceptions import ELFParseError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tests.unit.test_size import SYMBOLS, image
from tinyet.files.elf_symbols import ElfSymbol, symbols


def tables(data: bytes) -> list[SymbolTableSection]:
    return [s for s in ELFFile(io.BytesIO(data)).iter_sections() if isinstance(s, SymbolTableSection)]


def wanted(table: SymbolTableSection) -> list[ElfSymbol]:
    found = []
    for symbol in table.iter_symbols():
        info, home = symbol["st_info"], symbol["st_shndx"]
        section = home if isinstance(home, int) else None
        facts = (symbol["st_value"], symbol["st_size"], str(info["type"]), str(info["bind"]), section)
        found.append(ElfSymbol(symbol.name, *facts))
    return found


def test_of_32_bits() -> None:
    (table,) = tables(image())
    assert symbols(table) == wanted(table)
    assert [symbol.name for symbol in symbols(table)] == ["", *(name for name, *_ in SYMBOLS)]


def test_of_64_bits() -> None:
    program = Path(sys.executable).resolve().read_bytes()
    if program[:5] != b"\x7fELF\x02":
        pytest.skip("Python is no ELF file of 64 bits here")
    for table in tables(program):
        assert symbols(table) == wanted(table)
        assert len(symbols(table)) > 1


def test_a_table_beyond_the_end() -> None:
    data = bytearray(image())
    (headers,) = struct.unpack_from("<I", data, 32)
    number = next(i for i in range(9) if struct.unpack_from("<I", data, headers + 40 * i + 4)[0] == 2)
    struct.pack_into("<I", data, headers + 40 * number + 16, len(data) - 24)
    (table,) = tables(bytes(data))
    with pytest.raises(ELFParseError):
        symbols(table)


def test_a_name_beyond_the_end() -> None:
    data = bytearray(image())
    (table,) = tables(bytes(data))
    struct.pack_into("<I", data, table["sh_offset"] + 16, len(data))
    (table,) = tables(bytes(data))
    assert symbols(table) == wanted(table)
    assert symbols(table)[1].name == ""
