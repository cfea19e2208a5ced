# SPDX-License-Identifier: Apache-2.0
"""The function of output rows of 3x3 depthwise convolutions: loads, products, rounding and stores, loop in loop.

What a channel needs throughout, and there is no register for, is on the stack: all six words of weights of a stride
of 1 beside four sums leave two for inputs. Loads of words that are no neighbours stand side by side, and take a cycle
less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Protocol

from tinyet.tiles import int16, printer
from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.depthwise import HEADER, KERNEL, LARGEST_OFFSET, Rows
from tinyet.tiles.nest import Loop, Nest
from tinyet.tiles.operation import (
    SP,
    Operation,
    bare,
    branch_if_unequal,
    clamped,
    compare,
    compute,
    constant,
    load,
    load_neighbours,
    load_neighbours_and_move,
    load_several,
    load_two,
    moved,
    saturate,
    store,
    store_byte,
    store_byte_and_move,
    store_half,
    store_half_and_move,
    store_two,
)
from tinyet.tiles.pieces import placed_in_order
from tinyet.tiles.registers import Placed

CHANNELS, ROWS, TURNS, LAST_TURNS = "1", "2", "3", "4"
"""Labels: of the loops over channels, over output rows, over the outputs of such and of the row that is alone."""
_INPUTS, _OUTPUT = "inputs", "output"
# On the stack, in bytes from sp. From _STREAM on lies what was given.
_MULTIPLIER, _OFFSET, _SHIFT, _BIAS, _ROW_END, _PLANES_END, _STEP = range(0, 28, 4)
_STREAM, _PLANES, _OUTPUTS, _ROWS_END = range(28, 44, 4)
_FRAME = _STREAM
_PLACES = {"multiplier": _MULTIPLIER, "offset": _OFFSET, "shift": _SHIFT, "bias": _BIAS}
_LARGEST_POST = 255
"""By which a store moves its base."""
_PAIRS_STEP = 8
"""Bytes from a channel of a pair to that of the next pair; two channels further on are in the other half of a word."""


@cache
def function(rows: Rows, page: CorePage = ARMV7E_M) -> Nest[Rows]:
    """Raises InternalError for rows that do not fit the core."""
    code = _Code(rows, page)
    code.whole()
    placed: Placed = []
    for first, end, resident in code.stretches():
        names = (_INPUTS, _OUTPUT, *_weights(rows), *resident)
        fixed = {SP: SP, **dict(zip(names, page.registers[1:], strict=False))}
        loops = [loop.moved(-first) for loop in code.loops]
        placed += placed_in_order(code.found[first:end], loops, fixed, page, rows.name)
    return Nest(rows, page, placed, tuple(code.loops))


@lru_cache(256)
def files(rows: Rows, page: CorePage = ARMV7E_M) -> dict[str, str]:
    """{name: text} of the header and the source."""
    types = "_s16" if rows.to_int16 else ""
    reference = (
        f"const tinyet_depthwise_rows_shape_dsp shape = {rows.literal};",
        f"tinyet_depthwise_rows{types}_dsp(weights, planes, (int{rows.bits}_t *)output, end, shape);",
    )
    parameters = ("const int32_t *weights", "const uint32_t *planes", "void *output", "const uint32_t *end")
    return printer.printed(function(rows, page), rows.summary, parameters, reference, HEADER)


def turns_of(rows: Rows, count: int) -> Mapping[str, int]:
    """Of each loop, of a call for so many output rows."""
    turns = rows.twos // max(rows.turn, 1)
    return {CHANNELS: rows.channels, ROWS: count // rows.together, TURNS: turns, LAST_TURNS: turns}


def _weights(r: Rows) -> tuple[str, ...]:
    """The words of them, in registers for a whole channel, in ascending order: as they lie in a wide stream."""
    if r.stride == 1:
        return tuple(f"w{k}{part}" for k in range(KERNEL) for part in "ab")
    return ("w0a", "w1a", "w2a", "thirds", "third")


def _resident(r: Rows, together: int) -> tuple[str, ...]:
    """What else there are registers for, beside sums and two words of inputs, with so many output rows at a time."""
    if r.stride == 2:
        return ("bias", "multiplier", "offset")
    return ("bias", "multiplier") if together == 1 else ()


@dataclass(frozen=True)
class _Sum:
    """An output of a row: 0 or 1; of the row at `row`."""

    name: str
    column: int
    row: int = 0


class _Product(Protocol):
    def __call__(self, mnemonic: str, s: _Sum, x: str, w: str) -> None: ...


class _Code:
    """Instructions one after another, with the loops that they are in."""

    def __init__(self, rows: Rows, page: CorePage) -> None:
        self.r = rows
        self.page = page
        self.row = 4 * rows.row_words
        self.plane = self.row * rows.plane_rows
        self.kernel_row = self.row * rows.dilation_v
        self.resident = _resident(rows, rows.together)
        self.alone = 0, 0
        self.found: list[Operation] = []
        self.loops: list[Loop] = []

    def put(self, *operations: Operation) -> None:
        self.found += operations

    def loop(self, label: str, first: int) -> None:
        """The branch back to the instruction at a place."""
        self.put(branch_if_unequal(label))
        self.loops.append(Loop(first, len(self.found) - 1, label))

    def stretches(self) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """(first, end, what is in registers beside weights): the row that is alone has registers of its own."""
        first, end = self.alone
        yield 0, first or len(self.found), _resident(self.r, self.r.together)
        if first:
            yield first, end, _resident(self.r, 1)
            yield end, len(self.found), ()

    # ---- loops ----

    def whole(self) -> None:
        r, page = self.r, self.page
        pushed = (*page.registers[: page.given], *page.kept, "lr")
        self.put(
            bare(
                "push.w",
                f"{{{', '.join(pushed)}}}",
                len(pushed),
                "what is given, and what the caller wants back",
            ),
            Operation("subw", f"sp, sp, #{_FRAME}", (SP,), (SP,)),
            *constant("last", self.plane * r.channels, "where the planes end"),
            compute("add.w", "last", "last", _INPUTS),
            store("last", SP, _PLANES_END),
        )
        if self.crossing:
            self.put(
                *constant("step", _PAIRS_STEP, "to the next channel's outputs"), store("step", SP, _STEP)
            )
        first = len(self.found)
        (self.wide_channel if r.wide else self.narrow_channel)()
        self.rows()
        self.next_channel(first)
        popped = (*page.kept, "pc")
        self.put(
            Operation("addw", f"sp, sp, #{_FRAME + 4 * page.given}", (SP,), (SP,), step="back"),
            bare("pop.w", f"{{{', '.join(popped)}}}", len(popped)),
        )

    @property
    def crossing(self) -> bool:
        """Whether the outputs of channels are not evenly apart."""
        return self.r.pairs and self.r.channels > 2

    @property
    def several(self) -> bool:
        """Whether there is a loop over rows."""
        return self.r.tile > self.r.together

    def rows(self) -> None:
        r = self.r
        first = len(self.found)
        self.outputs(r.together, TURNS)
        if self.several or r.alone:
            to_next = r.together * r.stride_v * self.row - 4 * r.stride * r.twos
            self.put(*moved(_INPUTS, to_next, "the next row" if r.together == 1 else "the next two rows"))
            self.put(*moved(_OUTPUT, r.together * r.below - r.twos * r.two))
        if self.several:
            self.put(load("last", SP, _ROWS_END, "again?"), compare(_INPUTS, "last"))
            self.loop(ROWS, first)
        if r.alone:
            first, before = len(self.found), self.resident
            self.resident = _resident(r, 1)
            for at, name in enumerate(self.resident):
                self.put(load(name, SP, _PLACES[name], "" if at else "the last row"))
            self.outputs(1, LAST_TURNS)
            self.alone, self.resident = (first, len(self.found)), before

    def outputs(self, together: int, label: str) -> None:
        """Of one or two rows."""
        r = self.r
        looped = r.twos > r.turn
        if looped:
            self.put(
                compute(
                    "addw", "last", _INPUTS, behind=f"#{4 * r.stride * r.twos}", step="where the row ends"
                ),
                store("last", SP, _ROW_END),
            )
        first = len(self.found)
        if r.twos:
            self.turn(together)
        if looped:
            self.put(load("last", SP, _ROW_END, "again?"), compare(_INPUTS, "last"))
            self.loop(label, first)
        if r.outputs % 2:
            sums = [_Sum(f"sum{row}0", 0, row) for row in range(together)]
            self.sums(sums, "the last output", move=False)
            self.rounding(sums)
            for s in sums:
                self.stored(s.name, s.row * r.below)

    def turn(self, together: int) -> None:
        r = self.r
        farthest = (r.turn - 1) * r.two + r.step + (together - 1) * r.below
        each = (
            r.two <= _LARGEST_POST or farthest > LARGEST_OFFSET
        )  # whether each two outputs move the pointer
        for at in range(r.turn):
            sums = [_Sum(f"sum{row}{column}", column, row) for row in range(together) for column in range(2)]
            self.sums(sums, f"{2 * together} outputs", move=True)
            self.rounding(sums)
            begin = 0 if each else at * r.two
            for s in sums[1:]:
                self.stored(s.name, begin + s.column * r.step + s.row * r.below)
            if each and r.two <= _LARGEST_POST:
                store_and_move = store_half_and_move if self.halves else store_byte_and_move
                self.put(store_and_move(sums[0].name, _OUTPUT, r.two))
            else:
                self.stored(sums[0].name, begin)
                if each:
                    self.put(*moved(_OUTPUT, r.two))
        if not each:
            self.put(*moved(_OUTPUT, r.turn * r.two, "behind them"))

    @property
    def halves(self) -> bool:
        """Whether outputs take half a word each."""
        return self.r.pairs or self.r.to_int16

    def stored(self, value: str, offset: int) -> None:
        self.put((store_half if self.halves else store_byte)(value, _OUTPUT, offset))

    def next_channel(self, first: int) -> None:
        r = self.r
        self.put(load_two(_INPUTS, _OUTPUT, SP, _PLANES, "the next channel"), *moved(_INPUTS, self.plane))
        if self.crossing:
            self.put(
                load("step", SP, _STEP),
                compute("add.w", _OUTPUT, _OUTPUT, "step"),
                compute("rsb.w", "step", "step", behind="#2"),
                store("step", SP, _STEP),
            )
        else:
            self.put(*moved(_OUTPUT, _PAIRS_STEP if r.pairs else r.bits // 8))
        self.put(store_two(_INPUTS, _OUTPUT, SP, _PLANES))
        if self.several:
            self.put(load("last", SP, _ROWS_END), *moved("last", self.plane), store("last", SP, _ROWS_END))
        self.put(load("last", SP, _PLANES_END, "again?"), compare(_INPUTS, "last"))
        self.loop(CHANNELS, first)

    # ---- a channel's weights ----

    def wide_channel(self) -> None:
        r = self.r
        ends = ("bias", "multiplier", "offset", *(() if r.exponent is not None else ("shift",)))
        self.put(
            load("stream", SP, _STREAM, "a channel's weights"),
            load_several((*_weights(r), *ends), "stream"),
            store("stream", SP, _STREAM),
        )
        self.kept(ends)

    def kept(self, names: Sequence[str]) -> None:
        """On the stack, what has no register."""
        missing = [name for name in names if name not in self.resident]
        if {"multiplier", "offset"} <= set(missing):
            self.put(store_two("multiplier", "offset", SP, _MULTIPLIER))
            missing = [name for name in missing if name not in ("multiplier", "offset")]
        self.put(*(store(name, SP, _PLACES[name]) for name in missing))

    def narrow_channel(self) -> None:
        self.put(
            load("stream", SP, _STREAM, "a channel's weights"),
            load_several(("w0a", "w1a", "w2a", "bias", "multiplier"), "stream"),
            store("stream", SP, _STREAM),
        )
        if "bias" not in self.resident:
            self.put(store("bias", SP, _BIAS))
        self.offset()
        self.widened()

    def offset(self) -> None:
        """What rounds beside the multiplier, kept with that; and what shifts weights."""
        r = self.r
        if r.to_int16:
            if r.exponent:
                self.put(*constant("offset", int16.offset(r.exponent), "the offset"))
            self.kept(self.rounds)
            return
        self.put(compute("sbfx", "shift", "w0a", behind="#8, #8", step="its shift, and the offset"))
        if r.exponent is not None:
            base = (1 << (r.exponent - 1)) + r.zero_point * (1 << r.exponent)
            self.put(
                *constant("mask", 1),
                compute("lsl.w", "mask", "mask", "shift"),
                *constant("offset", base),
                compute("add.w", "offset", "offset", "mask", behind="lsr #2"),
                compute("subw", "mask", "mask", behind="#1"),
                compute("lsl.w", "mask", "mask", behind="#16"),
            )
        else:
            self.put(
                *constant("offset", 2 * r.zero_point + 1),
                compute("subw", "less", "shift", behind="#1"),
                compute("lsl.w", "offset", "offset", "less"),
                store("shift", SP, _SHIFT),
            )
        self.kept(self.rounds)

    @property
    def rounds(self) -> tuple[str, ...]:
        """What the rounding reads first."""
        return ("multiplier",) if self.r.to_int16 and not self.r.exponent else ("multiplier", "offset")

    def widened(self) -> None:
        """Weights of int16, shifted, from those of int8."""
        r = self.r
        for k in range(KERNEL):
            a, b = f"w{k}a", f"w{k}b" if r.stride == 1 else ("thirds", "high", "third")[k]
            step = f"weights of kernel row {k}"
            self.put(
                compute("sxtb16", b, a, behind="ror #8", step=step),  # {x, w2}
                compute("sxtb16", a, a),  # {w0, w1}
            )
            if r.stride == 1:
                self.put(compute("pkhtb", b, b, a, behind="asr #16"))  # {w1, w2}
            elif k == 1:
                self.put(compute("pkhtb", "thirds", "high", "thirds", behind="asr #16"))
        for name in () if r.to_int16 else _weights(r):
            if r.exponent is not None:
                self.put(compute("lsl.w", name, name, "shift"), compute("bic.w", name, name, "mask"))
            else:
                self.put(
                    compute("lsl.w", name, name, behind="#1"), compute("bic.w", name, name, behind="#0x10000")
                )

    # ---- sums ----

    def sums(self, sums: Sequence[_Sum], step: str, *, move: bool) -> None:
        """Of all kernel rows. move: the inputs' pointer, behind the first row's that are not needed again."""
        begun: set[str] = set()
        together = 1 + max(s.row for s in sums)
        by = 4 * self.r.stride if move else 0
        bias = "bias" if "bias" in self.resident else sums[-1].name

        def product(mnemonic: str, s: _Sum, x: str, w: str) -> None:
            before = s.name if s.name in begun else bias
            begun.add(s.name)
            self.put(compute(mnemonic, s.name, x, w, before))

        if self.r.stride == 2:
            self.strided(sums, step, by, product)
            return
        # The bias comes beside a row that does not move the pointer; it is in the place of the last sum.
        order = (1, 0, *range(2, together + 2)) if bias != "bias" else range(together + 2)
        behind = 0
        for at, row in enumerate(order):
            offset = row * self.kernel_row - behind
            if at == 0 and bias != "bias":
                self.put(
                    load(bias, SP, _BIAS, step), load("x0", _INPUTS, offset), load("x1", _INPUTS, offset + 4)
                )
            elif row == 0 and move:
                self.put(*load_neighbours_and_move("x0", "x1", _INPUTS, by, self.page, "" if at else step))
                behind = by
            else:
                self.put(*load_neighbours("x0", "x1", _INPUTS, offset, self.page, "" if at else step))
            within = [s for s in sums if 0 <= row - s.row < KERNEL]
            for s in within:
                product("smlatb" if s.column else "smlad", s, "x0", f"w{row - s.row}a")
            for s in within:
                product("smlad" if s.column else "smlabt", s, "x1", f"w{row - s.row}b")

    def strided(self, sums: Sequence[_Sum], step: str, by: int, product: _Product) -> None:
        """Of a stride of 2: three words a kernel row, of which two are at hand at a time."""
        words = [(k, word) for k in range(KERNEL) for word in range(1 + len(sums))]
        at = 0
        while at < len(words):
            two = words[at : at + 2]
            offsets = [k * self.kernel_row + 4 * word - (by if at else 0) for k, word in two]
            names = [f"x{k}{word}" for k, word in two]
            if at == 0 and by:
                self.put(*load_neighbours_and_move(names[0], names[1], _INPUTS, by, self.page, step))
            elif len(two) == 2 and offsets[1] == offsets[0] + 4:
                begun = "" if at else step
                self.put(*load_neighbours(names[0], names[1], _INPUTS, offsets[0], self.page, begun))
            else:
                self.put(*(load(x, _INPUTS, offset) for x, offset in zip(names, offsets, strict=True)))
            for (k, word), x in zip(two, names, strict=True):
                third = "thirds" if k < 2 else "third"
                if word:
                    product("smlabt" if k else "smlabb", sums[word - 1], x, third)
                if word < len(sums):
                    product("smlad", sums[word], x, f"w{k}a")
            at += 2

    # ---- rounding ----

    def rounding(self, sums: Sequence[_Sum]) -> None:
        """The outputs of the sums, in their place."""
        r = self.r
        names = [s.name for s in sums]
        if r.to_int16 and r.exponent is not None:
            self.factors("rounding", *self.rounds)
            self.put(*int16.rounded(names, r.exponent, r.low, r.high))
            return
        if r.exponent is not None:
            self.factors("rounding", "multiplier", "offset")
            self.put(*(compute("smmla", s, s, "multiplier", "offset") for s in names))
            self.put(*(saturate(s, r.exponent) for s in names))
        elif len(sums) == 4:
            # Two registers are free.
            self.factors("rounding", "multiplier")
            for s in names:
                self.put(
                    compute("asr.w", "sign", s, behind="#31"), compute("smmlar", s, s, "multiplier", "sign")
                )
            self.put(*load_neighbours("offset", "shift", SP, _OFFSET, self.page))
            self.put(*(compute("add.w", s, s, "offset") for s in names))
            self.shifted(names)
        else:
            self.factors("rounding", "multiplier", "offset")
            for s in names:
                self.put(
                    compute("add.w", "corrected", "offset", s, behind="asr #31"),
                    compute("smmlar", s, s, "multiplier", "corrected"),
                )
            self.put(load("shift", SP, _SHIFT))
            self.shifted(names)
        for s in names:
            self.put(*clamped(s, r.low, r.high))

    def factors(self, step: str, *names: str) -> None:
        missing = [name for name in names if name not in self.resident]
        if missing == ["multiplier", "offset"]:
            self.put(*load_neighbours("multiplier", "offset", SP, _MULTIPLIER, self.page, step))
        else:
            self.put(*(load(name, SP, _PLACES[name], step) for name in missing))

    def shifted(self, names: Sequence[str]) -> None:
        self.put(*(compute("asr.w", s, s, "shift") for s in names))
        self.put(*(saturate(s) for s in names))
