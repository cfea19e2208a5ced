# SPDX-License-Identifier: Apache-2.0
"""How generated code puts the arena, the state and weights into the memories that were chosen for them: attributes of
the definitions themselves, which hold for link-time optimization, and copies that are made before the first run."""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.boards import Board, Memory
from tinyet.deployment import Deployment, Step, ahead_bytes
from tinyet.opset.call import wrapped
from tinyet.planning.places import Places

RAM = "ram"
"""The memory that all variables go to, in every board file: it needs no section."""
FRAMEWORKS = (("arduino", "ARDUINO"), ("zephyr", "__ZEPHYR__"))
"""Those with linker scripts of their own, and the macros that tell them."""


@dataclass(frozen=True)
class SectionView:
    """The macro for a memory's section. own: in linker scripts of tinyet's; others: macro and title of each framework
    with a linker script of its own, and its section, or None."""

    macro: str
    memory: str
    own: str
    others: tuple[tuple[str, str, str | None], ...]


@dataclass(frozen=True)
class CopyView:
    """Weights that are copied from flash: the copy's name, and that of the array in flash."""

    name: str
    source: str
    ctype: str
    count: int
    align: int
    place: str

    @property
    def statement(self) -> tuple[str, ...]:
        """What makes it."""
        return tuple(wrapped(f"  memcpy({self.name}, {self.source}, sizeof {self.name});"))


def section_macro(memory: Memory) -> str:
    return f"TINYET_{memory.name.upper()}_SECTION"


def attribute(memory: Memory | None) -> str:
    """Behind a definition, after a blank."""
    return "" if memory is None or memory.name == RAM else f" TINYET_IN({section_macro(memory)})"


def sections_of(places: Places) -> tuple[SectionView, ...]:
    """Of all memories that something is placed in."""
    return tuple(
        SectionView(
            section_macro(memory),
            memory.name,
            memory.section,
            tuple((macro, title, memory.section_of(title)) for title, macro in FRAMEWORKS),
        )
        for memory in places.memories
        if memory.name != RAM
    )


def stand_in_sections(places: Places, machine: Board) -> list[tuple[str, str]]:
    """Macros for a board that stands in for another in an emulator: memories that it does not have are parts of its RAM
    and its flash there."""
    elsewhere = [memory for memory in places.memories if memory not in machine.extra_memories]
    return [
        (section_macro(memory), f'"{".rodata" if memory.read_only else ".bss"}.{memory.name}"')
        for memory in elsewhere
        if memory.name != RAM
    ]


def copies_at(deployment: Deployment, step: Step) -> int:
    """The offset in the arena of copies that are made ahead of a call: the end of its scratch memory."""
    end = deployment.plan.scratch[step.node] + step.call.scratch_bytes
    return end - ahead_bytes(deployment.arrays_of(step))
