# SPDX-License-Identifier: Apache-2.0
"""Inputs of four neighbouring pixels in lanes (tinyet_conv2d_s16_dsp.h): the pixels share the columns that several
of them see.

A lane is a pair of neighbouring values of one kernel row, and has a word of each input column that the pixels see of
it.
"""

from __future__ import annotations

from dataclasses import dataclass

PIXELS = 4


@dataclass(frozen=True)
class Lanes:
    """taps: of a kernel row; 1 where pixels share nothing. stride, dilation: of columns.

    A lane has `min(stride, reach + 1)` runs of `run` words, run f being the columns f, f + stride, f + 2 * stride, …;
    tap t of pixel m is word t * dilation / stride + m of run t * dilation % stride. Either stride or dilation is 1.
    """

    taps: int = 1
    stride: int = 1
    dilation: int = 1

    @property
    def reach(self) -> int:
        """Columns from the first tap to the last."""
        return (self.taps - 1) * self.dilation

    @property
    def run(self) -> int:
        return self.reach // self.stride + PIXELS

    @property
    def width(self) -> int:
        """Words of a lane."""
        return min(self.stride, self.reach + 1) * self.run

    @property
    def name(self) -> str:
        """In the names of functions."""
        steps = "" if (self.stride, self.dilation) == (1, 1) else f"x{self.stride}x{self.dilation}"
        return f"_l{self.taps}{steps}"

    def words(self, pairs: int) -> int:
        """Of so many pairs of values, of whole lanes."""
        return pairs // self.taps * self.width

    def place(self, pair: int, pixel: int) -> int:
        """Of a word, from where the first lane begins. pair: lane by lane the taps of each."""
        lane, tap = divmod(pair, self.taps)
        after, which = divmod(tap * self.dilation, self.stride)
        return lane * self.width + which * self.run + after + pixel
