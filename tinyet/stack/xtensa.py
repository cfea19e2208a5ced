# SPDX-License-Identifier: Apache-2.0
"""Xtensa instructions as far as they move the stack pointer or the flow of control (Xtensa Instruction Set Architecture
Reference Manual, "Instruction Formats and Opcodes"), with the call0 ABI."""

from __future__ import annotations

from tinyet.stack.operation import Operation, Word, signed

_SP = 1


def decode(at: int, code: bytes, word: Word) -> Operation:
    """The instruction at an address."""
    group = code[0] & 0xF
    if group >= 8:
        return _narrow(at, code[0] >> 4, code[1] & 0xF, code[1] >> 4, group)
    bits = int.from_bytes(code[:3].ljust(3, b"\0"), "little")
    t, s, r = bits >> 4 & 0xF, bits >> 8 & 0xF, bits >> 12 & 0xF
    match group:
        case 0:
            return _registers(bits, t, s, r)
        case 1:  # L32R
            value = word((at + 3 & ~3) + (-0x40000 | bits >> 8 << 2))
            return Operation(3, down=None if t == _SP else 0, loads=None if value is None else (t, value))
        case 2:
            return _constants(bits, t, s, r)
        case 5 if t & 3 == 0:
            return Operation(3, "call", target=(at & ~3) + 4 * signed(bits >> 6, 18) + 4)
        case 5:
            return Operation(3, windowed=True)  # CALL4, CALL8, CALL12
        case 6:
            return _branch(at, bits, t)
        case 7:
            return Operation(3, "branch", target=at + 4 + signed(bits >> 16, 8))
    return Operation(3)


def _narrow(at: int, t: int, s: int, r: int, group: int) -> Operation:
    target = {8: t, 10: r, 11: r, 12: -1 if t & 8 else s, 13: t if r == 0 else -1}.get(group, -1)
    if group == 12 and t & 8:
        return Operation(2, "branch", target=at + 4 + ((t & 3) << 4 | r))
    if group == 13 and r == 15 and t < 2:
        return Operation(2, "leave", windowed=t == 1)
    return Operation(2, down=None if target == _SP else 0)


def _registers(bits: int, t: int, s: int, r: int) -> Operation:
    match bits >> 16 & 0xF, bits >> 20:
        case 0, 0 if r == 0:
            match t:
                case 0b1000 | 0b1001:
                    return Operation(3, "leave", windowed=t == 0b1001)
                case 0b1010:
                    return Operation(3, "jump_register", register=s)
                case 0b1100:
                    return Operation(3, "call_register", register=s)
                case 0b1101 | 0b1110 | 0b1111:
                    return Operation(3, windowed=True)
        case 0, 0 if r == 3:
            return Operation(3, "leave" if t == 0 and s in (0, 2) else "next")  # RFE, RFDE
        case 0, operation if 1 <= operation <= 3 or operation >= 8:
            return Operation(3, down=None if r == _SP else 0)
        case ((1 | 2), _):
            return Operation(3, down=None if r == _SP else 0)
    return Operation(3)


def _constants(bits: int, t: int, s: int, r: int) -> Operation:
    """Loads, stores and additions with a constant."""
    loads = (0x0, 0x1, 0x2, 0x9, 0xA, 0xB, 0xC, 0xD)
    if t != _SP or r not in loads:
        return Operation(3)
    if r in (0xC, 0xD) and s == _SP:  # ADDI, ADDMI
        return Operation(3, down=-signed(bits >> 16, 8) * (256 if r == 0xD else 1))
    return Operation(3, down=None)


def _branch(at: int, bits: int, t: int) -> Operation:
    match t & 3:
        case 0:
            return Operation(3, "jump", target=at + 4 + signed(bits >> 6, 18))
        case 1:
            return Operation(3, "branch", target=at + 4 + signed(bits >> 12, 12))
        case 3 if t >> 2 == 0:
            return Operation(3, windowed=True)  # ENTRY
        case 3 if t >> 2 == 1 and bits >> 12 & 0xF >= 8:
            return Operation(3)  # a loop: it goes nowhere that falling through does not reach
    return Operation(3, "branch", target=at + 4 + signed(bits >> 16, 8))
