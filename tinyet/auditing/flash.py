# SPDX-License-Identifier: Apache-2.0
"""The bytes that a linked firmware puts into flash, its symbols, and the types of its constants."""

from __future__ import annotations

import bisect
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.die import DIE
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tinyet.errors import ToolchainError
from tinyet.files import elf_symbols

# What compilers put behind a name, or around it: of copies, link-time optimization, C++.
_SUFFIX = re.compile(r"\.(lto_priv|constprop|isra|part|cold|\d).*$")
_MANGLED = re.compile(r"_ZL(\d+)(\w+)$")


def plain_name(symbol: str) -> str:
    """A variable's name in C, of that of its symbol."""
    name = _SUFFIX.sub("", symbol)
    mangled = _MANGLED.match(name)
    return mangled[2] if mangled and len(mangled[2]) == int(mangled[1]) else name


@dataclass(frozen=True)
class Part:
    """A section with bytes in the image. start: its address when the program runs. code: it has instructions."""

    name: str
    start: int
    data: bytes
    code: bool

    @property
    def end(self) -> int:
        return self.start + len(self.data)


@dataclass(frozen=True)
class Symbol:
    """A function or an object of the image: [start, end). file: the C file that it comes from, where it is local to
    one."""

    name: str
    start: int
    end: int
    code: bool
    file: str


class Flash:
    """The sections of an ELF file that are in the image, initial values of variables among them."""

    def __init__(self, elf: Path) -> None:
        """Raises ToolchainError: no ELF file, one that is cut off, or one without symbols."""
        try:
            self._elf = ELFFile(io.BytesIO(elf.read_bytes()))
            sections = list(self._elf.iter_sections())
            self.parts = tuple(
                Part(s.name, s["sh_addr"], s.data(), bool(s["sh_flags"] & SH_FLAGS.SHF_EXECINSTR))
                for s in sections
                if s["sh_flags"] & SH_FLAGS.SHF_ALLOC and s["sh_type"] != "SHT_NOBITS" and s["sh_size"]
            )
            tables = [s for s in sections if isinstance(s, SymbolTableSection)]
            self._read(next((s for s in tables if s["sh_type"] == "SHT_SYMTAB"), None))
        except (ELFError, OSError) as error:
            raise ToolchainError(
                f"the firmware cannot be read: {error}", str(elf), "build it again, and do not strip it"
            ) from error
        self.word_bytes = self._elf.elfclass // 8

    def _read(self, table: SymbolTableSection | None) -> None:
        if table is None or not table.num_symbols():
            raise ELFError("it has no symbols")
        arm = self._elf["e_machine"] == "EM_ARM"
        file, found = "", list[Symbol]()
        marks: dict[int, bool] = {}
        for symbol in elf_symbols.symbols(table):
            kind, value, size = symbol.kind, symbol.value, symbol.size
            local = symbol.bind == "STB_LOCAL"
            if kind == "STT_FILE":
                file = symbol.name
            elif symbol.name.partition(".")[0] in ("$t", "$d", "$a", "$x"):
                marks[value] = symbol.name[1] != "d"
            elif kind in ("STT_OBJECT", "STT_FUNC") and symbol.section is not None:
                code = kind == "STT_FUNC"
                start = value & ~1 if code and arm else value
                found.append(Symbol(symbol.name, start, start + size, code, file if local else ""))
        self._marks = sorted(marks.items())
        self.symbols = tuple(sorted(found, key=lambda s: (s.start, s.end)))

    def part_at(self, address: int) -> Part | None:
        return next((part for part in self.parts if part.start <= address < part.end), None)

    def bytes_at(self, start: int, end: int) -> bytes:
        """Those of the image; none where it has not all of them."""
        part = self.part_at(start)
        return part.data[start - part.start : end - part.start] if part and end <= part.end else b""

    def objects(self, name: str) -> list[Symbol]:
        """Those of a name in C."""
        return self._objects.get(name, [])

    @cached_property
    def _objects(self) -> dict[str, list[Symbol]]:
        found: dict[str, list[Symbol]] = {}
        for symbol in self.symbols:
            if not symbol.code and self.part_at(symbol.start) is not None:
                found.setdefault(plain_name(symbol.name), []).append(symbol)
        return found

    def mark(self, address: int) -> bool | None:
        """Whether instructions lie there, as the marks of Arm and RISC-V tell; None where there are none."""
        at = self._mark(address)
        return self._marks[at][1] if at >= 0 else None

    def next_mark(self, address: int, end: int) -> int:
        """The next mark behind an address, at most `end`."""
        at = self._mark(address) + 1
        return min(self._marks[at][0], end) if at < len(self._marks) else end

    def _mark(self, address: int) -> int:
        return bisect.bisect_right(self._marks, address, key=lambda mark: mark[0]) - 1

    @cached_property
    def functions(self) -> list[tuple[int, int]]:
        """[start, end) of each, by address."""
        return sorted({(s.start, s.end) for s in self.symbols if s.code and s.end > s.start})

    def variable_type(self, file: str, name: str) -> DIE | None:
        """The type of a variable of a C file, as the debug information has it; None where that is silent."""
        return self._variables(file).get(name)

    def _variables(self, file: str) -> dict[str, DIE]:
        if file not in self._known:
            try:
                self._known[file] = dict(self._typed(file))
            except (DWARFError, ELFError, KeyError):
                self._known[file] = {}
        return self._known[file]

    @cached_property
    def _known(self) -> dict[str, dict[str, DIE]]:
        return {}

    def _typed(self, file: str) -> Iterator[tuple[str, DIE]]:
        if not self._elf.has_dwarf_info():
            return
        for unit in self._elf.get_dwarf_info(relocate_dwarf_sections=False).iter_CUs():
            top = unit.get_top_DIE()
            if "DW_AT_name" not in top.attributes or Path(top.get_full_path()).name != file:
                continue
            for die in top.iter_children():
                named = "DW_AT_name" in die.attributes and "DW_AT_type" in die.attributes
                if die.tag == "DW_TAG_variable" and named:
                    name = die.attributes["DW_AT_name"].value.decode()
                    yield name, die.get_DIE_from_attribute("DW_AT_type")
