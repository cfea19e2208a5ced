# SPDX-License-Identifier: Apache-2.0
"""Thumb instructions as far as they move the stack pointer or the flow of control.

The encodings are those of the Armv6-M, Armv7-M and Armv8-M Architecture Reference Manuals (DDI 0419, DDI 0403,
DDI 0553). The loops of Armv8.1-M (LE, LETP, WLS) need no entry: they go nowhere that falling through does not reach.
"""

from __future__ import annotations

from tinyet.stack.operation import Flow, Operation, Word, signed

_SP, _LR, _PC = 13, 14, 15
_MAIN_AND_PROCESS_STACK = (8, 9, 0x88, 0x89)  # SYSm of MSP, PSP and the non-secure ones


def decode(at: int, code: bytes, word: Word) -> Operation:
    """The instruction at an address."""
    first = code[0] | code[1] << 8
    if first >> 11 < 0x1D:
        return _narrow(at, first, word)
    second = (code[2] | code[3] << 8) if len(code) >= 4 else 0
    if first >> 11 == 0x1E:
        return _control(at, first, second) if second & 0x8000 else _immediate(first, second)
    if first >> 9 & 0x3F == 0x34:
        return _multiple(first, second)
    if first >> 9 == 0x75:  # data processing, shifted register
        return Operation(4, down=None if second >> 8 & 0xF == _SP else 0)
    if first & 0xEC00 == 0xEC00:
        return _coprocessor(first, second)
    if first >> 9 == 0x7C:
        return _single(at, first, second, word)
    return Operation(4)


def _narrow(at: int, code: int, word: Word) -> Operation:
    match code >> 12:
        case 0b0100:
            return _narrow_0100(at, code, word)
        case 0b1011:
            return _narrow_1011(at, code)
        case 0b1100 if code >> 11 & 1 == 0:
            return Operation(2)
        case 0b1101 if code >> 8 & 0xF == 14:
            return Operation(2, "leave")  # UDF
        case 0b1101 if code >> 8 & 0xF != 15:
            return Operation(2, "branch", target=at + 4 + 2 * signed(code, 8))
        case 0b1110:
            return Operation(2, "jump", target=at + 4 + 2 * signed(code, 11))
    return Operation(2)


def _narrow_0100(at: int, code: int, word: Word) -> Operation:
    if code >> 11 & 1:  # LDR from the constants behind the function
        value = word((at + 4 & ~3) + 4 * (code & 0xFF))
        return Operation(2, loads=None if value is None else (code >> 8 & 7, value))
    target, source = code & 7 | code >> 4 & 8, code >> 3 & 0xF
    match code >> 8:
        case 0x44 | 0x46 if target == _PC:
            return Operation(2, "inside")  # ADD, MOV: what compilers jump by in a switch
        case 0x44 | 0x46 if target == _SP:
            return Operation(2, down=None)
        case 0x47 if code & 0x80:
            return Operation(2, "call_register", register=source)
        case 0x47:
            return Operation(2, "leave") if source == _LR else Operation(2, "jump_register", register=source)
    return Operation(2)


def _narrow_1011(at: int, code: int) -> Operation:
    if code & 0xFF80 == 0xB080:
        return Operation(2, down=4 * (code & 0x7F))
    if code & 0xFF80 == 0xB000:
        return Operation(2, down=-4 * (code & 0x7F))
    if code & 0xFE00 == 0xB400:
        return Operation(2, down=4 * (code & 0x1FF).bit_count())
    if code & 0xFE00 == 0xBC00:
        flow: Flow = "leave" if code & 0x100 else "next"
        return Operation(2, flow, -4 * (code & 0x1FF).bit_count(), pops=code & 0xFF)
    if code & 0xF500 == 0xB100:  # CBZ, CBNZ
        return Operation(2, "branch", target=at + 4 + 2 * (code >> 3 & 0x1F | code >> 4 & 0x20))
    if code & 0xFF00 == 0xBF00 and code & 0xF:
        mask = code & 0xF
        return Operation(2, makes_conditional=4 - ((mask & -mask).bit_length() - 1))
    return Operation(2)


def _control(at: int, first: int, second: int) -> Operation:
    sign, j1, j2 = first >> 10 & 1, second >> 13 & 1, second >> 11 & 1
    if second & 0x1000:  # B, BL
        high = sign << 23 | (1 ^ j1 ^ sign) << 22 | (1 ^ j2 ^ sign) << 21
        target = at + 4 + 2 * signed(high | (first & 0x3FF) << 11 | second & 0x7FF, 24)
        return Operation(4, "call" if second & 0x4000 else "jump", target=target)
    if second & 0x4000:
        return Operation(4)  # of the loops of Armv8.1-M
    if first & 0x0380 != 0x0380:
        far = sign << 19 | j2 << 18 | j1 << 17 | (first & 0x3F) << 11 | second & 0x7FF
        return Operation(4, "branch", target=at + 4 + 2 * signed(far, 20))
    if first & 0xFFE0 == 0xF380 and second & 0xFF in _MAIN_AND_PROCESS_STACK:
        return Operation(4, down=None)  # MSR
    return Operation(4, "leave" if first & 0xFFF0 == 0xF7F0 and second & 0xF000 == 0xA000 else "next")


def _immediate(first: int, second: int) -> Operation:
    """Data processing with a constant."""
    if second >> 8 & 0xF != _SP:
        return Operation(4)
    constant = (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF
    match first & 0xFBEF:
        case 0xF10D:
            return Operation(4, down=-_expanded(constant))
        case 0xF1AD:
            return Operation(4, down=_expanded(constant))
        case 0xF20D:
            return Operation(4, down=-constant)
        case 0xF2AD:
            return Operation(4, down=constant)
    return Operation(4, down=None)


def _expanded(constant: int) -> int:
    """ThumbExpandImm: 12 bits that stand for 32."""
    byte = constant & 0xFF
    match constant >> 8:
        case 0:
            return byte
        case 1:
            return byte | byte << 16
        case 2:
            return byte << 8 | byte << 24
        case 3:
            return byte * 0x01010101
    value, turn = 0x80 | constant & 0x7F, constant >> 7
    return (value >> turn | value << (32 - turn)) & 0xFFFFFFFF


def _multiple(first: int, second: int) -> Operation:
    """LDM, STM, LDRD, STRD, TBB and the exclusive ones."""
    base, load, back = first & 0xF, first >> 4 & 1, first >> 5 & 1
    if first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:
        return Operation(4, "inside")  # TBB, TBH
    if first & 0x40:
        moves = base == _SP and back
        bytes_ = 4 * (second & 0xFF)
        return Operation(4, down=(-bytes_ if first >> 7 & 1 else bytes_) if moves else 0)
    to_pc = load and second >> _PC & 1
    if base == _SP and back:
        bytes_ = 4 * second.bit_count()
        flow: Flow = "leave" if to_pc else "next"
        return Operation(4, flow, bytes_ if first >> 8 & 1 else -bytes_, pops=second if load else 0)
    down = None if load and second >> _SP & 1 else 0
    return Operation(4, "inside" if to_pc else "next", down)


def _coprocessor(first: int, second: int) -> Operation:
    """VPUSH and VPOP; other transfers that move the stack pointer are the compiler's to explain."""
    if first & 0x0E00 != 0x0C00 or first & 0xF != _SP or not first & 0x20:
        return Operation(4)
    bytes_ = 4 * (second & 0xFF)
    if second & 0x0E00 == 0x0A00 and first & 0xFFBF == 0xED2D:
        return Operation(4, down=bytes_)
    if second & 0x0E00 == 0x0A00 and first & 0xFFBF == 0xECBD:
        return Operation(4, down=-bytes_)
    return Operation(4, down=None)


def _single(at: int, first: int, second: int, word: Word) -> Operation:
    """Loads and stores of one register."""
    base, register, load = first & 0xF, second >> 12, first >> 4 & 1
    into_word = load and first & 0x60 == 0x40
    if load and base == _PC:
        offset = second & 0xFFF
        value = word((at + 4 & ~3) + (offset if first >> 7 & 1 else -offset)) if into_word else None
        if into_word and register == _PC and value is not None:
            return Operation(4, "jump", target=value & ~1)
        return Operation(4, loads=None if value is None else (register, value))
    down: int | None = 0
    if (
        base == _SP and not first & 0x80 and second & 0x0900 == 0x0900
    ):  # with an offset of 8 bits, written back
        down = -(second & 0xFF) if second & 0x200 else second & 0xFF
    elif into_word and register == _SP:
        down = None
    if into_word and register == _PC:
        # From above the stack pointer and taken off it: a return.
        return Operation(4, "leave" if base == _SP and down else "inside", down)
    return Operation(4, down=down)
