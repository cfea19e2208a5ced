# SPDX-License-Identifier: Apache-2.0
"""The linker's map (`-Wl,-Map=FILE`): the object file that each byte of the image comes from."""

from __future__ import annotations

import bisect
import re
from pathlib import Path, PurePath

from tinyet.errors import ToolchainError

_START = "Linker script and memory map"
# " .rodata.str1.4  0x0000a2e8  0x7a  libc.a(lib_a-memcpy.o)"; a long name of a section has a line of its own.
_PIECE = re.compile(r" (\.?[^ ]+)?\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (.*)", re.IGNORECASE)
_MEMBER = re.compile(r"\(([^()]+)\)$")


class LinkMap:
    """Input sections by their addresses. Sections that were dropped are at 0, and in no image there."""

    def __init__(self, path: Path) -> None:
        """Raises ToolchainError: no map of GNU ld or LLVM lld's form of it."""
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise ToolchainError(f"the linker's map cannot be read: {error.strerror}", str(path)) from error
        _, found, body = text.partition(_START)
        if not found:
            raise ToolchainError(
                "this is no map of GNU ld", str(path), "link with -Wl,-Map=FILE, and give that file"
            )
        pieces: dict[int, tuple[int, str]] = {}
        for line in body.splitlines():
            piece = _PIECE.fullmatch(line.rstrip())
            if piece is None or piece[1] == "*fill*":
                continue
            start, size = int(piece[2], 16), int(piece[3], 16)
            if size:
                pieces[start] = (start + size, _file(piece[4]))
        self._starts = sorted(pieces)
        self._pieces = pieces

    def at(self, address: int) -> tuple[str, int]:
        """The object file that a byte comes from, and the end of its bytes there; "" and the next piece's begin for
        what the linker has filled in."""
        place = bisect.bisect_right(self._starts, address)
        if place:
            end, file = self._pieces[self._starts[place - 1]]
            if address < end:
                return file, end
        return "", self._starts[place] if place < len(self._starts) else 1 << 64


def _file(text: str) -> str:
    """The name of an object file, in an archive or alone."""
    member = _MEMBER.search(text)
    return member[1] if member else PurePath(text.replace("\\", "/")).name
