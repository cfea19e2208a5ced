# SPDX-License-Identifier: Apache-2.0
"""Constants of the convolution that multiplies two pixels' inputs at once, one channel at a time, for cores whose
registers hold the sums of several pixels, but not of several channels: Xtensa.

A word 2**16 b + a of two inputs times a weight adds to the sums of both pixels. Taps are divided into runs: as many as
cannot leave 16 bits, 128 * sum(|weight|) < 2**15. With 2**15 less, the lower half of a run is negative, whatever the
inputs, so that what is above 16 bits is the upper sum, less one: as many as a channel has runs are in its start.
Outputs are as two_products.py has them. Weights are int16, which these cores load with their sign; bytes they do not.
"""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize
from tinyet.ops.shared import packed_words
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.two_products import Rescaling
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant

LONGEST = 10
"""Taps of a run at most: TINYET_PAIRED_6X1_LONGEST."""
PIXELS = 6
_ROOM = (2**15 - 1) // 128


@memoize
def all_runs(node: Node) -> list[list[tuple[int, int]]]:
    """Of each channel."""
    magnitudes = np.abs(rows_of(node).astype(np.int64))
    return [packed_words.runs(row[:, None], _ROOM, LONGEST) for row in magnitudes]


def constants(node: Node) -> tuple[Constant, Constant]:
    """The stream and the weights of tinyet_conv2d_paired_6x1.h."""
    sums = packed_words.rescaling(node)
    assert isinstance(sums, Rescaling)
    weights, found = rows_of(node), all_runs(node)
    bias = folded_bias(node) - sums.start
    start = (
        np.stack([(bias << 16) + bias, bias + np.array([len(some) for some in found])], axis=1) & 0xFFFFFFFF
    )
    stream = np.concatenate([start, sums.words(0, len(weights))], axis=1).astype(np.uint32)
    parts = [
        np.array(part, np.int16)
        for row, some in zip(weights, found, strict=True)
        for part in (*(x for first, end in some for x in ([4 * (end - first)], row[first:end])), [0])
    ]
    return Constant("stream", stream, "as tinyet_conv2d_paired_6x1.h"), Constant(
        "weights", np.concatenate(parts), "runs of taps of a channel"
    )


def scratch_bytes(node: Node) -> int:
    """Six pixels' windows, three words a tap; six pixels' outputs."""
    channels, taps = rows_of(node).shape
    return int(12 * taps + PIXELS * channels)
