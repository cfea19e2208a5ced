# SPDX-License-Identifier: Apache-2.0
"""Thumb instructions of the coprocessors' places: floating point and Helium (MVE).

The encodings are those of the Armv8-M Architecture Reference Manual (DDI 0553): "Coprocessor, floating-point, and
vector instructions". Registers: FLAGS are those of comparisons, PREDICATE the vectors' own; from SINGLE on those of
single precision. A double is two of them, a vector four.
"""

from __future__ import annotations

from tinyet.timing.instruction import Instruction, Kind

FLAGS, PREDICATE, SINGLE = 16, 17, 32
_PC = 15
# Coprocessors of half, single and double precision. Halves are in the registers of singles.
_FLOATS, _DOUBLE = (0x0900, 0x0A00, 0x0B00), 0x0B00


def coprocessor(first: int, second: int) -> Instruction:
    """The instruction with these halfwords, whose first has bits 15 to 13 and 10 set."""
    if first & 0x0300 == 0x0300:
        return _like_neon(first, second)
    if first & 0x0200 == 0:
        return _transfer(first, second)
    if second & 0x0E00 == 0x0E00:
        return _helium_long(first, second) if first & 0x0080 else _helium(first, second)
    return _float(first, second) if second & 0x0F00 in _FLOATS else Instruction("coprocessor", 4)


# ---- registers ----


def _quad(number: int) -> tuple[int, ...]:
    return tuple(range(SINGLE + 4 * number, SINGLE + 4 * number + 4))


def _scalar(number: int, extra: int, double: bool) -> tuple[int, ...]:
    """The register of a 4-bit field and its extra bit: the lowest of a single's number, the highest of a double's."""
    if double:
        at = SINGLE + 2 * (extra << 4 | number)
        return (at, at + 1)
    return (SINGLE + (number << 1 | extra),)


def _d(second: int) -> tuple[int, ...]:
    return _quad(second >> 13 & 7)


def _n(first: int) -> tuple[int, ...]:
    return _quad(first >> 1 & 7)


def _m(second: int) -> tuple[int, ...]:
    return _quad(second >> 1 & 7)


# ---- floating point ----


def _float(first: int, second: int) -> Instruction:
    double = second & 0x0F00 == _DOUBLE
    d = _scalar(second >> 12, first >> 6 & 1, double)
    n = _scalar(first & 0xF, second >> 7 & 1, double)
    m = _scalar(second & 0xF, second >> 5 & 1, double)
    if first & 0xFF00 == 0xFE00:  # VSEL, VMAXNM, VMINNM; VRINT, VCVTA, which have one operand
        if first & 0x00BC == 0x00BC:  # to an integer
            d = _scalar(second >> 12, first >> 6 & 1, False)
        return Instruction("float", 4, results=d, operands=m if first & 0x00B0 == 0x00B0 else (*n, *m))
    if second & 0x10:
        return _float_move(first, second)
    match first >> 4 & 0xB:
        case 0 | 1 | 9 | 10:
            return Instruction("float_multiply_add", 4, results=d, operands=(*n, *m), late=d)
        case 8:
            return Instruction("float_divide", 4, results=d, operands=(*n, *m))
        case 11 if second & 0x40 == 0:
            return Instruction("float", 4, results=d)  # VMOV of a constant
        case 11 if first & 0xF == 1 and second & 0xC0 == 0xC0:
            return Instruction("float_root", 4, results=d, operands=m)
        case 11 if first & 0xE == 4:  # VCMP, also with zero
            return Instruction("float", 4, operands=d if first & 1 else (*d, *m))
        case 11:
            return _float_two(first, second)
    return Instruction("float", 4, results=d, operands=(*n, *m))


def _float_two(first: int, second: int) -> Instruction:
    """From one register to another, which may be of another size: moves, conversions."""
    double, what = second & 0x0F00 == _DOUBLE, first & 0xF
    from_double, to_double = double, double
    match what:
        case 7 if second & 0x80:  # VCVT between single and double
            to_double = not double
        case 2 | 3:  # VCVTB, VCVTT: halves are in singles
            from_double, to_double = double and what == 3, double and what == 2
        case 8:  # from an integer
            from_double = False
        case 12 | 13:  # to an integer
            to_double = False
    d = _scalar(second >> 12, first >> 6 & 1, to_double)
    if what in (10, 11, 14, 15):  # to and from fixed point, in place
        return Instruction("float", 4, results=d, operands=d)
    return Instruction("float", 4, results=d, operands=_scalar(second & 0xF, second >> 5 & 1, from_double))


def _float_move(first: int, second: int) -> Instruction:
    """Between a core register and one of singles, a lane, or a system register."""
    core, back = (second >> 12,), bool(first & 0x10)
    double = second & 0x0F00 == _DOUBLE
    if first & 0xFFE0 == 0xEEE0 and not double:
        core = core if core != (_PC,) else (FLAGS,)
        return Instruction("float_move", 4, results=core if back else (), operands=() if back else core)
    if first & 0xFF90 == 0xEE80:
        wide = _quad((first & 0xF) >> 1)
        return Instruction("vector", 4, results=wide, operands=core)  # VDUP
    half = _scalar(first & 0xF, second >> 7 & 1, double)
    if back:
        return Instruction("float_move", 4, results=core, operands=half)
    return Instruction("float_move", 4, results=half, operands=core)


def _transfer(first: int, second: int) -> Instruction:
    """Loads and stores, and moves of two core registers."""
    load, space = bool(first >> 4 & 1), second & 0x0E00
    if space == 0x0800 and second & 0x10 == 0 and first & 0xFE00 == 0xFC00:
        return Instruction(
            "vector_float", 4, results=_d(second), operands=(*_n(first), *_m(second))
        )  # VCMLA, VCADD
    if space == 0x0E00:
        return _vector_transfer(first, second, load)
    if second & 0x0F00 not in _FLOATS:
        return Instruction("coprocessor", 4)
    base, double = first & 0xF, second & 0x0F00 == _DOUBLE
    d = _scalar(second >> 12, first >> 6 & 1, double)
    none: tuple[int, ...] = ()
    if first & 0xFFE0 == 0xEC40:
        m = _scalar(second & 0xF, second >> 5 & 1, double)
        both = m if double else (m[0], m[0] + 1)
        return _two(load, (second >> 12, base), both)
    if first & 0x0120 == 0x0100:
        kind: Kind = "load" if load else "store"
        if double:
            kind = "load_double" if load else "store_double"
        results, late = (d, none) if load else (none, d)
        return Instruction(kind, 4, len(d), results=results, late=late, address=(base,))
    # FLDMX and FSTMX, which nobody writes any more, say one word too many.
    words = second & (0xFE if double else 0xFF)
    several = tuple(range(d[0], d[0] + words))
    updated = (base,) if first & 0x0020 else ()
    if load:
        return Instruction("load_multiple", 4, words, results=several, address=(base,), updated=updated)
    return Instruction("store_multiple", 4, words, late=several, address=(base,), updated=updated)


def _two(to_core: bool, core: tuple[int, ...], others: tuple[int, ...]) -> Instruction:
    results, operands = (core, others) if to_core else (others, core)
    return Instruction("float_move_two", 4, results=results, operands=operands)


# ---- Helium ----


def _vector_transfer(first: int, second: int, load: bool) -> Instruction:
    q, base = _d(second), first & 0xF
    address: tuple[int, ...]
    updated: tuple[int, ...]
    if first & 0xFFE0 == 0xEC00:
        return _two(load, (second & 0xF, first & 0xF), _lanes(second))
    if second & 0x1F80 == 0x0F80 and first & 0xFE00 == 0xEC00 and first & 0x0120:
        return Instruction("float_move", 4, address=(base,))  # VLDR, VSTR of a system register
    updated = (base,) if first & 0x20 else ()
    if first & 0xFF80 == 0xFC80 and second & 0x1000:  # VLD2, VLD4: all of their registers, each a part
        several = tuple(r for i in range(4 if second & 1 else 2) for r in _quad((second >> 13) + i & 7))
        if load:
            return Instruction(
                "vector_load_interleaved", 4, results=several, address=(base,), updated=updated
            )
        return Instruction("vector_store_interleaved", 4, late=several, address=(base,), updated=updated)
    kind: Kind
    if first & 0xFF00 == 0xFD00 and second & 0x1000:  # addresses are a vector's, and a constant
        address = _n(first)
        updated = address if updated else ()
        kind = "vector_gather" if load else "vector_scatter"
    elif first & 0x0120 == 0 and not second & 0x1000:  # offsets are a vector's
        address = (base, *_m(second))
        kind = "vector_gather" if load else "vector_scatter"
    else:
        # The narrow ones, which a shorter field tells the base of, have a bit of their size beside it.
        address = (base if second & 0x1000 else base & 7,)
        updated = address if updated else ()
        kind = "vector_load" if load else "vector_store"
    if load:
        return Instruction(kind, 4, results=q, address=address, updated=updated)
    return Instruction(kind, 4, late=q, address=address, updated=updated)


def _lanes(second: int) -> tuple[int, int]:
    """The two lanes of a vector that a move of two core registers has: 2 and 0, or 3 and 1."""
    q = _d(second)
    return (q[2], q[0]) if not second & 0x10 else (q[3], q[1])


def _vector(
    kind: Kind,
    first: int,
    second: int,
    *,
    n: bool = True,
    core: bool = False,
    accumulates: bool = False,
) -> Instruction:
    """From vectors, the second of which may be a core register in every lane, to a vector."""
    other = (second & 0xF,) if core else _m(second)
    operands = (*_n(first), *other) if n else other
    d = _d(second)
    return Instruction(kind, 4, results=d, operands=operands, late=d if accumulates else ())


def _like_neon(first: int, second: int) -> Instruction:
    """What has its place where other Arm cores have Neon."""
    operation, odd = second >> 8 & 0xF, bool(second & 0x10)
    if not first & 0x0080:
        if operation >= 0xC:
            return _vector("vector_float", first, second, accumulates=operation == 0xC)
        kind: Kind = "vector"
        if operation == 5 or (operation == 4 and odd):
            kind = "vector_slow"
        elif operation in (9, 11):
            kind = "vector_multiply"
        return _vector(kind, first, second)
    if not odd:  # with one operand
        decimal = first & 3 >= 2 or (first & 3 == 1 and bool(second & 0x0400))
        return _vector("vector_float" if decimal else "vector", first, second, n=False)
    if not first & 0x0038:
        # VORR and VBIC change what is there.
        d, changes = _d(second), operation < 0xC and operation & 1 == 1
        if changes:
            return Instruction("vector", 4, results=d, operands=d)
        return Instruction("vector_constant", 4, results=d)
    if operation >= 0xC:
        return _vector("vector_float", first, second, n=False)
    inserts = operation == 4 or (operation == 5 and bool(first & 0x1000))  # VSRI, VSLI
    kind = "vector_slow" if operation in (2, 6, 7) else "vector"
    return _vector(kind, first, second, n=False, accumulates=inserts)


def _helium(first: int, second: int) -> Instruction:
    """The places from 0xEE00 to 0xEE7F, and the same of 0xFE: arithmetic, comparisons, predicates."""
    core, late = bool(second & 0x40), bool(second & 1)
    widest = first & 0x30 == 0x30  # what is no size of a lane says something else
    if first & 1:
        if second & 0x0100:
            return _compared_or_added(first, second)
        if not widest:
            if first & 0x1000 and second & 0x1F70 == 0x1E60:
                return _vector("vector", first, second, core=True)  # VBRSR
            accumulates = core and second & 0x1070 != 0x1060 and second & 0x0070 == 0x40
            return _vector("vector_multiply", first, second, core=core, accumulates=accumulates)
        if second & 0x1F70 == 0x1E60:  # a shift by a core register, in place
            slow = bool(first & 2 or second & 0x80)
            d = _d(second)
            kind: Kind = "vector_slow" if slow else "vector"
            return Instruction(kind, 4, results=d, operands=(*d, second & 0xF))
        if core:
            return _vector("vector_float", first, second, core=True, accumulates=second & 0x20 == 0)
        if not late:
            return _vector("vector_slow", first, second)  # products of polynomials
        return _of_one(first, second)
    if not second & 0x0100:
        if widest:
            return _vector("vector_float", first, second)  # VCMUL
        return _vector("vector_multiply", first, second, core=core, accumulates=True)
    if widest and (core or late):
        product = second & 0x0070 == 0x60 or (late and not core)
        return _vector("vector_multiply" if product else "vector_float", first, second, core=core)
    return _vector("vector_slow" if widest else "vector", first, second, core=core)


def _of_one(first: int, second: int) -> Instruction:
    """Lanes made half or twice as wide, and VMAXA, VMINA, from one vector."""
    d, upper = _d(second), bool(second & 0x80)
    if first & 0xF == 0xF:
        return Instruction("vector_float", 4, results=d, operands=(*d, *_m(second)))
    if first & 2 and upper:
        return Instruction("vector", 4, results=d, operands=(*d, *_m(second)))  # VMAXA, VMINA
    if not first & 2 and not upper:
        return _vector("vector", first, second, n=False)  # VSHLL by a lane
    return Instruction("vector_narrow", 4, results=d, operands=(*d, *_m(second)))


def _compared_or_added(first: int, second: int) -> Instruction:
    widest = first & 0x30 == 0x30
    if first & 0xFFBF == 0xFE31 and second & 0x1FFF == 0x0F4D:
        return Instruction("predicate", 4, results=(PREDICATE,))  # VPST, VPNOT
    if first & 0xFFF1 == 0xFE31 and second & 0x1F51 == 0x0F01:
        return _vector("vector", first, second)._replace(late=(PREDICATE,))  # VPSEL
    if (first & 0x1000 or widest) and not second & 0x10:
        m = (second & 0xF,) if second & 0x40 else _m(second)
        return Instruction("vector_compare", 4, results=(PREDICATE,), operands=(*_n(first), *m))
    if second & 0x70 == 0x60:  # VIDUP, VDDUP, and those that wrap around
        counter = (first & 0xE,)
        limit = () if second & 0xE == 0xE else (second & 0xE | 1,)
        return Instruction("vector", 4, results=_d(second), operands=(*counter, *limit), updated=counter)
    return _vector("vector", first, second, core=True)  # VADD, VSUB with a core register


def _helium_long(first: int, second: int) -> Instruction:
    """The places from 0xEE80 to 0xEEFF, and the same of 0xFE: sums over lanes, and shifts to other widths."""
    d = _d(second)
    if second & 0x40:
        if second & 0x0FF0 == 0x0FC0 and first & 0x20:
            shifted = (second & 0xF,)
            return Instruction("vector", 4, results=(*d, *shifted), operands=(*d, *shifted))  # VSHLC
        if first & 0x20:
            return _vector("vector", first, second, n=False)  # VSHLL, VMOVL
        return Instruction("vector_narrow", 4, results=d, operands=(*d, *_m(second)))
    low, accumulates = (second >> 12 & 0xE,), bool(second & 0x20)
    if second & 0x0101 == 0x0101:  # VABAV
        to = (second >> 12,)
        return Instruction("vector_extreme", 4, results=to, operands=(*_n(first), *_m(second)), late=to)
    if first & 0x70 == 0x60:  # VMAXV, VMINV, and those of absolutes and floats
        to = (second >> 12,)
        return Instruction("vector_extreme", 4, results=to, operands=_m(second), late=to)
    high = () if first & 0x70 == 0x70 else (first >> 3 & 0xE | 1,)
    to = (*low, *high)
    if second & 0x0100 and first & 1:
        return Instruction("vector_sum", 4, results=to, operands=_m(second), late=to if accumulates else ())
    operands = (*_n(first), *_m(second))
    return Instruction("vector_dot", 4, results=to, operands=operands, late=to if accumulates else ())
