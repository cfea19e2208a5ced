# SPDX-License-Identifier: Apache-2.0
"""What a core's instructions can do, as far as tiles use them: its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tinyet.timing.instruction import Kind

NUMBERS: Mapping[str, int] = {**{f"r{n}": n for n in range(16)}, "sp": 13, "lr": 14, "pc": 15}
"""Of registers, as encodings have them."""


@dataclass(frozen=True, eq=False)
class CorePage:
    """One architecture. What an instruction costs on a core of it is in `tinyet.timing.cores`, by its kind.

    cores: those of `tinyet.timing.cores` whose cycles are stated. registers: that a function may have for values, in
    the order in which instructions of several want them. given: what stands in the first of them at the beginning.
    kept: those that it must give back as they were; saved in one instruction with the return address. spare: one
    behind these that nobody wants back. kinds: by mnemonic, with .w where it has a narrow form, too; ldmia.w is
    the ldm.w that loads pc.
    instruction_bytes: of each instruction that is printed: all are wide, so that the targets of branches are words.
    pipeline: that of `tinyet.timing.pipelines` which orders the code; empty where loads stand side by side. suffix: of
    the names of functions in this order. beside: whether a load is issued beside a product.
    """

    title: str
    cores: tuple[str, ...]
    registers: tuple[str, ...]
    given: int
    kept: tuple[str, ...]
    spare: str
    kinds: Mapping[str, Kind]
    instruction_bytes: int
    pipeline: str = ""
    suffix: str = ""
    beside: bool = False

    def named(self, name: str) -> str:
        """Of a function, by the name of what it is made for."""
        return name + self.suffix

    def number(self, register: str) -> int:
        """As encodings have it."""
        return NUMBERS[register]


ARMV7E_M = CorePage(
    title="Armv7E-M",
    cores=("cortex-m4", "cortex-m7", "cortex-m33"),
    registers=(*(f"r{n}" for n in range(13)), "lr"),
    given=4,
    kept=tuple(f"r{n}" for n in range(4, 12)),
    spare="r12",
    kinds={
        "add.w": "data",
        "addw": "data",
        "adr.w": "data",
        "and.w": "logic",
        "ands.w": "logic",
        "asr.w": "shift",
        "b.w": "branch",
        "beq.w": "branch",
        "bic.w": "logic",
        "bics.w": "logic",
        "bne.w": "branch",
        "cmp.w": "data",
        "ldm.w": "load_multiple",
        "ldmia.w": "load_multiple_pc",
        "ldr": "load",
        "ldr.w": "load",
        "ldrd": "load_double",
        "ldrh.w": "load_narrow",
        "ldrsb.w": "load_narrow",
        "lsl.w": "shift",
        "lsr.w": "shift",
        "mla": "multiply_add",
        "mov.w": "data",
        "movt": "data",
        "movw": "data",
        "orr.w": "logic",
        "pkhbt": "bits",
        "pkhtb": "bits",
        "pop.w": "load_multiple_pc",
        "push.w": "store_multiple",
        "qadd16": "saturate",
        "qsub16": "saturate",
        "ror.w": "shift",
        "rsb.w": "data",
        "sbfx": "bits",
        "smlabb": "multiply_dsp",
        "smlabt": "multiply_dsp",
        "smlad": "multiply_dsp",
        "smlald": "multiply_add_long",
        "smlatb": "multiply_dsp",
        "smmla": "multiply_dsp",
        "smmlar": "multiply_dsp",
        "smmulr": "multiply_dsp",
        "ssat": "saturate",
        "stm.w": "store_multiple",
        "str.w": "store",
        "strb": "store",
        "strb.w": "store",
        "strd": "store_double",
        "strh": "store",
        "strh.w": "store",
        "sub.w": "data",
        "subs.w": "data",
        "subw": "data",
        "sxtab": "bits",
        "sxtab16": "bits",
        "sxtah": "bits",
        "sxtb16": "extend",
        "tbb": "table_branch",
        "ubfx": "bits",
        "usat": "saturate",
        "uxtab": "bits",
        "uxtab16": "bits",
    },
    instruction_bytes=4,
)


def _own_order(core: str, title: str, *, beside: bool) -> CorePage:
    name = f"cortex-{core}"
    return replace(ARMV7E_M, title=title, cores=(name,), pipeline=name, suffix=f"_{core}", beside=beside)


CORTEX_M7 = _own_order("m7", "Cortex-M7", beside=True)
CORTEX_M33 = _own_order("m33", "Cortex-M33", beside=False)
"""What is loaded, and halves that are added up, are there a cycle late."""


PAGES = (ARMV7E_M, CORTEX_M7, CORTEX_M33)
"""Of one architecture: that of any core, and those of cores with an order of their own."""


def page_of(core: str) -> CorePage:
    """Of a core of the architecture, by its name in `tinyet.timing.cores`."""
    return next((page for page in PAGES if page.cores == (core,)), ARMV7E_M)
