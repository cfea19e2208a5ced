# SPDX-License-Identifier: Apache-2.0
"""The description of a tile: so many output pixels by so many output channels, whose sums are in registers."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tinyet.errors import InternalError
from tinyet.tiles import int16
from tinyet.tiles.lanes import PIXELS, Lanes

_LARGEST_OFFSET = 4095


class Weights(enum.Enum):
    """How the weights of a pair of input values lie in the stream. The value stands in the names of functions.

    PACKED: of two channels a and b a word, whose halves are 256 * b + a: 8 bits a weight. The product of such a half is
    256 times that of b and one of a more; the lower bytes, extended, are the weights of a.
    WIDE: of each channel a word, whose halves are its two weights, int16.
    CROSSED: as PACKED, of one pixel; of each two pairs x0, x1 a channel a comes of Winograd's inner product with its
    weights a0, a1, (a0 + x1) * (a1 + x0) = a0 * x0 + a1 * x1 + a0 * a1 + x0 * x1: its lower bytes are extended and have
    the inputs added by one instruction. The third term is the channel's, the fourth the inputs'.
    LONG: as PACKED, of one pixel whose values are int16: what is 256 * b + a is summed up in 64 bits.
    BYTES: of two channels a and b a word, bytes a0, b0, a1, b1, of pixels in lanes.

    Of int4, four channels a, b, c and d have a word:
    NIBBLES: a and b in the upper halves of its bytes, a in bytes 0 and 2, c and d in the lower ones: bytes of 16 times
    a weight.
    DIGITS: each half is 4096 * d + 256 * c + 16 * b + a, a number of four digits with signs. It is a factor as it lies,
    and so are its lower byte, 16 times its lower three digits, and 16 times its lowest one; the sums are taken apart at
    the end. No digit may be -8 where what is below it is less than zero.
    CROSSED_DIGITS: of one pixel, with 8 added to a, b and c, whose digits have no sign: factors are the half as it
    lies, and its digits c and a together; its lower byte, and its digit a, by Winograd's inner product, as CROSSED.
    LONG_DIGITS: the same where what is 4096 * d is summed up in 64 bits.
    """

    PACKED = "w8"
    WIDE = "w16"
    CROSSED = "w8c"
    LONG = "w8l"
    BYTES = "w8b"
    NIBBLES = "w4"
    DIGITS = "w4d"
    CROSSED_DIGITS = "w4c"
    LONG_DIGITS = "w4l"

    @property
    def packed(self) -> bool:
        """Whether a word has weights of several channels."""
        return self.of_word > 1

    @property
    def of_word(self) -> int:
        """Channels whose weights a word has."""
        return 1 if self is Weights.WIDE else 4 if self.int4 else 2

    @property
    def int4(self) -> bool:
        return self.value.startswith("w4")

    @property
    def crossed(self) -> bool:
        """Whether sums come of Winograd's inner product."""
        return self in (Weights.CROSSED, Weights.CROSSED_DIGITS, Weights.LONG_DIGITS)

    def scale(self, channel: int) -> int:
        """The binary exponent of what the sum of one of a group's channels is a multiple of, once it is by itself."""
        return _SCALES[self][channel % self.of_word]


_SCALES = {
    Weights.PACKED: (0, 8),
    Weights.WIDE: (0,),
    Weights.CROSSED: (0, 8),
    Weights.LONG: (0, 0),
    Weights.NIBBLES: (4, 4, 4, 4),
    Weights.DIGITS: (4, 4, 12, 12),
    Weights.CROSSED_DIGITS: (0, 4, 8, 12),
    Weights.LONG_DIGITS: (0, 4, 8, 0),
}


@dataclass(frozen=True)
class Tile:
    """All output channels of some neighbouring pixels, so many at a time: products, rounding, stores.

    pixels, channels: whose sums are in registers at a time; channels even where they are packed, four of int4.
    weights: see there.
    pairs: of input values, a word each, for each pixel. exponent: of a one-sided rounding; None for a two-sided one
    (firmware/include/tinyet_dsp.h), and where it is plain, for any factor. step: bytes from pixel to pixel of the
    output. at_once: pairs whose inputs and weights are one load of several registers each; 0 for loads of one register,
    side by side. straight: pairs of straight code, at most; turn: of a turn of the loop where there are more. groups:
    how often `channels` are computed before the loop over them branches. alike: packed and one-sided, 256 times each
    sum is rounded, without a shift. bits: of an output. Those of 16 are of int16 values, of one pixel by loads that
    fill or of four in lanes, rounded as int16.py has it and clamped to `low` and `high`; those of 32 are the sums of
    such values. lanes: how the inputs of four pixels of int16 lie.

    The inputs: for each pair a word of each pixel; of four pixels all of the first two, then all of the others, unless
    they are in lanes. The stream of weights, in words, for each group of `channels`:
      bias of each | for each pair the weights | for each, or for WIDE for all together: multiplier | offset | shift
    CROSSED, for each two pairs and each two channels the word of the first pair and that of the second.
    Packed, channel b comes before a there, its bias is 256 times itself and that of a, and its shift is what is left to
    be shifted right where the rounding is one-sided. WIDE has no shift where it is one-sided. Alike, two channels have:
      multiplier a | multiplier b | offset a | offset b
    LONG, each two channels begin with 64 bits, 256 times the bias of b and that of a, and behind all of these is the
    bias of each a. int16 outputs have a multiplier each and nothing else, sums nothing.
    Of int4, the biases are what the four sums begin with, of LONG_DIGITS the last one 64 bits; channel b comes before a
    there, and d before c. A one-sided shift is by as much as is missing of `Weights.scale`, or too much. Behind crossed
    inputs are three words: see `filling.py`.
    Plain, the words of a channel lie together:
      multiplier | offset | shift | before | mask
    before: by how much its sums are shifted to the left, one more than its factor wants; shift: to the right behind the
    multiplication; mask: 0 where that is by nothing, else -1, for then sums below zero are one less.
    """

    pixels: int
    channels: int
    weights: Weights
    pairs: int
    exponent: int | None
    step: int
    at_once: int = 0
    straight: int = 32
    turn: int = 16
    groups: int = 1
    alike: bool = False
    filling: bool = False
    plain: bool = False
    bits: int = 8
    low: int = int16.LOW
    high: int = int16.HIGH
    lanes: Lanes | None = None

    def __post_init__(self) -> None:
        wrong = [
            what
            for what, true in (
                ("packed channels are pairs", not self.weights.packed or self.channels % 2 == 0),
                ("int4 weights are of four channels", not self.weights.int4 or self.channels == 4),
                (
                    "NIBBLES and DIGITS are of up to three pixels, and of loads of one register",
                    self.weights not in (Weights.NIBBLES, Weights.DIGITS)
                    or (self.pixels < 4 and not self.at_once and not self.filling),
                ),
                ("at least one pixel, channel and pair", min(self.pixels, self.channels, self.pairs) >= 1),
                ("whole loads", self.pairs % max(self.at_once, 1) == 0 == self.turn % max(self.at_once, 1)),
                (
                    "alike are packed channels of a one-sided rounding",
                    not self.alike or (self.weights.packed and self.exponent is not None),
                ),
                (
                    "crossed weights are of two pairs, one pixel and loads that fill",
                    not self.weights.crossed
                    or (self.pairs % 2 == 0 == self.turn % 2 and self.pixels == 1 and self.filling),
                ),
                (
                    "loads that fill are of one pixel, and of weights that need no other register",
                    not self.filling
                    or (self.pixels == 1 and not self.at_once and self.weights is not Weights.PACKED),
                ),
                (
                    "four pixels are loads of one register, of the others' inputs as far as an address reaches",
                    self.pixels != 4
                    or self.lanes is not None
                    or not (self.at_once or 8 * (self.pairs + max(self.before, self.turn)) > _LARGEST_OFFSET),
                ),
                (
                    "plain are sums of one channel a word, without an exponent",
                    not self.plain
                    or (self.weights is Weights.WIDE and self.exponent is None and not self.filling),
                ),
                (
                    "an exponent of 1 to 31",
                    self.bits == 16 or self.exponent is None or 1 <= self.exponent <= 31,
                ),
                ("outputs of 8, 16 or 32 bits", self.bits in (8, 16, 32)),
                ("16 bits rounded as int16 is", self.bits != 16 or self._rounds_to_int16),
                (
                    "LONG weights, and they alone beside WIDE ones, for int16 values, and loads that fill",
                    self.lanes is not None
                    or (self.bits > 8 and self.filling and self.weights in (Weights.WIDE, Weights.LONG))
                    or (self.bits == 8 and self.weights not in (Weights.LONG, Weights.BYTES)),
                ),
                (
                    "lanes of four pixels, of int16 values by BYTES or WIDE weights, whole ones in straight code",
                    self.lanes is None or self._takes(self.lanes),
                ),
            )
            if not true
        ]
        if wrong:
            raise InternalError(f"a tile of {self}: {'; '.join(wrong)}")

    def _takes(self, lanes: Lanes) -> bool:
        return (
            (self.pixels, self.at_once, self.filling, self.bits > 8) == (PIXELS, 0, False, True)
            and self.weights in (Weights.BYTES, Weights.WIDE)
            and self.pairs % lanes.taps == 0 == min(self.turns, 1) * self.turn % lanes.taps
        )

    @property
    def _rounds_to_int16(self) -> bool:
        exponent = -1 if self.exponent is None else self.exponent
        return int16.complaint(exponent, self.low, self.high) is None

    @property
    def name(self) -> str:
        """Says all that it is made for."""
        two_sided = "plain" if self.plain else "two_sided"
        rounding = two_sided if self.exponent is None else f"e{self.exponent}{'_alike' if self.alike else ''}"
        if self.bits > 8:
            rounding = f"s16_e{self.exponent}" if self.bits == 16 else "sums"
            if (self.low, self.high) != (int16.LOW, int16.HIGH):
                rounding += f"_{self.low}_{self.high}".replace("-", "m")
        size = f"{self.pixels}x{self.channels}"
        more = f"_x{self.at_once}" if self.at_once else "_full" if self.filling else ""
        more += self.lanes.name if self.lanes is not None else ""
        more += f"_t{self.turn}" if self.turns else ""
        more += f"_g{self.groups}" if self.groups > 1 else ""
        return f"tinyet_tile_{size}_{self.weights.value}_{self.pairs}p_{rounding}_s{self.step}{more}_dsp"

    @property
    def side(self) -> int:
        """Pixels whose words of a pair lie side by side."""
        return 2 if self.pixels == 4 else self.pixels

    @property
    def units(self) -> int:
        """Channels of a turn of the loop over them."""
        return self.channels * self.groups

    @property
    def turns(self) -> int:
        """Of the loop; 0 where all is straight."""
        if self.pairs <= self.straight:
            return 0
        # What comes before the loop begins the sums of several pixels, so it is not empty there.
        return (self.pairs - (0 if self.pixels == 1 else 1)) // self.turn

    @property
    def before(self) -> int:
        """Pairs of straight code before the loop."""
        return self.pairs - self.turns * self.turn

    @property
    def words(self) -> int:
        """Of weights of a pair."""
        return self.channels // self.weights.of_word

    @property
    def lift(self) -> int:
        """By how much all sums of a packed channel a are shifted to the left before they are rounded."""
        return 8 if self.alike else 1 if self.exponent is None else 0

    @property
    def moves(self) -> bool:
        """Whether loads move the pointers."""
        return self.filling or self.at_once > 0

    @property
    def input_words(self) -> int:
        """All that a call reads of its pixels."""
        if self.lanes is not None:
            return self.lanes.words(self.pairs)
        return self.pairs * self.pixels + (1 if self.weights is Weights.CROSSED else 3 * self.weights.crossed)

    def words_of(self, pairs: int) -> int:
        """From a pair of inputs to the one that comes so much later; in lanes, of whole ones."""
        return self.side * pairs if self.lanes is None else self.lanes.words(pairs)

    @property
    def group_words(self) -> int:
        """Of the stream, for each group of channels."""
        ends = 2 if self.alike or (self.weights is Weights.WIDE and self.exponent is not None) else 3
        ends = 5 if self.plain else ends
        if self.bits > 8:
            ends = 1 if self.bits == 16 else 0
        return self.bias_words + self.channels * ends + self.pairs * self.words

    @property
    def bias_words(self) -> int:
        """Of the stream, for each group of channels: what the sums begin with, a register each."""
        more = {Weights.LONG: self.channels // 2, Weights.LONG_DIGITS: 1}
        return self.channels + more.get(self.weights, 0)
