# SPDX-License-Identifier: Apache-2.0
"""Convolutions for Helium (MVE): blocks whose outputs come by straight code, each channel's shift in its instructions.

The same as helium_blocks.py for few vectors a pixel: VQRSHRN shifts and narrows at once, but takes no shift from a
register. Pointers, the number of blocks and, of one vector a pixel, the outputs' addresses stay in registers from block
to block. What a function executes is known to the instruction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tinyet.errors import InternalError
from tinyet.tiles.helium import INSTRUCTION_BYTES, LANES, PIXELS, REACH, Sums
from tinyet.tiles.helium_blocks import GROUP, REFERENCE
from tinyet.tiles.helium_order import listed

MOST_CHANNELS = 96
"""Worth their code: 68 bytes for each four."""
FURTHEST_SHIFT = 16
"""Of VQRSHRN from 32 bits to 16."""
_MULTIPLIERS = ("r0", "r4", "r8", "r12")
_ENDS = "{r0, r2, r4, r6, r8, r10, r12, lr}"
_SPILLED = 16
"""Bytes for the outputs' addresses, where no vector is left for them."""


@dataclass(frozen=True)
class Straight:
    """shifts: to the right, of each channel. one_sided: see tinyet_rounding_mve. low, high: a bound of its own, of
    which there is one at most. zero_point: -128 of one-sided outputs without a lower bound makes these unsigned.

    Multipliers and shifts lie behind the stream of the sums.
    """

    sums: Sums
    shifts: tuple[int, ...]
    one_sided: bool
    zero_point: int
    low: int | None
    high: int | None

    def __post_init__(self) -> None:
        if not fits(self.sums, self.shifts, self.low is not None and self.high is not None):
            raise InternalError(f"no such blocks: {self}")

    @property
    def name(self) -> str:
        """Says all that it is made for, the shifts by a digest."""
        digest = hashlib.sha256(bytes(self.shifts)).hexdigest()[:10]
        side = "one" if self.one_sided else "two"
        bounds = "".join(
            f"_{which}_{_spelled(value)}"
            for which, value in (("low", self.low), ("high", self.high))
            if value is not None
        )
        zero = _spelled(self.zero_point)
        return f"tinyet_straight_s8_{self.sums.name}_{len(self.shifts)}_{digest}_{side}_{zero}{bounds}_mve"

    @property
    def reference(self) -> str:
        return REFERENCE

    @property
    def _lowest(self) -> bool:
        return self.one_sided and self.zero_point == -128 and self.low is None

    @property
    def _spills(self) -> int:
        return 0 if self.sums.vectors == 1 else _SPILLED

    @property
    def _near(self) -> bool:
        """Whether VLDRW reaches all sums from the first one."""
        return 16 * (len(self.shifts) - 1) <= REACH

    @property
    def _constant(self) -> list[str]:
        """What is added to all outputs: to q4."""
        if self._lowest:
            return ["vmov.i8 q4, #0x80"]
        z = self.zero_point
        return [f"mov.w r0, #{z}" if z >= 0 else f"mvn.w r0, #{~z}", "vdup.16 q4, r0"]

    @cached_property
    def before(self) -> list[str]:
        """Pixels in r1, sums from r7 to r11, blocks in r9, addresses of outputs in q5, bytes to those of the next block
        on the stack."""
        return [
            *("push {r0-r12, lr}", "vpush {d8-d15}"),
            *("ldr.w r7, [r2]", "ldrd r11, r9, [r2, #32]", "ldr.w r4, [r2, #8]", "ldr.w r6, [r2, #28]"),
            *("mov.w r10, #0", "vidup.u32 q5, r10, #1", "vmul.i32 q5, q5, r6", "vadd.i32 q5, q5, r4"),
            *("lsl.w r6, r6, #2", "str.w r6, [sp, #76]"),
            *((f"movw r0, #{(1 << LANES - self.sums.free) - 1}", "vmsr p0, r0") if self.sums.free else ()),
            *(["sub.w sp, sp, #16", "vstrw.32 q5, [sp]"] if self._spills else self._constant),
        ]

    @cached_property
    def block(self) -> list[str]:
        """Up to its sums."""
        return [f"ldr.w r3, [sp, #{64 + self._spills}]", "mov.w r5, r7"]

    @cached_property
    def rounding(self) -> list[str]:
        lines = [] if self._near else ["mov.w r5, r7"]
        if self._spills:
            lines += [*self._constant, "vldrw.32 q5, [sp]"]
        for bound in (self.low, self.high):
            lines += [f"vmov.i8 q7, #{bound & 0xFF}"] if bound is not None else []
        for first in range(0, len(self.shifts), GROUP):
            lines += self._group(first)
        return listed(lines)

    def _group(self, first: int) -> Iterator[str]:
        """Four channels; vector i of four has channel i, its lanes are pixels. Each group begins with vectors that the
        one before does not need, or has used up."""
        yield f"ldm.w r3!, {_ENDS}"
        every = ["q0", "q1", "q2", "q3", "q6"]
        every += ["q7"] if self.low is None and self.high is None else []
        count = GROUP if self.one_sided else GROUP + 1
        *vectors, last = (every[(first // GROUP * count + i) % len(every)] for i in range(GROUP + 1))
        for i, q in enumerate(vectors):
            yield f"vldrw.32 {q}, " + (f"[r7, #{16 * (first + i)}]" if self._near else "[r5], #16")
        products = vectors
        if self.one_sided:
            yield from (f"vqrdmulh.s32 {q}, {q}, {m}" for q, m in zip(vectors, _MULTIPLIERS, strict=True))
        else:  # VQRDMLAH adds a product to -1 where its sum is negative.
            products = [last, *vectors[:-1]]
            for q, to, m in zip(vectors, products, _MULTIPLIERS, strict=True):
                yield from (f"vshr.s32 {to}, {q}, #31", f"vqrdmlah.s32 {to}, {q}, {m}")
        even, odd = products[:2]
        for to, half in ((even, 0), (odd, 1)):
            for top in range(2):
                i = half + 2 * top
                yield f"vqrshrn{'bt'[top]}.s32 {to}, {products[i]}, #{self.shifts[first + i]}"
        if self._lowest:
            yield from (f"vqmovunb.s16 {even}, {even}", f"vqmovunt.s16 {even}, {odd}")
            yield f"veor {even}, {even}, q4"
        else:
            yield from (f"vqadd.s16 {q}, {q}, q4" for q in (even, odd))
            yield from (f"vqmovnb.s16 {even}, {even}", f"vqmovnt.s16 {even}, {odd}")
        if self.low is not None or self.high is not None:
            yield f"{'vmax' if self.high is None else 'vmin'}.s8 {even}, {even}, q7"
        yield f"vstrw.32 {even}, [q5, #{first}]"

    @cached_property
    def done(self) -> list[str]:
        """On to the next block."""
        step = PIXELS * self.sums.step - self.sums.moved
        return [
            *([f"{'addw' if step > 0 else 'subw'} r1, r1, #{abs(step)}"] if step else []),
            *(f"ldr.w r0, [sp, #{76 + self._spills}]", "vadd.i32 q5, q5, r0"),
            *(["vstrw.32 q5, [sp]"] if self._spills else []),
            *("subs.w r9, r9, #1", "bne.w 5b"),
        ]

    @cached_property
    def behind(self) -> list[str]:
        free = [f"add.w sp, sp, #{_SPILLED}"] if self._spills else []
        return [*free, "vpop {d8-d15}", "add.w sp, sp, #16", "pop.w {r4-r12, pc}"]

    @property
    def lines(self) -> list[str]:
        """All of the function, labels included."""
        return [
            *(*self.before, "5:", *self.block, *self.sums.lines, *self.rounding, *self.done, *self.behind),
        ]

    @property
    def code_bytes(self) -> int:
        return INSTRUCTION_BYTES * sum(not line.endswith(":") for line in self.lines)

    def instructions(self, calls: int, blocks: int, channels: int) -> int:
        """Of so many calls, for so many blocks in all."""
        if channels != len(self.shifts):
            raise InternalError(f"{channels} channels by {self.name}")
        each = len(self.block) + self.sums.instructions(channels) + len(self.rounding) + len(self.done)
        return calls * (len(self.before) + len(self.behind)) + blocks * each


def fits(sums: Sums, shifts: tuple[int, ...], both_bounds: bool) -> bool:
    """Whether there are such blocks."""
    by_groups = 0 < len(shifts) <= MOST_CHANNELS and len(shifts) % GROUP == 0
    near = all(1 <= shift <= FURTHEST_SHIFT for shift in shifts)
    return sums.stays and sums.pixels == PIXELS and by_groups and near and not both_bounds


def _spelled(value: int) -> str:
    """For a name."""
    return f"m{-value}" if value < 0 else str(value)
