# SPDX-License-Identifier: Apache-2.0
"""The library on AVR: what is linked for each function, and its stack, from one program of all functions.

The linker keeps the relocations, which say what a function calls and which constants it reads. Stack is bounded by what
each function pushes, whether it pops it or not, by its frame, and by the return addresses.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tinyet.boards import Board
from tinyet.budget.code import plain_name

RETURN = 2
"""Bytes of a return address, of chips with 128 KB of flash and less."""
ROOM = 1 << 22
"""Bytes of flash that the linker takes the chip for: nothing of it runs."""
_LINE = re.compile(r"^\s*([0-9a-f]+):\t(\S+)\s*([^;]*)(?:; (0x[0-9a-f]+))?")
_RELOCATION = re.compile(r"^\s*[0-9a-f]+: (R_AVR_\S+)\s+(\S+?)(?:\+(0x[0-9a-f]+))?$")


@dataclass
class Item:
    """A function or constant. own: bytes of stack beside what it calls, its return address included. calls, jumps and
    reads: the addresses of others. known: whether all that it calls is."""

    name: str
    size: int
    own: int = RETURN
    calls: set[int] = field(default_factory=set)
    jumps: set[int] = field(default_factory=set)
    reads: set[int] = field(default_factory=set)
    known: bool = True


def linked(compiler: Sequence[str], objects: Iterable[Path], wanted: Sequence[str], elf: Path) -> Path:
    """A program of the wanted functions and all that they need."""
    names = [f"-Wl,-u,{name}" for name in wanted]
    room = ",".join(f"--defsym=__{region}_REGION_LENGTH__={ROOM}" for region in ("TEXT", "DATA"))
    command = [
        *compiler,
        *names,
        *map(str, objects),
        "-Wl,--gc-sections,--emit-relocs," + room,
        "-lm",
        "-o",
        str(elf),
    ]
    subprocess.run(command, check=True)
    return elf


def items_of(elf: Path, board: Board) -> dict[int, Item]:
    """By address, of program memory and of RAM's first values, whose addresses the ELF file has behind it."""
    found: dict[int, Item] = {}
    names: dict[str, int] = {}
    with elf.open("rb") as file:
        image = ELFFile(file)
        sections = list(image.iter_sections())
        names |= {section.name: section["sh_addr"] for section in sections}
        home = ""
        table = image.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        for symbol in table.iter_symbols():
            kind, section = symbol["st_info"]["type"], symbol["st_shndx"]
            if kind == "STT_FILE":
                home = f"{symbol.name}:"
            if not isinstance(section, int) or not sections[section]["sh_flags"] & SH_FLAGS.SHF_ALLOC:
                continue
            names[symbol.name] = symbol["st_value"]
            if kind not in ("STT_FUNC", "STT_OBJECT") and sections[section].name != ".text":
                continue
            local = symbol["st_info"]["bind"] == "STB_LOCAL"
            if symbol["st_size"]:
                name = (home if local else "") + plain_name(symbol.name)
                found.setdefault(symbol["st_value"], Item(name, -(-symbol["st_size"] // 4) * 4))
            elif not local and symbol.name.startswith("__"):
                found.setdefault(symbol["st_value"], Item(symbol.name, 0))
    ends = sorted(found)
    for at, end in itertools.pairwise(ends):
        if not found[at].size and end < ROOM:
            found[at].size = -(-(end - at) // 4) * 4
    tool = board.toolchain.prefix + "objdump"
    text = subprocess.run(
        [tool, "-dr", "--no-show-raw-insn", str(elf)], check=True, capture_output=True, text=True
    ).stdout
    _read(text, found, names)
    return found


def _read(text: str, items: Mapping[int, Item], names: Mapping[str, int]) -> None:
    """Fills in what the instructions say. A function goes on until the next begins."""
    now: Item | None = None
    before, grown = "", False
    starts = sorted(items)

    def of(address: int) -> int | None:
        """The item that an address is in."""
        below = [start for start in starts if start <= address < start + max(items[start].size, 1)]
        return below[-1] if below else None

    for line in text.splitlines():
        relocation = _RELOCATION.match(line.replace("\t", " "))
        if relocation is not None and now is not None:
            kind, name, more = relocation.groups()
            target = of(names.get(name, -1) + int(more or "0", 16)) if name in names else None
            if target is not None and items[target] is not now:
                code = kind in ("R_AVR_CALL", "R_AVR_13_PCREL", "R_AVR_7_PCREL")
                called = code and before.startswith(("call", "rcall"))
                (now.calls if called else now.jumps if code else now.reads).add(target)
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        address, word, arguments = int(match[1], 16), match[2], match[3].strip()
        now = items.get(address, now)
        if now is None:
            continue
        match word:
            case "push":
                now.own += 1
            case "rcall" if arguments == ".+0":
                now.own += RETURN
            case "rcall" if match[4] is not None and of(int(match[4], 16)) == of(address):
                now.own += RETURN  # to a part of itself
            case "sbiw" if arguments.startswith("r28") and before == "in r29, 0x3e":
                now.own += int(arguments.split(", ")[1], 16)
            case "subi" if arguments.startswith("r28") and before == "in r29, 0x3e":
                now.own += int(arguments.split(", ")[1], 16)
            case "sbci" if arguments.startswith("r29") and grown:
                now.own += int(arguments.split(", ")[1], 16) << 8
            case "icall" | "eicall" | "ijmp":
                now.known = now.known and word == "ijmp"
        grown = word == "subi" and before == "in r29, 0x3e"
        before = f"{word} {arguments}"


def needs(items: Mapping[int, Item], at: int) -> set[int]:
    """All that is linked for an item, itself included."""
    found, left = {at}, [at]
    while left:
        one = items[left.pop()]
        more = (one.calls | one.jumps | one.reads) - found
        found |= more
        left += more
    return found


def stack(items: Mapping[int, Item], at: int, above: frozenset[int] = frozenset()) -> int | None:
    """The most bytes that a function takes with all that it calls; None where that has no bound. Functions of the
    compiler's library share ends with each other, and none calls itself."""
    one = items[at]
    if at in above:
        return 0 if one.name.startswith("__") else None
    if not one.known:
        return None
    called = [stack(items, each, above | {at}) for each in one.calls | one.jumps]
    known = [each for each in called if each is not None]
    return one.own + max(known, default=0) if len(known) == len(called) else None
