# SPDX-License-Identifier: Apache-2.0
"""Outputs of one row of inputs by int8 weights that are bytes, for any factor and any bounds (tinyet_row_dsp.h): a
description, and its function.

It is called as a tile is: with the stream of weights, the inputs, the outputs, and where these end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from tinyet.errors import InternalError
from tinyet.tiles import loads, printer
from tinyet.tiles.blocks import PIXELS, WEIGHTS, total
from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.form import Form
from tinyet.tiles.loads import Step
from tinyet.tiles.nest import Loop, Nest
from tinyet.tiles.operation import (
    SP,
    Operation,
    bare,
    branch_if_unequal,
    clamped,
    compare,
    compute,
    load,
    load_and_move,
    load_several,
    load_two,
    moved,
    saturate,
    store,
    store_byte,
    store_byte_and_move,
)
from tinyet.tiles.pieces import placed_in_order
from tinyet.tiles.registers import Placed

HEADER = "tinyet_row_dsp.h"
"""Of the reference in C."""
OUTER, TURN = "1", "2"
"""Labels: of the loop over four channels each, and of that over pairs of inputs."""
CHANNELS = 4
"""Whose sums are in registers at a time."""
# On the stack, in bytes from sp.
_PIXELS, _OUTPUT = 0, 4
_LARGEST_SIZE = 0xFFFF
_SUMS = tuple(total(channel, 0) for channel in range(CHANNELS))


@dataclass(frozen=True)
class Row:
    """pairs: of inputs, a word each. turn: pairs of straight code, and of a turn of the loop where there are more.
    form, exponent: of the rounding; low, high: bounds of the outputs.

    The stream of weights, in words, for each four channels:
      bias of each | for each pair of inputs the bytes {a0, b0, a1, b1} and {c0, d0, c1, d1} | for each multiplier |
      offset | shift
    One-sided, a sum is shifted to the left by that before its multiplication. Plain, two words more: shift to the left
    before the multiplication, and a mask, as a plain `Tile` has them.
    """

    pairs: int
    turn: int
    form: Form
    exponent: int = 0
    low: int = -128
    high: int = 127

    def __post_init__(self) -> None:
        if self.turn < 1 or not 1 <= 4 * self.pairs <= _LARGEST_SIZE:
            raise InternalError(f"{self}: at least one pair, and no more than a constant's bytes")
        if (self.form is Form.ONE_SIDED) != (1 <= self.exponent <= 31):
            raise InternalError(f"{self}: an exponent of 1 to 31, where the rounding is one-sided")
        if not -128 <= self.low <= self.high <= 127:
            raise InternalError(f"{self}: bounds within int8")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        rounding = f"e{self.exponent}" if self.form is Form.ONE_SIDED else self.form.name.lower()
        if (self.low, self.high) != (-128, 127):
            rounding += f"_{self.low}_{self.high}".replace("-", "m")
        loop = f"_t{self.turn}" if self.turns else ""
        return f"tinyet_row_{self.pairs}p_{rounding}{loop}_dsp"

    @property
    def turns(self) -> int:
        """Of the loop; 0 where all is straight."""
        return self.pairs // self.turn if self.pairs > self.turn else 0

    @property
    def before(self) -> int:
        """Pairs of straight code before the loop."""
        return self.pairs - self.turns * self.turn

    @property
    def ends(self) -> tuple[str, ...]:
        """The words that round a sum."""
        more = ("before", "mask") if self.form is Form.PLAIN else ()
        return ("multiplier", "offset", "shift", *more)

    @property
    def group_words(self) -> int:
        """Of the stream, for each four channels."""
        return CHANNELS * (1 + len(self.ends)) + CHANNELS // 2 * self.pairs

    @property
    def literal(self) -> str:
        """The tinyet_row_shape_dsp as a C initialiser."""
        return f"{{{self.pairs}, {{{self.form.value}, {self.exponent}, {self.low}, {self.high}}}}}"


def turns_of(row: Row, channels: int) -> Mapping[str, int]:
    """Of each loop, of a call for so many channels, in whole fours."""
    return {OUTER: channels // CHANNELS, TURN: row.turns}


@cache
def function(row: Row, page: CorePage = ARMV7E_M) -> Nest[Row]:
    entry = _entry(row, page)
    found = [load(PIXELS, SP, _PIXELS, "the inputs"), *_pairs(row.before, page, begin=True)]
    loops = []
    if row.turns:
        first = len(found)
        found += _pairs(row.turn, page, begin=False)
        # Behind what was given and what is kept.
        end = 4 * (page.given - 1 + len(page.kept))
        found += [
            load("inputs_end", SP, end, "again?"),
            compare(PIXELS, "inputs_end"),
            branch_if_unequal(TURN),
        ]
        loops.append(Loop(first, len(found) - 1, TURN))
    for channel in range(CHANNELS):
        found += _rounded(row, channel, page)
    found.append(load_two("output", "output_end", SP, _OUTPUT, "the outputs"))
    found += [store_byte(_SUMS[channel], "output", channel) for channel in range(1, CHANNELS)]
    found += [store_byte_and_move(_SUMS[0], "output", CHANNELS), store("output", SP, _OUTPUT)]
    found += [compare("output", "output_end"), branch_if_unequal(OUTER)]
    loops.append(Loop(0, len(found) - 1, OUTER))
    body = placed_in_order(found, loops, {WEIGHTS: page.registers[0], SP: SP}, page, row.name)
    loops = [loop.moved(len(entry)) for loop in loops]
    return Nest(row, page, [*entry, *body, *_leave(row, page)], tuple(loops))


def _entry(r: Row, page: CorePage) -> Placed:
    given = page.registers[1 : page.given]
    home = {"end": page.spare, "inputs": given[0], SP: SP}
    found: list[Operation] = []
    if r.turns:
        found.append(Operation("movw", f"{{end}}, #{4 * r.pairs}", ("end",), step="where the inputs end"))
        found.append(compute("add.w", "end", "end", "inputs"))
    pushed = (*given, *page.kept, *([page.spare] if r.turns else []), "lr")
    text = "inputs, outputs, their end, and what the caller wants back"
    found.append(bare("push.w", f"{{{', '.join(pushed)}}}", len(pushed), text))
    return [(operation, home) for operation in found]


def _leave(r: Row, page: CorePage) -> Placed:
    popped = (*page.kept, *([page.spare] if r.turns else []), "pc")
    home: Mapping[str, str] = {SP: SP}
    return [
        (Operation("addw", f"sp, sp, #{4 * (page.given - 1)}", (SP,), (SP,), step="back"), home),
        (bare("pop.w", f"{{{', '.join(popped)}}}", len(popped)), home),
    ]


def _pairs(count: int, page: CorePage, *, begin: bool) -> list[Operation]:
    """The products of so many pairs of inputs, with what they need. begin: behind the biases."""
    weights = [f"w{pair}_{k}" for pair in range(count) for k in range(CHANNELS // 2)]
    inputs = [f"x{pair}" for pair in range(count)]
    steps: list[tuple[Step, list[Operation]]] = []
    for pair in range(count):
        for k in range(CHANNELS // 2):
            w, t = f"w{pair}_{k}", f"t{pair}_{k}"
            operations = [
                compute("sxtb16", t, w),
                compute("smlad", _SUMS[2 * k], t, inputs[pair], _SUMS[2 * k]),
                compute("sxtb16", w, w, behind="ror #8"),
                compute("smlad", _SUMS[2 * k + 1], w, inputs[pair], _SUMS[2 * k + 1]),
            ]
            word = len(steps) + 1
            steps.append((Step((pair + 1, word), (pair + k, word)), operations))
    if page.pipeline:
        return _one_by_one(inputs, weights, steps, begin)
    return _filled(inputs, weights, steps, page, begin)


def _one_by_one(
    inputs: Sequence[str], weights: Sequence[str], steps: Sequence[tuple[Step, list[Operation]]], begin: bool
) -> list[Operation]:
    """A load for each word, right before its use."""
    biases = _SUMS if begin else ()
    found = [load(name, WEIGHTS, 4 * at, "" if at else "bias") for at, name in enumerate(biases)]
    for at, (_, operations) in enumerate(steps):
        if at % 2 == 0:
            found.append(load(inputs[at // 2], PIXELS, 2 * at, "a pair of inputs"))
        found += [load(weights[at], WEIGHTS, 4 * (len(biases) + at)), *operations]
    return [*found, *moved(WEIGHTS, 4 * (len(biases) + len(weights))), *moved(PIXELS, 4 * len(inputs))]


def _filled(
    inputs: Sequence[str],
    weights: Sequence[str],
    steps: Sequence[tuple[Step, list[Operation]]],
    page: CorePage,
    begin: bool,
) -> list[Operation]:
    """With loads that fill all registers that are free but one, in which weights are extended."""
    room = len(page.registers) - 2 - CHANNELS - 1
    streams, bases, loaded = (inputs, weights), (PIXELS, WEIGHTS), [0, 0]

    def several(stream: int, count: int, before: tuple[str, ...] = ()) -> Operation:
        names = (*before, *streams[stream][loaded[stream] : loaded[stream] + count])
        loaded[stream] += count
        text = "bias" if before else ("inputs", "weights")[stream]
        if len(names) == 1:
            return load_and_move(names[0], bases[stream], text)
        return load_several(names, bases[stream], text)

    first, *plan = loads.planned([step for step, _ in steps], room, begun=begin)
    found = [several(1, sum(count for _, count in first), _SUMS)] if begin else []
    for (_, operations), before in zip(steps, plan, strict=True):
        found += [several(stream, count) for stream, count in before]
        found += operations
    return found


def _rounded(r: Row, channel: int, page: CorePage) -> list[Operation]:
    """The output of a sum, in its place."""
    s, names = _SUMS[channel], tuple(f"{name}{channel}" for name in r.ends)
    multiplier, offset, shift, *plain = names
    step = f"rounding of channel {channel}"
    if page.pipeline:
        found = [load(name, WEIGHTS, 4 * at, "" if at else step) for at, name in enumerate(names)]
    else:
        found = [load_several(names, WEIGHTS, step)]
    if r.form is Form.ONE_SIDED:
        found += [compute("lsl.w", s, s, shift), compute("smmla", s, s, multiplier, offset)]
        found.append(saturate(s, r.exponent))
    else:
        corrected = f"corrected{channel}"
        if r.form is Form.PLAIN:
            before, mask = plain
            found.append(compute("lsl.w", s, s, before))
            found.append(compute("and.w", corrected, mask, s, behind="asr #31"))
            found.append(compute("add.w", corrected, corrected, offset))
        else:
            found.append(compute("lsl.w", s, s, behind="#1"))
            found.append(compute("add.w", corrected, offset, s, behind="asr #31"))
        found.append(compute("smmlar", s, s, multiplier, corrected))
        found += [compute("asr.w", s, s, shift), saturate(s)]
    found += clamped(s, r.low, r.high)
    return [*found, *(moved(WEIGHTS, 4 * len(names)) if page.pipeline else [])]


@lru_cache(256)
def files(row: Row, page: CorePage = ARMV7E_M) -> Mapping[str, str]:
    """{name: text} of the header and the source."""
    reference = (
        f"const tinyet_row_shape_dsp shape = {row.literal};",
        "tinyet_row_dsp(weights, inputs, (int8_t *)output, (const int8_t *)end, shape);",
    )
    parameters = ("const int32_t *weights", "const uint32_t *inputs", "void *output", "const void *end")
    return printer.printed(function(row, page), _summary(row), parameters, reference, HEADER)


def _summary(r: Row) -> str:
    loop = f", {r.turn} in a turn" if r.turns else ""
    rounding = f"one-sided, exponent {r.exponent}" if r.form is Form.ONE_SIDED else r.form.name.lower()
    bounds = f", {r.low} to {r.high}" if (r.low, r.high) != (-128, 127) else ""
    return (
        f"Outputs of a row, {CHANNELS} at a time; pairs of inputs: {r.pairs}{loop};\n"
        f" * int8 weights; rounding {rounding.replace('_', '-')}{bounds}. Printed by tinyet/tiles."
    )
