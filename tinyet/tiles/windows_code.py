# SPDX-License-Identifier: Apache-2.0
"""The function of output rows of depthwise convolutions of any size: loads, products, rounding and stores.

Two neighbouring taps are one multiplication of a word of inputs. Where an output begins in the upper half of a word,
its first tap is by itself, and the pairs behind it are others: {w1, w2} instead of {w0, w1} and {w2, w3}. So every
word of inputs is loaded once for all outputs of a block, and none from an odd address. A channel's words of weights
are made of bytes once, and lie on the stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tinyet.errors import InternalError
from tinyet.tiles import int16, printer
from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.form import Form
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
from tinyet.tiles.schedule import ordered
from tinyet.tiles.windows import HEADER, Windows
from tinyet.timing.cores import CORES
from tinyet.timing.work import Work

CHANNELS, ROWS = "1", "2"
"""Labels: of the loops over channels, and over output rows; others are numbered as they come."""
_FIRST_LABEL = 3
_INPUTS, _OUTPUT, _TAPS, _STREAM, _TO = "inputs", "output", "taps", "stream", "to"
# On the stack, in bytes from sp; then the words of weights, then what was given.
_MULTIPLIER, _OFFSET, _SHIFT, _ROUNDED, _BIAS, _BLOCKS_END, _RUNS_END, _STREAM_END, _WEIGHTS = range(0, 36, 4)
_LARGEST_OFFSET = 4095
_LARGEST_POST = 255
"""By which a store moves its base."""


@dataclass(frozen=True)
class Made:
    """turns: by label, of all loops but that over output rows. frame_bytes: of stack, beside what is pushed."""

    nest: Nest[Windows]
    turns: Mapping[str, int]
    frame_bytes: int

    def work(self, core: str, count: int) -> Work:
        """Of a call for so many output rows."""
        return self.nest.work(CORES[core], {**self.turns, ROWS: count})


@lru_cache(1024)
def made(windows: Windows, page: CorePage = ARMV7E_M) -> Made:
    """Raises InternalError for a block that does not fit the core."""
    return function_of(code_of(windows, page))


def code_of(windows: Windows, page: CorePage = ARMV7E_M) -> Code:
    """Raises InternalError for too many taps."""
    code = Code(windows, page)
    code.whole()
    return code


def function_of(code: Code) -> Made:
    """With registers. Raises InternalError where there are not enough."""
    placed: Placed = []
    for first, end, resident in code.stretches():
        fixed = {SP: SP, **dict(zip((_INPUTS, _OUTPUT, *resident), code.page.registers, strict=False))}
        loops = [loop.moved(-first) for loop in code.loops]
        placed += placed_in_order(code.found[first:end], loops, fixed, code.page, code.w.name)
    return Made(Nest(code.w, code.page, placed, tuple(code.loops)), code.turns, code.frame)


@lru_cache(256)
def files(windows: Windows, page: CorePage = ARMV7E_M) -> dict[str, str]:
    """{name: text} of the header and the source."""
    types = "_s16" if windows.to_int16 else ""
    reference = (
        f"const tinyet_depthwise_windows_shape_dsp shape = {windows.literal};",
        f"tinyet_depthwise_windows{types}_dsp(weights, planes, (int{windows.bits}_t *)output, end, shape);",
    )
    parameters = ("const int32_t *weights", "const uint32_t *planes", "void *output", "const uint32_t *end")
    return printer.printed(made(windows, page).nest, windows.summary, parameters, reference, HEADER)


@dataclass(frozen=True)
class _Product:
    """Of output `i` by word `word` of the inputs: `mnemonic` with the word of weights that begins with tap `pair`."""

    i: int
    word: int
    mnemonic: str
    pair: int


def _products(w: Windows, taps: int, count: int, odd: int) -> list[_Product]:
    """Of a kernel row, of `count` outputs of which the first begins in the upper half of a word, or not."""
    places = [
        (i, word, 2 * word - odd - i * w.between)
        for i in range(count)
        for word in range((odd + i * w.between) // 2, (odd + i * w.between + taps - 1) // 2 + 1)
    ]
    whole = {first for _, _, first in places if 0 <= first < taps - 1}
    found = []
    for i, word, first in places:
        if first in whole:
            found.append(_Product(i, word, "smlad", first))
        elif first < 0:
            found.append(_Product(i, word, "smlatb", 0))
        elif first - 1 in whole:
            found.append(_Product(i, word, "smlabt", first - 1))
        else:
            found.append(_Product(i, word, "smlabb", first))
    if w.by_taps:
        return sorted(found, key=lambda p: (2 * p.word - odd - p.i * w.between, p.i))
    return sorted(found, key=lambda p: (p.word, p.i))


class Code:
    """Instructions one after another, with the loops that they are in."""

    def __init__(self, windows: Windows, page: CorePage) -> None:
        self.w = windows
        self.page = page
        self.found: list[Operation] = []
        self.loops: list[Loop] = []
        self.turns: dict[str, int] = {CHANNELS: windows.channels}
        self.weights_made = 0, 0
        # In the order in which they lie on the stack, of a kernel row, and of the rest.
        self.pairs, self.rest_pairs = self.needed(windows.taps), self.needed(windows.rest)
        words = windows.kernel_rows * len(self.pairs) + len(self.rest_pairs)
        self.frame = _WEIGHTS + 4 * words
        self.given, self.planes, self.outputs, self.rows_end = (self.frame + 4 * i for i in range(4))
        if self.rows_end > _LARGEST_OFFSET:
            raise InternalError(f"{windows}: too many taps")

    @property
    def bytes(self) -> int:
        """Of machine code."""
        return self.page.instruction_bytes * len(self.found)

    def needed(self, taps: int) -> list[int]:
        """The taps that words of weights begin with, for all blocks."""
        if not taps:
            return []
        w = self.w
        blocks = {
            (count, r.start % 2) for r in w.runs for count in (min(w.block, r.count), r.count % w.block)
        }
        return sorted({p.pair for count, odd in blocks for p in _products(w, taps, count, odd)})

    def put(self, *operations: Operation) -> None:
        self.found += operations

    def loop(self, label: str, first: int, turns: int | None = None) -> None:
        """The branch back to the instruction at a place."""
        self.put(branch_if_unequal(label))
        self.loops.append(Loop(first, len(self.found) - 1, label))
        if turns is not None:
            self.turns[label] = turns

    def label(self) -> str:
        return str(_FIRST_LABEL + len(self.loops))

    def stretches(self) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """(first, end, what is in registers beside the pointers to inputs and outputs)."""
        first, end = self.weights_made
        yield 0, first, ()
        yield first, end, (_STREAM, _TO, "shift", "mask")
        yield end, len(self.found), ()

    def far(self, to: str, base: str, by: int, step: str = "") -> list[Operation]:
        """to = base + by, a positive number."""
        if by <= _LARGEST_OFFSET:
            return [compute("addw", to, base, behind=f"#{by}", step=step)]
        return [*constant(to, by, step), compute("add.w", to, to, base)]

    def from_stack(self, to: str, at: int, step: str = "") -> Operation:
        """The address of a place on the stack."""
        return Operation("addw", f"{{{to}}}, sp, #{at}", (to,), (SP,), step=step)

    # ---- loops ----

    def whole(self) -> None:
        w, page = self.w, self.page
        pushed = (*page.registers[: page.given], *page.kept, "lr")
        self.put(
            bare(
                "push.w",
                f"{{{', '.join(pushed)}}}",
                len(pushed),
                "what is given, and what the caller wants back",
            ),
            Operation("subw", f"sp, sp, #{self.frame}", (SP,), (SP,)),
            *constant("last", 4 * w.channel_words * w.channels, "where the weights end"),
            load(_STREAM, SP, self.given),
            compute("add.w", "last", "last", _STREAM),
            store("last", SP, _STREAM_END),
        )
        first = len(self.found)
        self.channel()
        self.put(load(_INPUTS, SP, self.planes, "its inputs and outputs"), load(_OUTPUT, SP, self.outputs))
        rows = len(self.found)
        self.row()
        self.put(load("last", SP, self.rows_end, "again?"), compare(_INPUTS, "last"))
        self.loop(ROWS, rows)
        if w.channels > 1:
            self.next_channel(first)
        popped = (*page.kept, "pc")
        self.put(
            Operation("addw", f"sp, sp, #{self.frame + 4 * page.given}", (SP,), (SP,), step="back"),
            bare("pop.w", f"{{{', '.join(popped)}}}", len(popped)),
        )

    def next_channel(self, first: int) -> None:
        w = self.w
        self.put(load("last", SP, self.outputs, "the next channel"), *moved("last", w.bits // 8))
        self.put(store("last", SP, self.outputs))
        if w.plane:
            for place in (self.planes, self.rows_end):
                self.put(load("last", SP, place), *moved("last", 4 * w.plane), store("last", SP, place))
        self.put(
            load(_STREAM, SP, self.given, "again?"), load("last", SP, _STREAM_END), compare(_STREAM, "last")
        )
        self.loop(CHANNELS, first)

    def row(self) -> None:
        """Of outputs; leaves both pointers at what the next row begins with."""
        w = self.w
        at = out = 0
        for runs in w.runs:
            begin = runs.start // 2 * 4
            self.put(*moved(_INPUTS, begin - at), *moved(_OUTPUT, runs.first * w.step - out))
            passed, written = self.passed(runs.count)
            further = 2 * runs.further
            if runs.times > 1:
                self.put(*self.far("last", _INPUTS, further * runs.times, "where the runs end"))
                self.put(store("last", SP, _RUNS_END))
                first = len(self.found)
                self.run(runs.count, runs.start % 2)
                self.put(*moved(_INPUTS, further - passed, "the next run"), *moved(_OUTPUT, w.step - written))
                self.put(load("last", SP, _RUNS_END, "again?"), compare(_INPUTS, "last"))
                self.loop(self.label(), first, runs.times)
                at, out = begin + further * runs.times, (runs.first + runs.times) * w.step
            else:
                self.run(runs.count, runs.start % 2)
                at, out = begin + passed, runs.first * w.step + written
        self.put(*moved(_INPUTS, 4 * w.next_row - at, "the next row"), *moved(_OUTPUT, w.below - out))

    def passed(self, count: int) -> tuple[int, int]:
        """Bytes that a run moves the pointers to inputs and outputs by."""
        w = self.w
        blocks = count // w.block
        return (
            blocks * w.block * w.between * 2 if count > w.block else 0,
            blocks * w.block * w.apart * w.step if count > w.block else 0,
        )

    def run(self, count: int, odd: int) -> None:
        """Outputs of one part of a row."""
        w = self.w
        blocks, rest = divmod(count, w.block)
        if blocks > 1:
            length = blocks * w.block * w.between * 2
            self.put(
                *self.far("last", _INPUTS, length, "where the blocks end"), store("last", SP, _BLOCKS_END)
            )
        if blocks:
            first = len(self.found)
            self.block(w.block, odd, move=count > w.block)
        if blocks > 1:
            self.put(load("last", SP, _BLOCKS_END, "again?"), compare(_INPUTS, "last"))
            self.loop(self.label(), first, blocks)
        if rest:
            self.block(rest, odd, move=False)

    # ---- a block of outputs ----

    def block(self, count: int, odd: int, *, move: bool) -> None:
        w = self.w
        sums = [f"sum{i}" for i in range(count)]
        by = count * w.between * 2 if move else 0
        step = "an output" if count == 1 else f"{count} outputs"
        if w.turn == w.kernel_rows:
            self.straight(sums, odd, step)
            self.put(*moved(_INPUTS, by))
        else:
            self.looped(sums, odd, step, by)
        self.rounding(sums)
        self.stores(sums, move=move)

    def straight(self, sums: Sequence[str], odd: int, step: str) -> None:
        """Without a loop over kernel rows."""
        w = self.w
        row = len(self.pairs)
        parts = [
            (w.taps, 4 * k * w.kernel_row, self.places(self.pairs, SP, _WEIGHTS + 4 * k * row))
            for k in range(w.kernel_rows)
        ]
        if w.rest:
            at = _WEIGHTS + 4 * w.kernel_rows * row
            inputs = 4 * w.kernel_rows * w.kernel_row
            parts.append((w.rest, inputs, self.places(self.rest_pairs, SP, at)))
        self.put(*self.arranged(self.multiplied(sums, odd, parts, begin=True, step=step), len(sums)))

    def looped(self, sums: Sequence[str], odd: int, step: str, by: int) -> None:
        """With one. by: what the pointer to inputs is moved by in the end."""
        w = self.w
        row = len(self.pairs)
        self.put(load(sums[0], SP, _BIAS, step))
        self.put(*(compute("mov.w", s, sums[0]) for s in sums[1:]), self.from_stack(_TAPS, _WEIGHTS))
        first = len(self.found)
        parts = [
            (w.taps, 4 * k * w.kernel_row, self.places(self.pairs, _TAPS, 4 * k * row)) for k in range(w.turn)
        ]
        products = self.multiplied(sums, odd, parts, begin=False, step="a kernel row")
        self.put(*self.arranged(products, len(sums) + 1))
        self.put(*moved(_INPUTS, 4 * w.turn * w.kernel_row), *moved(_TAPS, 4 * w.turn * row))
        end = _WEIGHTS + 4 * w.kernel_rows * row
        self.put(self.from_stack("last", end, "again?"), compare(_TAPS, "last"))
        self.loop(self.label(), first, w.kernel_rows // w.turn)
        if w.rest:
            parts = [(w.rest, 0, self.places(self.rest_pairs, SP, end))]
            products = self.multiplied(sums, odd, parts, begin=False, step="the last taps")
            self.put(*self.arranged(products, len(sums)))
        self.put(*moved(_INPUTS, by - 4 * w.kernel_rows * w.kernel_row))

    def arranged(self, products: list[Operation], taken: int) -> list[Operation]:
        """In order, with so many registers taken beside the pointers; a core's own order begins with this one."""
        return ordered(products, len(self.page.registers) - 2 - taken, ARMV7E_M)

    @staticmethod
    def places(pairs: Sequence[int], base: str, at: int) -> Mapping[int, tuple[str, int]]:
        """Base and offset of the word of weights that begins with a tap."""
        return {pair: (base, at + 4 * n) for n, pair in enumerate(pairs)}

    def multiplied(
        self,
        sums: Sequence[str],
        odd: int,
        parts: Iterable[tuple[int, int, Mapping[int, tuple[str, int]]]],
        *,
        begin: bool,
        step: str,
    ) -> list[Operation]:
        """Loads and products of kernel rows: of each its taps, where its inputs are from the pointer, in bytes, and
        where its weights are. begin: the bias is in no sum yet."""
        found: list[Operation] = []
        products: list[Operation] = []
        rows = [(_products(self.w, taps, len(sums), odd), inputs, where) for taps, inputs, where in parts]
        order = [sums[p.i] for row, _, _ in rows for p in row]
        begun: set[str] = set()
        # The bias is loaded into the sum that begins last.
        bias = max(sums, key=order.index)
        if begin:
            found.append(load(bias, SP, _BIAS))
        loaded: set[str] = set()
        for k, (row, inputs, where) in enumerate(rows):
            for p in row:
                weights, word, s = f"w{k}_{p.pair}", f"x{k}_{p.word}", sums[p.i]
                if weights not in loaded:
                    found.append(load(weights, *where[p.pair]))
                if word not in loaded:
                    found.append(load(word, _INPUTS, inputs + 4 * p.word))
                loaded |= {weights, word}
                before = bias if begin and s not in begun else s
                begun.add(s)
                products.append(compute(p.mnemonic, s, word, weights, before))
        return [replace(found[0], step=step), *found[1:], *products]

    def rounding(self, sums: Sequence[str]) -> None:
        """The outputs of the sums, in their place."""
        w = self.w
        if w.to_int16 and not w.exponent:
            self.put(load("multiplier", SP, _MULTIPLIER, "rounding"))
        else:
            self.put(*load_neighbours("multiplier", "offset", SP, _MULTIPLIER, self.page, "rounding"))
        if w.to_int16:
            self.put(*int16.rounded(sums, w.exponent, w.low, w.high))
            return
        match w.form:
            case Form.ONE_SIDED:
                self.put(*(compute("smmla", s, s, "multiplier", "offset") for s in sums))
                self.put(*(saturate(s, w.exponent) for s in sums))
            case Form.TWO_SIDED:
                for s in sums:
                    self.put(
                        compute("add.w", "corrected", "offset", s, behind="asr #31"),
                        compute("smmlar", s, s, "multiplier", "corrected"),
                    )
                self.put(load("shift", SP, _SHIFT))
                self.put(*(compute("asr.w", s, s, "shift") for s in sums))
                self.put(*(saturate(s) for s in sums))
            case Form.PLAIN:
                self.put(*load_neighbours("shift", "rounded", SP, _SHIFT, self.page))
                for s in sums:
                    self.put(
                        compute("lsl.w", s, s, "offset"),
                        # s * multiplier / 2^31: of the multiplier, twice as large, 2^32 are left out.
                        compute("smmlar", s, s, "multiplier", s),
                        compute("and.w", "less", "rounded", s, behind="lsr #31"),
                        compute("sub.w", s, s, "less"),
                        compute("asr.w", s, s, "shift"),
                        compute("add.w", s, s, "rounded"),
                        compute("asr.w", s, s, "rounded"),
                        *moved(s, w.zero_point),
                        saturate(s),
                    )
        for s in sums:
            self.put(*clamped(s, w.low, w.high))

    def stores(self, sums: Sequence[str], *, move: bool) -> None:
        """move: the pointer to outputs, behind them."""
        each = self.w.apart * self.w.step
        if each * (len(sums) - 1) > _LARGEST_OFFSET:
            for i, s in enumerate(sums):
                last = i == len(sums) - 1
                self.put(self.stored(s, 0), *(moved(_OUTPUT, each) if move or not last else ()))
            if not move:
                self.put(*moved(_OUTPUT, -each * (len(sums) - 1)))
            return
        self.put(*(self.stored(s, i * each) for i, s in enumerate(sums) if i))
        by = len(sums) * each if move else 0
        if 0 < by <= _LARGEST_POST:
            store_and_move = store_half_and_move if self.w.to_int16 else store_byte_and_move
            self.put(store_and_move(sums[0], _OUTPUT, by))
        else:
            self.put(self.stored(sums[0], 0), *moved(_OUTPUT, by))

    def stored(self, value: str, offset: int) -> Operation:
        return (store_half if self.w.to_int16 else store_byte)(value, _OUTPUT, offset)

    # ---- a channel's weights ----

    def channel(self) -> None:
        """What rounds, and words of weights, onto the stack."""
        w = self.w
        ends = 4 * w.weight_words
        first = len(self.found)
        self.put(
            load(_STREAM, SP, self.given, "a channel's weights"),
            load("bias", _STREAM, ends),
            load("multiplier", _STREAM, ends + 4),
            *([] if w.to_int16 else [load("shift", _STREAM, ends + 8)]),
            store("bias", SP, _BIAS),
        )
        self.offset()
        self.widened()
        behind = ends + 4 * (w.channel_words - w.weight_words) - (w.taps * w.kernel_rows + w.rest)
        self.put(*moved(_STREAM, behind + w.rest), store(_STREAM, SP, self.given))
        self.weights_made = first, len(self.found)

    def offset(self) -> None:
        """What rounds beside the multiplier, onto the stack; and what shifts weights."""
        w = self.w
        if w.to_int16:
            if w.exponent:
                self.put(*constant("offset", int16.offset(w.exponent), "the offset"))
                self.put(store_two("multiplier", "offset", SP, _MULTIPLIER))
            else:
                self.put(store("multiplier", SP, _MULTIPLIER))
            return
        match w.form:
            case Form.ONE_SIDED:
                base = (1 << (w.exponent - 1)) + w.zero_point * (1 << w.exponent)
                self.put(
                    *constant("mask", 1, "the offset"),
                    compute("lsl.w", "mask", "mask", "shift"),
                    *constant("offset", base),
                    compute("add.w", "offset", "offset", "mask", behind="lsr #2"),
                    compute("subw", "mask", "mask", behind="#1"),
                    compute("lsl.w", "mask", "mask", behind="#16"),
                )
            case Form.TWO_SIDED:
                self.put(
                    *constant("offset", 2 * w.zero_point + 1, "the offset"),
                    compute("subw", "less", "shift", behind="#1"),
                    compute("lsl.w", "offset", "offset", "less"),
                    store("shift", SP, _SHIFT),
                )
            case Form.PLAIN:
                self.put(
                    compute(
                        "bic.w", "offset", "shift", "shift", behind="asr #31", step="shifts: to the left"
                    ),
                    compute("rsb.w", "right", "shift", behind="#0", step="and to the right"),
                    compute("bic.w", "right", "right", "right", behind="asr #31"),
                    compute("rsb.w", "rounded", "right", behind="#0"),
                    compute("lsr.w", "rounded", "rounded", behind="#31"),
                    compute("sub.w", "right", "right", "rounded"),
                    store_two("right", "rounded", SP, _SHIFT),
                )
        self.put(store_two("multiplier", "offset", SP, _MULTIPLIER))

    def widened(self) -> None:
        """Moves the stream behind the kernel rows."""
        w = self.w
        size = 4 * len(self.pairs)
        self.put(self.from_stack(_TO, _WEIGHTS, "bytes to words"))
        first = len(self.found)
        self.words(self.pairs)
        self.put(*moved(_STREAM, w.taps), *moved(_TO, size))
        if w.kernel_rows > 1:
            end = _WEIGHTS + size * w.kernel_rows
            self.put(self.from_stack("last", end, "again?"), compare(_TO, "last"))
            self.loop(self.label(), first, w.kernel_rows)
        if w.rest:
            self.words(self.rest_pairs)

    def words(self, pairs: Sequence[int]) -> None:
        """Of a kernel row: four taps at a time, even and odd ones. What is behind the last is not multiplied."""
        for tap in range(0, max(pairs) + 2, 4):
            even, odd, before = f"even{tap}", f"odd{tap}", f"odd{tap - 4}"
            self.put(
                load("bytes", _STREAM, tap),
                compute("sxtb16", even, "bytes"),
                compute("sxtb16", odd, "bytes", behind="ror #8"),
                *self.shifted(even),
                *self.shifted(odd),
            )
            made = {
                tap - 1: ("pkhbt", "across", even, "lsl #16"),
                tap: ("pkhbt", even, odd, "lsl #16"),
                tap + 1: ("pkhbt", odd, even, ""),
                tap + 2: ("pkhtb", odd, even, "asr #16"),
            }
            for pair, (mnemonic, a, b, behind) in made.items():
                if pair in pairs:
                    if pair == tap - 1:
                        self.put(compute("lsr.w", "across", before, behind="#16"))
                    self.put(compute(mnemonic, "word", a, b, behind=behind))
                    self.put(store("word", _TO, 4 * pairs.index(pair)))

    def shifted(self, name: str) -> list[Operation]:
        if self.w.to_int16:
            return []
        match self.w.form:
            case Form.ONE_SIDED:
                return [compute("lsl.w", name, name, "shift"), compute("bic.w", name, name, "mask")]
            case Form.TWO_SIDED:
                return [
                    compute("lsl.w", name, name, behind="#1"),
                    compute("bic.w", name, name, behind="#0x10000"),
                ]
            case Form.PLAIN:
                return []
