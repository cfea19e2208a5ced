# SPDX-License-Identifier: Apache-2.0
"""Patches of convolutions for Helium (MVE): what each pixel sees, copied side by side, from rows of a window.

A pointer a row, which moves from pixel to pixel as it loads. What a function executes is known to the instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from tinyet.errors import InternalError
from tinyet.tiles.header import LICENCE, header_of
from tinyet.tiles.helium import HEADER, INSTRUCTION_BYTES, LANES

MOST_ROWS, MOST_BYTES = 11, 64
REACH = 127
"""Of VLDRB and VSTRB behind which the pointer moves, in bytes."""
_TO, _COUNT = "r0", "r2"
_ROWS = ("r1", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12")
_PARAMETERS = ("int8_t *to", "const int8_t *from", "int32_t count")


@dataclass(frozen=True)
class Patches:
    """rows: that a pixel sees, of so many bytes each. row, step: bytes from row to row, from pixel to pixel. patch:
    bytes from where one pixel's go to those of the next."""

    rows: int
    bytes: int
    row: int
    step: int
    patch: int

    def __post_init__(self) -> None:
        if not fits(self.rows, self.bytes, self.step, self.patch):
            raise InternalError(f"no such patches: {self}")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        numbers = (self.rows, self.bytes, self.row, self.step, self.patch)
        return f"tinyet_patches_s8_{numbers[0]}_{numbers[1]}_by_{'_'.join(map(str, numbers[2:]))}_mve"

    @cached_property
    def before(self) -> list[str]:
        lines = ["push {r3-r11, lr}"] if self.rows > 1 else ["push {r3, lr}"]
        for row, before in zip(_ROWS[1 : self.rows], _ROWS, strict=False):
            if self.row < 4096:
                lines.append(f"addw {row}, {before}, #{self.row}")
            else:
                lines += [f"movw {row}, #{self.row & 0xFFFF}"]
                lines += [f"movt {row}, #{self.row >> 16}"] if self.row >> 16 else []
                lines += [f"add.w {row}, {row}, {before}"]
        return [*lines, f"dls lr, {_COUNT}"]

    @cached_property
    def turn(self) -> list[str]:
        """Of a pixel. A vector overlaps what is copied next."""
        count = -(-self.bytes // LANES)
        lines = []
        for i, row in enumerate(_ROWS[: self.rows]):
            offsets = [LANES * n for n in range(count)]
            lines += [f"vldrb.8 q{n}, [{row}, #{offset}]" for n, offset in enumerate(offsets) if n]
            lines.append(f"vldrb.8 q0, [{row}], #{self.step}")
            last = i == self.rows - 1
            moved = self.patch - (self.rows - 1) * self.bytes if last else self.bytes
            # In ascending order, so the pointer moves with the last one.
            lines += [f"vstrb.8 q{n}, [{_TO}, #{offset}]" for n, offset in enumerate(offsets[:-1])]
            if count == 1:
                lines.append(f"vstrb.8 q0, [{_TO}], #{moved}")
            else:
                lines += [
                    f"vstrb.8 q{count - 1}, [{_TO}, #{offsets[-1]}]",
                    f"add.w {_TO}, {_TO}, #{moved}",
                ]
        return [*lines, "le lr, 1b"]

    @cached_property
    def behind(self) -> list[str]:
        return ["pop.w {r3-r11, pc}"] if self.rows > 1 else ["pop {r3, pc}"]

    @property
    def code_bytes(self) -> int:
        return INSTRUCTION_BYTES * (len(self.before) + len(self.turn) + len(self.behind))

    def instructions(self, calls: int, pixels: int) -> int:
        return calls * (len(self.before) + len(self.behind)) + pixels * len(self.turn)


def fits(rows: int, width: int, step: int, patch: int) -> bool:
    """Whether there are pointers for so many rows, and offsets for so many bytes."""
    last = patch - (rows - 1) * width
    return rows <= MOST_ROWS and width <= MOST_BYTES and step <= REACH and 0 < last <= REACH


@cache
def files(patches: Patches) -> dict[str, str]:
    """{name: text} of the header and the source, one text for GCC and clang; for other cores its reference in C."""
    name = patches.name
    header = header_of(name, _summary(patches), _PARAMETERS, HEADER)
    return {f"{name}.h": header, f"{name}.c": _source(patches)}


def _summary(p: Patches) -> str:
    seen = f"{p.rows} rows of {p.bytes} bytes"
    return f"Copies what neighbouring pixels see, {p.step} bytes apart: {seen}. Printed by tinyet/tiles."


def _source(p: Patches) -> str:
    unused = ",\n    ".join(f"TINYET_MVE_UNUSED {parameter}" for parameter in _PARAMETERS)
    numbers = ", ".join(str(n) for n in (p.rows, p.bytes, p.row, p.step, p.patch))
    return "\n".join(
        (
            LICENCE,
            f"/* {_summary(p)} {p.code_bytes} bytes. */",
            f'#include "{p.name}.h"',
            "",
            "#if TINYET_MVE_ASM",
            f"__attribute__((naked)) void {p.name}(\n    {unused}) {{",
            "  __asm__ volatile(",
            *(f'      "{line}\\n"' for line in p.before),
            '      "1:\\n"',
            *(f'      "{line}\\n"' for line in (*p.turn, *p.behind)),
            "  );",
            "}",
            "#else",
            f"void {p.name}({', '.join(_PARAMETERS)}) {{",
            f"  const tinyet_patches_shape_mve shape = {{{numbers}}};",
            "  tinyet_patches_mve_reference(to, from, count, &shape);",
            "}",
            "#endif",
            "",
        )
    )
