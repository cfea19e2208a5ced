# SPDX-License-Identifier: Apache-2.0
"""A core as a table: cycles by the kind of instruction, and what two that follow each other save or wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tinyet.timing.instruction import LOADS, PROCESSING, Instruction, Kind

_MULTIPLE = frozenset(("load_multiple", "store_multiple", "load_multiple_pc", "load_double", "store_double"))
_SINGLE = frozenset(("load", "load_narrow"))
# The manuals speak of these where they speak of addresses.
_ADDRESSED = frozenset((*_SINGLE, "load_pc", "load_double", "store", "store_double"))


@dataclass(frozen=True)
class Core:
    """The cycles of a core.

    title, source: for people; source is the document with the table. assumed: what the table leaves open, and how it is
    filled, a sentence each. cycles: of an instruction that is not in a branch's way; 1 for a kind that is not there,
    one more a register for transfers of several. taken: how many more when control goes elsewhere. pairs: a load takes
    a cycle less right behind another load, unless its address needs what that one loads, and so does a store with an
    indexed address, which takes one more otherwise; both wait a cycle for an address that data processing right before
    them computes. moved_apart: a load or store that moves its base on takes no cycle less, nor does what needs the base
    right behind it. load_use: how long an instruction waits right behind a load whose result it reads.
    """

    title: str
    source: str
    assumed: tuple[str, ...]
    cycles: Mapping[Kind, int]
    taken: Mapping[Kind, int]
    pairs: bool
    moved_apart: bool = False
    load_use: int = 0

    def straight(self, block: Sequence[Instruction], before: Sequence[Instruction] = ()) -> int:
        """Cycles that a block adds, its branch not taken; what ran before it only as a load whose result it reads."""
        pairs = zip((None, *block), block, strict=False)
        waits = self._waits(before[-1], block[0]) if before and block else 0
        return waits + sum(self._alone(now) + self._beside(one, now) for one, now in pairs)

    def refill(self, last: Instruction) -> int:
        """Cycles more when control goes elsewhere behind an instruction."""
        return self.taken.get(last.kind, 0)

    def mispredicted(self, last: Instruction) -> int:
        """These cores predict nothing."""
        del last
        return 0

    def _alone(self, now: Instruction) -> int:
        cycles = self.cycles.get(now.kind, 1)
        if now.kind in _MULTIPLE:
            cycles += now.registers
        return cycles + (self.pairs and now.kind == "store" and now.indexed)

    def _beside(self, before: Instruction | None, now: Instruction) -> int:
        """Cycles more, or less, because of the instruction before."""
        if before is None:
            return 0
        if not self.pairs:
            return self._waits(before, now)
        depends = now.kind in _ADDRESSED and not set(before.results).isdisjoint(now.address)
        if before.kind in PROCESSING:
            return int(depends)
        paired = before.kind in _SINGLE and (now.kind in _SINGLE or (now.kind == "store" and now.indexed))
        if self.moved_apart and (now.updated or not set(before.updated).isdisjoint(now.address)):
            return 0
        return -int(paired and not depends)

    def _waits(self, before: Instruction, now: Instruction) -> int:
        if not self.load_use or before.kind not in LOADS:
            return 0
        read = (now.operands, now.address, now.shifted, now.late)
        return self.load_use * any(result in each for each in read for result in before.results)
