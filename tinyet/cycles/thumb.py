# SPDX-License-Identifier: Apache-2.0
"""Thumb instructions as far as their time depends on them: what kind each is, and how many registers it moves.

The encodings are those of the Armv6-M, Armv7-M and Armv8-M Architecture Reference Manuals (DDI 0419, DDI 0403,
DDI 0553), "Thumb instruction set encoding". Helium is not among them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "data",  # one result in one cycle: arithmetic, logic, moves, packed arithmetic, saturation
    "multiply",  # of 32 bits: MUL, and Armv6-M's only one
    "multiply_add",  # 32 bits and an addition or subtraction: MLA, MLS
    "multiply_dsp",  # products of halves, words' upper halves and sums of them: SMLAD, SMMLA, SMULBB, USAD8, …
    "multiply_long",  # a 64-bit product: SMULL, UMULL
    "multiply_add_long",  # and an addition to it: SMLAL, UMLAL, UMAAL, SMLALD, …
    "divide",
    "load",
    "store",
    "load_double",
    "store_double",
    "load_multiple",
    "store_multiple",
    "load_multiple_pc",  # POP {…, pc}
    "load_pc",
    "branch",
    "call",
    "branch_register",  # BX, and data processing that writes the program counter
    "call_register",
    "compare_branch",
    "table_branch",
    "it",
    "hint",  # NOP, YIELD, …
    "barrier",
    "system",  # MRS, MSR
    "interrupts",  # CPS
    "exception",  # SVC, BKPT, UDF
    "coprocessor",  # any but the floating-point extension
    "float",  # addition, multiplication, comparison, conversion
    "float_multiply_add",
    "float_divide",
    "float_root",
    "float_move",
    "float_move_two",  # two core registers at once
]

# Kinds whose result is in one core register.
PROCESSING: frozenset[Kind] = frozenset(("data", "multiply", "multiply_add", "multiply_dsp", "divide"))

PC = 15
_SP = 13
_NO_REGISTER = -1


class Instruction(NamedTuple):
    """One instruction.

    size: bytes. registers: how many words a multiple transfer moves; 1 else. conditional: it may do nothing, and
    control then goes on behind it though it is a branch. target: the register that a single load, or one of
    PROCESSING, writes; -1 where there is none. address: the registers that a load or store computes its address from.
    indexed: by two registers.
    """

    kind: Kind
    size: int
    registers: int = 1
    conditional: bool = False
    target: int = _NO_REGISTER
    address: tuple[int, ...] = ()
    indexed: bool = False


_DATA16 = Instruction("data", 2)
_DATA32 = Instruction("data", 4)


def is_wide(first: int) -> bool:
    """Whether a halfword is the first of a 32-bit instruction."""
    return first >> 11 >= 0x1D


def decode(first: int, second: int = 0) -> Instruction:
    """The instruction with these halfwords; `second` counts where the first announces it. A halfword that no manual
    defines is taken for data processing."""
    found = _wide(first, second) if is_wide(first) else _narrow(first)
    if found.kind in PROCESSING:
        return found._replace(target=_result(first, second))
    return found


def it_length(first: int) -> int:
    """Number of instructions that an IT instruction makes conditional; 0 for any other halfword."""
    if first & 0xFF00 != 0xBF00 or first & 0xF == 0:
        return 0
    mask = first & 0xF
    return 4 - ((mask & -mask).bit_length() - 1)


def _result(first: int, second: int) -> int:
    """The register that data processing writes; -1 where it only compares."""
    if is_wide(first):
        register = second >> 8 & 0xF
        return _NO_REGISTER if register == PC else register
    match first >> 10:
        case 0b001010 | 0b001011:
            return _NO_REGISTER  # CMP
        case 0b010000:
            return _NO_REGISTER if first >> 6 & 0xF in (8, 10, 11) else first & 7  # TST, CMP, CMN
        case 0b010001:
            return _NO_REGISTER if first >> 8 & 3 == 1 else first & 7 | first >> 4 & 8
    match first >> 12:
        case 0b0010 | 0b0011 | 0b1010:
            return first >> 8 & 7
        case 0b1011 if first >> 8 == 0xB0:
            return _SP
    return first & 7


def _wide(first: int, second: int) -> Instruction:
    match first >> 11:
        case 0x1D:
            return _wide_01(first, second)
        case 0x1E:
            return _control(first, second) if second & 0x8000 else _DATA32
        case _:
            return _wide_11(first, second)


def _narrow(word: int) -> Instruction:
    match word >> 12:
        case 0b0100:
            return _narrow_0100(word)
        case 0b0101:
            kind: Kind = "load" if word >> 9 & 7 >= 3 else "store"
            address = (word >> 3 & 7, word >> 6 & 7)
            return _single(kind, 2, word & 7, address, indexed=True)
        case 0b0110 | 0b0111 | 0b1000:
            return _single("load" if word >> 11 & 1 else "store", 2, word & 7, (word >> 3 & 7,))
        case 0b1001:
            return _single("load" if word >> 11 & 1 else "store", 2, word >> 8 & 7, (_SP,))
        case 0b1011:
            return _narrow_1011(word)
        case 0b1100:
            load = word >> 11 & 1
            return Instruction("load_multiple" if load else "store_multiple", 2, (word & 0xFF).bit_count())
        case 0b1101:
            if word >> 8 & 0xF >= 14:
                return Instruction("exception", 2)
            return Instruction("branch", 2, conditional=True)
        case 0b1110:
            return Instruction("branch", 2)
    return _DATA16


def _narrow_0100(word: int) -> Instruction:
    if word >> 11 & 1:
        return _single("load", 2, word >> 8 & 7, (PC,))
    if not word >> 10 & 1:
        return Instruction("multiply", 2) if word >> 6 & 0xF == 13 else _DATA16
    if word >> 8 & 3 == 3:
        return Instruction("call_register" if word & 0x80 else "branch_register", 2)
    writes_pc = (word & 7) + (word >> 4 & 8) == PC and word >> 8 & 3 != 1
    return Instruction("branch_register", 2) if writes_pc else _DATA16


def _narrow_1011(word: int) -> Instruction:
    if word & 0xF500 == 0xB100:
        return Instruction("compare_branch", 2, conditional=True)
    if word & 0xFE00 == 0xB400:
        return Instruction("store_multiple", 2, (word & 0x1FF).bit_count())
    if word & 0xFE00 == 0xBC00:
        kind: Kind = "load_multiple_pc" if word & 0x100 else "load_multiple"
        return Instruction(kind, 2, (word & 0x1FF).bit_count())
    if word & 0xFFE8 == 0xB660:
        return Instruction("interrupts", 2)
    if word & 0xFF00 == 0xBE00:
        return Instruction("exception", 2)
    if word & 0xFF00 == 0xBF00:
        return Instruction("it" if word & 0xF else "hint", 2)
    return _DATA16


def _single(
    kind: Kind, size: int, register: int, address: tuple[int, ...], *, indexed: bool = False
) -> Instruction:
    """A load or store of one register."""
    if kind == "store":
        return Instruction("store", size, address=address, indexed=indexed)
    if register == PC:
        return Instruction("load_pc", size, address=address)
    return Instruction(kind, size, target=register, address=address, indexed=indexed)


def _wide_01(first: int, second: int) -> Instruction:
    if first & 0x0400:
        return _coprocessor(first, second)
    if first & 0x0200:
        return _DATA32
    base = first & 0xF
    load = first >> 4 & 1
    if not first & 0x0040:
        kind: Kind = "store_multiple"
        if load:
            kind = "load_multiple_pc" if second & 0x8000 else "load_multiple"
        return Instruction(kind, 4, second.bit_count())
    if first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:
        return Instruction("table_branch", 4)
    if first & 0xFFF0 == 0xE840 and second & 0xF03F == 0xF000:
        return _DATA32  # TT
    if (first, second) == (0xE97F, 0xE97F):
        return Instruction("hint", 4)  # SG
    if first & 0x0120 == 0:
        # LDREX, LDREXB, …, LDAEX, LDA, and their stores: neither indexed nor written back
        return _single("load" if load else "store", 4, second >> 12, (base,))
    return Instruction("load_double" if load else "store_double", 4, 2, address=(base,))


def _control(first: int, second: int) -> Instruction:
    match second & 0xD000:
        case 0xD000:
            return Instruction("call", 4)
        case 0x9000:
            return Instruction("branch", 4)
        case 0x8000 if first & 0x0380 != 0x0380:
            return Instruction("branch", 4, conditional=True)
    match first & 0xFFF0:
        case 0xF380 | 0xF390 | 0xF3E0 | 0xF3F0:
            return Instruction("system", 4)
        case 0xF3A0:
            return Instruction("hint", 4)
        case 0xF3B0:
            return Instruction("barrier", 4)
    return Instruction("exception", 4) if first & 0xFFF0 == 0xF7F0 else _DATA32


def _wide_11(first: int, second: int) -> Instruction:
    if first & 0x0400:
        return _coprocessor(first, second)
    if first & 0x0200 == 0:
        return _wide_single(first, second)
    match first >> 7 & 3:
        case 2:
            return _multiply(first, second)
        case 3:
            return _multiply_long(first)
    return _DATA32


def _wide_single(first: int, second: int) -> Instruction:
    base, register = first & 0xF, second >> 12
    load = first >> 4 & 1
    if load and register == PC and first & 0x0060 != 0x0040:
        return Instruction("hint", 4)  # PLD, PLI
    # The offset is a constant of 12 bits, one of 8 bits with flags, or a shifted register.
    indexed = not first & 0x0080 and not second & 0x0800 and base != PC
    address = (base, second & 0xF) if indexed else (base,)
    return _single("load" if load else "store", 4, register, address, indexed=indexed)


def _multiply(first: int, second: int) -> Instruction:
    if first >> 4 & 7:
        return Instruction("multiply_dsp", 4)
    adds = second >> 12 != 0xF or second >> 4 & 0xF
    return Instruction("multiply_add" if adds else "multiply", 4)


def _multiply_long(first: int) -> Instruction:
    match first >> 4 & 7:
        case 1 | 3:
            return Instruction("divide", 4)
        case 0 | 2:
            return Instruction("multiply_long", 4)
        case _:
            return Instruction("multiply_add_long", 4)


def _coprocessor(first: int, second: int) -> Instruction:
    if second & 0x0E00 != 0x0A00:
        return Instruction("coprocessor", 4)
    if first & 0xFF00 == 0xFE00:
        return Instruction("float", 4)  # VSEL, VMAXNM, VMINNM, VRINT, VCVTA
    if first & 0x0200 == 0:
        return _float_transfer(first, second)
    if second & 0x10:
        return Instruction("float_move", 4)
    match first >> 4 & 0xB:
        case 0 | 1 | 9 | 10:
            return Instruction("float_multiply_add", 4)
        case 8:
            return Instruction("float_divide", 4)
        case 11 if first & 0xF == 1 and second & 0xC0 == 0xC0:
            return Instruction("float_root", 4)
    return Instruction("float", 4)


def _float_transfer(first: int, second: int) -> Instruction:
    if first & 0xFFE0 == 0xEC40:
        return Instruction("float_move_two", 4)
    load = first >> 4 & 1
    if first & 0x0120 == 0x0100:
        double = second & 0x100
        if double:
            return Instruction("load_double" if load else "store_double", 4, 2, address=(first & 0xF,))
        # A float register is the base of no address.
        return Instruction("load" if load else "store", 4, address=(first & 0xF,))
    # FLDMX and FSTMX, which nobody writes any more, say one word too many.
    words = second & (0xFE if second & 0x100 else 0xFF)
    return Instruction("load_multiple" if load else "store_multiple", 4, words)
