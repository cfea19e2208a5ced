# SPDX-License-Identifier: Apache-2.0
"""Constants of the int8 multiply kernels in the layouts that firmware/include/tinyet_pairs.h reads."""

from __future__ import annotations

import numpy as np

from tinyet.ir import Array
from tinyet.numerics import Int64


def requantize_form(weights: Array, bias: Int64, shift: Int64) -> Int64:
    """How tinyet_requantize_form shifts each channel, int64 (channels,): -shift where the cheap form is exact.

    It is for right shifts of 1 … 31 and sums below 2**30; elsewhere shift - 31, which is never positive. weights:
    (channels, …); bias: the whole constant part of the sum.
    """
    per_channel = np.abs(weights.astype(np.int64)).reshape(weights.shape[0], -1).sum(axis=1)
    # 255: |x - zero_point|; 128: |x| of a kernel that keeps the zero point in its bias.
    bound = 255 * per_channel + np.abs(bias)
    return np.where((shift <= -1) & (bound < 2**30), -shift, shift - 31)


def interleave_pairs(weights: Array) -> Array:
    """(channels, depth) → (channels / 2 rounded up, depth / 2 rounded up, 4): bytes a0 b0 a1 b1 of a pair of channels.

    What is missing to even numbers is zero.
    """
    channels, depth = weights.shape
    padded = np.zeros((channels + channels % 2, depth + depth % 2), np.int8)
    padded[:channels, :depth] = weights
    pairs = padded.reshape(padded.shape[0] // 2, 2, padded.shape[1] // 2, 2)
    return np.ascontiguousarray(pairs.transpose(0, 2, 3, 1)).reshape(*pairs.shape[::2], 4)


def interleave_quads(weights: Array) -> Array:
    """(taps, channels) → (channels / 4 rounded up, taps, 4), zeros for what is missing."""
    taps, channels = weights.shape
    padded = np.zeros((taps, channels + -channels % 4), np.int8)
    padded[:, :channels] = weights
    return np.ascontiguousarray(padded.reshape(taps, -1, 4).transpose(1, 0, 2))
