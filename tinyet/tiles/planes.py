# SPDX-License-Identifier: Apache-2.0
"""Input rows of some channels, widened into planes of int16 (tinyet_depthwise_chw_dsp.h): a description, and its
function.

It is called with the first channel's first pixel of the first row, where that row is in the first plane, and where the
rows end there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

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
"""Of the twin in C."""
ROWS, TURNS = "1", "2"
"""Labels: of the loops over rows, and over the words of a row."""
_INPUT, _PLANES, _END = "input", "planes", "end"
_LARGEST_OFFSET = 4095


@dataclass(frozen=True)
class Planes:
    """first: the place in a plane's row of the image's first pixel. count: pixels. step, row_step: bytes from pixel to
    pixel, and from row to row. channels: 2 or 4, a plane each. row_words, plane_words: of a plane's row, and of all.
    straight: words of straight code, at most; where a row has more there is a loop."""

    first: int
    count: int
    step: int
    row_step: int
    channels: int
    row_words: int
    plane_words: int
    straight: int = 12

    def __post_init__(self) -> None:
        if self.channels not in (2, 4) or self.count < 1 or self.straight < 1:
            raise InternalError(f"{self}: two or four channels, and a pixel and a word at least")
        if self.first < 0 or self.first + self.count > 2 * self.row_words:
            raise InternalError(f"{self}: pixels outside the row")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        size = f"{self.count}_at_{self.first}_g{self.channels}_i{self.step}_{self.row_step}"
        return f"tinyet_planes_{size}_p{self.row_words}_{self.plane_words}_t{self.turn}_dsp"

    @property
    def words(self) -> int:
        """Of a row, of two pixels each."""
        return (self.count - self.first % 2) // 2

    @property
    def turn(self) -> int:
        """Words of a turn of the loop, or all."""
        if self.words <= self.straight:
            return self.words
        whole = (n for n in range(self.straight, self.straight // 2, -1) if self.words % n == 0)
        return next(whole, max(self.straight - 2, 1))

    @property
    def turns(self) -> int:
        """Of the loop; 0 where all is straight."""
        return self.words // self.turn if self.words > self.straight else 0

    @property
    def literal(self) -> str:
        """The tinyet_planes_shape_dsp as a C initialiser."""
        return (
            f"{{/* pixels */ {self.first}, {self.count}, /* steps */ {self.step}, {self.row_step}, "
            f"/* channels */ {self.channels}, /* words */ {self.row_words}, {self.plane_words}}}"
        )


def turns_of(planes: Planes, count: int) -> Mapping[str, int]:
    """Of each loop, of a call for so many rows."""
    return {ROWS: count, TURNS: planes.turns}


@cache
def function(planes: Planes, page: CorePage = ARMV7E_M) -> Nest[Planes]:
    code = _Code(planes)
    code.whole(page)
    fixed = dict(
        zip((_INPUT, _PLANES, _END, *code.pointers[1:], *code.lasting), page.registers, strict=False)
    )
    placed = placed_in_order(code.found, code.loops, fixed, page, planes.name)
    return Nest(planes, page, placed, tuple(code.loops))


@lru_cache(256)
def files(planes: Planes, page: CorePage = ARMV7E_M) -> dict[str, str]:
    """{name: text} of the header and the source."""
    twin = (
        f"const tinyet_planes_shape_dsp shape = {planes.literal};",
        "tinyet_planes_dsp(input, planes, end, shape);",
    )
    parameters = ("const int8_t *input", "uint32_t *planes", "const uint32_t *end")
    return printer.printed(function(planes, page), _summary(planes), parameters, twin, HEADER)


def _summary(p: Planes) -> str:
    return (
        f"Rows of {p.count} pixels, {p.step} bytes apart, into the planes of {p.channels} channels,\n"
        f" * from value {p.first} of rows of {p.row_words} words on. Printed by tinyet/tiles."
    )


class _Code:
    """pointers: to the first plane, or where others are too far from that, to each. lasting: what else is in
    registers throughout. at: bytes from where the inputs' pointer is to the next pixel."""

    def __init__(self, planes: Planes) -> None:
        self.p = planes
        self.found: list[Operation] = []
        self.loops: list[Loop] = []
        farthest = 4 * ((planes.channels - 1) * planes.plane_words + planes.row_words)
        near = farthest <= _LARGEST_OFFSET
        self.pointers = (_PLANES,) if near else (_PLANES, *(f"plane{k}" for k in range(1, planes.channels)))
        self.lasting = ("row_end",) if planes.turns else ()
        self.at = 0

    def put(self, *operations: Operation) -> None:
        self.found += operations

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
        first, odd = p.first // 2, p.first % 2
        if odd:
            self.half(2 * p.first, "the first pixel, in the upper half of a word")
        first += odd
        behind = first
        if p.turns:
            if first:
                self.forward(4 * first)
                behind = 0
            if self.at:
                self.settle()
            length = 4 * p.turn * p.turns
            self.put(compute("addw", "row_end", _PLANES, behind=f"#{length}", step="where the loop ends"))
            loop = len(self.found)
            self.words(p.turn, 0)
            self.settle()
            self.forward(4 * p.turn)
            self.put(compare(_PLANES, "row_end"), branch_if_unequal(TURNS))
            self.loops.append(Loop(loop, len(self.found) - 1, TURNS))
            moved_on = 4 * first + length
        else:
            moved_on = 0
        rest = p.words - p.turns * p.turn
        self.words(rest, 4 * behind)
        if (p.count - odd) % 2:
            self.half(4 * (behind + rest), "the last pixel, in the lower half of a word")
        # The inputs' pointer has passed what it was moved by; `at` is where the next pixel would be.
        self.put(*moved(_INPUT, p.row_step - (p.count * p.step - self.at), "the next row"))
        self.forward(4 * p.row_words - moved_on)
        self.put(compare(_PLANES, _END), branch_if_unequal(ROWS))
        self.loops.append(Loop(start, len(self.found) - 1, ROWS))
        popped = (*page.kept, "pc")
        self.put(bare("pop.w", f"{{{', '.join(popped)}}}", len(popped), "back"))

    def forward(self, by: int) -> None:
        """All pointers to planes."""
        for pointer in self.pointers:
            self.put(*moved(pointer, by))

    def settle(self) -> None:
        """The inputs' pointer to the next pixel."""
        self.put(*moved(_INPUT, self.at))
        self.at = 0

    def pixel(self, last: int = 0) -> int:
        """The place of the next pixel, from the pointer, which is moved where that is too far. last: of its bytes."""
        if self.at + last > _LARGEST_OFFSET:
            self.settle()
        found = self.at
        self.at += self.p.step
        return found

    def plane(self, k: int, offset: int) -> tuple[str, int]:
        """Pointer and offset of a place in a plane's row."""
        if len(self.pointers) > 1:
            return self.pointers[k], offset
        return _PLANES, 4 * k * self.p.plane_words + offset

    def half(self, offset: int, step: str) -> None:
        """A single pixel."""
        at = self.pixel(self.p.channels - 1)
        names = [f"h{k}" for k in range(self.p.channels)]
        for k, name in enumerate(names):
            self.put(load_signed_byte(name, _INPUT, at + k, "" if k else step))
        for k, name in enumerate(names):
            self.put(store_half(name, *self.plane(k, offset)))

    def words(self, count: int, offset: int) -> None:
        """Two pixels each. Their loads stand side by side, as many as there are registers for."""
        most = 4 if len(self.pointers) == 1 else 2
        for begin in range(0, count, most):
            some = range(begin, min(begin + most, count))
            for n in some:
                for x in (f"a{n}", f"b{n}"):
                    at, step = self.pixel(), f"{2 * len(some)} pixels" if x == f"a{begin}" else ""
                    one = load_half if self.p.channels == 2 else load
                    self.put(one(x, _INPUT, at, step))
            for n in some:
                self.widened(f"a{n}", f"b{n}", offset + 4 * n)

    def widened(self, a: str, b: str, offset: int) -> None:
        """Two pixels, into a word of each plane."""
        halves = [("pkhbt", "low", (a, b), "lsl #16")]
        if self.p.channels == 4:
            halves.append(("pkhtb", a, (b, a), "asr #16"))
        self.put(*(compute(mnemonic, to, *two, behind=by) for mnemonic, to, two, by in halves))
        for k, (_, bytes_, _, _) in enumerate(halves):
            # The odd bytes first: the even ones then take their place.
            self.put(compute("sxtb16", "odd", bytes_, behind="ror #8"), compute("sxtb16", bytes_, bytes_))
            self.put(store("odd", *self.plane(2 * k + 1, offset)), store(bytes_, *self.plane(2 * k, offset)))
