# SPDX-License-Identifier: Apache-2.0
"""Models of cores that issue one instruction after the other, and whose makers publish no table of cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tinyet.timing.instruction import Kind
from tinyet.timing.table import Core

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
RV32 = Core(
    "RV32, in order",
    "none: makers publish no table of such cores' cycles; a core of a few stages in order is assumed",
    (*_ASSUMED, "a division takes 33 cycles, a bit each"),
    {"divide": 33},
    _TAKEN,
    pairs=False,
    load_use=1,
)
XTENSA = Core(
    "Xtensa LX, in order",
    "none: the cycles of an Xtensa core depend on its configuration; one of five stages in order is assumed",
    (*_ASSUMED, "a division takes 13 cycles"),
    {"divide": 13},
    _TAKEN,
    pairs=False,
    load_use=1,
)


def _ends(core: Core) -> tuple[Core, Core]:
    quick = replace(core, cycles={"divide": 2}, taken=dict.fromkeys(_TAKEN, 1))
    slow = replace(
        core,
        cycles={"divide": 37, "multiply": 3, "multiply_long": 4},
        taken=dict.fromkeys(_TAKEN, 3),
        load_use=2,
    )
    return quick, slow


# core → the model with everything that is assumed at its least, and at its most, among published cores of this kind.
IN_ORDER_ENDS: Mapping[str, tuple[Core, Core]] = {
    "rv32imc": _ends(RV32),
    "rv32imac": _ends(RV32),
    "xtensa-lx106": _ends(XTENSA),
}
