# SPDX-License-Identifier: Apache-2.0
"""Pointwise convolutions of few input channels (tinyet_conv2d_k8_dsp.h), whose inputs stay in registers while the
weights of one output channel after another go by: a description, and its function.

It is called with the pixels, the stream of weights, the outputs, and where these end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from tinyet.errors import InternalError
from tinyet.tiles import printer
from tinyet.tiles.core import ARMV7E_M, CorePage
from tinyet.tiles.form import Form
from tinyet.tiles.nest import Loop, Nest
from tinyet.tiles.operation import (
    SP,
    Operation,
    bare,
    branch_if_unequal,
    compare,
    compute,
    load,
    load_and_move,
    load_several,
    load_signed_byte,
    load_two,
    moved,
    saturate,
    store,
    store_byte_and_move,
)
from tinyet.tiles.registers import allocated

HEADER = "tinyet_conv2d_k8_dsp.h"
"""Of the reference in C."""
PIXELS, TURNS = "1", "2"
"""Labels: of the loop over pixels, and of that over their outputs."""
MOST_CHANNELS = 8
"""Of a pixel: all that registers hold."""
LARGEST_ADDED = 4095
_STOP, _STREAM, _OUTPUT = "stop", "stream", "output"
"""Where a pixel's outputs end, its next weights, its next output."""
# On the stack, in bytes from sp: the next pixel and the weights; where all outputs end.
_NEXT, _END = 0, 8


@dataclass(frozen=True)
class Few:
    """channels: of a pixel. outputs: of a pixel, side by side. turn: outputs of straight code, which divide them.
    exponent: of a one-sided rounding; None for a two-sided one.

    The stream of weights, in words, for each output:
      bias | the weights of each pair of channels | multiplier | offset | shift, which is missing where it is one-sided
    """

    channels: int
    outputs: int
    turn: int
    exponent: int | None

    def __post_init__(self) -> None:
        if not 1 <= self.channels <= MOST_CHANNELS:
            raise InternalError(f"{self}: one to {MOST_CHANNELS} channels")
        if not 1 <= self.outputs <= LARGEST_ADDED or self.turn < 1 or self.outputs % self.turn:
            raise InternalError(f"{self}: one to {LARGEST_ADDED} outputs, in whole turns")
        if self.exponent is not None and not 1 <= self.exponent <= 31:
            raise InternalError(f"{self}: an exponent of 1 to 31")

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        rounding = "two_sided" if self.exponent is None else f"e{self.exponent}"
        return f"tinyet_few_{self.channels}_{self.outputs}_{rounding}_t{self.turn}_dsp"

    @property
    def pairs(self) -> int:
        """Words of a pixel's channels."""
        return (self.channels + 1) // 2

    @property
    def words(self) -> int:
        """Of the stream, for each output."""
        return self.pairs + (3 if self.exponent is not None else 4)

    @property
    def literal(self) -> str:
        """The tinyet_few_shape_dsp as a C initialiser."""
        form = Form.TWO_SIDED if self.exponent is None else Form.ONE_SIDED
        return f"{{{self.channels}, {self.outputs}, {{{form.value}, {self.exponent or 0}, -128, 127}}}}"


def turns_of(few: Few, pixels: int) -> Mapping[str, int]:
    """Of each loop, of a call for so many pixels."""
    return {PIXELS: pixels, TURNS: few.outputs // few.turn}


@cache
def function(few: Few, page: CorePage = ARMV7E_M) -> Nest[Few]:
    found = [_push(page)]
    first = len(found)
    found += _pixel(few)
    loops = []
    turn = len(found)
    for _ in range(few.turn):
        found += _output(few)
    if few.turn != few.outputs:
        found += [compare(_OUTPUT, _STOP), branch_if_unequal(TURNS)]
        loops.append(Loop(turn, len(found) - 1, TURNS))
    found += [load("end", SP, _END, "the next pixel"), compare(_OUTPUT, "end"), branch_if_unequal(PIXELS)]
    loops.append(Loop(first, len(found) - 1, PIXELS))
    popped = (*page.kept, "pc")
    found.append(Operation("addw", "sp, sp, #12", (SP,), (SP,), step="back"))
    found.append(bare("pop.w", f"{{{', '.join(popped)}}}", len(popped)))
    lasting = (_STOP, _STREAM, _OUTPUT, *(f"x{i}" for i in range(few.pairs)))
    fixed = {SP: SP} | dict(zip(lasting, page.registers, strict=False))
    return Nest(few, page, allocated(found, fixed, page, few.name), tuple(loops))


def _push(page: CorePage) -> Operation:
    """In the order of the registers' numbers."""
    given = (page.registers[0], page.registers[1], page.registers[3])
    pushed = (*given, *page.kept, "lr")
    return bare(
        "push.w", f"{{{', '.join(pushed)}}}", len(pushed), "pixels, weights, the end, what the caller wants"
    )


def _pixel(f: Few) -> list[Operation]:
    """Its channels into registers: of each four the first and the third, the second and the fourth; then what is left
    in order."""
    found = [load_two("pixel", _STREAM, SP, _NEXT, "a pixel")]
    fours, rest = divmod(f.channels, 4)
    found += [load_and_move(f"four{i}", "pixel") for i in range(fours)]
    # Of a last one alone the upper half meets a weight of zero.
    bytes_ = [*(("b0", "b1") if rest > 1 else ()), *((f"x{f.pairs - 1}",) if rest % 2 else ())]
    found += [load_signed_byte(name, "pixel", i) for i, name in enumerate(bytes_)]
    found += [*moved("pixel", rest), store("pixel", SP, _NEXT)]
    for i in range(fours):
        found.append(compute("sxtb16", f"x{2 * i}", f"four{i}"))
        found.append(compute("sxtb16", f"x{2 * i + 1}", f"four{i}", behind="ror #8"))
    if rest > 1:
        found.append(compute("pkhbt", f"x{2 * fours}", "b0", "b1", behind="lsl #16"))
    if f.turn != f.outputs:
        found.append(compute("addw", _STOP, _OUTPUT, behind=f"#{f.outputs}"))
    return found


def _output(f: Few) -> list[Operation]:
    words = ("sum", *(f"w{i}" for i in range(f.pairs)), "multiplier", "offset")
    found = [load_several(words, _STREAM, "an output")]
    found += [compute("smlad", "sum", f"w{i}", f"x{i}", "sum") for i in range(f.pairs)]
    if f.exponent is not None:
        found += [compute("smmla", "sum", "sum", "multiplier", "offset"), saturate("sum", f.exponent)]
    else:
        found += [
            compute("add.w", "offset", "offset", "sum", behind="asr #31"),
            compute("smmlar", "sum", "sum", "multiplier", "offset"),
            load_and_move("shift", _STREAM),
            compute("asr.w", "sum", "sum", "shift"),
            saturate("sum"),
        ]
    return [*found, store_byte_and_move("sum", _OUTPUT, 1)]


@lru_cache(256)
def files(few: Few) -> dict[str, str]:
    """{name: text} of the header and the source."""
    reference = (
        f"const tinyet_few_shape_dsp shape = {few.literal};",
        "tinyet_few_dsp(input, weights, output, end, shape);",
    )
    parameters = ("const int8_t *input", "const int32_t *weights", "int8_t *output", "const int8_t *end")
    return printer.printed(function(few), _summary(few), parameters, reference, HEADER)


def _summary(f: Few) -> str:
    rounding = "two-sided" if f.exponent is None else f"one-sided, exponent {f.exponent}"
    return (
        f"Outputs of pixels of {f.channels} channels, which stay in registers: {f.outputs} each, {f.turn} in a turn;\n"
        f" * int16 weights; rounding {rounding}. Printed by tinyet/tiles."
    )
