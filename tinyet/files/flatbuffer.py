# SPDX-License-Identifier: Apache-2.0
"""Flatbuffers of strangers, read field by field (https://flatbuffers.dev/internals/).

Nothing is believed: every offset and length is held against the file's own, and all that is read together may not be
more than there is, so that a small file cannot stand for a large one. Work and memory are bounded by the file's size.
All readers raise ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

MAX_SLOTS = 32
"""Of a table: more than any has that is read here, and room for those that are added to a schema."""

_UINT32 = struct.Struct("<I")
_INT32 = struct.Struct("<i")


class Buffer:
    """The bytes, and how many of them may still be read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = len(data)
        self._texts: dict[int, str] = {}

    def uint(self, at: int) -> int:
        if not 0 <= at <= len(self.data) - 4:
            raise ValueError(f"an offset leads to byte {at} of {len(self.data)}")
        return int(_UINT32.unpack_from(self.data, at)[0])

    def scalar(self, at: int, kind: str) -> int | float:
        """A number of one of struct's formats."""
        width = struct.calcsize("<" + kind)
        if not 0 <= at <= len(self.data) - width:
            raise ValueError(f"a number stands at byte {at} of {len(self.data)}")
        found: int | float = struct.unpack_from("<" + kind, self.data, at)[0]
        return found

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise ValueError("its parts overlap")

    def span(self, at: int, width: int) -> tuple[int, int]:
        """(start, length in elements of `width` bytes) of the vector that stands at a position."""
        count = self.uint(at)
        if count * width > len(self.data) - at - 4:
            raise ValueError(f"a vector of {count} elements leaves the file")
        self.spend(4 + count * width)
        return at + 4, count

    def text(self, at: int) -> str:
        known = self._texts.get(at)
        if known is None:
            start, count = self.span(at, 1)
            try:
                known = self.data[start : start + count].decode()
            except UnicodeDecodeError:
                raise ValueError(f"the text at byte {at} is not UTF-8") from None
            self._texts[at] = known
        return known

    def root(self) -> Table:
        return Table(self, self.uint(0))


class Table:
    """A table of the file, its fields by slot."""

    __slots__ = ("_at", "_buffer", "_slots")

    def __init__(self, buffer: Buffer, at: int) -> None:
        self._buffer, self._at = buffer, at
        buffer.spend(4)
        start = at - _INT32.unpack(_UINT32.pack(buffer.uint(at)))[0]
        size = buffer.uint(start) & 0xFFFF
        if size < 4 or size % 2 or size > 4 + 2 * MAX_SLOTS or start + size > len(buffer.data):
            raise ValueError(f"the table at byte {at} has no layout")
        self._slots = struct.unpack_from(f"<{size // 2 - 2}H", buffer.data, start + 4)

    def _field(self, slot: int) -> int:
        """The position of a field, or 0 where it is absent."""
        offset = self._slots[slot] if slot < len(self._slots) else 0
        return self._at + offset if offset else 0

    def _target(self, slot: int) -> int:
        """The target of a field's offset, or 0."""
        at = self._field(slot)
        return at + self._buffer.uint(at) if at else 0

    def scalar(self, slot: int, kind: str, default: float = 0) -> int | float:
        """A number in one of struct's formats ("b", "i", "q", "f", …)."""
        at = self._field(slot)
        return self._buffer.scalar(at, kind) if at else default

    def number(self, slot: int, default: int = 0, kind: str = "i") -> int:
        """A whole number, int32 by default."""
        return int(self.scalar(slot, kind, default))

    def text(self, slot: int) -> str:
        at = self._target(slot)
        return self._buffer.text(at) if at else ""

    def child(self, slot: int) -> Table | None:
        at = self._target(slot)
        return Table(self._buffer, at) if at else None

    def _pointers(self, slot: int) -> list[int]:
        at = self._target(slot)
        if not at:
            return []
        start, count = self._buffer.span(at, 4)
        offsets = struct.unpack_from(f"<{count}I", self._buffer.data, start)
        return [start + 4 * i + offset for i, offset in enumerate(offsets)]

    def children(self, slot: int, make: Callable[[Table], T]) -> list[T]:
        return [make(Table(self._buffer, at)) for at in self._pointers(slot)]

    def texts(self, slot: int) -> tuple[str, ...]:
        return tuple(self._buffer.text(at) for at in self._pointers(slot))

    def raw(self, slot: int) -> bytes | None:
        at = self._target(slot)
        if not at:
            return None
        start, count = self._buffer.span(at, 1)
        return self._buffer.data[start : start + count]

    def vector(self, slot: int, kind: str) -> tuple[int | float, ...]:
        """Numbers in one of struct's formats; none where the field is absent."""
        at = self._target(slot)
        if not at:
            return ()
        start, count = self._buffer.span(at, struct.calcsize("<" + kind))
        return struct.unpack_from(f"<{count}{kind}", self._buffer.data, start)

    def numbers(self, slot: int, kind: str = "i") -> tuple[int, ...]:
        return tuple(int(n) for n in self.vector(slot, kind))

    def reals(self, slot: int) -> tuple[float, ...]:
        return tuple(float(x) for x in self.vector(slot, "f"))
