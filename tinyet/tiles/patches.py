# SPDX-License-Identifier: Apache-2.0
"""What a convolution's window sees of one or two pixels, widened to words of int16 (tinyet_conv2d_tiles_dsp.h): a
description, and its function.

It is called with where the window of each pixel begins, where the words go, and bytes from row to row of the windows.
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
    load_signed_byte,
    moved,
    store,
    store_several,
)
from tinyet.tiles.pieces import placed_in_order
from tinyet.tiles.registers import Placed

HEADER = "tinyet_conv2d_tiles_dsp.h"
"""Of the reference in C."""
ROWS, TAPS, FOURS = "1", "2", "3"
"""Labels: of the loops over the window's rows, over the taps of one, and over the values of one of these."""
_TO, _STEP = "to", "step"
_LARGEST_OFFSET = 4095
_STORED = 8
"""Words of a store, at most."""
_SHORT = 12
"""Fours of values in a row without a loop over them."""


@dataclass(frozen=True)
class Patches:
    """pixels: 1 or 2, whose windows lie anywhere. rows, taps: of a window; row_step, tap_step: bytes from one to the
    next, a row_step of 0 for what the call says, and of one row. values: neighbours that lie at each. filled: words of
    each pixel behind all of them, zero. straight: fours of values of all the window without a loop, at most.

    Words of a tap: of each four values {0, 2} and {1, 3}, then two that are left, then a last one with that of the next
    tap which has one; behind all taps it stands alone. Each word of the first pixel, then of the second.
    """

    pixels: int
    rows: int
    taps: int
    values: int
    row_step: int
    tap_step: int
    filled: int = 0
    straight: int = 12

    def __post_init__(self) -> None:
        if self.pixels not in (1, 2) or min(self.rows, self.taps, self.values, self.straight) < 1:
            raise InternalError(f"{self}: one or two pixels, and a row, a tap and a value at least")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        more = f"_s{self.row_step or 'given'}" if self.rows > 1 else ""
        more += f"_d{self.tap_step}" if self.taps > 1 else ""
        more += f"_f{self.filled}" if self.filled else ""
        more += "" if self.flat else f"_t{self.turn}"
        return f"tinyet_patches_{self.pixels}_{self.rows}x{self.taps}x{self.values}{more}_dsp"

    @property
    def fours(self) -> int:
        """Of values of a tap."""
        return self.values // 4

    @property
    def reach(self) -> int:
        """Bytes from the first value to behind the last."""
        return (self.rows - 1) * self.row_step + (self.taps - 1) * self.tap_step + self.values

    @property
    def given(self) -> bool:
        """Whether the call says how far rows are apart."""
        return self.row_step == 0 and self.rows > 1

    @property
    def stored(self) -> int:
        """Words of a store, at most: fewer where ends of loops, the step and values that wait have registers, too."""
        scarce = self.given and not self.flat and (self.taps > 1 or self.values % 2 > 0)
        return _STORED // 2 if scarce else _STORED

    @property
    def flat(self) -> bool:
        """Without a loop, from where the window begins."""
        return self.rows * self.taps * self.fours <= self.straight and self.reach <= _LARGEST_OFFSET

    @property
    def turn(self) -> int:
        """Fours of a turn of the loop over a tap's values, or all."""
        if self.fours <= _SHORT:
            return self.fours
        return next((n for n in (12, 10, 8, 11, 9, 6, 7) if self.fours % n == 0), 8)

    @property
    def turns(self) -> int:
        """Of that loop; 1 where there is none."""
        return max(self.fours // max(self.turn, 1), 1)

    @property
    def literal(self) -> str:
        """The tinyet_patches_shape_dsp as a C initialiser."""
        return (
            f"{{{self.pixels}, /* window */ {self.rows}, {self.taps}, {self.values}, "
            f"/* steps */ {self.row_step}, {self.tap_step}, /* filled */ {self.filled}}}"
        )


def turns_of(patches: Patches) -> Mapping[str, int]:
    """Of each loop, of a call."""
    return {ROWS: patches.rows, TAPS: patches.taps, FOURS: patches.turns}


@cache
def function(patches: Patches, page: CorePage = ARMV7E_M) -> Nest[Patches]:
    code = _Code(patches)
    code.whole()
    second = () if patches.pixels == 2 else ("",)
    lasting = (*code.inputs, *second, _TO, *((_STEP,) if patches.given else ()))
    fixed = {name: r for name, r in zip(lasting, page.registers, strict=False) if name}
    free = [r for r in page.registers[len(lasting) :] if r not in page.kept]
    kept = max(code.most - len(free), 0)
    # Of those that must be given back as few as possible; a store wants them ascending.
    words = sorted((*page.kept[:kept], *free[: code.most]), key=page.number)
    fixed |= {f"w{i}": r for i, r in enumerate(words)}
    placed = placed_in_order(code.found, code.loops, fixed, page, patches.name)
    used = {registers[name] for o, registers in placed for name in (*o.reads, *o.writes)}
    saved = [r for r in page.kept if r in used] or [page.kept[0]]
    pushed, popped = (f"{{{', '.join((*saved, last))}}}" for last in ("lr", "pc"))
    count = len(saved) + 1
    begin: Placed = [(bare("push.w", pushed, count, "what the caller wants back"), {})]
    end: Placed = [(bare("pop.w", popped, count, "back"), {})]
    loops = tuple(loop.moved(1) for loop in code.loops)
    return Nest(patches, page, begin + placed + end, loops)


@lru_cache(256)
def files(patches: Patches, page: CorePage = ARMV7E_M) -> dict[str, str]:
    """{name: text} of the header and the source."""
    reference = (
        f"const tinyet_patches_shape_dsp shape = {patches.literal};",
        "tinyet_patches_dsp(first, second, to, row_step, shape);",
    )
    parameters = ("const int8_t *first", "const int8_t *second", "uint32_t *to", "int32_t row_step")
    return printer.printed(function(patches, page), _summary(patches), parameters, reference, HEADER)


def _summary(p: Patches) -> str:
    pixels = "one pixel" if p.pixels == 1 else "two pixels"
    taps = f" of {p.taps} taps, {p.tap_step} bytes apart," if p.taps > 1 else ""
    apart = "as far apart as the call says" if p.given else f"{p.row_step} bytes apart"
    rows = f"{p.rows} rows, {apart}," if p.rows > 1 else "a row"
    return (
        f"What {pixels} see, as words of int16: {rows}{taps}\n"
        f" * of {p.values} values each. Printed by tinyet/tiles."
    )


@dataclass
class _Batch:
    """Words that one store takes: loads, then what makes words of them."""

    loads: list[Operation]
    made: list[Operation]
    count: int = 0


class _Code:
    """inputs: pointers to the pixels' windows. most: words that a store takes, at most. waits: whether the last value
    of an odd number is in a register, for the next one's."""

    def __init__(self, patches: Patches) -> None:
        self.p = patches
        self.found: list[Operation] = []
        self.loops: list[Loop] = []
        self.inputs = tuple(f"input{m}" for m in range(patches.pixels))
        self.most = 0
        self.waits = False
        self.batch = _Batch([], [])

    def put(self, *operations: Operation) -> None:
        self.found += operations

    def back(self, label: str, first: int, end: str) -> None:
        """The branch to the next turn."""
        self.put(compare(self.inputs[0], end), branch_if_unequal(label))
        self.loops.append(Loop(first, len(self.found) - 1, label))

    def end(self, name: str, length: int, step: str) -> int:
        """The value at which a loop ends that begins here; the place of its first instruction."""
        self.put(*constant(name, length, step), compute("add.w", name, name, self.inputs[0]))
        return len(self.found)

    def forward(self, by: int) -> None:
        for pointer in self.inputs:
            self.put(*moved(pointer, by))

    # ---- the window ----

    def whole(self) -> None:
        p = self.p
        if p.flat:
            for row in range(p.rows):
                if p.given and row:
                    self.settle()
                    self.next_row(0)
                for tap in range(p.taps):
                    self.tap(row * p.row_step + tap * p.tap_step, f"row {row}" if tap == 0 else "")
        elif p.values % 2:
            for row in range(p.rows):
                for tap in range(p.taps):
                    consumed = self.looped_tap()
                    if tap < p.taps - 1:
                        self.forward(p.tap_step - consumed)
                    elif row < p.rows - 1:
                        self.next_row(consumed + tap * p.tap_step)
        else:
            self.looped_rows()
        if self.waits:
            self.room(p.pixels)
            for m in range(p.pixels):
                self.batch.made.append(compute("mov.w", self.word(m), f"odd{m}"))
            self.batch.count += p.pixels
        for _ in range(p.filled):
            self.room(p.pixels)
            for m in range(p.pixels):
                self.batch.made += constant(self.word(m), 0)
            self.batch.count += p.pixels
        self.flush()

    def looped_rows(self) -> None:
        p = self.p
        rows = self.rows_end() if p.rows > 1 else 0
        taps = self.end("tap_end", p.taps * p.tap_step, "where the taps end") if p.taps > 1 else 0
        consumed = self.looped_tap()
        if p.taps > 1:
            self.forward(p.tap_step - consumed)
            self.back(TAPS, taps, "tap_end")
            consumed = p.taps * p.tap_step
        if p.rows > 1:
            self.next_row(consumed)
            self.back(ROWS, rows, "row_end")

    def next_row(self, consumed: int) -> None:
        """The pointers from so many bytes behind a row's begin to the next."""
        if not self.p.given:
            self.forward(self.p.row_step - consumed)
            return
        self.forward(-consumed)
        for pointer in self.inputs:
            self.put(compute("add.w", pointer, pointer, _STEP))

    def rows_end(self) -> int:
        p = self.p
        if not p.given:
            return self.end("row_end", p.rows * p.row_step, "where the rows end")
        self.put(compute("mov.w", "row_end", self.inputs[0], step="where the rows end"))
        for _ in range(p.rows):
            self.put(compute("add.w", "row_end", "row_end", _STEP))
        return len(self.found)

    def looped_tap(self) -> int:
        """From where the pointers are; by how much they are moved."""
        p = self.p
        if p.turns == 1:
            self.tap(0, "a tap")
            self.flush()
            return 0
        length = 4 * p.turn
        first = self.end("four_end", p.turns * length, "where the loop ends")
        self.fours(range(0, length, 4), f"{length} values")
        self.flush()
        self.forward(length)
        self.back(FOURS, first, "four_end")
        self.fours(range(0, 4 * (p.fours - p.turns * p.turn), 4), "the others")
        self.rest(4 * (p.fours - p.turns * p.turn))
        self.flush()
        return p.turns * length

    def tap(self, at: int, step: str) -> None:
        self.fours(range(at, at + 4 * self.p.fours, 4), step)
        self.rest(at + 4 * self.p.fours)

    def fours(self, places: range, step: str) -> None:
        p = self.p
        for at in places:
            self.room(2 * p.pixels)
            for m, pointer in enumerate(self.inputs):
                even, odd = self.word(m), self.word(p.pixels + m)
                self.batch.loads.append(load(odd, pointer, at, "" if m else step))
                self.batch.made.append(compute("sxtb16", even, odd))
                self.batch.made.append(compute("sxtb16", odd, odd, behind="ror #8"))
            self.batch.count += 2 * p.pixels
            step = ""

    def rest(self, at: int) -> None:
        """What is behind the fours."""
        p = self.p
        if p.values & 2:
            self.room(2 * p.pixels)
            for m, pointer in enumerate(self.inputs):
                low, high = self.word(m), self.word(p.pixels + m)
                self.batch.loads += [
                    load_signed_byte(name, pointer, at + k) for k, name in enumerate((low, high))
                ]
                self.batch.made.append(compute("pkhbt", low, low, high, behind="lsl #16"))
            self.batch.count += p.pixels
            self.settle()  # the upper values are in registers of the next words
            at += 2
        if p.values & 1:
            if not self.waits:
                self.settle()  # those that waited before are in the same registers
                self.batch.loads += [
                    load_signed_byte(f"odd{m}", pointer, at) for m, pointer in enumerate(self.inputs)
                ]
            else:
                self.room(p.pixels)
                for m, pointer in enumerate(self.inputs):
                    name = self.word(m)
                    self.batch.loads.append(load_signed_byte(name, pointer, at))
                    self.batch.made.append(compute("pkhbt", name, f"odd{m}", name, behind="lsl #16"))
                self.batch.count += p.pixels
            self.waits = not self.waits

    # ---- words ----

    def word(self, index: int) -> str:
        at = self.batch.count + index
        self.most = max(self.most, at + 1)
        return f"w{at}"

    def room(self, words: int) -> None:
        if self.batch.count + words > self.p.stored:
            self.flush()

    def settle(self) -> None:
        """All that is begun, so that no later load comes before it."""
        self.put(*self.batch.loads, *self.batch.made)
        self.batch = _Batch([], [], self.batch.count)

    def flush(self) -> None:
        """The words that are begun, to where they go."""
        self.settle()
        names = tuple(f"w{i}" for i in range(self.batch.count))
        self.batch.count = 0
        if len(names) == 1:
            self.put(store(names[0], _TO, 0), *moved(_TO, 4))
        elif names:
            self.put(store_several(names, _TO))
