# SPDX-License-Identifier: Apache-2.0
"""Float vectors of Helium (MVE) in printed functions: words times factors, rounded to even.

Sources are compiled for Helium of integers alone, so that compilers make no float vectors by themselves
(boards/cpus.py): their assemblers do not know these instructions, which stand there as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

GUARD = "TINYET_MVE_FPU_ASM"
"""What C asks before such code: see tinyet_mve.h."""
_OPERANDS = re.compile(r"[qr]\d+")
_ENCODINGS = {
    # (operation, registers): the number, and the places of its registers
    ("vcvt.f32.s32", "qq"): (0xFFBB0640, (13, 1)),
    ("vcvtn.s32.f32", "qq"): (0xFFBB0140, (13, 1)),
    ("vmul.f32", "qqq"): (0xFF000D50, (13, 17, 1)),
    ("vmul.f32", "qqr"): (0xEE310E60, (13, 17, 0)),
}


def rounded_to_even(vectors: Sequence[str], factors: Sequence[str]) -> list[str]:
    """Words times factors, which are floats, to the nearest integers, in their place."""
    return [
        *(f"vcvt.f32.s32 {q}, {q}" for q in vectors),
        *(f"vmul.f32 {q}, {q}, {factor}" for q, factor in zip(vectors, factors, strict=True)),
        *(f"vcvtn.s32.f32 {q}, {q}" for q in vectors),
    ]


def encoded(line: str) -> int | None:
    """The number of such an instruction; None of others, which have their names."""
    operation, _, operands = line.partition(" ")
    registers = _OPERANDS.findall(operands)
    found = _ENCODINGS.get((operation, "".join(name[0] for name in registers)))
    if found is None:
        return None
    number, places = found
    return number | sum(int(name[1:]) << at for name, at in zip(registers, places, strict=True))


def as_text(lines: Iterable[str]) -> Iterator[str]:
    """The lines of an asm statement, of a function that C asks `GUARD` for."""
    for line in lines:
        number = encoded(line)
        yield f'      "{line}\\n"' if number is None else f'      ".inst.w {number:#010x}\\n" /* {line} */'
