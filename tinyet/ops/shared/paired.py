# SPDX-License-Identifier: Apache-2.0
"""Constants of the kernels that multiply two pixels' inputs at once, on cores that add a product of 64 bits in one
instruction.

A word 2**24 b + (a + 128) of two inputs times a weight adds to the sums of both pixels: that of `a` is in the low 24
bits, as long as it is within them with 2**23 added before the first product, that of `b` above. Only the whole sum
has to be; between products the fields may run over, because additions are modulo 2**64. Outputs are as
one_product.py has them.

Where products have 32 bits a word is 2**16 b + a, and taps are divided into runs: all of a channel have four taps, or
two, and what is too much for one is a run by itself: 128 * sum(|weight|) < 2**15. With 2**15 added before the first
product, what is above 16 bits is the upper sum of a run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.ir import Node
from tinyet.ir.memoize import memoize, memoize_by_weights
from tinyet.numerics import Int64
from tinyet.ops.shared import one_product
from tinyet.ops.shared.one_product import Rounding
from tinyet.ops.shared.packed_words import rows_of
from tinyet.opset import Constant, FieldValue

CHANNELS = 2
FIELD = 24
_ROOM = (2**15 - 1) // 128
FOUR = 4
_ALONE = 5
"""A weight by itself costs so many times what a run more does."""
_MOST_TAPS = 2**20
"""A weight by itself names its tap in so many steps."""


@memoize_by_weights
def rounding(node: Node) -> Rounding | str:
    """Of sums that fit a field: 2**(32 - FIELD) of them fit a word."""
    return one_product.rounding(node, before=32 - FIELD)


def refuse(node: Node) -> str | None:
    found = rounding(node)
    return found if isinstance(found, str) else None


@memoize_by_weights
def constants(node: Node) -> tuple[Constant, Constant]:
    """The stream and the weights of tinyet_conv2d_paired.h."""
    r = rounding(node)
    assert isinstance(r, Rounding)
    weights = rows_of(node)
    more, taps = -len(weights) % CHANNELS, -weights.shape[1] % 4
    first = r.bias - 128 * weights.astype(np.int64).sum(axis=1) + 2 ** (FIELD - 1)
    start = (r.bias << FIELD) + first
    halves = np.stack([start, start >> 32], axis=1)
    behind = np.stack([r.multiplier, r.offset, r.shift], axis=1)
    blocks = [
        np.pad(part, ((0, more), (0, 0))).reshape(-1, CHANNELS * part.shape[1]) for part in (halves, behind)
    ]
    stream = (np.concatenate(blocks, axis=1) & 0xFFFFFFFF).astype(np.uint32)
    padded = np.pad(weights, ((0, more), (0, taps))).reshape(-1, CHANNELS, weights.shape[1] + taps)
    twos = np.ascontiguousarray(padded.transpose(0, 2, 1))
    header = "as tinyet_conv2d_paired.h"
    return Constant("stream", stream, header), Constant("weights", twos, "two channels a tap")


@dataclass(frozen=True)
class Fours:
    """weights: (channels, taps), taps rounded up to fours, zero where a weight is by itself; alone: (channels, taps),
    those by themselves; twos: (channels,), which have runs of two taps."""

    weights: Int64
    alone: Int64
    twos: Int64

    @property
    def runs(self) -> Int64:
        """(channels,), those of one weight, too."""
        fours = self.weights.shape[1] // FOUR
        return np.asarray(fours * (1 + self.twos) + np.count_nonzero(self.alone, axis=1), np.int64)


def _without_what_is_too_much(weights: Int64, taps: int) -> Int64:
    """(channels, taps): in each run of so many the largest weights less, until the others fit 16 bits."""
    found = weights.copy().reshape(len(weights), -1, taps)
    while np.any(full := np.abs(found).sum(axis=2) > _ROOM):
        largest = np.abs(found).argmax(axis=2)[..., None]
        kept = np.where(full[..., None], 0, np.take_along_axis(found, largest, axis=2))
        np.put_along_axis(found, largest, kept, axis=2)
    return found.reshape(weights.shape)


@memoize
def in_fours(node: Node) -> Fours:
    """What is quicker for each channel."""
    rows = rows_of(node).astype(np.int64)
    weights = np.pad(rows, ((0, 0), (0, -rows.shape[1] % FOUR)))
    fours, twos = (_without_what_is_too_much(weights, taps) for taps in (FOUR, 2))
    alone, alone_of_twos = (np.count_nonzero(weights - kept, axis=1) for kept in (fours, twos))
    two = _ALONE * alone > _ALONE * alone_of_twos + weights.shape[1] // FOUR
    kept = np.where(two[:, None], twos, fours)
    return Fours(kept, weights - kept, two.astype(np.int64))


def refuse_in_fours(node: Node) -> str | None:
    return refuse(node) or (None if rows_of(node).shape[1] <= _MOST_TAPS else f"more than {_MOST_TAPS} taps")


@memoize_by_weights
def constants_in_fours(node: Node) -> tuple[Constant, Constant]:
    """Those of tinyet_conv2d_s8_paired_fours_4x1."""
    r, f = rounding(node), in_fours(node)
    assert isinstance(r, Rounding)
    start = np.stack([(r.bias << 16) + r.bias - (f.runs << 15), r.bias, f.twos], axis=1)
    behind = np.stack([r.multiplier, r.offset, r.shift], axis=1)
    words = np.where(f.alone != 0, (1 << 31) + (np.arange(f.alone.shape[1]) << 11) + (f.alone & 255), 0)
    parts = [
        part
        for channel, some in enumerate(words)
        for part in (start[channel], some[some != 0], behind[channel])
    ]
    stream = (np.concatenate(parts) & 0xFFFFFFFF).astype(np.uint32)
    return Constant("stream", stream, "as tinyet_conv2d_paired.h"), Constant(
        "weights", f.weights.astype(np.int8), "a channel a row"
    )


def scratch_bytes_in_fours(node: Node) -> int:
    """Four pixels' windows, two words a tap, taps rounded up to fours; four pixels' outputs."""
    channels, taps = rows_of(node).shape
    return int(8 * (taps + -taps % FOUR) + 4 * channels)


def fields(node: Node) -> dict[str, FieldValue]:
    """Of the params, behind the shape."""
    return one_product.fields(node, rounding(node))


def scratch_bytes(node: Node) -> int:
    """Four pixels' windows, two words a tap, taps rounded up to fours; four pixels' outputs."""
    channels, taps = rows_of(node).shape
    return int(8 * (taps + -taps % 4) + 4 * (channels + channels % CHANNELS))
