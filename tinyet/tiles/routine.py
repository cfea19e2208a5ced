# SPDX-License-Identifier: Apache-2.0
"""A function whose sizes are arguments: one for all layers, unlike those that are made for a layer's constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tinyet.errors import InternalError
from tinyet.tiles.core import CorePage
from tinyet.tiles.nest import Blocks, Timed, executed, timed
from tinyet.tiles.operation import Operation
from tinyet.tiles.printer import Named
from tinyet.tiles.registers import Placed, allocated
from tinyet.timing.model import Model
from tinyet.timing.work import Work

TABLE = ".byte"
"""The mnemonic of a word of four offsets, which is no instruction."""


@dataclass(frozen=True)
class Title:
    """Of a function."""

    name: str


@dataclass(frozen=True)
class Routine:
    """tile: its name. code: with tables between the instructions. labels: by what they stand before, by its place in
    the code."""

    tile: Named
    page: CorePage
    code: Placed
    labels: Mapping[int, str]

    @property
    def code_bytes(self) -> int:
        """Of machine code."""
        return self.page.instruction_bytes * len(self.code)

    def sections(self) -> Iterator[tuple[str, Placed]]:
        """All of it, cut where labels are: (label or "", code)."""
        starts = sorted({0, *self.labels})
        for start, end in zip(starts, [*starts[1:], len(self.code)], strict=True):
            yield self.labels.get(start, ""), self.code[start:end]

    def place(self, label: str) -> int:
        """Of the instruction that a label stands before."""
        return next(place for place, name in self.labels.items() if name == label)

    def end(self, first: int) -> int:
        """Of the first instruction from a place on with which straight code may end."""
        kinds = ("branch", "table_branch", "load_multiple_pc")
        return next(i for i in range(first, len(self.code)) if self.kind(i) in kinds)

    def kind(self, place: int) -> str:
        mnemonic = self.code[place][0].mnemonic
        return "" if mnemonic == TABLE else self.page.kinds[mnemonic]

    def work(self, core: Model, blocks: Blocks) -> Work:
        """Of so many runs of straight pieces. Not fitted: summed up."""
        return executed(self._timed, core, blocks)

    @cached_property
    def _timed(self) -> Timed:
        return timed(self.page, self.code)


def routine(
    name: str, parts: Sequence[tuple[str, list[Operation]]], fixed: Mapping[str, str], page: CorePage
) -> Routine:
    """parts: (label or "", code). fixed: the registers of all values."""
    operations: list[Operation] = []
    labels: dict[int, str] = {}
    for label, code in parts:
        if label:
            labels[len(operations)] = label
        operations += code
    missing = {value for o in operations for value in (*o.reads, *o.writes)} - fixed.keys()
    if missing:
        raise InternalError(f"{name}: no register for {', '.join(sorted(missing))}")
    return Routine(Title(name), page, allocated(operations, fixed, page, name), labels)


def table(offsets: Sequence[int]) -> Operation:
    """Behind a table branch: where each of four indices leads, in bytes from here."""
    if len(offsets) != 4 or any(at % 2 or not 0 <= at < 512 for at in offsets):
        raise InternalError(f"a table of {list(offsets)}")
    return Operation(TABLE, ", ".join(str(at // 2) for at in offsets))
