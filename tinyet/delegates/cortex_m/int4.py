# SPDX-License-Identifier: Apache-2.0
"""Weights of int4 as tiles of four channels read them (tinyet_tile_w4_dsp.h)."""

from __future__ import annotations

import numpy as np

from tinyet.delegates.cortex_m.packing import join_bytes, pack_int16x2, words
from tinyet.delegates.cortex_m.rounding import LIMIT, Rounding, max_of_sums, rounding
from tinyet.ir import Node
from tinyet.numerics import Int64
from tinyet.ops.shared.clamped import clamp_of
from tinyet.tiles.tile import Weights

CHANNELS = 4
"""Of a word."""
LEAST_BEFORE, MOST_BEFORE = 4, 8
"""Shifts of a sum before a one-sided multiplication: to the left of 16 times a sum, to the right of 256 times it."""
_PLACES = np.array([1, 16, 256, 4096])
"""Of the four digits of a half of a word."""
_ADDED = np.array([8, 8, 8, 0])
"""To weights of crossed digits."""


def chosen_rounding(node: Node) -> Rounding:
    """Such as sums of all forms of weights can have."""
    return rounding(node, clamp_of(node), MOST_BEFORE, LEAST_BEFORE)


def lanes(weights: Int64) -> Int64:
    """(…, 4, columns) → (…, columns): four digits as one number."""
    return np.asarray((weights * _PLACES[:, None]).sum(axis=-2), np.int64)


def have_signs(r: Rounding, groups: Int64) -> bool:
    """Whether digits with signs hold the weights of these channels, (groups, 4), and their sums 32 bits."""
    weights = r.weights[groups]
    for count in range(2, CHANNELS + 1):
        # Only the last digit may make a number too small for its bits.
        if weights.size and lanes(
            np.pad(weights[:, :count], ((0, 0), (0, CHANNELS - count), (0, 0)))
        ).min() < -(1 << (4 * count - 1)):
            return False
    a, b, c, d = max_of_sums(r)[groups].T
    return bool(np.all(4096 * c + 256 * b + 16 * a < LIMIT) and np.all(4096 * d < LIMIT))


def have_words(r: Rounding, groups: Int64) -> bool:
    """Whether sums of crossed digits fit 32 bits: else that of channel d takes 64."""
    return bool(np.all(4096 * max_of_sums(r)[groups[:, -1]] < LIMIT))


def refusal(r: Rounding, *, long: bool = False) -> str | None:
    """Why no form of weights has such sums, or None. long: of one row, and a sum of all four digits in 64 bits."""
    bound = int(max_of_sums(r).max(initial=0))
    if 256 * bound >= LIMIT:
        return f"256 times a sum of up to {bound} leaves int32"
    depth = r.weights.shape[1]
    # Those of the other three digits, with eight times all inputs at most.
    if long and 273 * (bound + 8 * 128 * depth) >= LIMIT:
        return f"sums of digits of {depth} inputs leave int32"
    return None


def nibbles(r: Rounding, groups: Int64, low: Int64, high: Int64) -> Int64:
    """(groups, words): what sums begin with, and Weights.NIBBLES. low, high: the two columns of each pair."""
    columns = _columns(r, groups)
    first, second = columns[..., low], columns[..., high]  # (groups, 4, pairs)
    upper = np.stack([first[:, 0], first[:, 1], second[:, 0], second[:, 1]], axis=-1)
    lower = np.stack([first[:, 2], first[:, 3], second[:, 2], second[:, 3]], axis=-1)
    return np.concatenate([16 * r.bias[groups], join_bytes(upper << 4 | lower & 15)], axis=1)


def digits(r: Rounding, groups: Int64, low: Int64, high: Int64) -> Int64:
    """The same of Weights.DIGITS."""
    numbers = lanes(_columns(r, groups))
    a, b, c, d = r.bias[groups].T
    three = 256 * c + 16 * b + a
    start = np.stack([16 * a, 16 * b + a, 16 * three, 4096 * d + three], axis=1)
    return np.concatenate([start, pack_int16x2(numbers[:, low], numbers[:, high])], axis=1)


def crossed(r: Rounding, groups: Int64, low: Int64, high: Int64, form: Weights) -> Int64:
    """The same of Weights.CROSSED_DIGITS or LONG_DIGITS, of whole fours of columns (0, 2), (1, 3)."""
    padded = _columns(r, groups)[..., :-1]
    padded = np.pad(padded, ((0, 0), (0, 0), (0, -padded.shape[-1] % 4))) + _ADDED[:, None]
    numbers = lanes(padded)
    a, b, c, d = r.bias[groups].T
    last = 4096 * d + 256 * c + 16 * b + a
    start = [a - _neighbours(padded[:, 0]), 16 * b + a - _neighbours(numbers & 255), 256 * c + a]
    start += [last & 0xFFFFFFFF, last >> 32] if form is Weights.LONG_DIGITS else [last]
    return np.concatenate([np.stack(start, axis=1), pack_int16x2(numbers[:, low], numbers[:, high])], axis=1)


def _columns(r: Rounding, groups: Int64) -> Int64:
    """(groups, 4, columns + 1) weights; the last column is zero, that of NONE."""
    return np.pad(r.weights[groups], ((0, 0), (0, 0), (0, 1)))


def _neighbours(digit: Int64) -> Int64:
    """(groups, columns) → (groups,): the sum of products of each at an even place with the next."""
    return np.asarray((digit[:, 0::2] * digit[:, 1::2]).sum(axis=1), np.int64)


def framed(start: Int64, tail: Int64) -> Int64:
    """The words of all groups, (words,)."""
    return words(np.concatenate([start, tail], axis=1).ravel())
