# SPDX-License-Identifier: Apache-2.0
"""RISC-V instructions as far as their time depends on them: RV32IMAC.

The encodings are those of The RISC-V Instruction Set Manual, volume I: "RV32/64G Instruction Set Listings" and "RVC
Instruction Set Listings".
"""

from __future__ import annotations

from tinyet.timing.instruction import Instruction, Kind

_STACK, _LINK = 2, 1


def decode(word: int) -> Instruction:
    """The instruction whose bytes a little-endian word begins with. What no manual defines is taken for data
    processing."""
    return _narrow(word & 0xFFFF) if word & 3 != 3 else _wide(word)


def _made(
    kind: Kind, size: int, result: int, operands: tuple[int, ...], *, conditional: bool = False
) -> Instruction:
    """x0 is no result and no operand: it never changes. Of a load or store, the first operand is the address, and the
    second one is what it stores."""
    results = (result,) if result else ()
    read = tuple(register for register in operands if register)
    if kind in ("load", "store"):
        late = tuple(register for register in operands[1:] if register)
        address = tuple(register for register in operands[:1] if register)
        return Instruction(kind, size, results=results, address=address, late=late)
    return Instruction(kind, size, conditional=conditional, results=results, operands=read)


def _wide(word: int) -> Instruction:
    result, first, second = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    match word & 0x7F:
        case 0x03:
            return _made("load", 4, result, (first,))
        case 0x23:
            return _made("store", 4, 0, (first, second))
        case 0x63:
            return _made("branch", 4, 0, (first, second), conditional=True)
        case 0x6F:
            return _made("call" if result else "branch", 4, result, ())
        case 0x67:
            return _made("call_register" if result else "branch_register", 4, result, (first,))
        case 0x0F:
            return Instruction("barrier", 4)
        case 0x73:
            return _system(word, result, first)
        case 0x2F:
            return _atomic(word, result, first, second)
        case 0x33 if word >> 25 == 1:
            return _made(_product(word >> 12 & 7), 4, result, (first, second))
        case 0x33:
            return _made("data", 4, result, (first, second))
        case 0x17 | 0x37:
            return _made("data", 4, result, ())
    return _made("data", 4, result, (first,))


def _product(operation: int) -> Kind:
    if operation >= 4:
        return "divide"
    return "multiply_long" if operation else "multiply"


def _system(word: int, result: int, first: int) -> Instruction:
    if word >> 12 & 7:
        operand = () if word >> 14 & 1 else (first,)
        return _made("system", 4, result, operand)
    match word >> 20:
        case 0 | 1:
            return Instruction("exception", 4)  # ECALL, EBREAK
        case 0x105:
            return Instruction("hint", 4)  # WFI
    return Instruction("branch_register", 4)  # MRET


def _atomic(word: int, result: int, first: int, second: int) -> Instruction:
    match word >> 27:
        case 2:
            return _made("load", 4, result, (first,))  # LR
        case 3:
            return _made("store", 4, result, (first, second))  # SC
    return _made("load", 4, result, (first, second))


def _narrow(word: int) -> Instruction:
    operation = word >> 13
    match word & 3:
        case 0:
            return _narrow_0(word, operation)
        case 1:
            return _narrow_1(word, operation)
    return _narrow_2(word, operation)


def _short(word: int, at: int) -> int:
    """A register of three bits: x8 to x15."""
    return 8 + (word >> at & 7)


def _narrow_0(word: int, operation: int) -> Instruction:
    base, other = _short(word, 7), _short(word, 2)
    match operation:
        case 0:
            return _made("data", 2, other, (_STACK,))
        case 2:
            return _made("load", 2, other, (base,))
        case 6:
            return _made("store", 2, 0, (base, other))
    return Instruction("data", 2)


def _narrow_1(word: int, operation: int) -> Instruction:
    full, short = word >> 7 & 31, _short(word, 7)
    match operation:
        case 1:
            return _made("call", 2, _LINK, ())
        case 5:
            return Instruction("branch", 2)
        case 6 | 7:
            return _made("branch", 2, 0, (short,), conditional=True)
        case 4:
            with_register = word >> 10 & 3 == 3
            return _made("data", 2, short, (short, _short(word, 2)) if with_register else (short,))
        case 0:
            return _made("data", 2, full, (full,))
        case 3 if full == _STACK:
            return _made("data", 2, full, (full,))
    return _made("data", 2, full, ())


def _narrow_2(word: int, operation: int) -> Instruction:
    first, second = word >> 7 & 31, word >> 2 & 31
    linked = word >> 12 & 1
    match operation:
        case 0:
            return _made("data", 2, first, (first,))
        case 2:
            return _made("load", 2, first, (_STACK,))
        case 6:
            return _made("store", 2, 0, (_STACK, second))
        case 4 if second:
            return _made("data", 2, first, (first, second) if linked else (second,))
        case 4 if not first:
            return Instruction("exception", 2)  # C.EBREAK
        case 4:
            return _made(
                "call_register" if linked else "branch_register", 2, _LINK if linked else 0, (first,)
            )
    return Instruction("data", 2)
