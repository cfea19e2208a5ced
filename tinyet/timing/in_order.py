# SPDX-License-Identifier: Apache-2.0
"""Models of cores that issue one instruction after the other, and whose makers publish no table of cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.timing.instruction import LOADS, Instruction, Kind


@dataclass(frozen=True)
class InOrder:
    """A core that begins an instruction each cycle, in order.

    title, source, assumed: as a Model has them. cycles: of a kind; 1 for one that is not there. taken: how many more
    when control goes elsewhere. load_use: that an instruction waits right behind a load whose result it reads.
    """

    title: str
    source: str
    assumed: tuple[str, ...]
    cycles: Mapping[Kind, int]
    taken: Mapping[Kind, int]
    load_use: int

    def straight(self, block: Sequence[Instruction], before: Sequence[Instruction] = ()) -> int:
        """Cycles that a block adds, its branch not taken, right behind the block `before`."""
        total, last = 0, before[-1] if before else None
        for now in block:
            total += self.cycles.get(now.kind, 1) + self._waits(last, now)
            last = now
        return total

    def refill(self, last: Instruction) -> int:
        """Cycles more when control goes elsewhere behind an instruction."""
        return self.taken.get(last.kind, 0)

    def mispredicted(self, last: Instruction) -> int:
        """Nothing is predicted."""
        del last
        return 0

    def _waits(self, before: Instruction | None, now: Instruction) -> int:
        if before is None or before.kind not in LOADS:
            return 0
        return self.load_use * any(result in read for read in _read(now) for result in before.results)


def _read(now: Instruction) -> tuple[tuple[int, ...], ...]:
    return now.operands, now.address, now.shifted, now.late


_TAKEN: Mapping[Kind, int] = {
    "branch": 2,
    "call": 2,
    "branch_register": 2,
    "call_register": 2,
}
_ASSUMED = (
    "one instruction begins in each cycle, in order, and takes one",
    "what reads the result of a load right behind it waits a cycle",
    "a product takes a cycle, of 32 bits and of 64",
    "a taken branch, a call and a return cost 2 cycles more, however well they are foreseen",
    "the RAM answers without waiting",
)

# The pipeline has four stages, in order, one instruction wide: ESP32-C3 Technical Reference Manual, "ESP-RISC-V CPU".
RV32 = InOrder(
    "RV32, in order",
    "none: makers publish no table of such cores' cycles; a core of a few stages in order is assumed",
    (*_ASSUMED, "a division takes 33 cycles, a bit each"),
    {"divide": 33},
    _TAKEN,
    load_use=1,
)
XTENSA = InOrder(
    "Xtensa LX, in order",
    "none: the cycles of an Xtensa core depend on its configuration; one of five stages in order is assumed",
    (*_ASSUMED, "a division takes 13 cycles"),
    {"divide": 13},
    _TAKEN,
    load_use=1,
)


def _ends(core: InOrder) -> tuple[InOrder, InOrder]:
    quick = replace(core, cycles={"divide": 2}, taken=dict.fromkeys(_TAKEN, 1))
    slow = replace(
        core,
        cycles={"divide": 37, "multiply": 3, "multiply_long": 4},
        taken=dict.fromkeys(_TAKEN, 3),
        load_use=2,
    )
    return quick, slow


# core → the model with everything that is assumed at its least, and at its most, among published cores of this kind.
IN_ORDER_ENDS: Mapping[str, tuple[InOrder, InOrder]] = {
    "rv32imc": _ends(RV32),
    "rv32imac": _ends(RV32),
    "xtensa-lx106": _ends(XTENSA),
}
