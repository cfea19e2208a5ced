# SPDX-License-Identifier: Apache-2.0
"""Constants of the int8 multiply kernels in the layouts that firmware/include/tinyet_int16x2.h reads."""

from __future__ import annotations

import numpy as np

from tinyet.ir import Array
from tinyet.numerics import Int64
from tinyet.ops.shared.integers import magnitudes


def requantize_form(weights: Array, bias: Int64, shift: Int64) -> Int64:
    """Shifts of tinyet_requantize_form for each channel, int64: -1 - shift where its cheap form is exact.

    It is for right shifts of 1 … 31 and sums below 2**30; elsewhere shift - 31, which is always negative.
    weights: (channels, …); bias: the whole constant part of the sum.
    """
    # |x| <= 128: the zero point is in the bias.
    bound = 128 * magnitudes(weights) + np.abs(bias)
    return np.where((shift <= -1) & (bound < 2**30), -1 - shift, shift - 31)


def interleave_pairs(weights: Array) -> Array:
    """(channels, depth) → (channels / 2, depth / 2, 4), both rounded up: bytes a0 b0 a1 b1 of two channels.

    What is missing to even numbers is zero.
    """
    channels, depth = weights.shape
    padded = np.zeros((channels + channels % 2, depth + depth % 2), np.int8)
    padded[:channels, :depth] = weights
    pairs = padded.reshape(padded.shape[0] // 2, 2, padded.shape[1] // 2, 2)
    return np.ascontiguousarray(pairs.transpose(0, 2, 3, 1)).reshape(*pairs.shape[::2], 4)


def interleave_rows(weights: Array) -> Array:
    """(rows, depth) → (rows / 4, depth / 4, 4, 4), rounded up with zeros: four elements of four rows each."""
    rows, depth = weights.shape
    padded = np.zeros((rows + -rows % 4, depth + -depth % 4), np.int8)
    padded[:rows, :depth] = weights
    return np.ascontiguousarray(padded.reshape(-1, 4, padded.shape[1] // 4, 4).transpose(0, 2, 1, 3))


def interleave_quads(weights: Array) -> Array:
    """(taps, channels) → (channels / 4 rounded up, taps, 4), zeros for what is missing."""
    taps, channels = weights.shape
    padded = np.zeros((taps, channels + -channels % 4), np.int8)
    padded[:, :channels] = weights
    return np.ascontiguousarray(padded.reshape(taps, -1, 4).transpose(1, 0, 2))
