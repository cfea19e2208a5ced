# SPDX-License-Identifier: Apache-2.0
"""Constants of the kernel that multiplies five pixels' inputs by three products of 32 bits
(tinyet_conv2d_s8_paired_fives_5x2).

Three words of a tap are 2**19 d + a, 2**19 e + b and 2**12 e + 2**6 d + c. Times a weight they add up to the same of the
sums, modulo 2**32: as long as each of these, with 2**18, has 19 bits, the first word has A and the lowest thirteen bits
of D, the second B and those of E; without them, 2**6 and 2**12 times, the third has C in its lowest 19 bits, and above
it the other six of D and of E. Nothing is drained in between. 95 bits of five sums are in the 96 of three words, so that
the kernel is for layers of few taps or small weights: those whose weights add up to some 2,050 at most in each channel.

Outputs are as depthwise_planes.py has them, of 2**12 times the sums: a bit is left for how far zero is from the middle of
the sums.
"""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.numerics import clamp_range
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.depthwise_planes import FIVES_BEFORE, folded_in_fives
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Constant, FieldValue, Pointer

PIXELS, CHANNELS = 5, 2
WORDS = 3
"""Of a tap."""
FIELD = 19
OFFSET = 2 ** (FIELD - 1)
"""What each sum has before the first product."""
TURN = 16
"""Taps in a turn of the loop."""


def refuse(node: Node) -> str | None:
    attrs, rows = attrs_of(node), rows_of(node).astype(np.int64)
    if (attrs.dilation_h, attrs.dilation_w) != (1, 1):
        return "only without dilation"
    if len(rows) % CHANNELS:
        return "only even numbers of output channels"
    least, most = sum_range(rows, np.zeros(len(rows), np.int64))
    if np.any(least < -OFFSET) or np.any(most >= OFFSET):
        return f"sums do not fit {FIELD} bits"
    return None if folded_in_fives(node).found.all() else "what is added to products is not all in the sums"


@memoize_by_weights
def stream(node: Node) -> Constant:
    """Of tinyet_conv2d_s8_paired_fives_5x2, uint32 (pairs of channels, words)."""
    f, rows = folded_in_fives(node), rows_of(node)
    rows = np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))
    # (pairs, words, taps of a word, channels of a pair)
    by_words = rows.reshape(len(rows) // CHANNELS, CHANNELS, -1, 2).transpose(0, 2, 3, 1)
    bytes_of = by_words.reshape(*by_words.shape[:2], 4).astype(np.uint8).astype(np.int64)
    weights = (bytes_of << np.arange(0, 32, 8)).sum(axis=2)
    start = f.start + (folded_bias(node) - OFFSET << FIVES_BEFORE)
    end = np.stack([start, f.multiplier], axis=1).reshape(len(weights), -1)
    found = np.concatenate([weights, end], axis=1) & 0xFFFFFFFF
    return Constant("stream", found.astype(np.uint32), "as tinyet_conv2d_paired.h")


def scratch_bytes(node: Node) -> int:
    """Five pixels' windows, three words a tap; five pixels' outputs; five windows."""
    channels, taps = rows_of(node).shape
    return int(4 * WORDS * taps + PIXELS * (channels + taps))


def fields(node: Node) -> dict[str, FieldValue]:
    """Of the params, behind the shape."""
    low, high = clamp_range(clamp_of(node), node.output.type)
    padding = node.input(0).type.zero_point
    return {"stream": Pointer("stream"), "padding": padding, "clamp_low": low, "clamp_high": high}
