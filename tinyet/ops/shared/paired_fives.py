# SPDX-License-Identifier: Apache-2.0
"""Constants of the kernel that multiplies five pixels' inputs by three products of 32 bits
(tinyet_conv2d_s8_paired_fives_5x2).

Three words of a tap are 2**19 d + a, 2**19 e + b and 2**12 e + 2**6 d + c. Times a weight they add up to the same of
the sums, modulo 2**32: as long as each of these, with 2**18, has 19 bits, the first word has A and the lowest thirteen
bits of D, the second B and those of E; without them, 2**6 and 2**12 times, the third has C in its lowest 19 bits, and
above it the other six of D and of E. Nothing is drained in between. 95 bits of five sums are in the 96 of three words:
weights of a channel add up to some 2,050 at most. Where they are more, taps are divided into two parts, at the same tap
for all such channels, which are computed behind the others.

Outputs are as depthwise_planes.py has them, of 2**12 times the sums, for a bit is left for how far zero is from the
middle of the sums; of two parts 2**11 times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.ir import Node
from tinyet.ir.memoize import memoize_by_weights
from tinyet.numerics import Int64, clamp_range
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.depthwise_planes import folded_in_fives, folded_whole
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.packed_words import rows_of
from tinyet.ops.shared.paired_checked import padded
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


@dataclass(frozen=True)
class Parts:
    """whole: channels of one part; others: of two, the first of `split` taps. Both even in number."""

    whole: tuple[int, ...]
    others: tuple[int, ...]
    split: int


@memoize_by_weights
def parts(node: Node) -> Parts | str:
    """Of a node with an even number of channels; or why there are none."""
    rows = rows_of(node).astype(np.int64)
    whole = fits(rows) & folded_in_fives(node).found
    wide = folded_whole(node).found
    if np.any(~whole & ~wide):
        return "what is added to products is not all in the sums"
    chosen = np.flatnonzero(whole)
    if len(chosen) % CHANNELS:
        # Any that can be of two parts, too.
        movable = chosen[wide[chosen]]
        if not len(movable):
            return "what is added to products is not all in the sums"
        chosen = chosen[chosen != movable[-1]]
    others = np.setdiff1d(np.arange(len(rows)), chosen)
    splits = splits_of(rows[others]) if len(others) else [0]
    if not splits:
        return f"sums do not fit {FIELD} bits, nor those of two parts"
    # Turns of the loop are as full as they can be.
    split = min(splits, key=lambda k: (turns(k) + turns(rows.shape[1] - k), k))
    return Parts(tuple(chosen.tolist()), tuple(others.tolist()), split)


def fits(rows: Int64) -> npt.NDArray[np.bool_]:
    """Which channels' sums have room, (channels,)."""
    least, most = sum_range(rows, np.zeros(len(rows), np.int64))
    return np.asarray((least >= -OFFSET) & (most < OFFSET), np.bool_)


def splits_of(rows: Int64) -> list[int]:
    """Numbers of taps of a first part with which both parts of each channel have room."""
    products = rows * 127, rows * -128
    least, most = np.cumsum(np.minimum(*products), axis=1), np.cumsum(np.maximum(*products), axis=1)
    room = [
        (low >= -OFFSET) & (high < OFFSET)
        for low, high in ((least, most), (least[:, -1:] - least, most[:, -1:] - most))
    ]
    return [int(k) + 1 for k in np.flatnonzero((room[0] & room[1]).all(axis=0)[:-1])]


def turns(taps: int) -> int:
    return -(-taps // TURN)


def refuse(node: Node) -> str | None:
    attrs, channels = attrs_of(node), node.output.shape[3]
    if (attrs.dilation_h, attrs.dilation_w) != (1, 1):
        return "only without dilation"
    if channels % CHANNELS:
        return "only even numbers of output channels"
    found = parts(node)
    return found if isinstance(found, str) else None


@memoize_by_weights
def stream(node: Node) -> Constant:
    """Of tinyet_conv2d_s8_paired_fives_5x2, uint32 (pairs of channels, words)."""
    found, rows = parts(node), rows_of(node)
    assert isinstance(found, Parts)
    order = np.array([*found.whole, *found.others])
    rows = np.pad(rows[order], ((0, 0), (0, rows.shape[1] % 2)))
    # (pairs, words, taps of a word, channels of a pair)
    by_words = rows.reshape(len(rows) // CHANNELS, CHANNELS, -1, 2).transpose(0, 2, 3, 1)
    bytes_of = by_words.reshape(*by_words.shape[:2], 4).astype(np.uint8).astype(np.int64)
    weights = (bytes_of << np.arange(0, 32, 8)).sum(axis=2)
    ends = []
    for channels, times, f in (
        (list(found.whole), 1, folded_in_fives(node)),
        (list(found.others), 2, folded_whole(node)),
    ):
        start = f.start[channels] + (folded_bias(node)[channels] - times * OFFSET << f.before[channels])
        ends.append(np.stack([start, f.multiplier[channels], np.diff(channels, prepend=0)], axis=1))
    end = np.concatenate(ends).reshape(len(weights), -1)
    words = np.concatenate([weights, end], axis=1).astype(np.int64) & 0xFFFFFFFF
    return Constant("stream", words.astype(np.uint32), "as tinyet_conv2d_paired.h")


def scratch_bytes(node: Node) -> int:
    """Five pixels' windows, three words a tap; five pixels' outputs; five windows; the padded image."""
    channels, taps = rows_of(node).shape
    image = math.prod(padded(node)) * node.input(0).shape[3]
    return int(4 * WORDS * taps + PIXELS * (channels + taps) + image)


def fields(node: Node) -> dict[str, FieldValue]:
    """Of the params, behind the shape."""
    low, high = clamp_range(clamp_of(node), node.output.type)
    padding = node.input(0).type.zero_point
    found, (rows, columns) = parts(node), padded(node)
    assert isinstance(found, Parts)
    return {
        "stream": Pointer("stream"),
        "padding": padding,
        "clamp_low": low,
        "clamp_high": high,
        "whole": len(found.whole),
        "split": found.split,
        "padded_h": rows,
        "padded_w": columns,
    }
