# SPDX-License-Identifier: Apache-2.0
"""Constants of the kernel that multiplies three pixels' inputs by two products of 32 bits, two channels at a time
(tinyet_conv2d_s8_paired_threes_6x2), for cores whose registers hold the sums of no more channels, and which have no
upper half of a product: Xtensa.

Words of inputs and parts of taps are as paired_threes.py has them, outputs as two_products.py has them. Weights are
int16, which these cores load with their sign; bytes they do not.
"""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.ops.shared import packed_words, paired_threes
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.two_products import Rescaling
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant

CHANNELS = 2
TURN = 16
"""Taps in a turn of the loop."""


@memoize_by_weights
def constants(node: Node) -> tuple[Constant, Constant]:
    """The stream and the weights of tinyet_conv2d_paired_6x2.h."""
    sums = packed_words.rescaling(node)
    assert isinstance(sums, Rescaling)
    rows = rows_of(node)
    bias, rounding = folded_bias(node) - sums.start, sums.words(0, len(rows)).tolist()
    found, words = paired_threes.tiles(node, CHANNELS), list[int]()
    for channels, parts in found:
        for k, (start, end) in enumerate(parts):
            kind = paired_threes.NOT_FIRST * (k > 0) + paired_threes.NOT_LAST * (k + 1 < len(parts))
            taps = end - start
            words += [4 * (-taps % TURN), 4 * taps, kind]
        for channel in channels:
            added = int(bias[channel]) - len(parts) * paired_threes.OFFSET
            words += [added, channel, *rounding[channel]]
    words.append(-1)
    stream = (np.array(words, np.int64) & 0xFFFFFFFF).astype(np.uint32)
    twos = np.stack([rows[list(channels)].T for channels, _ in found]).astype(np.int16)
    return Constant("stream", stream, "as tinyet_conv2d_paired_6x2.h"), Constant(
        "weights", twos, "two channels a tap"
    )
