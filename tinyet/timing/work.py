# SPDX-License-Identifier: Apache-2.0
"""What code executes, counted by class, with its cycles on a core."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tinyet.timing.instruction import DIVIDES, LOADS, MULTIPLIES, STORES, Instruction
from tinyet.timing.model import Model


@dataclass(frozen=True)
class Work:
    """Executed instructions and their estimated cycles. Counts are of instructions, whatever they move.

    wait_cycles: of the flash, part of `cycles`. multiplies: those with an addition, too; divides: square roots, too.
    """

    cycles: int = 0
    instructions: int = 0
    loads: int = 0
    stores: int = 0
    multiplies: int = 0
    divides: int = 0
    taken_branches: int = 0
    wait_cycles: int = 0

    def __add__(self, other: Work) -> Work:
        return self._with(other, int.__add__)

    def __sub__(self, other: Work) -> Work:
        return self._with(other, int.__sub__)

    def times(self, factor: float) -> Work:
        """Each figure times a factor, rounded."""
        return Work(*(round(factor * value) for value in self._figures))

    def at_least_zero(self) -> Work:
        """The remainder, not below zero: a call beside other code pairs its loads differently."""
        return Work(*(max(0, value) for value in self._figures))

    def _with(self, other: Work, apply: Callable[[int, int], int]) -> Work:
        return Work(*map(apply, self._figures, other._figures))

    @property
    def _figures(self) -> tuple[int, ...]:
        """In the order of the fields; `dataclasses.astuple` would copy each deeply, and plans add thousands."""
        found: tuple[int, ...] = _FIGURES(self)
        return found


_FIGURES = operator.attrgetter(*(field.name for field in dataclasses.fields(Work)))


def total(parts: Iterable[Work]) -> Work:
    """The sum of several."""
    return sum(parts, Work())


def counted(block: Sequence[Instruction]) -> Work:
    """Of a block that runs once, without its cycles."""
    kinds = [instruction.kind for instruction in block]
    return Work(
        instructions=len(block),
        loads=sum(kind in LOADS for kind in kinds),
        stores=sum(kind in STORES for kind in kinds),
        multiplies=sum(kind in MULTIPLIES for kind in kinds),
        divides=sum(kind in DIVIDES for kind in kinds),
    )


def straight(model: Model, block: Sequence[Instruction]) -> Work:
    """Of a block that runs once from its first instruction to its last, and whose branch is not taken."""
    return counted(block) + Work(cycles=model.straight(block))
