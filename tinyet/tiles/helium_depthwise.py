# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions for Helium (MVE): all channels of a band, taken to planes, summed, rounded.

Eight sums at a time go through the stack from the eight even general registers to two vectors. What a function executes
is known to the instruction.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from tinyet.errors import InternalError
from tinyet.tiles.header import LICENCE, header_of
from tinyet.tiles.helium import INSTRUCTION_BYTES
from tinyet.tiles.helium_floats import GUARD, as_text, rounded_to_even
from tinyet.tiles.helium_order import listed

HEADER = "tinyet_depthwise_mve.h"
SUMS = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr")
ALL = "{" + ", ".join(SUMS) + "}"
PLACES = 16
"""Bytes of a tile's places, behind the addresses of its patches."""
_LANES_OF = ("q5", "q3", "q7")
"""What holds the offsets of the groups' lanes, for all channels; where there is no third group, q7 is spare."""
_FIELDS = {
    "from": -64,
    "pixels": -56,
    "in_c": -48,
    "stream": -40,
    "vectors": -36,
    "tiles": -32,
    "table": -28,
    "output": -24,
    "steps": -20,
    "zero_point": -16,
    "low": -12,
    "high": -8,
    "end": -4,
    "bias": 0,
    "rounding": 32,
    "one_bias": 40,
    "weights": 40,
}
"""Of a tinyet_depthwise_job_mve, from r9; the last ones for the function itself."""
MOST_EIGHTS = 8
_REACH = 127
"""Of VSTRB, behind which its pointer moves, in bytes."""
_NARROW_SHIFT = 8
"""Up to which a product of int16 says all of an output."""


def at(field: str) -> str:
    """Clang takes no .w beside an offset below zero."""
    return f"[r9, #{_FIELDS[field]}]"


@dataclass(frozen=True)
class Channels:
    """All channels of a band of output rows.

    outputs: of a patch; groups: gathers of an output (one of the two is 1). stream: bytes of a channel's constants.
    pairs: two channels are taken at once. one_sided: see tinyet_rounding_mve; low, high: whether an output has this
    bound of its own. narrow: no shift is further than eight bits, so that it is one of int16. tiles: in a turn of
    their loop; whole: which has no other turn. eights: pixels of a row of the image by eights, of two channels at a
    time, whose rows in the plane are `row` bytes apart; 0 where a table says where pixels go. even: sums are multiplied
    by a float and rounded to even, on both sides alike.
    """

    outputs: int
    groups: int
    stream: int
    pairs: bool
    one_sided: bool
    narrow: bool
    low: bool
    high: bool
    tiles: int = 1
    eights: int = 0
    row: int = 0
    whole: bool = False
    even: bool = False

    def __post_init__(self) -> None:
        several = self.outputs in (2, 4) and self.groups == 1
        single = self.outputs == 1 and self.groups in (1, 2, 3)
        if self.even and not self.one_sided:
            raise InternalError(f"no such channels: {self}")
        if not (several or single) or (self.narrow and not self.folded) or self.tiles < 1:
            raise InternalError(f"no such channels: {self}")
        if self.eights and not (self.pairs and fits_row(self.eights, self.row)):
            raise InternalError(f"no such channels: {self}")

    @property
    def folded(self) -> bool:
        """Whether one instruction multiplies and adds the zero point; q7 has the multiplier."""
        return self.one_sided and not self.even and self.groups < 3

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        side = "even" if self.even else "one" if self.one_sided else "two"
        marks = "".join(f"_{n}" for n in ("pairs", "narrow", "low", "high", "whole") if getattr(self, n))
        numbers = f"{self.outputs}_{self.groups}_by_{self.stream}_t{self.tiles}"
        numbers += f"_w{self.eights}_by_{self.row}" if self.eights else ""
        return f"tinyet_depthwise_s8_{numbers}_{side}{marks}_mve"

    @property
    def reference(self) -> str:
        return f"tinyet_depthwise_{'rne_' if self.even else ''}mve_reference(job);"

    @property
    def planes(self) -> int:
        return 2 if self.pairs else 1

    @property
    def pointers(self) -> int:
        """Of a tile of eight outputs."""
        return 8 // self.outputs

    @property
    def tile_bytes(self) -> int:
        return 4 * self.pointers + PLACES

    @property
    def _weights(self) -> int:
        """Vectors of a channel's weights: q0 and on."""
        return self.outputs * self.groups

    @cached_property
    def before(self) -> list[str]:
        first = 16 * self._weights
        return [
            *("push {r3-r11, lr}", "vpush {d0-d15}", "add.w r9, r0, #64", f"ldr r1, {at('vectors')}"),
            f"ldr r11, {at('output')}",
            *(f"vldrb.u8 {q}, [r1, #{first + 16 * i}]" for i, q in enumerate(_LANES_OF[: self.groups])),
        ]

    @cached_property
    def step(self) -> list[str]:
        """Of a channel or two, up to their values."""
        return [
            *(f"ldrd r0, r6, {at('from')}", f"ldrd r1, r2, {at('pixels')}", f"ldrd r4, r8, {at('in_c')}"),
            *(f"add.w r3, r0, #{self.planes}", f"str r3, {at('from')}", f"ldr r5, {at('tiles')}"),
            *("cmp.w r2, #0", "beq.w 3f"),
        ]

    @cached_property
    def taking(self) -> list[str]:
        """Up to the loops over pixels, of which only one is executed."""
        return [
            *("mov.w r10, #0", "vidup.u16 q6, r10, #1", "vmul.i16 q6, q6, r4", "lsl.w r12, r4, #3"),
            *(("add.w r7, r8, r6", "lsls.w r3, r0, #31", "bne.w 5f") if self.pairs else ()),
            *((f"mov.w r3, #{8 * self.eights}", "udiv r3, r2, r3", "dls lr, r3") if self.eights else ()),
            *(() if self.eights else ("dlstp.16 lr, r2",)),
        ]

    @cached_property
    def pixel_row(self) -> list[str]:
        """A row of pixels, which go to rows of the planes."""
        steps = [8] * (self.eights - 1) + [self.row - 8 * (self.eights - 1)]
        lines: list[str] = []
        for step in steps:
            lines += ["vldrh.u16 q0, [r0, q6]", "add.w r0, r0, r12", f"vstrb.16 q0, [r6], #{step}"]
            lines += ["vshr.u16 q0, q0, #8", f"vstrb.16 q0, [r7], #{step}"]
        return [*lines, "le lr, 4b"]

    @cached_property
    def eight(self) -> list[str]:
        """Pixels, which go where a table says."""
        if not self.pairs:
            return [
                *("vldrb.u16 q0, [r0, q6]", "vldrh.u16 q1, [r1], #16", "add.w r0, r0, r12"),
                *("vstrb.16 q0, [r6, q1]", "letp lr, 4b"),
            ]
        return [
            *("vldrh.u16 q0, [r0, q6]", "vldrh.u16 q1, [r1], #16", "add.w r0, r0, r12"),
            *("vstrb.16 q0, [r6, q1]", "vshr.u16 q0, q0, #8", "vstrb.16 q0, [r7, q1]", "letp lr, 4b"),
        ]

    @cached_property
    def odd(self) -> list[str]:
        """Pairs of channels at an odd address."""
        if not self.pairs:
            return []
        return [
            *("b.w 3f", "5:", "add.w r3, r0, #1", "dlstp.16 lr, r2", "4:"),
            *("vldrb.u16 q0, [r0, q6]", "vldrb.u16 q4, [r3, q6]", "vldrh.u16 q1, [r1], #16"),
            *("add.w r0, r0, r12", "add.w r3, r3, r12", "vstrb.16 q0, [r6, q1]", "vstrb.16 q4, [r7, q1]"),
            "letp lr, 4b",
        ]

    @property
    def _rounding(self) -> tuple[str, str]:
        """What holds the multiplier, where that is folded the zero point, and the shift: odd registers, which no sum
        takes, for all tiles of a channel; where three gathers need one of them, they are loaded for each tile."""
        return ("r1", "r3") if self.groups < 3 else ("r0", "r2")

    @cached_property
    def channel(self) -> list[str]:
        """Up to its tiles."""
        factor, shift = self._rounding
        lines = [f"ldr r8, {at('stream')}", f"ldm.w r8!, {{{factor}, {shift}, r4}}"]
        if self.folded:
            lines += [f"ldr r6, {at('zero_point')}", f"vdup.32 q7, {factor}"]
            lines += [f"rsb.w r0, {shift}, #0", f"lsl.w {factor}, r6, r0"]
        if self.groups > 2:
            lines.append(f"strd {factor}, {shift}, {at('rounding')}")
        if self.outputs == 1:
            lines.append(f"str r4, {at('one_bias')}")
        else:
            lines += ["vdup.32 q4, r4", "vstrw.32 q4, [r9]", "vstrw.32 q4, [r9, #16]"]
        lines.append(f"ldr r0, {at('vectors')}")
        for w in range(self._weights):
            lines += ["vldrb.u8 q6, [r0], #16", f"vldrb.u8 q{w}, [r8, q6]"]
        return [
            *(*lines, f"add.w r8, r8, #{self.stream - 12}", f"str r8, {at('stream')}"),
            *(() if self.whole else (f"ldr r7, {at('table')}", "add.w r7, r7, r5")),
        ]

    @property
    def _gathers(self) -> tuple[str, ...]:
        """What patches are gathered in, one after another: what is neither weights nor lanes."""
        return ("q4", "q6") if self.outputs == 1 else ("q2", "q3", "q4", "q6")[-self.pointers :]

    @property
    def _values(self) -> tuple[str, str, str]:
        """Two vectors of a tile's sums, and the places of its outputs, while the next one's patches are gathered."""
        spare = {1: ("q1", "q2", "q3"), 2: ("q2", "q6", "q4") if self.outputs == 2 else ("q6", "q4", "q2")}
        return spare.get(self._weights, ("q4", "q6", "q6"))

    @cached_property
    def turn(self) -> list[str]:
        """Of the loop over tiles, of eight outputs each."""
        again = [f"ldrd r0, r2, {at('rounding')}"] if self.groups > 2 else []
        value, _, places = self._values
        tile = [*self._products(), f"stm.w sp, {ALL}", *again]
        tile += [*self._rounded(), f"vstrb.16 {value}, [r11, {places}]"]
        return [*listed(tile * self.tiles), *(() if self.whole else ("cmp.w r5, r7", "bne.w 1b"))]

    def _products(self) -> Iterator[str]:
        if self.outputs == 1:
            yield f"ldm.w r5!, {ALL}"
            gathers = itertools.cycle(self._gathers)
            for r in SUMS:
                vectors = [next(gathers) for _ in range(self.groups)]
                for q, lanes in zip(vectors[:2], _LANES_OF, strict=False):
                    yield f"vldrb.u8 {q}, [{r}, {lanes}]"
                if self.groups > 2:
                    yield f"mov.w r1, {r}"
                yield f"vmladav.s8 {r}, {vectors[0]}, q0"
                if self.groups > 2:
                    yield f"vldrb.u8 {vectors[2]}, [r1, {_LANES_OF[2]}]"
                for i, q in enumerate(vectors[1:], 1):
                    yield f"vmladava.s8 {r}, {q}, q{i}"
            return
        pointers = SUMS[: self.pointers]
        yield "ldrd r0, r2, [r5], #8" if len(pointers) == 2 else f"ldm.w r5!, {{{', '.join(pointers)}}}"
        for q, pointer in zip(self._gathers, pointers, strict=True):
            yield f"vldrb.u8 {q}, [{pointer}, q5]"
        yield f"ldm.w r9, {ALL}"
        for i, r in enumerate(SUMS):
            yield f"vmladava.s8 {r}, {self._gathers[i // self.outputs]}, q{i % self.outputs}"

    def _loaded(self, vector: str, offset: int) -> Iterator[str]:
        """Four sums, with their bias."""
        yield f"vldrw.32 {vector}, [sp, #{offset}]"
        if self.outputs == 1:
            yield f"vadd.i32 {vector}, {vector}, r4"

    def _rounded(self) -> Iterator[str]:
        """To the first one of `_values`, the places to the last one."""
        factor, shift = self._rounding
        first, second, places = self._values
        both = (first, second)
        if self.outputs == 1:
            yield f"ldr r4, {at('one_bias')}"
        if self.even:
            yield from self._loaded(first, 0)
            yield from self._loaded(second, 16)
            yield from rounded_to_even(both, (factor, factor))
        elif self.one_sided:
            yield from self._loaded(first, 0)
            yield from self._loaded(second, 16)
            form = (
                f"vqrdmlash.s32 {{0}}, q7, {factor}"
                if self.folded
                else f"vqrdmulh.s32 {{0}}, {{0}}, {factor}"
            )
            yield from (form.format(q) for q in both)
        else:
            yield from self._two_sided()
        if not (self.narrow or self.even):
            yield from (f"vrshl.s32 {q}, {shift}" for q in both)
        yield from (f"vqmovnb.s32 {first}, {first}", f"vqmovnt.s32 {first}, {second}")
        if self.narrow:
            yield f"vrshl.s16 {first}, {shift}"
        if not self.folded:
            yield from (f"ldr r4, {at('zero_point')}", f"vqadd.s16 {first}, {first}, r4")
        for bound, operation in (("low", "vmax"), ("high", "vmin")):
            if getattr(self, bound):
                yield from (f"ldr r4, {at(bound)}", f"vdup.16 {second}, r4")
                yield f"{operation}.s16 {first}, {first}, {second}"
        yield f"vldrh.u16 {places}, [r5], #{PLACES}"
        if not (self.low and self.high):
            yield f"vqmovnb.s16 {first}, {first}"

    def _two_sided(self) -> Iterator[str]:
        """VQRDMLAH adds a product to -1 where its sum is negative."""
        factor, _ = self._rounding
        first, second, _ = self._values
        if self.groups > 2:  # q7 is not spare
            for offset in (0, 16):
                yield from self._loaded(first, offset)
                yield from (f"vshr.s32 {second}, {first}, #31", f"vqrdmlah.s32 {second}, {first}, {factor}")
                yield f"vstrw.32 {second}, [sp, #{offset}]"
            yield f"vldrw.32 {first}, [sp]"
            return
        for to, spare, offset in ((first, second, 0), (second, "q7", 16)):
            yield from self._loaded(spare, offset)
            yield from (f"vshr.s32 {to}, {spare}, #31", f"vqrdmlah.s32 {to}, {spare}, {factor}")

    @cached_property
    def channel_done(self) -> list[str]:
        return [f"ldr r0, {at('end')}", "add.w r11, r11, #1", "cmp.w r5, r0", "bne.w 3b"]

    @cached_property
    def step_done(self) -> list[str]:
        return [f"ldr r0, {at('steps')}", "subs.w r0, r0, #1", f"str r0, {at('steps')}", "bne.w 2b"]

    @cached_property
    def behind(self) -> list[str]:
        return ["vpop {d0-d15}", "pop.w {r3-r11, pc}"]

    @property
    def lines(self) -> list[str]:
        """All of the function, labels included."""
        taken = self.pixel_row if self.eights else self.eight
        return [
            *(*self.before, "2:", *self.step, *self.taking, "4:", *taken, *self.odd),
            *("3:", *self.channel, "1:", *self.turn, *self.channel_done, *self.step_done, *self.behind),
        ]

    @property
    def code_bytes(self) -> int:
        return INSTRUCTION_BYTES * sum(not line.endswith(":") for line in self.lines)

    def instructions(self, channels: int, pixels: int, tiles: int) -> int:
        """Of a call for so many channels, at an even address, of which so many pixels are taken."""
        steps = channels // self.planes
        of_pixels = -(-pixels // 8) * len(self.eight)
        if self.eights:
            of_pixels = pixels // (8 * self.eights) * len(self.pixel_row)
        taken = len(self.taking) + of_pixels + bool(self.odd) if pixels else 0
        each = len(self.step) + taken + len(self.step_done)
        turns, rest = divmod(tiles, self.tiles)
        if rest or channels % self.planes or (self.whole and turns != 1):
            raise InternalError(f"{channels} channels, {tiles} tiles by {self.name}")
        of_channel = len(self.channel) + turns * len(self.turn) + len(self.channel_done)
        return len(self.before) + len(self.behind) + steps * each + channels * of_channel


def fits_narrow(groups: int, one_sided: bool, furthest_shift: int) -> bool:
    """Whether products with their zero points, shifted no further, are outputs wherever they are in int16."""
    return one_sided and groups < 3 and furthest_shift <= _NARROW_SHIFT


def fits_row(eights: int, row: int) -> bool:
    """Whether rows of so many eights of pixels are straight code, and a pointer moves from one to the next as it
    stores."""
    return 0 < eights <= MOST_EIGHTS and 8 * eights <= row <= 8 * (eights - 1) + _REACH


@cache
def files(channels: Channels) -> dict[str, str]:
    """{name: text} of the header and the source, one text for GCC and clang; for other cores its reference in C."""
    name = channels.name
    header = header_of(name, _summary(channels), ("tinyet_depthwise_job_mve *job",), HEADER)
    return {f"{name}.h": header, f"{name}.c": _source(channels)}


def _summary(c: Channels) -> str:
    return (
        f"Depthwise, {c.outputs} outputs of a patch in {c.groups} gathers an output. Printed by tinyet/tiles."
    )


def _source(c: Channels) -> str:
    return "\n".join(
        (
            LICENCE,
            f"/* {_summary(c)} {c.code_bytes} bytes. */",
            f'#include "{c.name}.h"',
            "",
            f"#if {GUARD if c.even else 'TINYET_MVE_ASM'}",
            f"__attribute__((naked)) void {c.name}(TINYET_MVE_UNUSED tinyet_depthwise_job_mve *job) {{",
            "  __asm__ volatile(",
            *as_text(c.lines),
            "  );",
            "}",
            "#else",
            f"void {c.name}(tinyet_depthwise_job_mve *job) {{ {c.reference} }}",
            "#endif",
            "",
        )
    )
