# SPDX-License-Identifier: Apache-2.0
"""Sums of convolutions for Helium (MVE): four pixels or three by two output channels, sums in registers.

VMLADAVA adds the products of a vector, sixteen of int8 or eight of int16, to one of the eight even general registers,
so that the odd ones are left for pointers, and the vectors for inputs: a vector of one pixel that another one sees with
another weight is not loaded again as long as there is room for it. They are a part of what helium_blocks.py prints,
known to the instruction.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tinyet.errors import InternalError
from tinyet.tiles.helium_order import loads_between

PIXELS, CHANNELS, LANES = 4, 2, 16
"""LANES: bytes of a vector."""
FEWER_PIXELS = 3
"""Where there are as many in a row: their vectors of two neighbouring columns are held at a time."""
HEADER = "tinyet_conv2d_mve.h"
MOST_VECTORS = 160
"""Of a pixel, all in straight code."""
LEAST_FREE = 4
"""Lanes that are worth a bias."""
FREE_FACTOR = 127
"""The constant of free lanes but the last one, whose is 1."""
REACH = 508
"""Of VLDRW, in bytes, both ways."""
_SUMS = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr")
"""What VMLADAVA adds to, as LDM and STM have them: the pixels of the first channel, of the second."""
_WEIGHTS, _PIXELS, _TO, _END = "r3", "r1", "r5", "r11"
_OTHER_BASES = ("r7", "r9")
_FIRST = "r7"  # where the sums begin, where inputs are held
_AGAIN = (f"cmp.w {_TO}, {_END}", "bne.w 1b")
_BACK = f"mov.w {_TO}, {_FIRST}"
_ADVANCE = ("ldr.w r9, [r3], #4", "add.w r1, r1, r9", "cmp.w r9, #0", "bne.w 2b")
_INPUTS = 6  # vectors; the two others are weights
_STRAIGHT = 16  # vectors of a pixel in a turn of the loop over channels, about, where a pixel has fewer
_STRAIGHT_HELD = 12  # the same where inputs are held
INSTRUCTION_BYTES = 4


@dataclass(frozen=True)
class Sums:
    """Sums of neighbouring pixels for all output channels, two at a time.

    rows, columns, depth: vectors of sixteen bytes that a pixel sees: along kernel rows, along their taps, and of
    each of these. bits: of an input, 8 or 16; weights are int8, and widened as they are loaded. row, column: bytes from
    one to the next; step: from pixel to pixel. All are multiples of four.
    pairs: of channels that are computed before the loop over them branches; whole: these are all.

    The stream, for each pair of channels: of each for every pixel the bias, int32; then for each row, each vector
    of inputs, each column in the order of `taps`: those of the first channel, those of the second.

    held: instead inputs are held in registers while all channels pass by, and sums wait in memory. For each row, each
    vector: of each of `chunks`, whose columns the registers have room for, the weights of all pairs of
    channels; behind the last one the bytes to where the next vector is, int32, 0 at the end. Biases are where
    they are without, before the weights of the first chunk.
    """

    rows: int
    columns: int
    depth: int
    row: int
    column: int
    step: int
    pairs: int = 1
    held: bool = False
    pixels: int = PIXELS
    free: int = 0
    whole: bool = False
    bits: int = 8

    def __post_init__(self) -> None:
        if self.vectors > MOST_VECTORS or (self.row | self.column | self.step) % 4 or self.pairs < 1:
            raise InternalError(f"no such sums: {self}")
        if self.pixels not in (FEWER_PIXELS, PIXELS):
            raise InternalError(f"no such sums: {self}")
        if self.bits not in (8, 16) or (self.free and self.bits != 8):
            raise InternalError(f"no such sums: {self}")
        if self.free and (self.vectors > 1 or self.held or self.free < LEAST_FREE):
            raise InternalError(f"no lanes for the bias: {self}")
        if self.whole and self.held:
            raise InternalError(f"a loop for each chunk: {self}")
        if self.held and not self.chunks:
            raise InternalError(f"no registers for the inputs: {self}")

    @property
    def vectors(self) -> int:
        return self.rows * self.columns * self.depth

    @property
    def lanes(self) -> int:
        """Values of a vector, and bytes of one of weights."""
        return 8 * LANES // self.bits

    @property
    def name(self) -> str:
        """Says all that it is made for but the bits."""
        size = "_".join(str(n) for n in (self.rows, self.columns, self.depth))
        steps = "_".join(str(n) for n in (self.row, self.column, self.step))
        fewer = f"_x{self.pixels}" if self.pixels != PIXELS else ""
        free = f"_free{self.free}" if self.free else ""
        marks = "".join(f"_{mark}" for mark in ("held", "whole") if getattr(self, mark))
        return f"{size}_by_{steps}_g{self.pairs}{marks}{fewer}{free}"

    @property
    def _registers(self) -> tuple[str, ...]:
        return _SUMS[: self.pixels * CHANNELS]

    @cached_property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """Columns whose inputs are held at a time; none where one of them has too many."""
        order = sorted(range(self.columns), key=lambda kx: (kx * self.column % max(self.step, 1), kx))
        found: list[tuple[int, ...]] = []
        for kx in order:
            if found and len(self._held_inputs((*found[-1], kx))) <= _INPUTS:
                found[-1] = (*found[-1], kx)
            else:
                found.append((kx,))
        return tuple(found)

    def _held_inputs(self, columns: Sequence[int]) -> dict[int, int]:
        """{offset from the first pixel's first column: register}."""
        offsets = sorted({kx * self.column + p * self.step for kx in columns for p in range(self.pixels)})
        return {offset: register for register, offset in enumerate(offsets)}

    @property
    def advances(self) -> list[int]:
        """Bytes from each vector of inputs to the next, 0 behind the last."""
        along = [LANES] * (self.depth - 1)
        down = self.row - LANES * (self.depth - 1)
        return [*(step for _ in range(self.rows - 1) for step in (*along, down)), *along, 0]

    @cached_property
    def taps(self) -> tuple[int, ...]:
        """Columns in the order in which neighbouring pixels share the most."""
        if self.held:
            return tuple(kx for chunk in self.chunks for kx in chunk)
        natural = tuple(range(self.columns))
        orders = itertools.permutations(natural) if self.columns <= 4 else (natural,)
        return min(orders, key=lambda order: len(self._shared(order)))

    def offsets(self, order: Sequence[int]) -> list[int]:
        """Bytes from the first pixel to each vector that it sees."""
        return [
            ky * self.row + kx * self.column + LANES * block
            for ky in range(self.rows)
            for block in range(self.depth)
            for kx in order
        ]

    @property
    def places(self) -> list[tuple[int, int, int]]:
        """(row, tap, vector of it) of each vector of the weights, in the order of the stream."""
        return [(ky, kx, b) for ky in range(self.rows) for b in range(self.depth) for kx in self.taps]

    @property
    def most_pairs(self) -> int:
        """Pairs of channels worth their code in a turn."""
        if self.held:
            return max(1, _STRAIGHT_HELD // max(map(len, self.chunks)))
        return max(1, _STRAIGHT // self.vectors)

    def _wanted(self, order: Sequence[int]) -> list[list[int]]:
        """Of each vector of weights the offsets of what it is multiplied by, of each pixel."""
        return [[at + p * self.step for p in range(self.pixels)] for at in self.offsets(order)]

    def _shared(self, order: Sequence[int]) -> list[tuple[int, int, int]]:
        """(vector of weights, register, offset) of each load of an input: that goes which is needed the latest."""
        wanted = self._wanted(order)
        uses: dict[int, list[int]] = {}
        for i, offsets in enumerate(wanted):
            for offset in offsets:
                uses.setdefault(offset, []).append(i)
        held: dict[int, int] = {}
        found: list[tuple[int, int, int]] = []

        def next_use(offset: int, i: int) -> int:
            return next((use for use in uses[offset] if use >= i), len(wanted))

        for i, offsets in enumerate(wanted):
            for offset in offsets:
                if offset in held:
                    continue
                free = [n for n in range(_INPUTS) if n not in held.values()]
                if free:
                    register = free[0]
                else:
                    register = held.pop(
                        max((o for o in held if o not in offsets), key=lambda o: next_use(o, i))
                    )
                held[offset] = register
                found.append((i, register, offset))
            for offset in [o for o in held if o not in offsets and next_use(o, i + 1) == len(wanted)]:
                del held[offset]
        return found

    @cached_property
    def _kept(self) -> dict[int, int]:
        """{offset: register} of inputs that stay in registers for all channels: all, or all but one of the registers,
        where sharing would not save more."""
        offsets = list(dict.fromkeys(o for offsets in self._wanted(self.taps) for o in offsets))
        kept = offsets if len(offsets) <= _INPUTS else offsets[: _INPUTS - 1]
        uses = self.pixels * self.vectors - sum(
            o in kept for offsets in self._wanted(self.taps) for o in offsets
        )
        if uses >= len(self._shared(self.taps)):
            return {}
        return {offset: register for register, offset in enumerate(kept)}

    @cached_property
    def _anchors(self) -> tuple[int, ...] | None:
        """Where three pointers stand so that all loads reach; None where that is not enough."""
        anchors: list[int] = []
        wanted = sorted({offset for offsets in self._wanted(self.taps) for offset in offsets})
        if wanted[-1] <= REACH:
            return (0,)
        for offset in wanted:
            if not anchors or offset > anchors[-1] + REACH:
                anchors.append(offset + REACH)
        return tuple(anchors) if len(anchors) <= 1 + len(_OTHER_BASES) else None

    @property
    def stays(self) -> bool:
        """r7, r9 and r11 keep what is in them, r1 moves by `moved`; of one vector a pixel, q4 and q5 do, too."""
        return not self.held and self._anchors is not None and len(self._anchors) == 1

    @property
    def moved(self) -> int:
        """Bytes by which the pointer to the pixels moves, if it stays one."""
        return self._anchors[0] if self._anchors is not None else 0

    @cached_property
    def before(self) -> list[str]:
        """Up to the loop; weights, pixels, sums, and their end are in their registers."""
        if self.held:
            return [f"mov.w {_FIRST}, {_TO}", *self._held_loads(self.chunks[0])]
        lines: list[str] = []
        if self._anchors is not None:
            for base, anchor in zip(_OTHER_BASES, self._anchors[1:], strict=False):
                lines += _added(base, anchor)
            lines += _added(_PIXELS, self._anchors[0])
        bases = self._fixed_bases()
        for offset, register in self._kept.items():
            lines += self._load(f"q{register}", offset, bases, "r7")
        if self.free:
            lines.append(f"vldrw.32 q{_INPUTS}, [{_WEIGHTS}], #16")
            lines += [f"vpsel q{q}, q{q}, q{_INPUTS}" for q in self._kept.values()]
        return lines

    @cached_property
    def turn(self) -> list[str]:
        """Of the only loop, or of the first one."""
        if self.held:
            return self._held_turn(self.chunks[0], f"{_WEIGHTS}!")
        lines = loads_between(self._pairs)
        return lines if self.whole else [*lines, *_AGAIN]

    @cached_property
    def _pairs(self) -> list[str]:
        """The same before loads find their places, and without a branch."""
        return [line for _ in range(self.pairs) for line in self._pair()]

    @cached_property
    def chunk_loops(self) -> list[tuple[list[str], list[str]]]:
        """Where inputs are held: of each chunk what is before its loop, and a turn of it."""
        return [(self._held_loads(chunk), self._held_turn(chunk, _TO)) for chunk in self.chunks]

    @property
    def lines(self) -> list[str]:
        """All of them, labels included."""
        if not self.held:
            return [*self.before, "1:", *self.turn]
        (loads, turn), *others = self.chunk_loops
        rest = [line for before, loop in others for line in (_BACK, *before, "1:", *loop)]
        return [
            *(*self.before, "1:", *self.turn, "b.w 3f"),
            *("2:", *loads, "1:", *turn, "3:", *rest),
            *(_BACK, *_ADVANCE),
        ]

    def _held_loads(self, chunk: Sequence[int]) -> list[str]:
        bases = {_PIXELS: 0}
        inputs = self._held_inputs(chunk).items()
        return [line for at, q in inputs for line in self._load(f"q{q}", at, bases, _OTHER_BASES[1])]

    def _held_turn(self, chunk: Sequence[int], sums_from: str) -> list[str]:
        """Pairs of channels, whose sums so far are there."""
        return [*loads_between(self._held_pair(chunk, sums_from)) * self.pairs, *_AGAIN]

    def _held_pair(self, chunk: Sequence[int], sums_from: str) -> list[str]:
        """A pair before loads find their places."""
        sums, inputs = ", ".join(self._registers), self._held_inputs(chunk)
        lines = [f"ldm.w {sums_from}, {{{sums}}}"]
        for kx in chunk:
            lines += [self._load_weights(_INPUTS + channel) for channel in range(CHANNELS)]
            for channel in range(CHANNELS):
                for p in range(self.pixels):
                    vector = inputs[kx * self.column + p * self.step]
                    lines.append(
                        f"vmladava.s{self.bits} {_SUMS[self.pixels * channel + p]}, q{vector}, q{_INPUTS + channel}"
                    )
        return [*lines, f"stm.w {_TO}!, {{{sums}}}"]

    def _pair(self) -> Iterator[str]:
        """Two channels."""
        sums = ", ".join(self._registers)
        if not self.free:
            yield f"ldm.w {_WEIGHTS}!, {{{sums}}}"
        yield from self._kept_products() if self._kept else self._shared_products()
        yield f"stm.w {_TO}!, {{{sums}}}"

    def _kept_products(self) -> Iterator[str]:
        """One pixel after another: what is not kept is in one register, for both channels."""
        bases = self._fixed_bases()
        spare = f"q{_INPUTS - 1}"
        multiply = "vmladav" if self.free else "vmladava"
        for offsets in self._wanted(self.taps):
            for channel in range(CHANNELS):
                yield self._load_weights(_INPUTS + channel)
            for p, offset in enumerate(offsets):
                if offset not in self._kept:
                    yield from self._load(spare, offset, bases, _OTHER_BASES[p % 2])
                vector = f"q{self._kept[offset]}" if offset in self._kept else spare
                for channel in range(CHANNELS):
                    yield f"{multiply}.s{self.bits} {_SUMS[self.pixels * channel + p]}, {vector}, q{_INPUTS + channel}"

    def _shared_products(self) -> Iterator[str]:
        """One channel after another: the vectors of all pixels are in registers."""
        loads: dict[int, list[tuple[int, int]]] = {}
        for i, register, offset in self._shared(self.taps):
            loads.setdefault(i, []).append((register, offset))
        home: dict[int, int] = {}
        bases = self._fixed_bases()
        turn = 0
        for i, offsets in enumerate(self._wanted(self.taps)):
            for register, offset in loads.get(i, []):
                home = {o: r for o, r in home.items() if r != register} | {offset: register}
                lines = self._load(f"q{register}", offset, bases, _OTHER_BASES[turn])
                turn = turn if len(lines) == 1 else 1 - turn
                yield from lines
            for channel in range(CHANNELS):
                weights = _INPUTS + channel
                yield self._load_weights(weights)
                for p, offset in enumerate(offsets):
                    yield f"vmladava.s{self.bits} {_SUMS[self.pixels * channel + p]}, q{home[offset]}, q{weights}"

    def _load_weights(self, vector: int) -> str:
        load = "vldrw.32" if self.bits == 8 else "vldrb.s16"
        return f"{load} q{vector}, [{_WEIGHTS}], #{self.lanes}"

    def _load(self, vector: str, offset: int, bases: dict[str, int], spare: str) -> list[str]:
        """Of an input; where no pointer is near, `spare` is moved there."""
        base = next((b for b, place in bases.items() if abs(offset - place) <= REACH), None)
        moved = []
        if base is None:
            base, bases[spare] = spare, offset + REACH
            moved = _added(spare, bases[spare])
        return [*moved, f"vldrw.32 {vector}, [{base}, #{offset - bases[base]}]"]

    def _fixed_bases(self) -> dict[str, int]:
        if self._anchors is None:
            return {_PIXELS: 0}
        return dict(zip((_PIXELS, *_OTHER_BASES), self._anchors, strict=False))

    def loads(self, channels: int) -> int:
        """Of vectors, for so many channels."""
        return sum(
            count * sum(line.startswith(("vldrw", "vldrb")) for line in lines)
            for count, lines in self._parts(channels)
        )

    @property
    def visits(self) -> int:
        """How often the sums of a pair of channels are in registers."""
        return self.rows * self.depth * len(self.chunks) if self.held else 1

    def instructions(self, channels: int) -> int:
        """Of a block of pixels, for so many channels."""
        return sum(count * len(lines) for count, lines in self._parts(channels))

    def _parts(self, channels: int) -> Iterator[tuple[int, Sequence[str]]]:
        """How often which lines are executed; they are counted only, so that their order is none of a turn's."""
        turns, rest = divmod(channels, CHANNELS * self.pairs)
        if rest or not turns or (self.whole and turns > 1):
            raise InternalError(f"{channels} channels by {self.name}")
        yield 1, self.before
        if not self.held:
            yield turns, self._pairs if self.whole else [*self._pairs, *_AGAIN]
            return
        passes = self.rows * self.depth
        yield 1, ["b.w 3f"]
        yield passes, [_BACK, *_ADVANCE]
        for i, chunk in enumerate(self.chunks):
            before, pair = self._held_loads(chunk), self._held_pair(chunk, _TO)
            count = passes if i else passes - 1
            yield count, [_BACK, *before] if i else before
            yield count * turns, [*pair * self.pairs, *_AGAIN]
        yield turns, [*self._held_pair(self.chunks[0], f"{_WEIGHTS}!") * self.pairs, *_AGAIN]


def _added(base: str, offset: int) -> list[str]:
    """Where the pixels are, and so many bytes more."""
    if offset < 4096:
        return [f"addw {base}, {_PIXELS}, #{offset}"] if offset or base != _PIXELS else []
    if base == _PIXELS:
        return [line for part in (4092, offset - 4092) for line in _added(base, part)]
    return [
        f"movw {base}, #{offset & 0xFFFF}",
        *([f"movt {base}, #{offset >> 16}"] if offset >> 16 else []),
        f"add.w {base}, {base}, {_PIXELS}",
    ]
