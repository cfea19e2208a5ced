# SPDX-License-Identifier: Apache-2.0
"""Output rows of depthwise convolutions of any size, channel by channel, of planes of int16
(tinyet_depthwise_chw_dsp.h): their description.

A function of them is called with the stream of weights, the planes, the outputs of the first channel, and where the
first plane's input rows end that a turn of the loop over output rows begins with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from tinyet.errors import InternalError
from tinyet.tiles import int16
from tinyet.tiles.form import Form

HEADER = "tinyet_depthwise_windows_dsp.h"
"""Of the reference in C."""


@dataclass(frozen=True)
class Runs:
    """Outputs of a row that look at one part of the plane's row after another: of `times` runs of `count` each.

    start: the value that the first run's first output begins with; further: values to the next run's. first: the first
    output of all.
    """

    start: int
    further: int
    count: int
    times: int
    first: int


@dataclass(frozen=True)
class Windows:
    """outputs: of a row. taps: of each of `kernel_rows`; rest: of one more, behind them. stride, dilation: along the
    row, which has `dilation` parts of `part` values, each with every dilation-th pixel. kernel_row, next_row: words
    from a kernel row to the next, and from what an output row begins with to that of the next. plane: words from a
    channel's plane to that of the next; 0 where all channels of a call look at one. channels: of a call. step, below:
    bytes from an output to the next, and to that of the next row. form, exponent: of the rounding, the exponent of a
    one-sided one; low, high: what outputs are clamped to. bits: of an output; those of 16 are one-sided, as int16.py
    rounds them.

    block: outputs at a time. turn: kernel rows of a turn of the loop over them; all where there is no loop. by_taps:
    the products of one tap after another, else those of one word of inputs after another.

    The stream of weights, of each channel: int8, kernel row by kernel row, up to a whole word | bias, shifted as
    weights will be | multiplier, twice itself where the form is PLAIN | shift, where outputs have 8 bits
    """

    outputs: int
    taps: int
    kernel_rows: int
    rest: int
    stride: int
    dilation: int
    part: int
    kernel_row: int
    next_row: int
    plane: int
    channels: int
    step: int
    below: int
    form: Form
    exponent: int
    zero_point: int
    low: int
    high: int
    block: int
    turn: int
    by_taps: bool
    bits: int = 8

    def __post_init__(self) -> None:
        wrong = [
            what
            for what, true in (
                ("an output, a tap, a kernel row, and a channel", min(self._counts) >= 1),
                ("whole turns", self.kernel_rows % max(self.turn, 1) == 0),
                (
                    "an exponent of 1 to 31",
                    self.to_int16 or self.form is not Form.ONE_SIDED or 1 <= self.exponent <= 31,
                ),
                ("outputs of 8 or 16 bits", self.bits in (8, 16)),
                ("16 bits rounded as int16 is", not self.to_int16 or self._rounds_to_int16),
                ("parts of whole words", self.part % 2 == 0),
                ("blocks of whole words", self.aligned),
            )
            if not true
        ]
        if wrong:
            raise InternalError(f"{self}: {'; '.join(wrong)}")

    @property
    def to_int16(self) -> bool:
        """Whether outputs are int16."""
        return self.bits == 16

    @property
    def _rounds_to_int16(self) -> bool:
        known = (self.form, self.zero_point) == (Form.ONE_SIDED, 0)
        return known and int16.complaint(self.exponent, self.low, self.high) is None

    @property
    def _counts(self) -> tuple[int, ...]:
        return self.outputs, self.taps, self.kernel_rows, self.channels, self.block, self.turn

    @property
    def aligned(self) -> bool:
        """Whether all blocks of a run begin in the same half of a word."""
        return self.block * self.between % 2 == 0 or all(r.count <= self.block for r in self.runs)

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        rest = f"_{self.rest}" if self.rest else ""
        window = f"{self.kernel_rows}x{self.taps}{rest}_s{self.stride}_d{self.dilation}"
        planes = f"p{self.part}_{self.kernel_row}_{self.next_row}_{self.plane}_g{self.channels}"
        rounding = {
            Form.ONE_SIDED: f"e{self.exponent}",
            Form.TWO_SIDED: "two_sided",
            Form.PLAIN: "plain",
        }[self.form]
        rounding += "_s16" if self.to_int16 else f"_z{self.zero_point}"
        if (self.low, self.high) != ((int16.LOW, int16.HIGH) if self.to_int16 else (-128, 127)):
            rounding += f"_{self.low}_{self.high}"
        tile = f"b{self.block}_t{self.turn}{'_taps' if self.by_taps else ''}"
        made = f"{self.outputs}_{window}_{planes}_o{self.step}_{self.below}_{rounding}_{tile}"
        return f"tinyet_windows_{made}_dsp".replace("-", "m")

    @property
    def apart(self) -> int:
        """Outputs so far apart look at the same part of a row."""
        return self.dilation // math.gcd(self.dilation, self.stride)

    @property
    def between(self) -> int:
        """Values between what such outputs look at."""
        return self.stride // math.gcd(self.dilation, self.stride)

    @cached_property
    def runs(self) -> tuple[Runs, ...]:
        """All outputs of a row: alike are together that come one after another."""
        found: list[Runs] = []
        for first in range(min(self.apart, self.outputs)):
            pixel = first * self.stride
            start = pixel % self.dilation * self.part + pixel // self.dilation
            count = len(range(first, self.outputs, self.apart))
            last = found[-1] if found else None
            if last is not None and last.count == count:
                further = (start - last.start) // last.times
                fits = last.start + last.times * further == start and further % 2 == 0
                if fits and last.further in (0, further):
                    found[-1] = Runs(last.start, further, count, last.times + 1, last.first)
                    continue
            found.append(Runs(start, 0, count, 1, first))
        return tuple(found)

    @property
    def weight_words(self) -> int:
        """Of the stream, of each channel: weights alone."""
        return -(-(self.taps * self.kernel_rows + self.rest) // 4)

    @property
    def channel_words(self) -> int:
        """Of the stream, of each channel."""
        return self.weight_words + (2 if self.to_int16 else 3)

    @property
    def summary(self) -> str:
        rounding = self.form.name.lower().replace("_", "-")
        if self.form is Form.ONE_SIDED:
            rounding += f", exponent {self.exponent}"
        rounding += ", int16" if self.to_int16 else ""
        rest = f" and {self.rest}" if self.rest else ""
        loop = f", {self.turn} kernel rows in a turn" if self.turn < self.kernel_rows else ""
        return (
            f"Rows of {self.outputs} outputs, {self.block} at a time, of {self.channels} channels; "
            f"{self.kernel_rows} x {self.taps}{rest} taps,\n"
            f" * stride {self.stride}, dilation {self.dilation}{loop}; rounding {rounding}. Printed by tinyet/tiles."
        )

    @property
    def literal(self) -> str:
        """The tinyet_depthwise_windows_shape_dsp as a C initialiser."""
        return (
            f"{{{self.outputs}, /* taps */ {self.taps}, {self.kernel_rows}, {self.rest}, "
            f"/* stride */ {self.stride}, /* dilation */ {self.dilation},\n"
            f"    /* part */ {self.part}, /* words */ {self.kernel_row}, {self.next_row}, {self.plane}, "
            f"/* channels */ {self.channels}, /* step */ {self.step}, {self.below},\n"
            f"    /* zero point */ {self.zero_point}, {{{self.form.value}, {self.exponent}, {self.low}, {self.high}}}}}"
        )
