# SPDX-License-Identifier: Apache-2.0
"""Weights and channel parameters as the 32-bit streams that the specialised kernels read front to back."""

from __future__ import annotations

import numpy as np

from tinyet.numerics import Int64

NONE = -1
"""In an order of weights: nothing, a zero."""


def lane_pairs(channels: int) -> list[tuple[int, int]]:
    """The two channels of each word that tinyet_widen_dsp makes of a pixel; NONE where there is no second."""
    whole = channels & ~3
    pairs = [p for c in range(0, whole, 4) for p in ((c, c + 2), (c + 1, c + 3))]
    if channels - whole > 1:
        pairs.append((whole, whole + 1))
    if channels % 2:
        pairs.append((channels - 1, NONE))
    return pairs


def neighbours(values: int) -> list[tuple[int, int]]:
    """The two values of each word that tinyet_put_int16x2_dsp makes; NONE where there is no second."""
    return [(i, i + 1 if i + 1 < values else NONE) for i in range(0, values, 2)]


def words(values: Int64) -> Int64:
    """int64 values, wrapped to 32 bits, as int32 would hold them."""
    return np.asarray(((values + 2**31) & 0xFFFFFFFF) - 2**31, np.int64)


def join_bytes(parts: Int64) -> Int64:
    """(…, 4) int8 values → (…) words, the first in the lowest byte."""
    low = (parts & 0xFF) << np.array([0, 8, 16, 24])
    return words(low.sum(axis=-1))


def pack_int16x2(low: Int64, high: Int64) -> Int64:
    """int16 values of one shape → words."""
    return words((low & 0xFFFF) | high << 16)


def padded_channels(values: Int64, multiple: int) -> Int64:
    """With channels of zeros behind (axis 0), up to a multiple."""
    missing = -len(values) % multiple
    if not missing:
        return values
    return np.concatenate([values, np.zeros((missing, *values.shape[1:]), np.int64)])


def group_taps(weights: Int64, order: list[tuple[int, int]], group: int) -> Int64:
    """(groups, taps * group / 2, 4): of each tap and pair of channels the bytes a0, b0, a1, b1."""
    columns = np.pad(padded_channels(weights, group), ((0, 0), (0, 1)))  # NONE is the last one
    taps = columns.reshape(-1, group // 2, 2, columns.shape[1])[..., np.array(order)]
    # (groups, taps, pair of channels, column of the tap, channel of the pair)
    return np.asarray(taps.transpose(0, 3, 1, 4, 2).reshape(len(taps), -1, 4), np.int64)
