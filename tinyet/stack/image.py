# SPDX-License-Identifier: Apache-2.0
"""The parts of a firmware's ELF file that a stack bound needs: functions, code, and the compiler's frame information.

The compiler's own figure of a frame is the call frame information in the debug information (`.debug_frame`): how far
the stack pointer is below where it was at the function's entry, for each of its instructions. It is in the linked
file, so it is that of the code that runs, after inlining and link-time optimization, with the functions of libraries,
whatever build system and compiler made it. `-fstack-usage` says the same of each file that was compiled: it would have
to be among the flags of every kind of build, it knows no library, and it cannot tell functions of one name apart.
"""

from __future__ import annotations

import bisect
import io
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.callframe import FDE, CFARule
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import ARMAttributesSection, SymbolTableSection

from tinyet.errors import ToolchainError
from tinyet.files import elf_symbols
from tinyet.stack import riscv, thumb, xtensa
from tinyet.stack.operation import Decoder, Operation


@dataclass(frozen=True)
class Machine:
    """An instruction set.

    stack_pointer: its number in debug information. code_alone: between a function's first and last byte is nothing but
    code, or symbols tell; elsewhere a switch jumps by a table of addresses. address_bits: of a function's address.
    """

    decode: Decoder
    stack_pointer: int
    code_alone: bool
    address_bits: int = ~0


MACHINES: Mapping[str, Machine] = {
    "EM_ARM": Machine(thumb.decode, 13, code_alone=True, address_bits=~1),
    "EM_RISCV": Machine(riscv.decode, 2, code_alone=True),
    "EM_XTENSA": Machine(xtensa.decode, 1, code_alone=False),
}


@dataclass(frozen=True)
class Function:
    """The address range of a function: [start, end)."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class _Part:
    """A section that is in the image, with its bytes."""

    start: int
    data: bytes
    code: bool


class Image:
    """A linked firmware. machine: None for an instruction set that is not read here."""

    def __init__(self, elf: Path) -> None:
        """Raises ToolchainError: no ELF file, or one without symbols."""
        try:
            image = ELFFile(io.BytesIO(elf.read_bytes()))
            tables = [s for s in image.iter_sections() if isinstance(s, SymbolTableSection)]
            symbols = [
                s for table in tables if table["sh_type"] == "SHT_SYMTAB" for s in elf_symbols.symbols(table)
            ]
            if not symbols:
                raise ELFError("it has no symbols")
            self.isa: str = image["e_machine"]
            self.machine = MACHINES.get(self.isa)
            self.has_fpu = _has_fpu(image)
            self._parts = _parts(image)
            code = {i for i, s in enumerate(image.iter_sections()) if s["sh_flags"] & SH_FLAGS.SHF_EXECINSTR}
            frames = _frames(image)
        except (ELFError, DWARFError, OSError) as error:
            raise ToolchainError(
                f"the firmware's code cannot be read: {error}",
                str(elf),
                "build it again, and do not strip it",
            ) from error
        self.entry: int = self.address(image["e_entry"])
        found: dict[int, tuple[tuple[bool, bool, str], int]] = {}
        self._named: dict[str, list[int]] = {}
        self._objects: dict[str, tuple[int, int]] = {}
        marks: dict[int, bool] = {}
        for symbol in symbols:
            name, value = symbol.name, symbol.value
            if name.partition(".")[0] in ("$t", "$d", "$a", "$x"):
                # Sections of debug information have such marks, too, and begin at 0.
                if symbol.section in code:
                    marks[value] = name[1] != "d"
            elif symbol.section is not None and symbol.kind == "STT_FUNC":
                address = self.address(value)
                # Of several names the one that C knows it by: no weak one, a global one.
                rank = (symbol.bind == "STB_WEAK", symbol.bind != "STB_GLOBAL", name)
                entry = rank, symbol.size
                found[address] = min(found.get(address, entry), entry)
                self._named.setdefault(name, []).append(address)
            else:
                self._objects[name] = (value, symbol.size)
                if value == image["e_entry"]:
                    # Assembly may leave out that it is a function.
                    found.setdefault(self.entry, ((True, True, name), 0))
        self._marks = sorted(marks.items())
        # Of functions that the linker has dropped there is information still, as if they were at 0.
        self._frames = [frame for frame in frames if frame[0] in found]
        # What the compiler has put apart because it is seldom needed is a piece of its function.
        whole = {a: (rank[2], size) for a, (rank, size) in found.items() if ".cold" not in rank[2]}
        self.starts: Sequence[int] = sorted(whole)
        self.functions: Mapping[int, Function] = {
            start: Function(name, start, start + size if size else self._until(start))
            for start, (name, size) in sorted(whole.items())
        }

    def address(self, value: int) -> int:
        return value & (-1 if self.machine is None else self.machine.address_bits)

    def _until(self, start: int) -> int:
        """The end of a function of unknown size: the next function, or the end of its section."""
        following = self.starts[bisect.bisect_right(self.starts, start) :][:1]
        ends = [part.start + len(part.data) for part in self._parts if start - part.start < len(part.data)]
        return min([*following, *(end for end in ends if end > start)], default=start)

    def named(self, name: str) -> list[int]:
        """Addresses of the functions with a name in C; the compiler may have put something behind it."""
        found = self._named.get(name) or self._plainly_named.get(name, [])
        return sorted({a for a in found if a in self.functions})

    @cached_property
    def _plainly_named(self) -> dict[str, list[int]]:
        """Addresses of functions by their names in C."""
        found: dict[str, list[int]] = {}
        for known, addresses in self._named.items():
            found.setdefault(plain_name(known), []).extend(addresses)
        return found

    def symbol(self, name: str) -> int | None:
        """The value of a symbol that is no function; None where there is none."""
        return self._objects[name][0] if name in self._objects else None

    def pointers(self, name: str) -> list[int] | None:
        """The functions whose addresses an object holds, or that lie between `<name>_start` and `<name>_end`; None
        where there is no such object."""
        if name not in self._objects and f"{name}_start" not in self._objects:
            return None
        addresses = [self.address(word) for word in self.words(name)]
        return [address for address in addresses if address in self.functions]

    def words(self, name: str) -> list[int]:
        """The words of an object, or those between `<name>_start` and `<name>_end`; none where neither exists."""
        start, size = self._objects.get(name, (0, 0))
        if f"{name}_start" in self._objects and f"{name}_end" in self._objects:
            start = self._objects[f"{name}_start"][0]
            size = self._objects[f"{name}_end"][0] - start
        found = (self.word(start + at) for at in range(0, size - 3, 4))
        return [word for word in found if word is not None]

    def words_between(self, start: int, end: int) -> Sequence[int]:
        """All words of the image that lie between two addresses themselves: as those of a table of jumps do."""
        return self._words[bisect.bisect_right(self._words, start) : bisect.bisect_left(self._words, end)]

    @cached_property
    def _words(self) -> list[int]:
        """All aligned words of the image in ascending order, each once."""
        return sorted({word for part in self._parts for (word,) in struct.iter_unpack("<I", _aligned(part))})

    def word(self, address: int) -> int | None:
        """Four bytes of the image; None where it has none."""
        data = self._at(address)
        return int.from_bytes(data[:4], "little") if len(data) >= 4 else None

    def _at(self, address: int, *, code: bool = False) -> bytes:
        for part in self._parts:
            if 0 <= address - part.start < len(part.data) and (part.code or not code):
                return part.data[address - part.start : address - part.start + 4]
        return b""

    def is_code(self, address: int) -> bool:
        """Whether instructions lie there, and not constants between them."""
        mark = bisect.bisect_right(self._marks, (address, True)) - 1
        data_mark = mark >= 0 and not self._marks[mark][1]
        return len(self._at(address, code=True)) >= 2 and not data_mark

    def operation(self, machine: Machine, address: int) -> Operation:
        """The instruction at an address of code."""
        return machine.decode(address, self._at(address, code=True), self.word)

    def compilers_depth(self, machine: Machine, address: int) -> int | None:
        """Bytes of stack that the function has taken before the instruction at an address, as its compiler says; None
        where that is silent, or counts from another register, as in a frame of variable size."""
        at = bisect.bisect_right(self._frame_starts, address) - 1
        if at < 0 or address >= self._frames[at][1]:
            return None
        found: int | None = None
        for place, register, offset in self._rows(at):
            if place > address:
                break
            found = offset if register == machine.stack_pointer else None
        return found

    @cached_property
    def _frame_starts(self) -> list[int]:
        return [start for start, _, _ in self._frames]

    def _rows(self, at: int) -> list[tuple[int, int, int]]:
        if at not in self._decoded:
            rows = self._frames[at][2].get_decoded().table
            self._decoded[at] = [
                (row["pc"], -1 if row["cfa"].reg is None else row["cfa"].reg, row["cfa"].offset or 0)
                for row in rows
                if isinstance(row.get("cfa"), CFARule)
            ]
        return self._decoded[at]

    @cached_property
    def _decoded(self) -> dict[int, list[tuple[int, int, int]]]:
        return {}


def plain_name(symbol: str) -> str:
    """A function's name in C: without what the compiler puts behind it for a copy or a part."""
    return symbol.partition(".")[0].partition("$")[0] or symbol


def _aligned(part: _Part) -> bytes:
    """The whole words of a section."""
    skipped = -part.start % 4
    return part.data[skipped : skipped + (len(part.data) - skipped) // 4 * 4]


def _has_fpu(image: ELFFile) -> bool:
    """Whether float registers are in use, as the file says of itself (Addenda to the ABI for the Arm Architecture)."""
    return any(
        attribute.tag == "TAG_FP_ARCH" and attribute.value
        for section in image.iter_sections()
        if isinstance(section, ARMAttributesSection)
        for subsection in section.iter_subsections()
        for part in subsection.iter_subsubsections()
        for attribute in part.iter_attributes()
    )


def _parts(image: ELFFile) -> list[_Part]:
    return [
        _Part(part["sh_addr"], part.data(), bool(part["sh_flags"] & SH_FLAGS.SHF_EXECINSTR))
        for part in image.iter_sections()
        if part["sh_flags"] & SH_FLAGS.SHF_ALLOC and part["sh_type"] != "SHT_NOBITS" and part["sh_size"]
    ]


def _frames(image: ELFFile) -> list[tuple[int, int, FDE]]:
    """(start, end, what is known) of each function that the debug information describes, by address."""
    if not image.has_dwarf_info():
        return []
    information = image.get_dwarf_info(relocate_dwarf_sections=False)
    entries = [
        entry
        for has, read in (
            (information.has_CFI, information.CFI_entries),
            (information.has_EH_CFI, information.EH_CFI_entries),
        )
        if has()
        for entry in read()
        if isinstance(entry, FDE)
    ]
    found = {entry["initial_location"]: entry for entry in entries}
    return [(start, start + e["address_range"], e) for start, e in sorted(found.items())]
