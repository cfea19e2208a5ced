# SPDX-License-Identifier: Apache-2.0
"""Cycles of instructions, core by core, from the manufacturers' documents: data, each with its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.timing.in_order import IN_ORDER_ENDS, RV32, XTENSA
from tinyet.timing.instruction import PROCESSING, Instruction, Kind
from tinyet.timing.model import Model
from tinyet.timing.pipelines import PIPELINE_ENDS, PIPELINES

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
    them computes.
    """

    title: str
    source: str
    assumed: tuple[str, ...]
    cycles: Mapping[Kind, int]
    taken: Mapping[Kind, int]
    pairs: bool

    def straight(self, block: Sequence[Instruction], before: Sequence[Instruction] = ()) -> int:
        """Cycles of a block's instructions, its branch not taken; what ran before it changes nothing."""
        del before
        pairs = zip((None, *block), block, strict=False)
        return sum(self._alone(now) + self._beside(one, now) for one, now in pairs)

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
        if not self.pairs or before is None:
            return 0
        depends = now.kind in _ADDRESSED and not set(before.results).isdisjoint(now.address)
        if before.kind in PROCESSING:
            return int(depends)
        paired = before.kind in _SINGLE and (now.kind in _SINGLE or (now.kind == "store" and now.indexed))
        return -int(paired and not depends)


# DDI 0337 and DDI 0439 give P, the cycles to refill the pipeline, as 1 to 3 for a branch and as 3 for a load of the
# program counter. The target of a branch with a constant offset is known early.
_REFILL: Mapping[Kind, int] = {
    "branch": 2,
    "compare_branch": 2,
    "call": 2,
    "branch_register": 3,
    "call_register": 3,
    "load_pc": 3,
    "load_multiple_pc": 3,
    "table_branch": 3,
}
_ARMV7_ASSUMED = (
    "a division takes 7 cycles (2 to 12, by its operands)",
    "the pipeline refills in 2 cycles after a taken branch to a constant address, in 3 after others (1 to 3)",
    "an IT instruction takes a cycle (none where the core folds it)",
)
_ALIGNED = "accesses to memory are aligned"
_M4_CYCLES: Mapping[Kind, int] = {
    "divide": 7,
    "load": 2,
    "load_narrow": 2,
    "load_pc": 2,
    "table_branch": 3,
    "float_multiply_add": 3,
    "float_divide": 14,
    "float_root": 14,
    "float_move_two": 2,
}
_M0_ASSUMED = ("the multiplier is the fast one: a cycle (32 with the small one)",)

TABLES: Mapping[str, Core] = {
    "cortex-m0": Core(
        "Cortex-M0",
        "Cortex-M0 Technical Reference Manual (DDI 0432C), table 3-1",
        _M0_ASSUMED,
        {"load": 2, "load_narrow": 2, "store": 2, "system": 4, "barrier": 4},
        {"branch": 2, "call": 3, "branch_register": 2, "call_register": 2, "load_multiple_pc": 3},
        pairs=False,
    ),
    "cortex-m0plus": Core(
        "Cortex-M0+",
        "Cortex-M0+ Technical Reference Manual (DDI 0484C), table 3-1",
        _M0_ASSUMED,
        {"load": 2, "load_narrow": 2, "store": 2, "call": 2, "system": 3, "barrier": 3},
        {"branch": 1, "call": 1, "branch_register": 1, "call_register": 1, "load_multiple_pc": 2},
        pairs=False,
    ),
    "cortex-m3": Core(
        "Cortex-M3",
        "Cortex-M3 Technical Reference Manual (DDI 0337I), table 3-1 and \"Load/store timings\"",
        (
            *_ARMV7_ASSUMED,
            "a 64-bit product takes 4 cycles (3 to 5), one with an addition 6 (4 to 7)",
            _ALIGNED,
        ),
        {
            "multiply_add": 2,
            "multiply_long": 4,
            "multiply_add_long": 6,
            "divide": 7,
            "load": 2, "load_narrow": 2,
            "load_pc": 2,
            "table_branch": 3,
        },
        _REFILL,
        pairs=True,
    ),
    "cortex-m4": Core(
        "Cortex-M4",
        "Cortex-M4 Technical Reference Manual (DDI 0439D), tables 3-1 and 7-1 and \"Load/store timings\"",
        (*_ARMV7_ASSUMED, _ALIGNED),
        _M4_CYCLES,
        _REFILL,
        pairs=True,
    ),
}  # fmt: skip


def _ends(core: Core, low: Mapping[Kind, int], high: Mapping[Kind, int]) -> tuple[Core, Core]:
    quick, slow = (
        replace(core, cycles={**core.cycles, **cycles}, taken=dict.fromkeys(core.taken, refill))
        for cycles, refill in ((low, 1), (high, 3))
    )
    return quick, slow


# core → the model with each number that its table leaves open at its least, and at its most.
TABLE_ENDS: Mapping[str, tuple[Core, Core]] = {
    "cortex-m3": _ends(
        TABLES["cortex-m3"],
        {"divide": 2, "it": 0, "multiply_long": 3, "multiply_add_long": 4},
        {"divide": 12, "multiply_long": 5, "multiply_add_long": 7},
    ),
    "cortex-m4": _ends(TABLES["cortex-m4"], {"divide": 2, "it": 0}, {"divide": 12}),
}

CORES: Mapping[str, Model] = {
    **TABLES,
    **PIPELINES,
    "rv32imc": RV32,
    "rv32imac": RV32,
    "xtensa-lx106": XTENSA,
}
"""The model of each core that has one."""

ENDS: Mapping[str, tuple[Model, Model]] = {**TABLE_ENDS, **PIPELINE_ENDS, **IN_ORDER_ENDS}
"""The same at both ends of what its source leaves open; a core whose table leaves nothing open is not there."""

# Why a core has no entry.
WITHOUT_MODEL: Mapping[str, str] = {
    "avr5": "no emulator runs the harness on it; Microchip's table gives an AVR's cycles, and simavr counts them",
    "xtensa-lx6": "its compiler comes with Espressif's SDK only, and QEMU of distributions does not have the core",
    "xtensa-lx7": "its compiler comes with Espressif's SDK only, and QEMU of distributions does not have the core",
}
