# SPDX-License-Identifier: Apache-2.0
"""The memories of a board, with what a deployment takes of each."""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.boards import Board
from tinyet.budget.fit import Contributor
from tinyet.budget.room import Room
from tinyet.deployment import Deployment


@dataclass(frozen=True)
class MemoryAnalysis:
    """A memory of the board: its size, and what is known to lie in it, in bytes. taken: in the order of addresses, as
    far as there is one; of flash with the margin, by which a linked firmware may be larger than stated."""

    name: str
    bytes: int
    taken: tuple[Contributor, ...]


def memories_of(deployment: Deployment, board: Board, room: Room) -> tuple[MemoryAnalysis, ...]:
    """Flash and RAM, and further memories, which stay empty unless somebody puts something there by hand."""
    flash = [
        ("weights and tables", room.flash.constants),
        ("code of kernels and calls", room.flash.code),
        ("the rest of the firmware", room.flash.around or 0),
        ("margin of what is stated", room.flash.margin),
    ]
    ram = [
        ("arena", deployment.plan.arena_bytes),
        ("states of kernels", deployment.state_bytes),
        ("the firmware's own data", room.static),
        ("stack, planned", room.stack.total),
    ]
    return (
        MemoryAnalysis(board.flash.name, board.flash.bytes, _known(flash)),
        MemoryAnalysis(board.ram.name, board.ram.bytes, _known(ram)),
        *(MemoryAnalysis(memory.name, memory.bytes, ()) for memory in board.extra_memories),
    )


def _known(parts: list[tuple[str, int]]) -> tuple[Contributor, ...]:
    return tuple(Contributor(size, text) for text, size in parts if size)
