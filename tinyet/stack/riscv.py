# SPDX-License-Identifier: Apache-2.0
"""RV32IMAC instructions as far as they move the stack pointer or the flow of control (RISC-V Instruction Set Manual,
volume I)."""

from __future__ import annotations

from tinyet.stack.operation import Flow, Operation, Word, signed

_RA, _SP, _T0 = 1, 2, 5
_RETURNS = (_RA, _T0)  # where a call leaves its return address; T0: for functions that save registers
_MRET = 0x30200073


def decode(at: int, code: bytes, _word: Word) -> Operation:
    """The instruction at an address."""
    half = code[0] | code[1] << 8
    if half & 3 != 3:
        return _short(at, half)
    return _long(at, int.from_bytes(code[:4].ljust(4, b"\0"), "little"))


def _long(at: int, code: int) -> Operation:
    rd, rs1 = code >> 7 & 31, code >> 15 & 31
    down = None if rd == _SP else 0
    match code & 0x7F:
        case 0x6F:
            bits = (
                (code >> 31) << 19 | (code >> 12 & 0xFF) << 11 | (code >> 20 & 1) << 10 | code >> 21 & 0x3FF
            )
            return Operation(4, "call" if rd else "jump", target=at + 2 * signed(bits, 20))
        case 0x67:
            flow: Flow = "call_register" if rd else "leave" if rs1 in _RETURNS else "jump_register"
            return Operation(4, flow, register=rs1, offset=signed(code >> 20, 12))
        case 0x63:
            bits = (code >> 31) << 11 | (code >> 7 & 1) << 10 | (code >> 25 & 0x3F) << 4 | code >> 8 & 0xF
            return Operation(4, "branch", target=at + 2 * signed(bits, 12))
        case 0x13 if rd == rs1 == _SP and code >> 12 & 7 == 0:
            return Operation(4, down=-signed(code >> 20, 12))
        case 0x17:
            return Operation(4, down=down, loads=(rd, at + (code & 0xFFFFF000) & 0xFFFFFFFF))
        case 0x73 if code == _MRET:
            return Operation(4, "leave")
        case 0x13 | 0x33 | 0x37 | 0x03 | 0x73 | 0x2F:
            return Operation(4, down=down)
    return Operation(4)


def _short(at: int, code: int) -> Operation:
    rd, rs2, high = code >> 7 & 31, code >> 2 & 31, code >> 12 & 1
    match code & 3, code >> 13:
        case 1, 0 if rd == _SP:
            return Operation(2, down=-signed(high << 5 | rs2, 6))
        case 1, 1 | 5:
            bits = high << 10 | (code >> 8 & 1) << 9 | (code >> 9 & 3) << 7 | (code >> 6 & 1) << 6
            bits |= (code >> 7 & 1) << 5 | (code >> 2 & 1) << 4 | (code >> 11 & 1) << 3 | code >> 3 & 7
            return Operation(2, "jump" if code >> 15 else "call", target=at + 2 * signed(bits, 11))
        case 1, 3 if rd == _SP:
            bits = (
                high << 5 | (code >> 3 & 3) << 3 | (code >> 5 & 1) << 2 | (code >> 2 & 1) << 1 | code >> 6 & 1
            )
            return Operation(2, down=-16 * signed(bits, 6))
        case 1, 6 | 7:
            bits = (
                high << 7
                | (code >> 5 & 3) << 5
                | (code >> 2 & 1) << 4
                | (code >> 10 & 3) << 2
                | code >> 3 & 3
            )
            return Operation(2, "branch", target=at + 2 * signed(bits, 8))
        case 2, 4 if rs2 == 0 and rd != 0:
            flow: Flow = "call_register" if high else "leave" if rd in _RETURNS else "jump_register"
            return Operation(2, flow, register=rd)
        case (1, 2) | (2, 0 | 2 | 4):
            return Operation(2, down=None if rd == _SP else 0)
    return Operation(2)
