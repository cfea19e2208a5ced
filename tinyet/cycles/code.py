# SPDX-License-Identifier: Apache-2.0
"""The code of a firmware, decoded from its ELF file: where each instruction stands, and where the functions begin."""

from __future__ import annotations

import bisect
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection

from tinyet.errors import ToolchainError
from tinyet.files import elf_symbols
from tinyet.timing import riscv, xtensa
from tinyet.timing.instruction import Instruction
from tinyet.timing.thumb import decode, is_wide, it_length
from tinyet.timing.vectors import FLAGS

# By the machine of an ELF file: what decodes a little-endian word that begins with an instruction. Nothing marks where
# code stands there, so that instructions are decoded where something has run.
_DECODERS: Mapping[str, Callable[[int], Instruction]] = {
    "EM_RISCV": riscv.decode,
    "EM_XTENSA": xtensa.decode,
}

# What begins at the address of such a symbol (ELF for the Arm Architecture, "Mapping symbols").
_CODE, _OTHERS = "$t", ("$d", "$a")


@dataclass(frozen=True)
class Function:
    """The address range of a function: [start, end)."""

    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Code:
    """instructions: by address. functions: by name; of several with one name, any."""

    instructions: Mapping[int, Instruction]
    functions: Mapping[str, Function]

    def block(self, start: int, count: int) -> list[Instruction]:
        """`count` instructions one behind the other. Raises KeyError where there is no code."""
        found: list[Instruction] = []
        at = start
        for _ in range(count):
            instruction = self.instructions[at]
            found.append(instruction)
            at += instruction.size
        return found


class _WhereAsked(dict[int, Instruction]):
    """Instructions that are decoded when somebody asks for them. sections: address and contents."""

    def __init__(self, sections: list[tuple[int, bytes]], decoder: Callable[[int], Instruction]) -> None:
        super().__init__()
        self._sections = sections
        self._decoder = decoder

    def __missing__(self, address: int) -> Instruction:
        for base, data in self._sections:
            if base <= address < base + len(data):
                at = address - base
                found = self[address] = self._decoder(int.from_bytes(data[at : at + 4], "little"))
                return found
        raise KeyError(address)


def read_code(elf: Path) -> Code:
    """Read the code of a firmware, of Thumb all at once. Raises ToolchainError: no ELF file, or one without symbols."""
    try:
        image = ELFFile(io.BytesIO(elf.read_bytes()))
        tables = [
            s for s in image.iter_sections() if isinstance(s, SymbolTableSection) and s.num_symbols() > 1
        ]
        if not tables:
            raise ELFError("it has no symbols")
        symbols = [symbol for table in tables for symbol in elf_symbols.symbols(table)]
        instructions: dict[int, Instruction] = {}
        if (decoder := _DECODERS.get(image["e_machine"])) is not None:
            instructions = _WhereAsked(
                [
                    (section["sh_addr"], section.data())
                    for section in image.iter_sections()
                    if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR and section["sh_type"] != "SHT_NOBITS"
                ],
                decoder,
            )
        marks: dict[int, list[tuple[int, bool]]] = {}
        functions: dict[str, Function] = {}
        for symbol in symbols:
            kind = symbol.name.partition(".")[0]
            if symbol.section is not None and (kind == _CODE or kind in _OTHERS):
                marks.setdefault(symbol.section, []).append((symbol.value, kind == _CODE))
            elif symbol.kind == "STT_FUNC":
                start = symbol.value & ~1
                functions[symbol.name] = Function(start, start + symbol.size)
        for index, found in marks.items():
            instructions.update(_decoded(image.get_section(index), sorted(found)))
    except (ELFError, OSError) as error:
        raise ToolchainError(
            f"the firmware's code cannot be read: {error}", str(elf), "build it again, and do not strip it"
        ) from error
    return Code(instructions, functions)


def _decoded(section: Section, marks: list[tuple[int, bool]]) -> Iterator[tuple[int, Instruction]]:
    """(address, instruction) of a section's Thumb code. marks: (address, is Thumb code) in ascending order."""
    if section["sh_type"] == "SHT_NOBITS":
        return
    base, data = section["sh_addr"], section.data()
    addresses = [address for address, _ in marks]
    for i, (address, is_code) in enumerate(marks):
        # Of several marks at one address the last one decides, whatever it says.
        if is_code and bisect.bisect_right(addresses, address) == i + 1:
            end = addresses[i + 1] if i + 1 < len(marks) else base + len(data)
            yield from _thumb(address, data[address - base : end - base])


def _thumb(address: int, data: bytes) -> Iterator[tuple[int, Instruction]]:
    """The instructions of a stretch of code; those behind an IT instruction are conditional if they branch."""
    words = [first | second << 8 for first, second in zip(data[::2], data[1::2], strict=False)]
    under_it = 0
    at = 0
    while at < len(words):
        first, second = words[at], words[at + 1] if at + 1 < len(words) else 0
        instruction = decode(first, second)
        if under_it:
            operands = (*instruction.operands, FLAGS)
            instruction = instruction._replace(conditional=True, operands=operands)
        under_it = it_length(first) or max(0, under_it - 1)
        yield address + 2 * at, instruction
        at += 2 if is_wide(first) else 1
