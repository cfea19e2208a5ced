# SPDX-License-Identifier: Apache-2.0
"""Cycles of instructions, core by core, from the manufacturers' documents: data, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tinyet.timing.in_order import IN_ORDER_ENDS, RV32, XTENSA
from tinyet.timing.instruction import Kind
from tinyet.timing.model import Model
from tinyet.timing.pipelines import PIPELINE_ENDS, PIPELINES
from tinyet.timing.table import Core

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
        "Cortex-M3 Technical Reference Manual (DDI 0337I), table 3-1 and \"Load/store timings\"; CMEmu",
        (
            *_ARMV7_ASSUMED,
            "factors of 64-bit products have bits in both halves (5 cycles, with an addition 7; else 3 at least)",
            _ALIGNED,
        ),
        {
            "multiply_add": 2,
            # Arm says 3 to 5 and 4 to 7. CMEmu's rules, measured on a CC2650 (r2p1; execute/instruction.rs of
            # github.com/mimuw-distributed-systems-group/cmemu): 3 where a factor is 0 or both are from 0 to 65,535;
            # 4, and 5 with an addition, where the second one is, or the first one and the second is not negative;
            # else 5 and 7, but for what has a lower half of zeros.
            "multiply_long": 5,
            "multiply_add_long": 7,
            "divide": 7,
            "load": 2, "load_narrow": 2,
            "load_pc": 2,
            "table_branch": 3,
        },
        _REFILL,
        pairs=True,
        moved_apart=True,
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
        {"divide": 2, "it": 0, "multiply_long": 3, "multiply_add_long": 3},
        {"divide": 12},
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
    "avr5": "none is needed: simavr, which runs the harness, counts the cycles of Microchip's table",
    "xtensa-lx6": "its compiler comes with Espressif's SDK only, and QEMU of distributions does not have the core",
    "xtensa-lx7": "its compiler comes with Espressif's SDK only, and QEMU of distributions does not have the core",
}
