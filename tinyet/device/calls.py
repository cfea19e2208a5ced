# SPDX-License-Identifier: Apache-2.0
"""Calls of kernels as bytes: requests to a call server, and its answers. Pure; no stream is touched here.

The form of both is described in firmware/harness/tinyet_call_server.c, the other side of this file.
"""

from __future__ import annotations

import builtins
import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tinyet.errors import EmulatorError

_MAGIC = 0x4C4C4143
_HEAD = struct.Struct("<3I")
HEAD_BYTES = _HEAD.size
_NO_BLOCK = 0xFFFFFFFF
_FILLED, _RETURNED = 1, 2
_MOST_BYTES = 1 << 28  # of an answer: a larger one is noise


class Kind(enum.IntEnum):
    """Of a request and of its answer."""

    LAYOUTS = 1
    CALLS = 2
    ERROR = 3


@dataclass(frozen=True)
class Memory:
    """A block of memory that a request brings with it.

    bytes: its size. data: its initial content; None for a pattern. returned: whether the answer holds it. align: in
    bytes, of its first byte if all blocks lie in one memory.
    """

    bytes: int
    data: builtins.bytes | None = None
    returned: bool = False
    align: int = 8


@dataclass(frozen=True)
class Address:
    """A byte of a block, by the block's number."""

    block: int
    offset: int = 0


Argument = Address | int | float
"""An int is passed in 32 bits, a float as a float32."""


@dataclass(frozen=True)
class Invocation:
    """function: its number in the server's table."""

    function: int
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Request:
    """Calls, made in their order up to the first that fails, and all their memory.

    pointers: (the place of one, its target); the server knows its width.
    """

    blocks: tuple[Memory, ...]
    calls: tuple[Invocation, ...]
    pointers: tuple[tuple[Address, Address], ...] = ()

    def placed(self) -> tuple[tuple[int, ...], int]:
        """Where each block lies in one memory, and the bytes of that."""
        places, end = [], 0
        for block in self.blocks:
            start = (end + block.align - 1) & -block.align
            places.append(start)
            end = start + block.bytes
        return tuple(places), end


@dataclass(frozen=True)
class Result:
    """status: of the last call that was made. stack_bytes: of the call that took most; 0 where that is not known.
    returned: the blocks that the request wants back, in their order."""

    status: int
    calls: int
    stack_bytes: int
    returned: tuple[bytes, ...]


@dataclass(frozen=True)
class Layouts:
    """A server's properties, and its compiler's layout of parameter structs.

    pointer_bytes: of an address. functions, hash: the number of functions, and their table's hash. memory_bytes: of
    all blocks together; 0 if each has memory of its own. numbers: as the table's generator wrote them.
    """

    pointer_bytes: int
    functions: int
    hash: int
    memory_bytes: int
    numbers: tuple[int, ...]


def layouts_request() -> bytes:
    return _HEAD.pack(_MAGIC, 4, Kind.LAYOUTS)


def request_bytes(request: Request) -> bytes:
    """The request on the line."""
    places, _ = request.placed()
    parts = [struct.pack("<3I", len(request.blocks), len(request.pointers), len(request.calls))]
    for block, place in zip(request.blocks, places, strict=True):
        flags = (_FILLED if block.data is not None else 0) | (_RETURNED if block.returned else 0)
        parts.append(struct.pack("<3I", block.bytes, place, flags))
        if block.data is not None:
            if len(block.data) != block.bytes:
                raise ValueError(f"{len(block.data)} bytes for a block of {block.bytes}")
            parts.append(block.data)
    for at, to in request.pointers:
        parts.append(struct.pack("<4I", at.block, at.offset, to.block, to.offset))
    for call in request.calls:
        parts.append(struct.pack("<2I", call.function, len(call.arguments)))
        parts += [_argument(argument) for argument in call.arguments]
    body = b"".join(parts)
    return _HEAD.pack(_MAGIC, 4 + len(body), Kind.CALLS) + body


def _argument(argument: Argument) -> bytes:
    if isinstance(argument, Address):
        return struct.pack("<2I", argument.block, argument.offset)
    if isinstance(argument, float):
        return struct.pack("<If", _NO_BLOCK, argument)
    return struct.pack("<2I", _NO_BLOCK, argument & 0xFFFFFFFF)


def answer_head(head: bytes) -> tuple[Kind, int]:
    """The kind of an answer, and how many bytes follow its HEAD_BYTES. Raises EmulatorError for an invalid one."""
    magic, size, kind = _HEAD.unpack(head)
    if magic != _MAGIC or not 4 <= size <= _MOST_BYTES or kind not in list(Kind):
        raise EmulatorError(f"no answer of a call server: {head.hex()}")
    return Kind(kind), size - 4


def unpack_layouts(kind: Kind, body: bytes) -> Layouts:
    """Raises EmulatorError for another answer, or a damaged one."""
    _expect(kind, Kind.LAYOUTS, body, 20)
    pointer_bytes, functions, number, room, count = struct.unpack_from("<5I", body)
    if len(body) != 20 + 2 * count:
        raise EmulatorError(f"{len(body)} bytes of layouts, which are {count} numbers")
    return Layouts(pointer_bytes, functions, number, room, struct.unpack_from(f"<{count}H", body, 20))


def unpack_result(kind: Kind, body: bytes, blocks: Sequence[Memory]) -> Result:
    """blocks: of the request. Raises EmulatorError for another answer, or a damaged one."""
    _expect(kind, Kind.CALLS, body, 12)
    status, calls, stack_bytes = struct.unpack_from("<iII", body)
    found, at = [], 12
    for block in blocks:
        if block.returned:
            found.append(body[at : at + block.bytes])
            at += block.bytes
    if at != len(body):
        raise EmulatorError(f"an answer of {len(body)} bytes, and {at} were asked for")
    return Result(status, calls, stack_bytes, tuple(found))


def _expect(kind: Kind, wanted: Kind, body: bytes, least: int) -> None:
    if kind is Kind.ERROR:
        reason = int.from_bytes(body[:4], "little")
        words = {1: "it asks for what is not there", 2: "a block lies outside the memory"}
        raise EmulatorError(f"the call server refuses a request: {words.get(reason, f'reason {reason}')}")
    if kind is not wanted or len(body) < least:
        raise EmulatorError(f"an answer of kind {kind.name} with {len(body)} bytes")
