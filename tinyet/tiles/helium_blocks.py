# SPDX-License-Identifier: Apache-2.0
"""Convolutions for Helium (MVE): blocks of pixels side by side, their sums (helium.py) and the outputs of these.

Sums wait in memory, of each channel those of its pixels. Vector i of four has channel i, its lanes are pixels; bytes
join so that a word has the four channels of a pixel. What a function executes is known to the instruction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

from tinyet.errors import InternalError
from tinyet.tiles.header import LICENCE, header_of
from tinyet.tiles.helium import CHANNELS, HEADER, INSTRUCTION_BYTES, PIXELS, Sums
from tinyet.tiles.helium_floats import GUARD, as_text, rounded_to_even
from tinyet.tiles.helium_order import listed

GROUP = 4
"""Channels that are rounded at a time."""
_WEIGHTS, _PIXELS, JOB = 64, 68, 72
"""Where these lie from sp."""
_SUMS_END, _COUNT, _STEPS = 32, 36, 40
"""Of a tinyet_blocks_mve; what the rounding needs is at its beginning."""
REFERENCE = "tinyet_blocks_mve_reference(weights, pixels, blocks, taps, &shape);"
_REFERENCE_EVEN = REFERENCE.replace("blocks_mve", "blocks_rne_mve")
_PARAMETERS = ("const int8_t *weights", "const int8_t *pixels", "tinyet_blocks_mve *blocks")


class Around(ABC):
    """What is around the sums and the rounding of a block."""

    sums: Sums
    groups: int

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def rounding(self) -> list[str]:
        """Up to the loop over channels."""

    @property
    @abstractmethod
    def turn(self) -> list[str]:
        """Of the loop over groups of channels."""

    @property
    def _fewer(self) -> bool:
        """Whether a vector of sums has lanes of what is no pixel."""
        return self.sums.pixels != PIXELS

    @cached_property
    def before(self) -> list[str]:
        return ["push {r0-r12, lr}", "vpush {d8-d15}"]

    @cached_property
    def block(self) -> list[str]:
        """What is before the sums of one."""
        return [
            *(f"ldrd r3, r1, [sp, #{_WEIGHTS}]", f"ldr.w r2, [sp, #{JOB}]"),
            *("ldr.w r5, [r2]", f"ldr.w r11, [r2, #{_SUMS_END}]"),
        ]

    @cached_property
    def done(self) -> list[str]:
        """On to the next block; r2 is behind the channels of the first pixel."""
        return [
            *(f"ldr.w r12, [sp, #{JOB}]", f"ldr.w r1, [sp, #{_PIXELS}]", f"ldrd r3, r4, [r12, #{_STEPS}]"),
            *("add.w r1, r1, r3", "add.w r2, r2, r4", f"str.w r1, [sp, #{_PIXELS}]"),
            *("str.w r2, [r12, #8]", f"ldr.w r0, [r12, #{_COUNT}]", "subs.w r0, r0, #1"),
            *(f"str.w r0, [r12, #{_COUNT}]", "bne.w 5b"),
        ]

    @cached_property
    def behind(self) -> list[str]:
        return ["vpop {d8-d15}", "add.w sp, sp, #16", "pop.w {r4-r12, pc}"]

    @property
    def lines(self) -> list[str]:
        """All of the function, labels included."""
        return [
            *(*self.before, "5:", *self.block, *self.sums.lines, *self.rounding, "4:", *self.turn),
            *(*self.done, *self.behind),
        ]

    @property
    def code_bytes(self) -> int:
        return INSTRUCTION_BYTES * sum(not line.endswith(":") for line in self.lines)

    def instructions(self, calls: int, blocks: int, channels: int) -> int:
        """Of so many calls, for so many blocks in all."""
        turns, rest = divmod(channels, GROUP * self.groups)
        if rest:
            raise InternalError(f"{channels} channels by {self.name}")
        each = len(self.block) + len(self.rounding) + turns * len(self.turn) + len(self.done)
        around = calls * (len(self.before) + len(self.behind))
        return around + blocks * (each + self.sums.instructions(channels))


@dataclass(frozen=True)
class Blocks(Around):
    """one_sided: see tinyet_rounding_mve. low, high: whether an output has this bound of its own. zero_lowest: the zero
    point is -128, and outputs are one-sided: without it they are unsigned. groups: of four channels in a turn of the
    rounding, one or two. even: sums are multiplied by a float and rounded to even, in the same way on both sides."""

    sums: Sums
    one_sided: bool
    low: bool
    high: bool
    zero_lowest: bool
    groups: int = 1
    even: bool = False

    def __post_init__(self) -> None:
        one = self.one_sided
        if (
            (self.zero_lowest and (self.low or not one))
            or (self.even and not one)
            or self.groups not in (1, 2)
        ):
            raise InternalError(f"no such blocks: {self}")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        side = "even" if self.even else "one" if self.one_sided else "two"
        marks = "".join(f"_{n}" for n in ("low", "high", "zero_lowest") if getattr(self, n))
        return f"tinyet_blocks_s8_{self.sums.name}_r{self.groups}_{side}{marks}_mve"

    @property
    def reference(self) -> str:
        return _REFERENCE_EVEN if self.even else REFERENCE

    @property
    def _spare(self) -> list[str]:
        """Registers that nothing else takes."""
        taken = {
            "q4": not self.one_sided,
            "q5": self.low or self.zero_lowest,
            "q6": self.high,
        }
        return [q for q, is_taken in taken.items() if not is_taken]

    @property
    def _second(self) -> str | None:
        """For where the words of the second group go."""
        return self._spare[0] if self._spare and self.groups == 2 else None

    @cached_property
    def rounding(self) -> list[str]:
        """Up to the loop over channels: sums, multipliers and shifts, outputs, zero point, groups, bounds, step. q7
        says where the words go."""
        bounds = [*(["vdup.8 q5, r5"] if self.low else []), *(["vdup.8 q6, r6"] if self.high else [])]
        if self.zero_lowest:
            bounds.append("vmov.i8 q5, #0x80")
        return [
            *(f"ldr.w r12, [sp, #{JOB}]", "ldm.w r12, {r0, r1, r2, r3, r4, r5, r6, r8}", *bounds),
            *("mov.w r10, #0", "vidup.u32 q7, r10, #1", "vmul.i32 q7, q7, r8"),
            *(["mov.w r10, #4", f"vadd.i32 {self._second}, q7, r10"] if self._second else []),
            *(["lsr.w r4, r4, #1"] if self.groups == 2 else []),
            *([f"mov.w r10, #{self.sums.pixels}", "vctp.32 r10"] if self._fewer else []),
            "dls lr, r4",
        ]

    @cached_property
    def turn(self) -> list[str]:
        """Of the loop over groups of channels."""
        if self._second:
            lines = [*self._group("q7", 0), *self._group(self._second, 1), "add.w r2, r2, #8"]
        else:
            lines = [line for i in range(self.groups) for line in (*self._group("q7", i), "add.w r2, r2, #4")]
        return [*listed(lines), "le lr, 4b"]

    def _group(self, places: str, number: int) -> list[str]:
        """Four channels. One-sided, the second group begins with vectors that the first one does not need."""
        every = [f"q{i}" for i in range(GROUP)]
        every += [q for q in self._spare if self.one_sided and q != self._second]
        vectors = tuple(every[(GROUP * number + i) % len(every)] for i in range(GROUP))
        lines = [f"vldrw.32 {q}, [r0], #{4 * self.sums.pixels}" for q in vectors]
        products = vectors
        if self.even:
            lines = [
                "ldm.w r1!, {r4, r5, r6, r8}",
                *lines,
                *rounded_to_even(vectors, ("r4", "r5", "r6", "r8")),
            ]
        else:
            lines = ["ldm.w r1!, {r4, r5, r6, r8, r9, r10, r11, r12}", *lines]
            multipliers, shifts = ("r4", "r6", "r9", "r11"), ("r5", "r8", "r10", "r12")
            if self.one_sided:
                lines += [f"vqrdmulh.s32 {q}, {q}, {m}" for q, m in zip(vectors, multipliers, strict=True)]
            else:  # VQRDMLAH adds a product to -1 where its sum is negative.
                products = ("q4", *vectors[:-1])
                for q, to, m in zip(vectors, products, multipliers, strict=True):
                    lines += [f"vshr.s32 {to}, {q}, #31", f"vqrdmlah.s32 {to}, {q}, {m}"]
            lines += [f"vrshl.s32 {q}, {shift}" for q, shift in zip(products, shifts, strict=True)]
        even, odd = products[:2]
        for bottom, top in zip(products[:2], products[2:], strict=True):
            lines += [f"vqmovnb.s32 {bottom}, {bottom}", f"vqmovnt.s32 {bottom}, {top}"]
        if self.zero_lowest:
            lines += [
                f"vqmovunb.s16 {even}, {even}",
                f"vqmovunt.s16 {even}, {odd}",
                f"veor {even}, {even}, q5",
            ]
        else:
            lines += [f"vqadd.s16 {q}, {q}, r3" for q in (even, odd)]
            lines += [f"vqmovnb.s16 {even}, {even}", f"vqmovnt.s16 {even}, {odd}"]
        lines += [f"vmax.s8 {even}, {even}, q5"] if self.low else []
        lines += [f"vmin.s8 {even}, {even}, q6"] if self.high else []
        if self._fewer:
            return [*lines, "vpst", f"vstrwt.32 {even}, [r2, {places}]"]
        return [*lines, f"vstrw.32 {even}, [r2, {places}]"]


class Printed(Hashable, Protocol):
    """What prints such a function."""

    @property
    def sums(self) -> Sums: ...

    @property
    def name(self) -> str: ...

    @property
    def lines(self) -> list[str]: ...

    @property
    def reference(self) -> str: ...

    @property
    def code_bytes(self) -> int: ...

    def instructions(self, calls: int, blocks: int, channels: int) -> int: ...


@cache
def files(blocks: Printed) -> dict[str, str]:
    """{name: text} of the header and the source, one text for GCC and clang; for other cores its reference in C."""
    name, summary = blocks.name, " ".join(_summary(blocks))
    return {f"{name}.h": header_of(name, summary, _PARAMETERS, HEADER), f"{name}.c": _source(blocks)}


def _summary(b: Printed) -> Iterator[str]:
    s = b.sums
    seen = f"{s.rows} x {s.columns} x {s.depth} vectors of {'sixteen' if s.bits == 8 else 'eight'} values"
    yield f"Blocks of {s.pixels} pixels, {s.step} bytes apart, {CHANNELS} channels at a time: {seen}."
    yield f"Printed by tinyet/tiles. {b.code_bytes} bytes."


def _source(b: Printed) -> str:
    s = b.sums
    unused = ",\n    ".join(f"TINYET_MVE_UNUSED {p}" for p in _PARAMETERS)
    sizes = [len(chunk) for chunk in s.chunks] if s.held else []
    taps = ", ".join(map(str, (*s.taps, *sizes)))
    numbers = ", ".join(
        map(str, (s.rows, s.columns, s.depth, s.row, s.column, s.step, len(sizes), s.pixels, s.free))
    )
    return "\n".join(
        (
            LICENCE,
            f"/* {' '.join(_summary(b))} */",
            f'#include "{b.name}.h"',
            "",
            f"#if {GUARD if isinstance(b, Blocks) and b.even else 'TINYET_MVE_ASM'}",
            f"__attribute__((naked)) void {b.name}(\n    {unused}) {{",
            "  __asm__ volatile(",
            *as_text(b.lines),
            "  );",
            "}",
            "#else",
            f"void {b.name}({', '.join(_PARAMETERS)}) {{",
            f"  static const int32_t taps[] = {{{taps}}};",
            f"  const tinyet_sums_shape_mve shape = {{{numbers}}};",
            f"  {b.reference}",
            "}",
            "#endif",
            "",
        )
    )
