# SPDX-License-Identifier: Apache-2.0
"""Constants of the kernel that makes six products, of three pixels and two channels, by two products that are added up
in 64 bits (tinyet_conv2d_s8_outer_threes_3x4).

Two words of a tap are 2**21 b + a and 2**21 c + b of three pixels' inputs, a word of weights is 2**21 w + v of two
channels. With the sums over all taps written as Av for a times v, the two products add up to

    2**42 Bw + 2**21 (Bv + Aw) + Av        and        2**42 Cw + 2**21 (Cv + Bw) + Bv

modulo 2**64. Each sum begins with 2**20, so that it is positive and has 21 bits; a place of two has 22, and what it has
above 21 is carried into the place above. Six sums come out one by one: Av and Bv are the lowest places; Bv taken out of
the first at 2**21 leaves Aw and, above it, Bw; this taken out of the second there leaves Cv and Cw. As only whole
sums have to fit, it does not matter that products in between reach over all places. Parts of the taps, tiles, and what
makes outputs of sums are those of paired_threes.py; tiles whose sums have more bits can be direct, too.
"""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.paired_threes import FIELD, stream, tiles
from tinyet.opset import Constant

PIXELS = 3
TURN = 32
"""Taps in a turn of the loop."""


def left_out(taps: int) -> int:
    """Of a part's first turn, of which one is left at least."""
    return -taps % TURN


@memoize_by_weights
def constants(node: Node) -> tuple[Constant, Constant]:
    """The stream and the weights of tinyet_conv2d_outer.h."""

    def turns(taps: int) -> tuple[int, int]:
        return 8 * taps, 8 * left_out(taps)

    rows = rows_of(node).astype(np.int64)
    fours = np.stack([rows[list(channels)].T for channels, _ in tiles(node, wide=True)])
    words = (fours[..., ::2] + (fours[..., 1::2] << FIELD)) & 0xFFFFFFFF
    weights = Constant("weights", words.astype(np.uint32), "two words a tap, of two channels each")
    return stream(node, turns, with_direct=True, wide=True), weights


def scratch_bytes(node: Node) -> int:
    """Three pixels' windows, two words a tap; three pixels' outputs."""
    channels, taps = rows_of(node).shape
    return int(8 * taps + PIXELS * channels)
