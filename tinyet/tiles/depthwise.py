# SPDX-License-Identifier: Apache-2.0
"""Output rows of 3x3 depthwise convolutions, channel by channel, of planes of int16 (tinyet_depthwise_chw_dsp.h): their
description.

A function of them is called with the stream of weights, the planes, the outputs of the first channel, and where the
first plane's input rows end that a turn of the loop over rows begins with.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.errors import InternalError
from tinyet.tiles import int16

HEADER = "tinyet_depthwise_rows_dsp.h"
"""Of the reference in C."""
KERNEL = 3
LARGEST_DOUBLE = 1020
"""Offset of LDRD, in bytes."""
LARGEST_OFFSET = 4095


@dataclass(frozen=True)
class Rows:
    """Two neighbouring outputs of a row at a time, or of two rows.

    outputs: of a row, the last one of an odd number by itself. stride: along the row; stride_v, dilation_v: from row
    to row. row_words: of a plane's row, a word two neighbouring inputs. plane_rows: of a plane. channels: of a call.
    together: output rows at a time; alone: behind all of these comes a last row by itself. step, two, below: bytes
    from an output to the next, to the next but one, and to that of the next row. pairs: the output is of int16, two
    channels a word (NHW2C2). turn: twos of outputs of a turn of the loop over a row. exponent: of a one-sided
    rounding; None for a two-sided one (tinyet_dsp.h). low, high: what outputs are clamped to.

    The stream of weights, in words, of each channel:
      wide: int16 as they are multiplied, of each kernel row {w0, w1} and, where the stride is 1, {w1, w2}, or behind
      all three {w2, w2'} and {0, w2''} | bias | multiplier | offset | shift, where the rounding is two-sided
      else: int8, of each kernel row the bytes {w0, x, w1, w2}, the first x the shift | bias | multiplier
    zero_point: of the outputs, where the stream has no offset; else 0. bits: of an output; those of 16 are of int8
    weights, whose stream has no shift, and rounded as int16.py has it, by an exponent.
    """

    outputs: int
    stride: int
    stride_v: int
    dilation_v: int
    row_words: int
    plane_rows: int
    channels: int
    together: int
    alone: bool
    step: int
    two: int
    below: int
    pairs: bool
    turn: int
    wide: bool
    exponent: int | None
    low: int = -128
    high: int = 127
    zero_point: int = 0
    bits: int = 8

    def __post_init__(self) -> None:
        wrong = [
            what
            for what, true in (
                ("a stride of 1 or 2", self.stride in (1, 2)),
                ("whole turns", self.twos % max(self.turn, 1) == 0 and (self.turn > 0) == (self.twos > 0)),
                ("two rows of strides and a dilation of 1", self.together == 1 or self._dense),
                ("a row alone behind rows of two", self.together == 2 or not self.alone),
                ("a channel at least", self.channels >= 1),
                (
                    "an exponent of 1 to 31",
                    self.to_int16 or self.exponent is None or 1 <= self.exponent <= 31,
                ),
                ("outputs of 8 or 16 bits", self.bits in (8, 16)),
                ("16 bits rounded as int16 is", not self.to_int16 or self._rounds_to_int16),
                ("no zero point where there are offsets", not self.wide or self.zero_point == 0),
                ("a plane of rows", self.tile >= self.together),
                ("rows within the reach of a load", 4 * self.last_row <= LARGEST_DOUBLE),
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
        exponent = -1 if self.exponent is None else self.exponent
        apart = (self.wide, self.pairs, self.zero_point) == (False, False, 0)
        return apart and int16.complaint(exponent, self.low, self.high) is None

    @property
    def _dense(self) -> bool:
        return (self.stride, self.stride_v, self.dilation_v) == (1, 1, 1)

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        size = f"{self.together}x{self.outputs}{'_alone' if self.alone else ''}"
        window = f"s{self.stride}{self.stride_v}_d{self.dilation_v}"
        planes = f"p{self.plane_rows}x{self.row_words}_g{self.channels}"
        out = f"o{self.step}_{self.two}_{self.below}{'_pairs' if self.pairs else ''}"
        weights = "w16" if self.wide else f"w8_z{self.zero_point}".replace("-", "m")
        weights = "s16" if self.to_int16 else weights
        rounding = "two_sided" if self.exponent is None else f"e{self.exponent}"
        if (self.low, self.high) != ((int16.LOW, int16.HIGH) if self.to_int16 else (-128, 127)):
            rounding += f"_{self.low}_{self.high}".replace("-", "m")
        return f"tinyet_depthwise_{size}_{window}_{planes}_{out}_{weights}_{rounding}_t{self.turn}_dsp"

    @property
    def twos(self) -> int:
        """Of outputs of a row."""
        return self.outputs // 2

    @property
    def tile(self) -> int:
        """Output rows of a plane."""
        return (self.plane_rows - (KERNEL - 1) * self.dilation_v - 1) // self.stride_v + 1

    @property
    def last_row(self) -> int:
        """Words from the first input row of a turn to the last."""
        return (self.together + 1) * self.dilation_v * self.row_words

    @property
    def weight_words(self) -> int:
        """Of the stream, of each channel: weights alone."""
        return (6 if self.stride == 1 else 5) if self.wide else 3

    @property
    def channel_words(self) -> int:
        """Of the stream, of each channel."""
        return self.weight_words + (2 if not self.wide else 3 if self.exponent is not None else 4)

    @property
    def summary(self) -> str:
        rows = "two rows" if self.together == 2 else "one row"
        rounding = "two-sided" if self.exponent is None else f"one-sided, exponent {self.exponent}"
        return (
            f"3x3, rows of {self.outputs} outputs, {rows} at a time, of {self.channels} channels one after another,\n"
            f" * from planes of {self.plane_rows} rows of {self.row_words} words; strides {self.stride} along rows and "
            f"{self.stride_v} across,\n * dilation {self.dilation_v} across; int{16 if self.wide else 8} weights, "
            f"int{self.bits} outputs; "
            f"rounding {rounding}.\n * Printed by tinyet/tiles."
        )

    @property
    def literal(self) -> str:
        """The tinyet_depthwise_rows_shape_dsp as a C initialiser."""
        form = "TINYET_DSP_TWO_SIDED" if self.exponent is None else "TINYET_DSP_ONE_SIDED"
        return (
            f"{{{self.outputs}, /* strides */ {self.stride}, {self.stride_v}, /* dilation */ {self.dilation_v}, "
            f"/* plane */ {self.row_words}, {self.plane_rows},\n"
            f"    /* channels */ {self.channels}, /* alone */ {int(self.alone)}, /* step */ {self.step}, {self.two}, "
            f"{self.below}, /* pairs */ {int(self.pairs)},\n"
            f"    /* wide */ {int(self.wide)}, /* zero point */ {self.zero_point}, "
            f"{{{form}, {self.exponent or 0}, {self.low}, {self.high}}}}}"
        )
