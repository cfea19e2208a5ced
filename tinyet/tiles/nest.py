# SPDX-License-Identifier: Apache-2.0
"""A function of loops within loops: its code from the first instruction to the last, and what a call executes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Generic, TypeVar

from tinyet.tiles.core import CorePage
from tinyet.tiles.printer import Named
from tinyet.tiles.registers import Placed
from tinyet.timing.instruction import Instruction
from tinyet.timing.model import Model
from tinyet.timing.work import Work, straight, total

N_co = TypeVar("N_co", bound=Named, covariant=True)


@dataclass(frozen=True)
class Loop:
    """first, last: the instructions that a turn begins and ends with; the last one is the branch back. label: of the
    first."""

    first: int
    last: int
    label: str

    def moved(self, by: int) -> Loop:
        """The same so many instructions further on."""
        return replace(self, first=self.first + by, last=self.last + by)


@dataclass(frozen=True)
class Nest(Generic[N_co]):
    """loops: none crosses another's border, and no two begin or end with one instruction."""

    tile: N_co
    page: CorePage
    code: Placed
    loops: tuple[Loop, ...]

    @property
    def code_bytes(self) -> int:
        """Of machine code."""
        return self.page.instruction_bytes * len(self.code)

    def sections(self) -> Iterator[tuple[str, Placed]]:
        """All of it, cut where labels are: (label or "", code)."""
        labels = {loop.first: loop.label for loop in self.loops}
        starts = sorted({0, *labels})
        for start, end in zip(starts, [*starts[1:], len(self.code)], strict=True):
            yield labels.get(start, ""), self.code[start:end]

    def work(self, core: Model, turns: Mapping[str, int]) -> Work:
        """What a call executes. turns: by label, how often a loop runs each time that control comes to it. Not fitted:
        summed up, block by block."""
        return executed(self._timed, core, blocks_of(len(self.code), self.loops, turns))

    @cached_property
    def _timed(self) -> Timed:
        return timed(self.page, self.code)


Blocks = Mapping[tuple[int, int, bool], int]
"""(first instruction, last one, whether the branch that it may be is taken): how often that runs."""


def blocks_of(length: int, loops: Sequence[Loop], turns: Mapping[str, int]) -> Blocks:
    """Of a call of so many instructions. turns: by label, how often a loop runs each time that control comes to it."""
    back = {loop.last: (loop, turns[loop.label]) for loop in loops}
    blocks: dict[tuple[int, int, bool], int] = {}

    def run(at: int, end: int, times: int, start: int) -> int:
        """From `at` on up to `end`, so often; the block that is open began at `start`. Where that begins which is
        open at last."""
        while at < end:
            if at in back:
                loop, count = back[at]
                if count > 1:
                    add(start, at, True, times)
                    # A turn that was begun by the branch back: the last one's branch is not taken.
                    again = run(loop.first, loop.last, times * (count - 1), loop.first)
                    add(again, at, True, times * (count - 2))
                    start = again
                add(start, at, False, times)
                start = at + 1
            at += 1
        return start

    def add(start: int, last: int, taken: bool, times: int) -> None:
        key = start, last, taken
        blocks[key] = blocks.get(key, 0) + times

    add(run(0, length, 1, 0), length - 1, True, 1)
    return blocks


Timed = Callable[[int], Instruction]
"""What is at a place of the code. A function keeps it: it is asked for each core, and for layers of all sizes."""


def timed(page: CorePage, code: Placed) -> Timed:
    @cache
    def at(place: int) -> Instruction:
        operation, registers = code[place]
        return operation.timed(page, registers)

    return at


def executed(timed: Timed, core: Model, blocks: Blocks) -> Work:
    """Of straight pieces of code."""
    works = [
        _block(core, [timed(place) for place in range(start, last + 1)], taken).times(times)
        for (start, last, taken), times in blocks.items()
        if times
    ]
    for (start, at, taken), times in blocks.items():
        if not taken and (seldom := min(times, blocks.get((start, at, True), 0))):
            works.append(Work(cycles=core.mispredicted(timed(at))).times(seldom))
    return total(works)


def _block(core: Model, block: Sequence[Instruction], taken: bool) -> Work:
    done = straight(core, block)
    return done + Work(cycles=core.refill(block[-1]), taken_branches=1) if taken else done
