# SPDX-License-Identifier: Apache-2.0
"""Convolutions with int16 activations for Helium (MVE): blocks as in helium_blocks.py, whose sums become int16.

One VQRDMULH is the rounding of the specification where the multiplier of 15 bits, shifted to the left, is a factor of
2**-31; further than that a narrowing shift rounds, by an exponent that all channels have in common. Vector i of four
has channel i, its lanes are pixels; halves of two channels join so that a word has these of a pixel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tinyet.errors import InternalError
from tinyet.tiles.helium import Sums
from tinyet.tiles.helium_blocks import GROUP, JOB, Around
from tinyet.tiles.helium_order import listed

FURTHEST_EXPONENT = 16
"""Of VQRSHRN from 32 bits to 16."""
_MULTIPLIERS = ("r4", "r5", "r6", "r9")


def narrowed(bottom: str, top: str, exponent: int) -> list[str]:
    """Products to int16, in `bottom`: its even lanes are there, the odd ones those of `top`."""
    shift = f", #{exponent}" if exponent else ""
    form = "vqrshrn" if exponent else "vqmovn"
    return [f"{form}{half}.s32 {bottom}, {q}{shift}" for half, q in (("b", bottom), ("t", top))]


def multiplied(vector: str, multiplier: str, exponent: int) -> str:
    """By a factor of 2**-31: rounded, or to be rounded by what narrows it."""
    return f"{'vqdmulh' if exponent else 'vqrdmulh'}.s32 {vector}, {vector}, {multiplier}"


def bounded(vectors: Sequence[str], low: str | None, high: str | None) -> list[str]:
    """By vectors of bounds."""
    bounds = [(name, q) for name, q in (("vmax", low), ("vmin", high)) if q is not None]
    return [f"{name}.s16 {v}, {v}, {q}" for name, q in bounds for v in vectors]


@dataclass(frozen=True)
class Blocks16(Around):
    """exponent: that all channels have in common. low, high: whether an output has this bound of its own. groups: of
    four channels in a turn of the rounding."""

    sums: Sums
    exponent: int
    low: bool
    high: bool
    groups: int = 1

    def __post_init__(self) -> None:
        if self.sums.bits != 16 or self.groups not in (1, 2) or not 0 <= self.exponent <= FURTHEST_EXPONENT:
            raise InternalError(f"no such blocks: {self}")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        marks = "".join(f"_{n}" for n in ("low", "high") if getattr(self, n))
        return f"tinyet_blocks_s16_{self.sums.name}_r{self.groups}_e{self.exponent}{marks}_mve"

    @property
    def reference(self) -> str:
        return f"tinyet_blocks_s16_mve_reference(weights, pixels, blocks, taps, &shape, {self.exponent});"

    @cached_property
    def rounding(self) -> list[str]:
        """q7 and q4 say where the words of a group go."""
        bounds = [*(["vdup.16 q5, r5"] if self.low else []), *(["vdup.16 q6, r6"] if self.high else [])]
        return [
            *(f"ldr.w r12, [sp, #{JOB}]", "ldm.w r12, {r0, r1, r2, r3, r4, r5, r6, r8}", *bounds),
            *("mov.w r10, #0", "vidup.u32 q7, r10, #1", "vmul.i32 q7, q7, r8"),
            *("mov.w r10, #4", "vadd.i32 q4, q7, r10"),
            *(["lsr.w r4, r4, #1"] if self.groups == 2 else []),
            *([f"mov.w r10, #{self.sums.pixels}", "vctp.32 r10"] if self._fewer else []),
            "dls lr, r4",
        ]

    @cached_property
    def turn(self) -> list[str]:
        return [*listed(self._group() * self.groups), "le lr, 4b"]

    def _group(self) -> list[str]:
        """Four channels."""
        vectors = tuple(f"q{i}" for i in range(GROUP))
        then, predicate = ("t", ["vpstt"]) if self._fewer else ("", [])
        return [
            f"ldm.w r1!, {{{', '.join(_MULTIPLIERS)}}}",
            *(f"vldrw.32 {q}, [r0], #{4 * self.sums.pixels}" for q in vectors),
            *(multiplied(q, m, self.exponent) for q, m in zip(vectors, _MULTIPLIERS, strict=True)),
            *(line for i in (0, 2) for line in narrowed(vectors[i], vectors[i + 1], self.exponent)),
            *bounded(("q0", "q2"), "q5" if self.low else None, "q6" if self.high else None),
            *(*predicate, f"vstrw{then}.32 q0, [r2, q7]", f"vstrw{then}.32 q2, [r2, q4]"),
            "add.w r2, r2, #8",
        ]
