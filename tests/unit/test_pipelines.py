# SPDX-License-Identifier: Apache-2.0
"""Pipelines: small pieces of code, whose cycles are counted by hand from the sources that pipelines.py names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tinyet.timing.cores import CORES, ENDS
from tinyet.timing.instruction import Instruction
from tinyet.timing.model import Model
from tinyet.timing.pipelines import PIPELINE_ENDS, PIPELINES
from tinyet.timing.thumb import decode

LDR_0, LDR_4, LDR_8 = (
    decode(0x6802),
    decode(0x6843),
    decode(0x6884),
)  # ldr r2, [r0]; r3, [r0, #4]; r4, [r0, #8]
LDR_OTHER = decode(0x680D)  # ldr r5, [r1]
LDR_NEXT = decode(0xF850, 0x2B04)  # ldr r2, [r0], #4
LDRB, STR, STR_OTHER = (
    decode(0x7802),
    decode(0x600A),
    decode(0x600F),
)  # ldrb r2, [r0]; str r2, [r1]; str r7, [r1]
ADDS, ADDS_OTHER, MOVS = (
    decode(0x3201),
    decode(0x3601),
    decode(0x2500),
)  # adds r2, #1; adds r6, #1; movs r5, #0
ADDS_R2 = decode(0x1892)  # adds r2, r2, r2
ADD_WIDE, ADD_WIDE_OTHER = (
    decode(0xF102, 0x0201),
    decode(0xF106, 0x0601),
)  # add.w r2, r2, #1; add.w r6, r6, #1
ADD_HIGH = decode(0x4488)  # add r8, r1: sets no flags
EORS, EOR_SHIFTED = decode(0x407A), decode(0xEA86, 0x56B2)  # eors r2, r7; eor.w r6, r6, r2, ror #22
EOR_OF_SHIFTED = decode(0xEA82, 0x56B6)  # eor.w r6, r2, r6, ror #22
MUL, SMLAD = decode(0xFB02, 0xF302), decode(0xFB22, 0x3304)  # mul r3, r2, r2; smlad r3, r2, r4, r3
ADDS_SUM = decode(0x3301)  # adds r3, #1
SXTB16, UXTB = decode(0xFA2F, 0xF682), decode(0xB2F5)  # sxtb16 r6, r2; uxtb r5, r6
LDM_4, LDM_3 = decode(0xC83C), decode(0xC81C)  # ldmia r0!, {r2-r5}; ldmia r0!, {r2-r4}
PUSH, POP_PC = decode(0xB5F0), decode(0xBDF0)  # {r4-r7, lr}; {r4-r7, pc}
SUBS, BNE, NOP = decode(0x3F01), decode(0xD1FE), decode(0xBF00)  # subs r7, #1
SDIV = decode(0xFB92, 0xF2F3)

VLDR_0, VLDR_1 = decode(0xECB0, 0x1F04), decode(0xECB1, 0x3F04)  # vldrw.u32 q0, [r0], #16; q1, [r1], #16
VLDRB_1 = decode(0xED91, 0x2E80)  # vldrb.u16 q1, [r1]
VADD_0, VADD_1 = decode(0xEF20, 0x0840), decode(0xEF22, 0x2842)  # vadd.i32 q0, q0, q0; q1, q1, q1
VMUL_0, VSTR_0, VSTR_1 = decode(0xEF20, 0x0950), decode(0xED82, 0x1F00), decode(0xED82, 0x3F00)
VMLADAVA = decode(0xEEF0, 0x2F22)  # vmladava.s8 r2, q0, q1
LE = decode(0xF00F, 0xC001)


def cycles(core: str, block: Sequence[Instruction], rounds: int = 0) -> int:
    """Of a block behind nothing, or behind itself."""
    return CORES[core].straight(block, tuple(block) * rounds)


def test_what_the_instructions_are() -> None:
    """The encodings above are what the comments say."""
    kinds = [
        i.kind for i in (SXTB16, EOR_SHIFTED, SMLAD, VLDRB_1, VMUL_0, VSTR_0, VMLADAVA, LE, UXTB, ADD_HIGH)
    ]
    assert kinds == [
        *("extend", "shifted", "multiply_dsp", "vector_load", "vector_multiply", "vector_store"),
        *("vector_dot", "loop_end", "extend", "data"),
    ]
    assert (LDR_NEXT.updated, LDR_4.offset, SMLAD.late, EOR_SHIFTED.shifted) == ((0,), 4, (3,), (2,))
    assert VSTR_1.late == VADD_1.results == VLDRB_1.results == (36, 37, 38, 39)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        # Two of the simplest in a cycle; of two that depend, one in each of its ALUs.
        ([ADDS, ADDS_OTHER], 1),
        ([ADDS, ADDS], 1),
        ([ADDS, ADDS, ADDS], 2),
        ([EORS, EORS], 2),  # logic has one ALU only
        ([ADDS, EOR_OF_SHIFTED], 1),  # jnk0le's example
        ([ADDS, EOR_SHIFTED], 2),  # what is shifted must be there in the early one
        ([EORS, EOR_SHIFTED], 3),
        # A loaded word goes to an addition in the next cycle, to a factor in the one after, as a loaded byte does.
        ([LDR_0, ADDS], 2),
        ([LDR_0, MUL], 3),
        ([LDRB, ADDS], 3),
        ([LDR_0, STR], 1),
        ([LDRB, STR], 1),
        # Loads of even and odd words together; of another register, nobody knows.
        ([LDR_0, LDR_4], 1),
        ([LDR_0, LDR_8], 2),
        ([LDR_0, LDR_OTHER], 2),
        ([LDR_NEXT, LDR_NEXT], 2),  # the second needs the address of the first
        # A product each cycle, also into one sum; its result a cycle later.
        ([SMLAD] * 4, 4),
        ([SMLAD, ADDS_SUM], 3),
        ([SMLAD, STR_OTHER], 2),  # these share ports
        ([MUL, ADDS_OTHER], 1),
        # One of fields and extensions, and only in front.
        ([SXTB16, UXTB], 2),
        ([ADDS_OTHER, SXTB16], 2),
        ([SXTB16, ADDS], 1),
        ([SXTB16, EOR_SHIFTED], 2),
        # ceil(registers / 2), alone
        ([LDM_4], 2),
        ([LDM_3], 2),
        ([PUSH], 3),
        ([ADDS_OTHER, LDM_4, SUBS], 4),
        ([SDIV], 7),
        ([SUBS, BNE], 1),
    ],
)
def test_cycles_of_the_cortex_m7(block: Sequence[Instruction], expected: int) -> None:
    assert cycles("cortex-m7", block) == expected


@pytest.mark.parametrize(
    ("core", "block", "expected"),
    [
        # ldr at 0, smlad 2 cycles behind it beside subs, bne: the addend of the round before is long there.
        ("cortex-m7", [LDR_NEXT, SMLAD, SUBS, BNE], 4),
        # Two loads and the products: the memory is free in every second cycle.
        ("cortex-m55", [VLDR_0, VLDR_1, VMLADAVA, LE], 4),
        # Each product waits for its own operands only where the other unit is free.
        ("cortex-m55", [VLDR_0, VADD_1, VLDR_1, VADD_0, LE], 4),
        ("cortex-m55", [VADD_0, VMUL_0, LE], 3),  # the product is there after two cycles
        ("cortex-m85", [VLDR_0, VLDR_1, VMLADAVA, LE], 4),
    ],
)
def test_a_loop_in_its_steady_state(core: str, block: Sequence[Instruction], expected: int) -> None:
    assert cycles(core, block, rounds=4) == expected == cycles(core, block, rounds=5)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        # jnk0le: subs 1, bne 2 if taken (a cycle of it is the refill); beside what sets no flags, bne takes none.
        ([SUBS, BNE], 2),
        ([SUBS, ADD_HIGH, BNE], 2),
        ([ADDS, NOP], 1),
        ([ADDS, ADDS_OTHER], 2),
        ([LDR_0, ADDS], 3),
        ([LDR_0, STR], 2),
        ([SMLAD] * 3, 3),
        ([SMLAD, ADDS_SUM], 3),
        ([LDM_4], 4),
        ([EOR_SHIFTED, EOR_SHIFTED], 3),
    ],
)
def test_cycles_of_the_cortex_m33(block: Sequence[Instruction], expected: int) -> None:
    assert cycles("cortex-m33", block) == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        # The two examples at the head of LLVM's ARMScheduleM55.td: the first four begin in four cycles, of the second
        # the loads cannot overlap.
        ([VLDR_0, VADD_0, VMUL_0, VSTR_0], 4),
        ([VLDR_0, VLDRB_1, VADD_1, VSTR_1], 5),
        # Short instructions together if one of them is among the simplest.
        ([LDR_0, ADDS_OTHER], 1),
        ([ADDS_OTHER, LDR_0], 1),
        ([ADDS, ADDS_OTHER], 1),
        ([LDR_0, ADDS_R2], 3),
        ([ADD_WIDE, ADD_WIDE_OTHER], 2),
        ([EORS, LDR_OTHER], 2),
        ([LDM_4], 2),
        ([VADD_0, LE], 1),
    ],
)
def test_cycles_of_the_cortex_m55(block: Sequence[Instruction], expected: int) -> None:
    assert cycles("cortex-m55", block) == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        # jnk0le's example: five sums that depend in three cycles, and no more.
        ([ADDS] * 5, 3),
        ([ADDS] * 6, 4),
        # A vector behind a scalar instruction, nothing behind a vector; no scalar beside the second half of a load.
        ([ADDS, VADD_0], 1),
        ([VADD_0, ADDS], 2),
        ([VLDR_0, ADDS], 3),
        ([VLDR_0, VADD_0], 2),
        ([UXTB, VADD_0], 2),
        ([VADD_0, VMUL_0], 2),
        ([VADD_0, VADD_1], 3),
        ([LDR_0, ADDS], 1),  # the sum in the last ALU
        ([LDRB, ADDS], 2),
    ],
)
def test_cycles_of_the_cortex_m85(block: Sequence[Instruction], expected: int) -> None:
    assert cycles("cortex-m85", block) == expected


def test_branches() -> None:
    m7, m33 = CORES["cortex-m7"], CORES["cortex-m33"]
    assert (m7.refill(BNE), m7.mispredicted(BNE)) == (0, 6)
    assert m7.mispredicted(POP_PC) == m7.mispredicted(LE) == 0  # that go where they must
    assert (m33.refill(BNE), m33.refill(POP_PC), m33.refill(ADDS), m33.mispredicted(BNE)) == (1, 3, 0, 0)
    assert CORES["cortex-m4"].mispredicted(BNE) == 0


@pytest.mark.parametrize("core", ENDS)
def test_the_ends_enclose_the_model(core: str) -> None:
    code = [LDR_0, LDR_OTHER, SDIV, SMLAD, SMLAD, VLDR_0, VMLADAVA, VMLADAVA, PUSH, LDM_4, SUBS, BNE, POP_PC]
    if core in ("cortex-m3", "cortex-m4"):
        code = [i for i in code if not i.kind.startswith("vector")]
    least, most = ENDS[core]

    def of(model: Model) -> int:
        return sum(model.straight([one]) + model.refill(one) + model.mispredicted(one) for one in code)

    assert of(least) < of(CORES[core]) < of(most)
    assert least.title == most.title == CORES[core].title


def test_every_pipeline_has_ends() -> None:
    assert set(PIPELINES) == set(PIPELINE_ENDS)
