# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions with int16 activations for Helium (MVE): all channels of a band, as helium_depthwise.py has
them for int8.

A gather takes eight values of a channel's plane. Two outputs side by side share what they see in one or two gathers,
where that is up to sixteen values; of kernels that see more an output is summed up three gathers at a time. What a
function executes is known to the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from tinyet.errors import InternalError
from tinyet.tiles.header import LICENCE, header_of
from tinyet.tiles.helium import INSTRUCTION_BYTES
from tinyet.tiles.helium_blocks_s16 import FURTHEST_EXPONENT, multiplied, narrowed
from tinyet.tiles.helium_depthwise import ALL, HEADER, MOST_EIGHTS, PLACES, SUMS, at
from tinyet.tiles.helium_order import listed

LANES = 8
"""Values of a vector."""
ENDS = 8
"""Bytes of a channel's multiplier and bias, before its weights."""
MOST_GROUPS = 7
_LANES_OF = ("q5", "q3", "q7")
"""What holds the offsets of the lanes of three groups."""
_HELD = len(_LANES_OF)
_REACH = 254
"""Of VSTRH, behind which its pointer moves, in bytes."""


@dataclass(frozen=True)
class Channels16:
    """All channels of a band of output rows.

    outputs: of a patch, one or two; groups: gathers of a patch, up to two of two outputs. stream: bytes of a channel's
    constants. exponent: that all channels have in common. low, high: whether an output has this bound of its own; zero:
    whether the lower one is zero. tiles: in a turn of their loop; whole: which has no other turn. eights: pixels of a
    row of the image by eights, whose rows in the plane are `row` bytes apart; 0 where a table says where pixels go.
    """

    outputs: int
    groups: int
    stream: int
    exponent: int
    low: bool
    high: bool
    zero: bool = False
    tiles: int = 1
    eights: int = 0
    row: int = 0
    whole: bool = False

    def __post_init__(self) -> None:
        most = {1: MOST_GROUPS, 2: 2}.get(self.outputs, 0)
        if not 0 < self.groups <= most or self.tiles < 1 or not 0 <= self.exponent <= FURTHEST_EXPONENT:
            raise InternalError(f"no such channels: {self}")
        if (self.eights and not fits_row(self.eights, self.row)) or (self.zero and not self.low):
            raise InternalError(f"no such channels: {self}")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        marks = "".join(f"_{n}" for n in ("low", "high", "zero", "whole") if getattr(self, n))
        numbers = f"{self.outputs}_{self.groups}_by_{self.stream}_t{self.tiles}"
        numbers += f"_w{self.eights}_by_{self.row}" if self.eights else ""
        return f"tinyet_depthwise_s16_{numbers}_e{self.exponent}{marks}_mve"

    @property
    def _chunks(self) -> list[range]:
        """Groups whose weights and lanes are in registers at a time."""
        return [range(i, min(i + _HELD, self.groups)) for i in range(0, self.groups, _HELD)]

    @property
    def _far(self) -> bool:
        """Whether the pointers of an output are loaded one by one, and the rounding for each tile."""
        return self.groups >= _HELD

    @cached_property
    def before(self) -> list[str]:
        first = 16 * self.outputs * self.groups if self.outputs > 1 else 0
        lanes = _LANES_OF if self.outputs == 1 else ("q5", "q7")
        held = lanes[: self.groups] if len(self._chunks) == 1 else ()
        return [
            *("push {r3-r11, lr}", "vpush {d0-d15}", "add.w r9, r0, #64"),
            *([f"ldr r1, {at('vectors')}"] if held else []),
            f"ldr r11, {at('output')}",
            *(f"vldrh.16 {q}, [r1, #{first + 16 * i}]" for i, q in enumerate(held)),
        ]

    @cached_property
    def step(self) -> list[str]:
        """Of a channel, up to its values."""
        return [
            *(f"ldrd r0, r6, {at('from')}", f"ldrd r1, r2, {at('pixels')}", f"ldr r4, {at('in_c')}"),
            *("add.w r3, r0, #2", f"str r3, {at('from')}", f"ldr r5, {at('tiles')}"),
            *("cmp.w r2, #0", "beq.w 3f"),
        ]

    @cached_property
    def taking(self) -> list[str]:
        """Up to the loop over pixels."""
        by_rows = (f"mov.w r3, #{8 * self.eights}", "udiv r3, r2, r3", "dls lr, r3")
        return [
            *("mov.w r10, #0", "vidup.u16 q6, r10, #1", "vmul.i16 q6, q6, r4", "lsl.w r12, r4, #3"),
            *(by_rows if self.eights else ("dlstp.16 lr, r2",)),
        ]

    @cached_property
    def taken(self) -> list[str]:
        """A row of pixels, or eight that go where a table says."""
        if not self.eights:
            return [
                *("vldrh.u16 q0, [r0, q6]", "vldrh.u16 q1, [r1], #16", "add.w r0, r0, r12"),
                *("vstrh.16 q0, [r6, q1]", "letp lr, 4b"),
            ]
        steps = [16] * (self.eights - 1) + [self.row - 16 * (self.eights - 1)]
        of_eight = ("vldrh.u16 q0, [r0, q6]", "add.w r0, r0, r12", "vstrh.16 q0, [r6], #{}")
        return [*(line.format(step) for step in steps for line in of_eight), "le lr, 4b"]

    @cached_property
    def channel(self) -> list[str]:
        """Up to its tiles. A load that widens has its address in a low register."""
        base = "r0" if self.outputs == 1 else "r8"
        lines = [f"ldr {base}, {at('stream')}", f"ldm.w {base}!, {{r1, r3}}"]
        lines += [f"strd r1, r3, {at('rounding')}"] if self._far else []
        if self.outputs == 1:
            many = len(self._chunks) > 1
            lines += [f"str r0, {at('weights')}"] if many else self._weights("r0", range(self.groups))
        else:
            lines.append(f"ldr r0, {at('vectors')}")
            for w in range(self.outputs * self.groups):
                lines += ["vldrh.u16 q6, [r0], #16", f"vldrb.s16 q{w}, [r8, q6]"]
        return [
            *(*lines, f"add.w {base}, {base}, #{self.stream - ENDS}", f"str {base}, {at('stream')}"),
            *(() if self.whole else (f"ldr r7, {at('table')}", "add.w r7, r7, r5")),
        ]

    def _weights(self, base: str, groups: range) -> list[str]:
        return [f"vldrb.s16 q{i}, [{base}, #{LANES * g}]" for i, g in enumerate(groups)]

    @cached_property
    def turn(self) -> list[str]:
        """Of the loop over tiles, of eight outputs each."""
        again = [f"ldrd r1, r3, {at('rounding')}"] if self._far else []
        tile = [*self._products(), f"stm.w sp, {ALL}", *again, *self._rounded(), "vstrh.16 q4, [r11, q6]"]
        return [*listed(tile * self.tiles), *(() if self.whole else ("cmp.w r5, r7", "bne.w 1b"))]

    def _products(self) -> Iterator[str]:
        if self.outputs == 2:
            yield from self._products_of_two()
        elif self._far:
            for chunk in self._chunks:
                yield from self._products_of_chunk(chunk)
        else:
            yield f"ldm.w r5!, {ALL}"
            gathers: list[list[str]] = []
            products: list[str] = []
            for i, r in enumerate(SUMS):
                vectors = ("q4", "q6") if self.groups > 1 or i % 2 == 0 else ("q6", "q4")
                for g in range(self.groups):
                    gathers.append([f"vldrh.u16 {vectors[g]}, [{r}, {_LANES_OF[g]}]"])
                    products.append(f"vmladav{'a' if g else ''}.s16 {r}, {vectors[g]}, q{g}")
            # A sum comes where its address was.
            yield from _alternating(gathers, products, ahead=self.groups if self.groups > 1 else 2)

    def _products_of_two(self) -> Iterator[str]:
        """A patch's address is where the sum of its second output will be: its products with that come last."""
        yield f"ldm.w r5!, {{{', '.join(SUMS[1::2])}}}"
        pairs = list(zip(SUMS[::2], SUMS[1::2], strict=True))
        if self.groups == 1:
            vectors = ["q4", "q6"] * 2
            yield f"vldrh.u16 q4, [{SUMS[1]}, q5]"
            for i, (first, second) in enumerate(pairs):
                yield f"vmladav.s16 {first}, {vectors[i]}, q0"
                if i + 1 < len(pairs):
                    yield f"vldrh.u16 {vectors[i + 1]}, [{pairs[i + 1][1]}, q5]"
                yield f"vmladav.s16 {second}, {vectors[i]}, q1"
            return
        yield f"vldrh.u16 q4, [{SUMS[1]}, q5]"
        for i, (first, second) in enumerate(pairs):
            yield from (f"vmladav.s16 {first}, q4, q0", f"vldrh.u16 q6, [{second}, q7]")
            yield from (f"vmladav.s16 {second}, q4, q1", f"vmladava.s16 {first}, q6, q2")
            if i + 1 < len(pairs):
                yield f"vldrh.u16 q4, [{pairs[i + 1][1]}, q5]"
            yield f"vmladava.s16 {second}, q6, q3"

    def _products_of_chunk(self, chunk: range) -> Iterator[str]:
        if len(self._chunks) > 1:
            yield f"ldr r1, {at('weights')}"
            yield from self._weights("r1", chunk)
            yield f"ldr r1, {at('vectors')}"
            yield from (f"vldrh.16 {q}, [r1, #{16 * g}]" for q, g in zip(_LANES_OF, chunk, strict=False))
        last = chunk.stop == self.groups
        addresses = [
            "ldr r{}, [r5], #4" if last else f"ldr.w r{{}}, [r5, #{4 * i}]" for i in range(len(SUMS))
        ]
        yield addresses[0].format(1)
        gathers: list[list[str]] = []
        products: list[str] = []
        for i, r in enumerate(SUMS):
            for k, g in enumerate(chunk):
                vector = ("q4", "q6")[len(gathers) % 2]
                gathers.append([f"vldrh.u16 {vector}, [r{1 + 2 * (i % 2)}, {_LANES_OF[k]}]"])
                products.append(f"vmladav{'a' if g else ''}.s16 {r}, {vector}, q{k}")
                if k == 0 and i + 1 < len(SUMS):
                    gathers[-1].append(addresses[i + 1].format(1 + 2 * ((i + 1) % 2)))
        yield from _alternating(gathers, products, ahead=2)

    def _rounded(self) -> Iterator[str]:
        """To q4; their places are in q6 then."""
        yield from ("vldrw.32 q4, [sp]", "vldrw.32 q6, [sp, #16]")
        for q in ("q4", "q6"):
            yield from (f"vadd.i32 {q}, {q}, r3", multiplied(q, "r1", self.exponent))
        yield from narrowed("q4", "q6", self.exponent)
        for bound, operation in (("low", "vmax"), ("high", "vmin")):
            if getattr(self, bound):
                if bound == "low" and self.zero:
                    yield "vmov.i32 q6, #0"
                else:
                    yield from (f"ldr r4, {at(bound)}", "vdup.16 q6, r4")
                yield f"{operation}.s16 q4, q4, q6"
        yield f"vldrh.u16 q6, [r5], #{PLACES}"

    @cached_property
    def step_done(self) -> list[str]:
        count = (f"ldr r0, {at('steps')}", "subs.w r0, r0, #1", f"str r0, {at('steps')}")
        return ["add.w r11, r11, #2", *count, "bne.w 2b"]

    @cached_property
    def behind(self) -> list[str]:
        return ["vpop {d0-d15}", "pop.w {r3-r11, pc}"]

    @property
    def lines(self) -> list[str]:
        """All of the function, labels included."""
        return [
            *(*self.before, "2:", *self.step, *self.taking, "4:", *self.taken),
            *("3:", *self.channel, "1:", *self.turn, *self.step_done, *self.behind),
        ]

    @property
    def code_bytes(self) -> int:
        return INSTRUCTION_BYTES * sum(not line.endswith(":") for line in self.lines)

    def instructions(self, channels: int, pixels: int, tiles: int) -> int:
        """Of a call for so many channels, of which so many pixels are taken."""
        rows = pixels // (8 * self.eights) if self.eights else -(-pixels // 8)
        taken = len(self.taking) + rows * len(self.taken) if pixels else 0
        turns, rest = divmod(tiles, self.tiles)
        if rest or (self.whole and turns != 1):
            raise InternalError(f"{tiles} tiles by {self.name}")
        each = len(self.step) + taken + len(self.channel) + turns * len(self.turn) + len(self.step_done)
        return len(self.before) + len(self.behind) + channels * each


def _alternating(gathers: list[list[str]], products: list[str], ahead: int) -> Iterator[str]:
    """Each product behind its gather, so many of which come before the first one: then loads and products
    alternate."""
    for lines in gathers[:ahead]:
        yield from lines
    for i, product in enumerate(products):
        yield product
        yield from gathers[i + ahead] if i + ahead < len(gathers) else ()


def fits_row(eights: int, row: int) -> bool:
    """Whether rows of so many eights of pixels are straight code, and a pointer moves from one to the next as it
    stores."""
    return 0 < eights <= MOST_EIGHTS and 16 * eights <= row <= 16 * (eights - 1) + _REACH


@cache
def files(channels: Channels16) -> dict[str, str]:
    """{name: text} of the header and the source, one text for GCC and clang; for other cores its reference in C."""
    c = channels
    summary = (
        f"Depthwise, {c.outputs} outputs of int16 of a patch in {c.groups} gathers. Printed by tinyet/tiles."
    )
    header = header_of(c.name, summary, ("tinyet_depthwise_job_mve *job",), HEADER)
    source = (
        LICENCE,
        f"/* {summary} {c.code_bytes} bytes. */",
        f'#include "{c.name}.h"',
        "",
        "#if TINYET_MVE_ASM",
        f"__attribute__((naked)) void {c.name}(TINYET_MVE_UNUSED tinyet_depthwise_job_mve *job) {{",
        "  __asm__ volatile(",
        *(f'      "{line}\\n"' for line in c.lines),
        "  );",
        "}",
        "#else",
        f"void {c.name}(tinyet_depthwise_job_mve *job) {{ tinyet_depthwise_s16_mve_reference(job, {c.exponent}); }}",
        "#endif",
        "",
    )
    return {f"{c.name}.h": header, f"{c.name}.c": "\n".join(source)}
