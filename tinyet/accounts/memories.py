# SPDX-License-Identifier: Apache-2.0
"""The memories of a board, with what a deployment takes of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tinyet.boards import Board
from tinyet.budget.fit import Contributor
from tinyet.budget.placing import held, memories_on, placed
from tinyet.budget.room import Room
from tinyet.deployment import Deployment


@dataclass(frozen=True)
class MemoryAnalysis:
    """A memory of the board.

    bytes: its size. taken: what is known to lie in it, in bytes; of flash with the margin, by which a linked firmware
    may be larger than stated. model_bytes: what arena, state and weights take of it, each rounded up to 16. read_waits,
    write_waits: stated cycles of an access, None where nobody has. cached: it is read through the core's data cache;
    dma: the DMA controllers reach it; read_only: it holds constants alone.
    """

    name: str
    origin: int
    bytes: int
    taken: tuple[Contributor, ...]
    model_bytes: int
    read_waits: int | None
    write_waits: int | None
    cached: bool
    dma: bool
    read_only: bool


def memories_of(deployment: Deployment, board: Board, room: Room) -> tuple[MemoryAnalysis, ...]:
    """Flash, RAM, and the others in the order of the board file."""
    model_bytes, timing = held(deployment, board), board.flash_timing
    objects = {memory.name: list[tuple[str, int]]() for memory in memories_on(board)}
    for each in placed(deployment, board):
        objects[each.memory.name].append((each.name, each.bytes))
    rest = {
        board.flash.name: [
            ("weights and tables", room.flash.constants),
            ("code of kernels and calls", room.flash.code),
            ("the rest of the firmware", room.flash.around or 0),
            ("margin of what is stated", room.flash.margin),
        ],
        board.ram.name: [
            *objects[board.ram.name],
            ("the firmware's own data", room.static),
            ("stack, planned", room.stack.total),
        ],
    }
    return tuple(
        MemoryAnalysis(
            name=memory.name,
            origin=memory.origin,
            bytes=memory.bytes,
            taken=_known(rest.get(memory.name, objects[memory.name])),
            model_bytes=model_bytes[memory.name],
            read_waits=timing.wait_states if memory == board.flash and timing else memory.read_waits,
            write_waits=memory.write_waits,
            cached=memory.cached,
            dma=memory.dma,
            read_only=memory.read_only,
        )
        for memory in memories_on(board)
    )


def _known(parts: Iterable[tuple[str, int]]) -> tuple[Contributor, ...]:
    return tuple(Contributor(size, text) for text, size in parts if size)
