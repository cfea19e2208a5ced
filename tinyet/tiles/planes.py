# SPDX-License-Identifier: Apache-2.0
"""Input rows of some channels, widened into planes of int16 (tinyet_depthwise_chw_dsp.h): a description, and its
function.

It is called with the first channel's first pixel of the first row, where that row is in the first plane, and where the
rows end there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

from tinyet.errors import InternalError
from tinyet.tiles import printer
from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.nest import Loop, Nest
from tinyet.tiles.operation import (
    Operation,
    bare,
    branch_if_unequal,
    compare,
    compute,
    constant,
    load,
    load_half,
    load_signed_byte,
    moved,
    store,
    store_half,
)
from tinyet.tiles.pieces import placed_in_order

HEADER = "tinyet_depthwise_chw_dsp.h"
"""Of the reference in C."""
ROWS = "1"
"""Label of the loop over rows; others are numbered as they come."""
_FIRST_LABEL = 2
_INPUT, _PLANES, _END = "input", "planes", "end"
_LARGEST_OFFSET = 4095


@dataclass(frozen=True)
class Parts:
    """Parts of a row side by side, `times` of them, the first one the row's `part`-th: each has, from its value `first`
    on, `count` pixels, which begin with the image's `pixel`, and in the next part with the next one."""

    part: int
    first: int
    count: int
    pixel: int
    times: int

    @property
    def words(self) -> int:
        """Of two pixels each, of a part."""
        return (self.count - self.first % 2) // 2


@dataclass(frozen=True)
class Planes:
    """first: the place in a plane's row of the image's first pixel. count: pixels. step, row_step: bytes from pixel to
    pixel, and from row to row. channels: 2 or 4, a plane each. row_words, plane_words: of a plane's row, and of all.
    dilation, part: a row has so many parts of so many values, each with every dilation-th place. straight: words of a
    part that are straight code, at most; where it has more there is a loop. bits: of a value of the image, 8, or 16 of
    two channels."""

    first: int
    count: int
    step: int
    row_step: int
    channels: int
    row_words: int
    plane_words: int
    dilation: int = 1
    part: int = 0
    straight: int = 12
    bits: int = 8

    def __post_init__(self) -> None:
        if self.channels not in (2, 4) or self.count < 1 or self.straight < 1:
            raise InternalError(f"{self}: two or four channels, and a pixel and a word at least")
        if self.bits != 8 and (self.bits, self.channels) != (16, 2):
            raise InternalError(f"{self}: values of 8 bits, or of 16 and two channels")
        if self.dilation > 1 and (self.part % 2 or self.dilation * self.part != 2 * self.row_words):
            raise InternalError(f"{self}: parts of whole words, and a row of them")
        longest = self.part if self.dilation > 1 else 2 * self.row_words
        if self.first < 0 or any(p.first + p.count > longest for p in self.parts):
            raise InternalError(f"{self}: pixels outside the row")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        size = f"{self.count}_at_{self.first}_g{self.channels}_i{self.step}_{self.row_step}"
        size += "_s16" if self.bits == 16 else ""
        size += f"_d{self.dilation}_{self.part}_{self.straight}" if self.dilation > 1 else f"_t{self.turn}"
        return f"tinyet_planes_{size}_p{self.row_words}_{self.plane_words}_dsp"

    @cached_property
    def parts(self) -> tuple[Parts, ...]:
        """All of a row in which pixels are: alike are together that come one after another."""
        found: list[Parts] = []
        for part in range(self.dilation):
            first = max(-(-(self.first - part) // self.dilation), 0)
            count = -(-(self.first + self.count - part) // self.dilation) - first
            last = found[-1] if found else None
            if last is not None and (last.first, last.count) == (first, count):
                found[-1] = replace(last, times=last.times + 1)
            elif count > 0:
                found.append(Parts(part, first, count, part + first * self.dilation - self.first, 1))
        return tuple(found)

    @property
    def turn(self) -> int:
        """Words of a turn of the loop over those of the first part, or all."""
        return self.turn_of(self.parts[0].words)

    def turn_of(self, words: int) -> int:
        """The same of a part of so many."""
        if words <= self.straight:
            return words
        whole = (n for n in range(self.straight, self.straight // 2, -1) if words % n == 0)
        return next(whole, max(self.straight - 2, 1))

    def turns_of(self, words: int) -> int:
        """Of that loop; 0 where all is straight."""
        return words // self.turn_of(words) if words > self.straight else 0

    @property
    def literal(self) -> str:
        """The tinyet_planes_shape_dsp as a C initialiser."""
        return (
            f"{{/* pixels */ {self.first}, {self.count}, /* steps */ {self.step}, {self.row_step}, "
            f"/* channels */ {self.channels}, /* words */ {self.row_words}, {self.plane_words}, "
            f"/* parts */ {self.dilation}, {self.part}}}"
        )


def turns_of(planes: Planes, count: int) -> Mapping[str, int]:
    """Of each loop, of a call for so many rows."""
    return {**_made(planes, ARMV7E_M)[1], ROWS: count}


def function(planes: Planes, page: CorePage = ARMV7E_M) -> Nest[Planes]:
    return _made(planes, page)[0]


@cache
def _made(planes: Planes, page: CorePage) -> tuple[Nest[Planes], Mapping[str, int]]:
    """With the turns of all loops but that over rows, by label."""
    code = _Code(planes)
    code.whole(page)
    fixed = dict(
        zip((_INPUT, _PLANES, _END, *code.pointers[1:], *code.lasting), page.registers, strict=False)
    )
    placed = placed_in_order(code.found, code.loops, fixed, page, planes.name)
    return Nest(planes, page, placed, tuple(code.loops)), code.turns


@lru_cache(256)
def files(planes: Planes, page: CorePage = ARMV7E_M) -> dict[str, str]:
    """{name: text} of the header and the source."""
    types = "_s16" if planes.bits == 16 else ""
    reference = (
        f"const tinyet_planes_shape_dsp shape = {planes.literal};",
        f"tinyet_planes{types}_dsp((const int{planes.bits}_t *)input, planes, end, shape);",
    )
    parameters = ("const void *input", "uint32_t *planes", "const uint32_t *end")
    return printer.printed(function(planes, page), _summary(planes), parameters, reference, HEADER)


def _summary(p: Planes) -> str:
    return (
        f"Rows of {p.count} pixels of int{p.bits}, {p.step} bytes apart, into the planes of {p.channels} channels,\n"
        f" * from place {p.first} of rows of {p.row_words} words, {p.dilation} parts, on. Printed by tinyet/tiles."
    )


class _Code:
    """pointers: to the first plane, or where others are too far from that, to each. lasting: what else is in
    registers throughout. behind, passed: bytes that the inputs' pointer, and those to planes, are from where the row
    begins. at: bytes from where the inputs' pointer is to the next pixel."""

    def __init__(self, planes: Planes) -> None:
        self.p = planes
        self.found: list[Operation] = []
        self.loops: list[Loop] = []
        self.turns: dict[str, int] = {}
        farthest = 4 * ((planes.channels - 1) * planes.plane_words + planes.row_words)
        near = farthest <= _LARGEST_OFFSET
        self.pointers = (_PLANES,) if near else (_PLANES, *(f"plane{k}" for k in range(1, planes.channels)))
        looped = any(planes.turns_of(parts.words) for parts in planes.parts)
        several = any(parts.times > 1 for parts in planes.parts)
        self.lasting = ("row_end",) * looped + ("parts_end",) * several
        self.together = 2 if not near else 3 if looped and several else 4
        self.behind = self.passed = self.at = 0

    def put(self, *operations: Operation) -> None:
        self.found += operations

    def loop(self, first: int, end: str, turns: int) -> None:
        """The branch back to the instruction at a place, up to where the pointer to planes is at `end`."""
        label = str(_FIRST_LABEL + len(self.loops))
        self.put(compare(_PLANES, end), branch_if_unequal(label))
        self.loops.append(Loop(first, len(self.found) - 1, label))
        self.turns[label] = turns

    def whole(self, page: CorePage) -> None:
        p = self.p
        saved = (*page.kept, "lr")
        self.put(bare("push.w", f"{{{', '.join(saved)}}}", len(saved), "what the caller wants back"))
        for k, pointer in enumerate(self.pointers[1:], 1):
            self.put(
                *constant(pointer, 4 * k * p.plane_words, f"plane {k}"),
                compute("add.w", pointer, pointer, _PLANES),
            )
        start = len(self.found)
        for parts in p.parts:
            self.parts(parts)
        self.put(*moved(_INPUT, p.row_step - self.behind, "the next row"))
        self.forward(4 * p.row_words - self.passed)
        self.put(compare(_PLANES, _END), branch_if_unequal(ROWS))
        self.loops.append(Loop(start, len(self.found) - 1, ROWS))
        popped = (*page.kept, "pc")
        self.put(bare("pop.w", f"{{{', '.join(popped)}}}", len(popped), "back"))

    def parts(self, parts: Parts) -> None:
        """One after another."""
        p = self.p
        self.to_pixel(parts.pixel)
        begin = 2 * p.part * parts.part
        if parts.times == 1:
            self.part(parts, begin)
            return
        self.forward(begin - self.passed)
        self.settle()
        length = 2 * p.part * parts.times
        self.put(*constant("parts_end", length, "where the parts end"))
        self.put(compute("add.w", "parts_end", "parts_end", _PLANES))
        first = len(self.found)
        self.part(parts, begin)
        self.to_pixel(parts.pixel + 1)
        self.settle()
        self.forward(begin + 2 * p.part - self.passed)
        self.loop(first, "parts_end", parts.times)
        self.behind += (parts.times - 1) * p.step
        self.passed += (parts.times - 1) * 2 * p.part

    def part(self, parts: Parts, begin: int) -> None:
        """begin: where it begins, in bytes from where the row does."""
        p = self.p
        to = begin + 4 * (parts.first // 2)
        odd = parts.first % 2
        if odd:
            self.half(to + 2 - self.passed, "the first pixel, in the upper half of a word")
            to += 4
        turn, turns = p.turn_of(parts.words), p.turns_of(parts.words)
        if turns:
            self.forward(to - self.passed)
            self.settle()
            length = 4 * turn * turns
            self.put(compute("addw", "row_end", _PLANES, behind=f"#{length}", step="where the loop ends"))
            first = len(self.found)
            behind, passed = self.behind, self.passed
            self.words(turn, 0)
            self.settle()
            self.forward(4 * turn)
            self.loop(first, "row_end", turns)
            self.behind = behind + turns * (self.behind - behind)
            self.passed = passed + length
            to += length
        rest = parts.words - turns * turn
        self.words(rest, to - self.passed)
        if (parts.count - odd) % 2:
            self.half(to + 4 * rest - self.passed, "the last pixel, in the lower half of a word")

    def forward(self, by: int) -> None:
        """All pointers to planes."""
        for pointer in self.pointers:
            self.put(*moved(pointer, by))
        self.passed += by

    def settle(self) -> None:
        """The inputs' pointer to the next pixel."""
        self.put(*moved(_INPUT, self.at))
        self.behind += self.at
        self.at = 0

    def to_pixel(self, pixel: int) -> None:
        """The image's, of this row, is the next."""
        self.at = pixel * self.p.step - self.behind
        if self.at < 0:
            self.settle()

    def pixel(self, last: int = 0) -> int:
        """The place of the next pixel, from the pointer, which is moved where that is too far. last: of its bytes."""
        if self.at + last > _LARGEST_OFFSET:
            self.settle()
        found = self.at
        self.at += self.p.dilation * self.p.step
        return found

    def plane(self, k: int, offset: int) -> tuple[str, int]:
        """Pointer and offset of a place in a plane's row."""
        if len(self.pointers) > 1:
            return self.pointers[k], offset
        return _PLANES, 4 * k * self.p.plane_words + offset

    def half(self, offset: int, step: str) -> None:
        """A single pixel."""
        size = self.p.bits // 8
        at = self.pixel(size * (self.p.channels - 1))
        names = [f"h{k}" for k in range(self.p.channels)]
        one = load_half if size == 2 else load_signed_byte
        for k, name in enumerate(names):
            self.put(one(name, _INPUT, at + size * k, "" if k else step))
        for k, name in enumerate(names):
            self.put(store_half(name, *self.plane(k, offset)))

    def words(self, count: int, offset: int) -> None:
        """Two pixels each. Their loads stand side by side, as many as there are registers for."""
        for begin in range(0, count, self.together):
            some = range(begin, min(begin + self.together, count))
            for n in some:
                for x in (f"a{n}", f"b{n}"):
                    at, step = self.pixel(), f"{2 * len(some)} pixels" if x == f"a{begin}" else ""
                    one = load_half if self.p.channels * self.p.bits == 16 else load
                    self.put(one(x, _INPUT, at, step))
            for n in some:
                self.widened(f"a{n}", f"b{n}", offset + 4 * n)

    def widened(self, a: str, b: str, offset: int) -> None:
        """Two pixels, into a word of each plane."""
        halves = [("pkhbt", "low", (a, b), "lsl #16")]
        if self.p.channels * self.p.bits == 32:
            halves.append(("pkhtb", a, (b, a), "asr #16"))
        self.put(*(compute(mnemonic, to, *two, behind=by) for mnemonic, to, two, by in halves))
        if self.p.bits == 16:
            self.put(*(store(name, *self.plane(k, offset)) for k, (_, name, _, _) in enumerate(halves)))
            return
        for k, (_, bytes_, _, _) in enumerate(halves):
            # The odd bytes first: the even ones then take their place.
            self.put(compute("sxtb16", "odd", bytes_, behind="ror #8"), compute("sxtb16", bytes_, bytes_))
            self.put(store("odd", *self.plane(2 * k + 1, offset)), store(bytes_, *self.plane(2 * k, offset)))
