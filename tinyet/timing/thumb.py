# SPDX-License-Identifier: Apache-2.0
"""Thumb instructions as far as their time depends on them: what kind each is, and which registers it reads and writes.

The encodings are those of the Armv6-M, Armv7-M and Armv8-M Architecture Reference Manuals (DDI 0419, DDI 0403,
DDI 0553), "Thumb instruction set encoding". Those of coprocessors, floating point and Helium are in vectors.py.
Registers: 0 to 15 are the core's, FLAGS those of comparisons; behind them come those of vectors.py.
"""

from __future__ import annotations

from functools import lru_cache

from tinyet.timing.instruction import Instruction, Kind
from tinyet.timing.vectors import FLAGS, PREDICATE, coprocessor

PC, _LR, _SP = 15, 14, 13
_LOGIC16: dict[int, Kind] = {
    **dict.fromkeys((0, 1, 8, 12, 14, 15), "logic"),  # AND, EOR, TST, ORR, BIC, MVN
    **dict.fromkeys((2, 3, 4, 7), "shift"),  # LSL, LSR, ASR, ROR
    13: "multiply",
}
_MVN16, _RSB16 = 15, 9
_COMPARES16 = (8, 10, 11)  # TST, CMP, CMN
# Of 32-bit data processing: AND, BIC, ORR, ORN, EOR.
_LOGIC32 = range(5)
_MOVE, _NOT, _PACK = 2, 3, 6  # ORR and ORN without a first operand are moves


def is_wide(first: int) -> bool:
    """Whether a halfword is the first of a 32-bit instruction."""
    return first >> 11 >= 0x1D


# A firmware says most of its words often, and many firmwares say the same.
@lru_cache(maxsize=1 << 14)
def decode(first: int, second: int = 0) -> Instruction:
    """The instruction with these halfwords; `second` counts where the first announces it. A halfword that no manual
    defines is taken for data processing."""
    return _wide(first, second) if is_wide(first) else _narrow(first)


def it_length(first: int) -> int:
    """Number of instructions that an IT instruction makes conditional; 0 for any other halfword."""
    if first & 0xFF00 != 0xBF00 or first & 0xF == 0:
        return 0
    mask = first & 0xF
    return 4 - ((mask & -mask).bit_length() - 1)


def _registers(mask: int) -> tuple[int, ...]:
    """The registers of a list, without the program counter, which no model waits for."""
    return tuple(i for i in range(PC) if mask >> i & 1)


def _narrow(word: int) -> Instruction:
    low, mid, high = word & 7, word >> 3 & 7, word >> 8 & 7
    match word >> 12:
        case 0b0000 | 0b0001:
            if word >> 11 == 3:
                second = () if word & 0x0400 else (word >> 6 & 7,)
                return Instruction("data", 2, results=(low, FLAGS), operands=(mid, *second))
            # A shift by nothing is a move.
            return Instruction("shift" if word >> 6 else "data", 2, results=(low, FLAGS), operands=(mid,))
        case 0b0010 | 0b0011:
            match word >> 11 & 3:
                case 0:
                    return Instruction("data", 2, results=(high, FLAGS))
                case 1:
                    return Instruction("data", 2, results=(FLAGS,), operands=(high,))
            return Instruction("data", 2, results=(high, FLAGS), operands=(high,))
        case 0b0100:
            return _narrow_0100(word)
        case 0b0101:
            operation = word >> 9 & 7
            narrow = operation not in (0, 4)
            return _single(operation >= 3, 2, low, (mid, word >> 6 & 7), narrow=narrow, indexed=True)
        case 0b0110 | 0b0111 | 0b1000:
            field, narrow = word >> 6 & 0x1F, word >> 12 != 0b0110
            scale = {0b0110: 4, 0b0111: 1, 0b1000: 2}[word >> 12]
            return _single(bool(word >> 11 & 1), 2, low, (mid,), narrow=narrow, offset=scale * field)
        case 0b1001:
            return _single(bool(word >> 11 & 1), 2, high, (_SP,), offset=4 * (word & 0xFF))
        case 0b1010:
            return Instruction("data", 2, results=(high,), operands=(_SP,) if word & 0x0800 else (PC,))
        case 0b1011:
            return _narrow_1011(word)
        case 0b1100:
            return _multiple(bool(word >> 11 & 1), 2, word & 0xFF, high, back=True)
        case 0b1101:
            if word >> 8 & 0xF >= 14:
                return Instruction("exception", 2)
            return Instruction("branch", 2, conditional=True, operands=(FLAGS,))
    return Instruction("branch", 2)


def _narrow_0100(word: int) -> Instruction:
    low, mid = word & 7, word >> 3 & 7
    if word >> 11 & 1:
        return _single(True, 2, word >> 8 & 7, (PC,), offset=4 * (word & 0xFF))
    if not word >> 10 & 1:
        operation = word >> 6 & 0xF
        kind = _LOGIC16.get(operation, "data")
        operands = (mid,) if operation in (_MVN16, _RSB16) else (low, mid)
        results = (FLAGS,) if operation in _COMPARES16 else (low, FLAGS)
        return Instruction(kind, 2, results=results, operands=operands)
    target, source = low | word >> 4 & 8, word >> 3 & 0xF
    match word >> 8 & 3:
        case 3:
            return Instruction("call_register" if word & 0x80 else "branch_register", 2, operands=(source,))
        case 1:
            return Instruction("data", 2, results=(FLAGS,), operands=(target, source))
        case 0:
            operands = (target, source)
        case _:
            operands = (source,)
    if target == PC:
        return Instruction("branch_register", 2, operands=operands)
    return Instruction("data", 2, results=(target,), operands=operands)


def _narrow_1011(word: int) -> Instruction:
    low, mid = word & 7, word >> 3 & 7
    if word & 0xF500 == 0xB100:
        return Instruction("compare_branch", 2, conditional=True, operands=(low,))
    if word & 0xFE00 == 0xB400:
        return _multiple(False, 2, word & 0xFF | (word & 0x100) << 6, _SP, back=True)
    if word & 0xFE00 == 0xBC00:
        return _multiple(True, 2, word & 0xFF | (word & 0x100) << 7, _SP, back=True)
    if word & 0xFFE8 == 0xB660:
        return Instruction("interrupts", 2)
    match word >> 8:
        case 0xB0:
            return Instruction("data", 2, results=(_SP,), operands=(_SP,))
        case 0xBE:
            return Instruction("exception", 2)
        case 0xBA:  # reversals
            return Instruction("bits", 2, results=(low,), shifted=(mid,))
        case 0xBF:
            return Instruction("it", 2, operands=(FLAGS,)) if word & 0xF else Instruction("hint", 2)
    return Instruction("extend", 2, results=(low,), shifted=(mid,))


def _single(
    load: bool,
    size: int,
    register: int,
    address: tuple[int, ...],
    *,
    narrow: bool = False,
    indexed: bool = False,
    updated: tuple[int, ...] = (),
    offset: int = 0,
) -> Instruction:
    """A load or store of one register."""
    if not load:
        return Instruction("store", size, late=(register,), address=address, indexed=indexed, updated=updated)
    if register == PC:
        return Instruction("load_pc", size, address=address, updated=updated)
    kind: Kind = "load_narrow" if narrow else "load"
    return Instruction(
        kind, size, results=(register,), address=address, indexed=indexed, updated=updated, offset=offset
    )


def _multiple(load: bool, size: int, mask: int, base: int, *, back: bool) -> Instruction:
    """A load or store of several registers, which a mask names; `back`: the base moves on."""
    listed = _registers(mask)
    updated = (base,) if back and base not in listed else ()
    words = mask.bit_count()
    if not load:
        return Instruction("store_multiple", size, words, address=(base,), late=listed, updated=updated)
    kind: Kind = "load_multiple_pc" if mask >> PC & 1 else "load_multiple"
    return Instruction(kind, size, words, address=(base,), results=listed, updated=updated)


def _wide(first: int, second: int) -> Instruction:
    if first >> 11 == 0x1E:
        return _control(first, second) if second & 0x8000 else _constant(first, second)
    if first & 0x0400:
        return coprocessor(first, second)
    if first >> 11 == 0x1F:
        return _wide_11(first, second)
    return _shifted(first, second) if first & 0x0200 else _double(first, second)


def _double(first: int, second: int) -> Instruction:
    """Loads and stores of several registers, exclusive ones and those with an order, table branches."""
    base, load = first & 0xF, bool(first >> 4 & 1)
    back = bool(first & 0x0020)
    if not first & 0x0040:
        return _multiple(load, 4, second, base, back=back)
    if first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:
        return Instruction("table_branch", 4, address=(base, second & 0xF))
    target = second >> 8 & 0xF
    if first & 0xFFF0 == 0xE840 and second & 0xF03F == 0xF000:
        return Instruction("data", 4, results=(target,), operands=(base,))  # TT
    if (first, second) == (0xE97F, 0xE97F):
        return Instruction("hint", 4)  # SG
    one = second >> 12
    if first & 0x0120 == 0:
        # LDREX, LDREXB, …, LDAEX, LDA, and their stores: neither indexed nor written back
        made = _single(load, 4, one, (base,))
        # STREX tells whether it has stored: in the second halfword's third field, or in its last one.
        told = () if load else (target,) if not first & 0x0080 else (second & 0xF,)
        return made if PC in told or load else made._replace(results=told)
    updated = (base,) if back else ()
    if load:
        return Instruction("load_double", 4, 2, results=(one, target), address=(base,), updated=updated)
    return Instruction("store_double", 4, 2, late=(one, target), address=(base,), updated=updated)


def _set(target: int, sets: int) -> tuple[int, ...]:
    """What data processing writes: a comparison only flags."""
    flags = (FLAGS,) if sets else ()
    return flags if target == PC else (target, *flags)


def _shifted(first: int, second: int) -> Instruction:
    """Data processing with a register that may be shifted; selections and long shifts, which take its free places."""
    operation, n = first >> 5 & 0xF, first & 0xF
    target, m = second >> 8 & 0xF, second & 0xF
    amount = second >> 10 & 0x1C | second >> 6 & 3
    sets = first >> 4 & 1
    if operation == _MOVE and sets and second & 0x8000:
        operands = tuple(r for r in (n, m, FLAGS) if r != PC)
        return Instruction("select", 4, results=(target,), operands=operands)
    if operation == _MOVE and sets and m in (_SP, PC) and n != PC:
        return _long_shift(first, second)
    shifts = amount != 0 or second & 0x0030 != 0
    kind: Kind
    if operation == _PACK:
        kind = "bits"
    elif operation == _MOVE and n == PC:
        return Instruction("shift" if shifts else "data", 4, results=_set(target, sets), operands=(m,))
    else:
        kind = "shifted" if shifts else "logic" if operation in _LOGIC32 else "data"
    operands = () if operation == _NOT and n == PC else (n,)
    return Instruction(kind, 4, results=_set(target, sets), operands=operands, shifted=(m,))


def _long_shift(first: int, second: int) -> Instruction:
    """LSLL, ASRL, SQRSHR, … of one or two registers, by a constant or a register."""
    n, high = first & 0xF, second >> 8 & 0xF
    two = (high != PC and n & 1 == 0) or (first & 1 and high & 1 and high != PC)
    by_register = second & 0xF == _SP
    pair = (n & 0xE, second >> 8 & 0xE | 1) if two else (n,)
    by = (second >> 12 & 0xF,) if by_register else ()
    return Instruction("long_shift", 4, results=pair, operands=(*pair, *by))


def _constant(first: int, second: int) -> Instruction:
    """Data processing with a constant."""
    n, target = first & 0xF, second >> 8 & 0xF
    kind: Kind
    if first & 0x0200:
        match first >> 4 & 0x1F:
            case 0 | 10:  # ADDW, SUBW, ADR
                return Instruction("data", 4, results=(target,), operands=(n,))
            case 4:
                return Instruction("data", 4, results=(target,))  # MOVW
            case 12:
                return Instruction("data", 4, results=(target,), operands=(target,))  # MOVT
            case 22:  # BFI, and BFC, which has no source
                source = () if n == PC else (n,)
                return Instruction("bits", 4, results=(target,), operands=(target,), shifted=source)
        # SSAT, USAT; SBFX, UBFX
        kind = "bits" if first & 0x0040 else "saturate"
        return Instruction(kind, 4, results=(target,), shifted=(n,))
    operation = first >> 5 & 0xF
    kind = "logic" if operation in _LOGIC32 and not (operation in (_MOVE, _NOT) and n == PC) else "data"
    operands = () if operation in (_MOVE, _NOT) and n == PC else (n,)
    return Instruction(kind, 4, results=_set(target, first & 0x10), operands=operands)


def _control(first: int, second: int) -> Instruction:
    match second & 0xD000:
        case 0xD000:
            return Instruction("call", 4)
        case 0xC000:
            return _loop(first, second)
        case 0x9000:
            return Instruction("branch", 4)
        case 0x8000 if first & 0x0380 != 0x0380:
            return Instruction("branch", 4, conditional=True, operands=(FLAGS,))
    match first & 0xFFF0:
        case 0xF380 | 0xF390:
            return Instruction("system", 4, operands=(first & 0xF,))
        case 0xF3E0 | 0xF3F0:
            return Instruction("system", 4, results=(second >> 8 & 0xF,))
        case 0xF3A0:
            return Instruction("hint", 4)
        case 0xF3B0:
            return Instruction("barrier", 4)
    return Instruction("exception", 4) if first & 0xFFF0 == 0xF7F0 else Instruction("data", 4)


def _loop(first: int, second: int) -> Instruction:
    """Low-overhead loops, and VCTP, which stands among them; the rest are hints of branches to come."""
    n = first & 0xF
    if first & 0xFF80 != 0xF000:
        return Instruction("hint", 4)
    if second & 0xF801 == 0xE801:
        return Instruction("predicate", 4, results=(PREDICATE,), operands=(n,))
    if second & 0xF001 == 0xC001:
        if n == PC:
            return Instruction("loop_end", 4, conditional=True)
        return Instruction("loop_start", 4, results=(_LR,), operands=(n,), conditional=True)
    return Instruction("loop_start", 4, results=(_LR,), operands=() if n == PC else (n,))


def _wide_11(first: int, second: int) -> Instruction:
    if first & 0x0200 == 0:
        return _wide_single(first, second)
    match first >> 7 & 3:
        case 2:
            return _multiply(first, second)
        case 3:
            return _multiply_long(first, second)
    n, m, target = first & 0xF, second & 0xF, second >> 8 & 0xF
    if first & 0x0080 == 0:
        if second & 0x80 and n == PC:  # UXTB, …
            return Instruction("extend", 4, results=(target,), shifted=(m,))
        if second & 0x80:  # SXTAH, …
            return Instruction("bits", 4, results=(target,), operands=(n,), shifted=(m,))
        return Instruction("shift", 4, results=(target,), operands=(n, m))
    if second & 0x80 and first & 0x0070 in (0x10, 0x30):  # REV, RBIT, CLZ
        return Instruction("bits", 4, results=(target,), shifted=(m,))
    if (second & 0x80 and first & 0x0070 == 0x00) or second & 0x10:  # QADD, …, QADD16, UQADD8, …
        return Instruction("saturate", 4, results=(target,), operands=(n, m))
    return Instruction("bits", 4, results=(target,), operands=(n, m))


def _wide_single(first: int, second: int) -> Instruction:
    base, register = first & 0xF, second >> 12
    load, size = bool(first >> 4 & 1), first >> 5 & 3
    # The offset is a constant of 12 bits, one of 8 bits with flags, or a shifted register.
    small = not first & 0x0080 and base != PC
    indexed = small and not second & 0x0800
    address = (base, second & 0xF) if indexed else (base,)
    if load and register == PC and size != 2:
        return Instruction("hint", 4, address=address)  # PLD, PLI
    updated = (base,) if small and not indexed and second & 0x0100 else ()
    if not small:
        offset = second & 0xFFF
    elif indexed or not second & 0x0400:  # none before the access
        offset = 0
    else:
        offset = second & 0xFF if second & 0x0200 else -(second & 0xFF)
    return _single(
        load, 4, register, address, narrow=size != 2, indexed=indexed, updated=updated, offset=offset
    )


def _multiply(first: int, second: int) -> Instruction:
    factors, addend = (first & 0xF, second & 0xF), second >> 12
    target = (second >> 8 & 0xF,)
    if first >> 4 & 7:
        late = () if addend == PC else (addend,)
        return Instruction("multiply_dsp", 4, results=target, operands=factors, late=late)
    if addend == PC and not second >> 4 & 0xF:
        return Instruction("multiply", 4, results=target, operands=factors)
    return Instruction("multiply_add", 4, results=target, operands=factors, late=(addend,))


def _multiply_long(first: int, second: int) -> Instruction:
    factors, both = (first & 0xF, second & 0xF), (second >> 12, second >> 8 & 0xF)
    match first >> 4 & 7:
        case 1 | 3:
            return Instruction("divide", 4, results=both[1:], operands=factors)
        case 0 | 2:
            return Instruction("multiply_long", 4, results=both, operands=factors)
        case _:
            return Instruction("multiply_add_long", 4, results=both, operands=factors, late=both)
