# SPDX-License-Identifier: Apache-2.0
"""Xtensa instructions as far as their time depends on them: the core instruction set with the options for density,
32-bit multiplication and division, and miscellaneous operations; register windows and floats only by their kind.

The encodings are those of the Xtensa Instruction Set Architecture Reference Manual, "Opcode Maps", little-endian.
"""

from __future__ import annotations

from tinyet.timing.instruction import Instruction, Kind

_RETURN_ADDRESS = 0
_FIRST_NARROW = 8


def decode(word: int) -> Instruction:
    """The instruction whose bytes a little-endian word begins with. What no manual defines is taken for data
    processing."""
    s, t, r = word >> 8 & 15, word >> 4 & 15, word >> 12 & 15
    match word & 15:
        case 0:
            return _qrst(word, r, s, t)
        case 1:
            return _made("load", 3, (t,))  # L32R
        case 2:
            return _immediate(r, s, t)
        case 3:
            return _made("store" if r & 4 else "load", 3, (), (s,))  # floats
        case 4:
            return Instruction("multiply_add", 3)  # MAC16
        case 5:
            return _made("call", 3, (0,) if t & 3 == 0 else ())
        case 6:
            return _branch_6(t, s, r)
        case 7:
            # BBCI and BBSI have a bit's number where the others have a register.
            return _made("branch", 3, (), (s,) if r & 6 == 6 else (s, t), conditional=True)
        case 8:
            return _made("load", 2, (t,), (s,))
        case 9:
            return _made("store", 2, (), (s, t))
        case 10:
            return _made("data", 2, (r,), (s, t))
        case 11:
            return _made("data", 2, (r,), (s,))
        case 12 if t & 8:
            return _made("branch", 2, (), (s,), conditional=True)
        case 12:
            return _made("data", 2, (s,))
        case 13:
            return _narrow_13(r, s, t)
    return Instruction("data", 3)


def is_narrow(first: int) -> bool:
    """Whether a byte is the first of a 16-bit instruction."""
    return first & 15 >= _FIRST_NARROW


def _made(
    kind: Kind,
    size: int,
    results: tuple[int, ...] = (),
    operands: tuple[int, ...] = (),
    *,
    conditional: bool = False,
) -> Instruction:
    """Of a load or store, the first operand is the address, and the second one is what it stores."""
    if kind in ("load", "store"):
        return Instruction(kind, size, results=results, address=operands[:1], late=operands[1:])
    return Instruction(kind, size, conditional=conditional, results=results, operands=operands)


def _immediate(r: int, s: int, t: int) -> Instruction:
    """LSAI."""
    match r:
        case 0 | 1 | 2 | 9 | 11:
            return _made("load", 3, (t,), (s,))
        case 4 | 5 | 6 | 15:
            return _made("store", 3, (), (s, t))
        case 14:
            return _made("store", 3, (t,), (s, t))  # S32C1I
        case 7:
            return Instruction("hint", 3)  # caches
        case 10:
            return _made("data", 3, (t,))  # MOVI, with a part of the number in s
    return _made("data", 3, (t,), (s,))


def _branch_6(t: int, s: int, r: int) -> Instruction:
    """SI: n is in the lower half of t, m in the upper one."""
    match t & 3, t >> 2:
        case 0, _:
            return Instruction("branch", 3)  # J
        case 3, 0:
            return Instruction("data", 3)  # ENTRY
        case 3, 1:
            # BF and BT, of a boolean register; LOOP does not branch itself.
            return (
                Instruction("branch", 3, conditional=True) if r < 2 else Instruction("data", 3, operands=(s,))
            )
    return _made("branch", 3, (), (s,), conditional=True)


def _narrow_13(r: int, s: int, t: int) -> Instruction:
    match r, t:
        case 0, _:
            return _made("data", 2, (t,), (s,))  # MOV.N
        case 15, 0 | 1:
            return _made("branch_register", 2, (), (_RETURN_ADDRESS,))  # RET.N, RETW.N
        case 15, 2:
            return Instruction("exception", 2)  # BREAK.N
        case 15, 3:
            return Instruction("hint", 2)  # NOP.N
    return Instruction("exception" if r == 15 else "data", 2)  # ILL.N


def _qrst(word: int, r: int, s: int, t: int) -> Instruction:
    operation = word >> 20 & 15
    match word >> 16 & 15:
        case 0:
            return _rst0(operation, r, s, t)
        case 1:
            return _rst1(operation, r, s, t)
        case 2:
            return _rst2(operation, r, s, t)
        case 3:
            return _rst3(operation, r, s, t)
        case 4 | 5:
            return _made("data", 3, (r,), (t,))  # EXTUI
        case 8:
            return Instruction("store" if operation & 4 else "load", 3, address=(s, t))
        case 9:
            return Instruction("store" if operation & 4 else "load", 3, address=(s,))
        case 10 | 11:
            return Instruction("float", 3)
    return Instruction("data", 3)


def _rst0(operation: int, r: int, s: int, t: int) -> Instruction:
    match operation:
        case 0:
            return _st0(r, s, t)
        case 4 if r < 4:
            return _made("data", 3, (), (s,))  # SSR, SSL, SSA8L, SSA8B
        case 4 if r >= 14:
            return _made("data", 3, (t,), (s,))  # NSA, NSAU
        case 4:
            return Instruction("system" if r in (6, 7) else "data", 3)
        case 5:
            return Instruction("system", 3)  # of the TLB
        case 6:
            return _made("data", 3, (r,), (t,))  # NEG, ABS
    return _made("data", 3, (r,), (s, t))


def _st0(r: int, s: int, t: int) -> Instruction:
    match r:
        case 0 if t >= 12:
            return _made("call_register", 3, (_RETURN_ADDRESS,), (s,))  # CALLX0 and the others
        case 0 if t == 10:
            return _made("branch_register", 3, (), (s,))  # JX
        case 0 if t in (8, 9):
            return _made("branch_register", 3, (), (_RETURN_ADDRESS,))  # RET, RETW
        case 0 | 4 | 5:
            return Instruction("exception", 3)
        case 1:
            return _made("data", 3, (t,), (s,))  # MOVSP
        case 2:
            return Instruction("hint" if t == 15 else "barrier", 3)
        case 3:
            return Instruction("branch_register", 3)  # RFE, RFI and the others
        case 6:
            return _made("system", 3, (t,))  # RSIL
        case 7:
            return Instruction("hint", 3)  # WAITI
    return Instruction("data", 3)


def _rst1(operation: int, r: int, s: int, t: int) -> Instruction:
    match operation:
        case 0 | 1:
            return _made("data", 3, (r,), (s,))  # SLLI
        case 2 | 3 | 4 | 9 | 11:
            return _made("data", 3, (r,), (t,))  # SRAI, SRLI, SRL, SRA
        case 6:
            return _made("system", 3, (t,), (t,))  # XSR
        case 10:
            return _made("data", 3, (r,), (s,))  # SLL
        case 12 | 13:
            return _made("multiply", 3, (r,), (s, t))
    return _made("data", 3, (r,), (s, t))


def _rst2(operation: int, r: int, s: int, t: int) -> Instruction:
    if operation < 8:
        return Instruction("data", 3)  # of boolean registers
    kinds: tuple[Kind, ...] = ("multiply", "data", "multiply_long", "multiply_long")
    return _made("divide" if operation >= 12 else kinds[operation - 8], 3, (r,), (s, t))


def _rst3(operation: int, r: int, s: int, t: int) -> Instruction:
    match operation:
        case 0:
            return _made("system", 3, (t,))  # RSR
        case 1 | 15:
            return _made("system", 3, (), (t,))  # WSR, WUR
        case 2 | 3:
            return _made("data", 3, (r,), (s,))  # SEXT, CLAMPS
        case 8 | 9 | 10 | 11:
            return _made("data", 3, (r,), (r, s, t))  # MOVEQZ and the others, which may leave r as it is
        case 12 | 13:
            return _made("data", 3, (r,), (r, s))  # MOVF, MOVT: t is a boolean register
        case 14:
            return _made("system", 3, (r,))  # RUR
    return _made("data", 3, (r,), (s, t))
