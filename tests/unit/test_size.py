# SPDX-License-Identifier: Apache-2.0
"""The size of an image, of an ELF file that is put together here, and of files that are no such image."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tinyet.build.size import Section, Size, Symbol, measure
from tinyet.errors import ToolchainError

PROGBITS, SYMTAB, STRTAB, NOBITS = 1, 2, 3, 8
WRITE, ALLOC = 1, 2
NOTYPE, OBJECT, FUNC = 0, 1, 2
ABSOLUTE = 0xFFF1

# Name, type, flags, address, size; the table's own first section is the null section, so .text is number 1.
SECTIONS = (
    (".text", PROGBITS, ALLOC, 0x0, 0x40),
    (".data", PROGBITS, ALLOC | WRITE, 0x2000_0000, 0x8),
    (".bss", NOBITS, ALLOC | WRITE, 0x2000_0008, 0x100),
    (".stack", NOBITS, ALLOC | WRITE, 0x2000_0108, 0x200),
    (".comment", PROGBITS, 0, 0x0, 0x10),
)
# Name, value, size, type, section.
SYMBOLS = (
    ("run", 0x11, 0x20, FUNC, 1),
    ("weights", 0x30, 0x10, OBJECT, 1),
    ("state", 0x2000_0000, 0x8, OBJECT, 2),
    ("arena", 0x2000_0008, 0x100, OBJECT, 3),
    ("a_label", 0x4, 0, FUNC, 1),
    ("no_type", 0x8, 0x4, NOTYPE, 1),
    ("a_constant", 0x1234, 0x4, OBJECT, ABSOLUTE),
    ("__stack_limit", 0x2000_0108, 0, NOTYPE, 4),
    ("__stack_top", 0x2000_0308, 0, NOTYPE, 4),
)


def image() -> bytes:
    """System V ABI, chapter 4: file header, contents, section headers; 32 bits, little endian."""
    strings = b"\0"
    contents, headers, at = b"", [bytes(40)], 52

    def string(text: str) -> int:
        nonlocal strings
        strings += text.encode() + b"\0"
        return len(strings) - len(text) - 1

    def add(name: str, kind: int, flags: int, address: int, size: int, link: int, data: bytes) -> None:
        nonlocal contents
        row = (string(name), kind, flags, address, at + len(contents), size, link, 0, 1)
        headers.append(struct.pack("<10I", *row, 16 if kind == SYMTAB else 0))
        contents += data

    for name, kind, flags, address, size in SECTIONS:
        add(name, kind, flags, address, size, 0, b"" if kind == NOBITS else b"\xaa" * size)
    table = bytes(16) + b"".join(
        struct.pack("<IIIBBH", string(name), value, size, 1 << 4 | kind, 0, home)
        for name, value, size, kind, home in SYMBOLS
    )
    names = len(SECTIONS) + 2
    add(".symtab", SYMTAB, 0, 0, len(table), names, table)
    # The name of the table of strings is in that table, so it comes before its size is known.
    add(".strtab", STRTAB, 0, 0, len(strings) + len(".strtab") + 1, 0, b"")
    contents += strings
    ident = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    header = struct.pack(
        "<16sHHIIIIIHHHHHH", ident, 2, 40, 1, 0, 0, at + len(contents), 0, 52, 0, 0, 40, len(headers), names
    )
    return header + contents + b"".join(headers)


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "firmware.elf"
    path.write_bytes(data)
    return path


def test_sections_and_symbols(tmp_path: Path) -> None:
    size = measure(write(tmp_path, image()))
    text = Section(".text", 0, 0x40, in_flash=True, in_ram=False)
    data = Section(".data", 0x2000_0000, 0x8, in_flash=True, in_ram=True)
    bss = Section(".bss", 0x2000_0008, 0x100, in_flash=False, in_ram=True)
    assert (size.flash, size.ram, size.stack) == (0x48, 0x108, 0x200)
    assert size.sections == (text, data, bss)
    assert size.symbols == (
        Symbol("run", 0x10, 0x20, text),
        Symbol("weights", 0x30, 0x10, text),
        Symbol("state", 0x2000_0000, 0x8, data),
        Symbol("arena", 0x2000_0008, 0x100, bss),
    )
    assert [symbol.name for symbol in size.largest("flash", 2)] == ["run", "weights"]
    assert [symbol.name for symbol in size.largest("ram")] == ["arena", "state"]


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    whole = image()
    for length in range(0, len(whole), 5):
        with pytest.raises(ToolchainError, match=r"not a 32-bit little-endian ELF file: .+"):
            measure(write(tmp_path, whole[:length]))


def test_contents_that_are_cut_off_are_noticed(tmp_path: Path) -> None:
    """Though the headers are all there: .text is said to be longer than the file."""
    whole = bytearray(image())
    (headers,) = struct.unpack_from("<I", whole, 32)
    struct.pack_into("<I", whole, headers + 40 + 20, len(whole))
    with pytest.raises(ToolchainError, match=r"section \.text is cut off"):
        measure(write(tmp_path, bytes(whole)))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "Magic number"),
        (b"!<arch>\n", "Magic number"),
        (b"\x7fELF\x01\x01\x01" + bytes(100), "it has no sections"),
        (b"\x7fELF\x02\x01\x01" + bytes(100), "64 bits, little endian"),
        (b"\x7fELF\x01\x02\x01" + bytes(100), "32 bits, big endian"),
    ],
)
def test_what_is_no_image(tmp_path: Path, data: bytes, reason: str) -> None:
    path = write(tmp_path, data)
    with pytest.raises(ToolchainError, match=reason) as caught:
        measure(path)
    assert caught.value.where == str(path)
    assert caught.value.hint == "build the firmware again"


def test_the_demonstration_is_counted_apart() -> None:
    flash = Section(".rodata", 0x100, 0x100, in_flash=True, in_ram=False)
    names = (("kws_sample_0", 40), ("kws_sample_1.3", 2), ("resample_0_weights", 8), ("kws_sample_rate", 4))
    symbols = tuple(Symbol(name, 0x100, size, flash) for name, size in names)
    assert Size(0x100, 0, 0, (flash,), symbols).sample == 42
