# SPDX-License-Identifier: Apache-2.0
"""Other transforms of a window: single frequencies, wavelets, the envelope."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from tinyet.errors import UsageError
from tinyet.errors.arguments import whole_given


class Goertzel(nn.Module):
    """(..., size) to (..., len(frequencies)): powers of single frequencies, |sum of x[i] exp(-2 pi j f i / rate)|**2.

    These are the numbers of Goertzel's recursion. They are computed as products with a cosine and a sine of each
    frequency (8 * size bytes of flash for each), which loses nothing to rounding where the recursion does: low
    frequencies of long windows. frequencies: hertz. rate: samples a second.
    """

    def __init__(self, size: int, frequencies: Sequence[float], rate: float) -> None:
        super().__init__()
        if not frequencies or not all(0 <= f <= rate / 2 for f in frequencies):
            raise UsageError(
                f"frequencies from 0 to {rate / 2} Hz are in a signal of {rate} samples a second"
            )
        turns = 2 * np.pi * np.outer(np.asarray(frequencies, np.float64) / rate, np.arange(size))
        waves = np.stack([np.cos(turns), np.sin(turns)], 1).reshape(-1, size)
        self.register_buffer("waves", torch.from_numpy(waves).float(), persistent=False)
        self.waves: Tensor

    def forward(self, x: Tensor) -> Tensor:
        parts = nn.functional.linear(x, self.waves).square()
        return parts.reshape(*parts.shape[:-1], -1, 2).sum(-1)


class Haar(nn.Module):
    """(..., samples) to (..., samples): Haar's wavelets, orthonormal, `levels` deep: the coarsest averages, then the
    differences from the coarsest level to the finest, as in pywt.wavedec(x, "haar"). 2**levels divides samples."""

    def __init__(self, levels: int) -> None:
        super().__init__()
        self.levels = whole_given(levels, "levels", "halvings")

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1] % 2**self.levels:
            raise UsageError(f"{x.shape[-1]} samples are not halved {self.levels} times")
        parts = []
        for _ in range(self.levels):
            pairs = x.reshape(*x.shape[:-1], -1, 2) * math.sqrt(0.5)
            parts.append(pairs[..., 0] - pairs[..., 1])
            x = pairs[..., 0] + pairs[..., 1]
        return torch.cat([x, *reversed(parts)], -1)


class Envelope(nn.Module):
    """(..., samples) to (..., samples): the magnitude of the analytic signal, |scipy.signal.hilbert(x)|. The number of
    samples is even, without other prime factors than 2, 3 and 5."""

    def forward(self, x: Tensor) -> Tensor:
        count = x.shape[-1]
        if count % 2:
            raise UsageError(f"an envelope of {count} samples: an even number is needed")
        half = torch.fft.rfft(x)
        # The imaginary part is the signal with each frequency a quarter of a turn later; neither end has a quarter.
        turned = torch.complex(half.imag, -half.real)
        ends = torch.ones(count // 2 + 1)
        ends[0] = ends[-1] = 0.0
        quadrature = torch.fft.irfft(turned * ends, n=count)
        return torch.sqrt(x.square() + quadrature.square())
