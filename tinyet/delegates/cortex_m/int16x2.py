# SPDX-License-Identifier: Apache-2.0
"""The layout between two layers that spares the second one what multiplications of cores with DSP want: int16, two in a
word."""

from __future__ import annotations

import math

import numpy as np

from tinyet.ir import Tensor
from tinyet.opset import DataLayout


def _holds(tensor: Tensor) -> bool:
    """An even number of pixels, and a multiple of 4 channels."""
    if len(tensor.shape) < 2:
        return False
    *pixels, channels = tensor.shape
    return math.prod(pixels) % 2 == 0 and channels % 4 == 0


def _row_major(tensor: Tensor, extent: bytes) -> bytes:
    # (pairs of pixels, fours of channels, pair of channels, pixel, channel of the pair)
    words = np.frombuffer(extent, np.int16).reshape(-1, tensor.shape[-1] // 4, 2, 2, 2)
    return words.transpose(0, 3, 1, 4, 2).astype(tensor.dtype.numpy).tobytes()


NHW2C2 = DataLayout(
    name="NHW2C2 int16",
    description="pairs of pixels",
    size=lambda tensor: 2 * tensor.type.bytes,
    align=4,
    holds=_holds,
    row_major=_row_major,
)
"""Of int8: two pixels after another, for each of their channels c, c + 2 and c + 1, c + 3 (c a multiple of 4) a word of
the first pixel and one of the second, whose halves are int16."""
