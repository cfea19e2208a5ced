# SPDX-License-Identifier: Apache-2.0
"""Weights and channel parameters as the 32-bit streams that the specialised kernels read from front to back."""

from __future__ import annotations

import numpy as np

from tinyet.delegates.cortex_m.rounding import Rounding
from tinyet.numerics import Int64

NONE = -1
"""In an order of weights: nothing, a zero."""


def lane_pairs(channels: int) -> list[tuple[int, int]]:
    """The two channels of each word that tinyet_dsp_widen makes of one pixel; NONE where there is no second one."""
    whole = channels & ~3
    pairs = [p for c in range(0, whole, 4) for p in ((c, c + 2), (c + 1, c + 3))]
    if channels - whole > 1:
        pairs.append((whole, whole + 1))
    if channels % 2:
        pairs.append((channels - 1, NONE))
    return pairs


def words(values: Int64) -> Int64:
    """int64 values, wrapped to 32 bits, as int32 would hold them."""
    return np.asarray(((values + 2**31) & 0xFFFFFFFF) - 2**31, np.int64)


def join_bytes(parts: Int64) -> Int64:
    """(…, 4) int8 values → (…) words, the first in the lowest byte."""
    low = (parts & 0xFF) << np.array([0, 8, 16, 24])
    return words(low.sum(axis=-1))


def even_channels(values: Int64) -> Int64:
    """With a channel of zeros behind an odd number of them (axis 0)."""
    pad = [(0, len(values) % 2)] + [(0, 0)] * (values.ndim - 1)
    return np.asarray(np.pad(values, pad), np.int64)


def gemm_stream(r: Rounding, order: list[tuple[int, int]]) -> Int64:
    """The stream of tinyet_dsp_conv2d.h, (words,): `order` gives the two columns of r.weights of each tap."""
    columns = np.pad(even_channels(r.weights), ((0, 0), (0, 1)))
    pairs = columns.reshape(len(columns) // 2, 2, -1)
    # (channel pairs, taps, column of the tap, channel of the pair): bytes a0, b0, a1, b1.
    taps = pairs[:, :, np.array(order)].transpose(0, 2, 3, 1)
    body = join_bytes(taps.reshape(*taps.shape[:2], 4))
    bias, multiplier, offset, shift = (
        even_channels(v).reshape(-1, 2) for v in (r.bias, r.multiplier, r.offset, r.shift)
    )
    return words(np.concatenate([bias, body, multiplier, offset, shift], axis=1).ravel())
