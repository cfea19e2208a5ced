# SPDX-License-Identifier: Apache-2.0
"""Accesses of calls to the arena, as the checker of a memory plan sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tinyet.opset import AccessOrder


@dataclass(frozen=True)
class Span:
    """Bytes of the arena that hold a tensor; its offset must be a multiple of `align`.

    run, pixel_stride: if its pixels lie apart, the bytes of each and from one to the next; otherwise both 0.
    """

    tensor: str
    offset: int
    bytes: int
    align: int = 1
    run: int = 0
    pixel_stride: int = 0

    def runs(self) -> list[tuple[int, int]]:
        """(offset, bytes) of each run without gaps, in order."""
        if not self.pixel_stride:
            return [(self.offset, self.bytes)]
        return [(self.offset + i * self.pixel_stride, self.run) for i in range(self.bytes // self.run)]

    @property
    def extent(self) -> int:
        """Bytes from the first to behind the last."""
        return (
            (self.bytes // self.run - 1) * self.pixel_stride + self.run if self.pixel_stride else self.bytes
        )


@dataclass(frozen=True)
class Access:
    """The accesses of one call to the arena.

    scratch: (offset, bytes, align) of its scratch memory, or None.
    overwrites: (read tensor, written tensor) pairs that the kernel allows to have the same address; what is written
        has as many bytes, or fewer.
    access_orders: for such pairs, the steps in which the kernel says it reads one and writes the other; all that it
    says of
        them is true at once.
    again: of what is written, that which is there already, and is written where it is, as it is.
    """

    name: str
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]
    scratch: tuple[int, int, int] | None = None
    overwrites: frozenset[tuple[str, str]] = frozenset()
    access_orders: Mapping[tuple[str, str], Sequence[AccessOrder]] = field(default_factory=dict)
    again: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Copy:
    """Bytes `source` to `source + bytes` of the arena move to `target` on."""

    name: str
    target: int
    source: int
    bytes: int


@dataclass(frozen=True)
class Piece:
    """Bytes `start` to `start + bytes` of an alias are those of `source` from `source_start` on."""

    start: int
    bytes: int
    source: str
    source_start: int


@dataclass(frozen=True)
class Alias:
    """A tensor that nothing computes: its bytes are those of others."""

    tensor: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Region:
    """A piece of memory of its own: the arena, or a buffer of the caller's. constant: nothing is written there."""

    name: str
    start: int
    bytes: int
    constant: bool = False

    @property
    def end(self) -> int:
        return self.start + self.bytes
