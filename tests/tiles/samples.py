# SPDX-License-Identifier: Apache-2.0
"""Tiles of every kind, and data for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.numerics import Int64
from tinyet.tiles.core import PAGES
from tinyet.tiles.lanes import Lanes
from tinyet.tiles.tile import Tile, Weights

PACKED, WIDE, CROSSED, LONG = Weights.PACKED, Weights.WIDE, Weights.CROSSED, Weights.LONG
NIBBLES, DIGITS = Weights.NIBBLES, Weights.DIGITS
CROSSED_DIGITS, LONG_DIGITS = Weights.CROSSED_DIGITS, Weights.LONG_DIGITS
BYTES = Weights.BYTES

TILES = (
    Tile(2, 4, PACKED, 1, 12, 8),
    Tile(2, 4, PACKED, 14, 8, 19, groups=2),
    Tile(2, 4, PACKED, 14, None, 16),
    Tile(2, 4, PACKED, 5, 14, 12, groups=2, alike=True),
    Tile(4, 2, PACKED, 3, 12, 8, alike=True),
    Tile(2, 4, PACKED, 33, 12, 16),
    Tile(2, 4, PACKED, 40, None, 300, straight=8, turn=3),
    Tile(2, 4, PACKED, 72, 16, 4),
    Tile(2, 4, PACKED, 20, 12, 64, at_once=1, straight=16, turn=9, alike=True),
    Tile(2, 4, PACKED, 6, None, 16, at_once=1, groups=2),
    Tile(2, 2, PACKED, 4, 12, 6, alike=True),
    Tile(2, 2, PACKED, 20, None, 8, straight=8, turn=4),
    Tile(3, 2, PACKED, 9, 12, 8),
    Tile(4, 2, PACKED, 9, None, 8),
    Tile(2, 2, WIDE, 8, 12, 8, at_once=2),
    Tile(2, 2, WIDE, 6, None, 8, at_once=2, groups=4),
    Tile(2, 2, WIDE, 20, 12, 8, at_once=2, straight=8, turn=4),
    Tile(2, 2, WIDE, 20, None, 8, at_once=2, straight=8, turn=4),
    Tile(1, 2, WIDE, 10, None, 0, at_once=2),
    Tile(1, 2, WIDE, 28, 10, 0, at_once=2, straight=4, turn=12),
    Tile(2, 3, WIDE, 7, 12, 9),
    Tile(4, 1, WIDE, 7, None, 8),
    Tile(4, 2, PACKED, 40, 12, 8, straight=8, turn=3, groups=2, alike=True),
    Tile(2, 1, WIDE, 6, 12, 8, at_once=2),
    Tile(2, 2, WIDE, 6, None, 8, at_once=2, plain=True),
    Tile(1, 1, WIDE, 20, None, 0, at_once=2, straight=8, turn=4, plain=True),
    Tile(1, 4, CROSSED, 2, 12, 0, alike=True, filling=True),
    Tile(1, 4, CROSSED, 64, 16, 0, straight=64, turn=64, alike=True, filling=True),
    Tile(1, 4, CROSSED, 48, 9, 0, straight=16, filling=True),
    Tile(1, 4, CROSSED, 38, None, 0, straight=16, filling=True),
    Tile(1, 2, CROSSED, 6, 12, 0, groups=2, alike=True, filling=True),
    Tile(1, 4, WIDE, 33, None, 0, filling=True),
    Tile(1, 4, WIDE, 40, 12, 0, straight=8, turn=10, filling=True),
    Tile(2, 4, NIBBLES, 5, 12, 8, alike=True, groups=2),
    Tile(2, 4, NIBBLES, 9, 9, 16),
    Tile(2, 4, NIBBLES, 20, None, 8, straight=8, turn=4),
    Tile(2, 4, DIGITS, 14, 12, 8, alike=True, groups=2),
    Tile(2, 4, DIGITS, 1, 9, 4),
    Tile(2, 4, DIGITS, 6, None, 8),
    Tile(2, 4, DIGITS, 33, 12, 16, straight=8, turn=4, alike=True),
    Tile(1, 4, CROSSED_DIGITS, 2, 12, 0, alike=True, filling=True),
    Tile(1, 4, CROSSED_DIGITS, 16, 9, 0, groups=2, filling=True),
    Tile(1, 4, CROSSED_DIGITS, 38, None, 0, straight=16, filling=True),
    Tile(1, 4, LONG_DIGITS, 8, 12, 0, alike=True, filling=True),
    Tile(1, 4, LONG_DIGITS, 4, 9, 0, filling=True),
    Tile(1, 4, LONG_DIGITS, 48, None, 0, straight=16, filling=True),
    Tile(1, 4, LONG, 16, 0, 0, filling=True, bits=16),
    Tile(1, 4, LONG, 50, 3, 0, straight=16, filling=True, bits=16, low=0),
    Tile(1, 2, LONG, 5, 13, 0, groups=2, filling=True, bits=16, high=30000),
    Tile(1, 4, LONG, 35, None, 0, straight=16, filling=True, bits=32),
    Tile(1, 4, WIDE, 33, 0, 0, straight=16, filling=True, bits=16, low=-20000, high=9),
    Tile(1, 4, WIDE, 9, 5, 0, filling=True, bits=16),
    Tile(1, 4, WIDE, 40, None, 0, straight=8, turn=10, filling=True, bits=32),
    Tile(4, 2, BYTES, 3, 0, 8, bits=16, lanes=Lanes()),
    Tile(4, 2, BYTES, 5, 13, 24, groups=2, bits=16, low=0, lanes=Lanes()),
    Tile(4, 2, BYTES, 36, 4, 40, straight=12, turn=6, bits=16, low=-9, high=30000, lanes=Lanes(3)),
    Tile(4, 2, BYTES, 20, None, 8, straight=12, turn=5, bits=32, lanes=Lanes(5, 2)),
    Tile(4, 2, WIDE, 9, 2, 16, groups=2, bits=16, lanes=Lanes(3, 1, 2)),
    Tile(4, 2, WIDE, 40, 0, 12, straight=8, turn=3, bits=16, lanes=Lanes()),
    Tile(4, 1, WIDE, 12, 3, 10, straight=8, turn=4, bits=16, low=0, lanes=Lanes(2, 3)),
    Tile(4, 1, WIDE, 6, None, 4, bits=32, lanes=Lanes(3)),
    Tile(4, 2, BYTES, 2, 0, 1400, groups=2, bits=16, lanes=Lanes()),
)
"""All that the delegates print, small, and others that fit."""

PRINTED = tuple((tile, page) for page in PAGES for tile in TILES)
"""In all orders."""


@dataclass(frozen=True)
class Sample:
    """stream: weights of `channels` channels, words. inputs: words. Shifts are such as roundings have."""

    channels: int
    stream: Int64
    inputs: Int64


def sample(tile: Tile, rng: np.random.Generator) -> Sample:
    groups = tile.groups * int(rng.integers(1, 4))
    stream = np.concatenate([_group(tile, rng) for _ in range(groups)])
    values = rng.integers(-128, 128, (tile.input_words, 2)) * (256 if tile.bits > 8 else 1)
    return Sample(groups * tile.channels, stream, _halves(values))


def _halves(values: Int64) -> Int64:
    """(…, 2) → words."""
    words = (values[..., 0] & 0xFFFF) | values[..., 1] << 16
    return np.asarray((words + 2**31) % 2**32 - 2**31, np.int64)


def _group(t: Tile, rng: np.random.Generator) -> Int64:
    """Of the stream, for one group of channels."""
    bias = rng.integers(-(2**20), 2**20, t.channels)
    shape = (t.pairs, t.words, 2)
    if t.bits > 8:
        return _of_int16(t, bias, rng)
    if t.weights.int4:
        return _of_int4(t, bias, rng)
    if t.weights.packed:
        body = rng.integers(-127, 128, shape) + 256 * rng.integers(-127, 128, shape)
        bias[1::2] = 256 * (bias[1::2] % 2**12) + bias[0::2]
    else:
        body = rng.integers(-(2**15), 2**15, shape)
    one_sided = t.exponent is not None
    if t.plain:
        right = rng.integers(0, 4, t.channels)
        ends = [rng.integers(2**30, 2**31, t.channels), rng.integers(-(2**10), 2**10, t.channels)]
        tail = np.stack([*ends, right, rng.integers(1, 8, t.channels), -(right > 0).astype(np.int64)], axis=1)
        return np.asarray(np.concatenate([bias, _halves(body).ravel(), tail.ravel()]), np.int64)
    ends = [rng.integers(2**30, 2**31, t.channels), rng.integers(-(2**20), 2**20, t.channels)]
    if t.alike:
        return np.asarray(np.concatenate([bias, _halves(body).ravel(), *_alike(t, *ends)]), np.int64)
    if t.weights.packed or not one_sided:
        ends.append(rng.integers(1, 9 if one_sided else 20, t.channels))
    tail = np.stack(ends, axis=1 if t.weights.packed else 0).ravel()
    return np.asarray(np.concatenate([bias, _halves(body).ravel(), tail]), np.int64)


def _of_int16(t: Tile, bias: Int64, rng: np.random.Generator) -> Int64:
    """The same of int16 values."""
    weights = rng.integers(-127, 128, (t.pairs, t.channels, 2))
    ends = rng.integers(2**30, 2**31, t.channels if t.bits == 16 else 0)
    if t.weights is WIDE:
        return np.asarray(np.concatenate([bias, _halves(weights).ravel(), ends]), np.int64)
    if t.weights is BYTES:
        a, b = (weights[:, k::2] & 0xFF for k in (0, 1))
        words = a[..., 0] | b[..., 0] << 8 | a[..., 1] << 16 | b[..., 1] << 24
        return np.asarray(np.concatenate([bias, ((words + 2**31) % 2**32 - 2**31).ravel(), ends]), np.int64)
    both = 256 * bias[1::2] + bias[0::2]
    start = np.stack([both & 0xFFFFFFFF, both >> 32], axis=1).ravel()
    body = _halves(256 * weights[:, 1::2] + weights[:, 0::2])
    return np.asarray(np.concatenate([start, bias[0::2], body.ravel(), ends]), np.int64)


def _of_int4(t: Tile, bias: Int64, rng: np.random.Generator) -> Int64:
    """The same of int4 weights: sums, of which digits are made, as they come."""
    body = rng.integers(-(2**31), 2**31, t.pairs)
    if t.weights is LONG_DIGITS:
        bias = np.append(bias, [0])
    ends = [rng.integers(2**30, 2**31, t.channels), rng.integers(-(2**20), 2**20, t.channels)]
    if t.alike:
        return np.asarray(np.concatenate([bias, body, *_alike(t, *ends)]), np.int64)
    ends.append(rng.integers(1, 5 if t.exponent is not None else 20, t.channels))
    return np.asarray(np.concatenate([bias, body, np.stack(ends, axis=1).ravel()]), np.int64)


def _alike(t: Tile, multiplier: Int64, offset: Int64) -> list[Int64]:
    """Of each two channels both multipliers, then both offsets."""
    return [part[a : a + 2] for a in range(0, t.channels, 2) for part in (multiplier, offset)]
