# SPDX-License-Identifier: Apache-2.0
"""Other transforms of a window: single frequencies, wavelets, the envelope."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tinyet.errors import UsageError
from tinyet.errors.arguments import whole_given

_MOST_MOMENTS = 10


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


def daubechies(moments: int) -> npt.NDArray[np.float64]:
    """Daubechies' low-pass filter with so many vanishing moments, (2 * moments,): pywt.Wavelet("db…").rec_lo.

    Of the polynomial sum C(N - 1 + k, k) y**k with y = (2 - z - 1 / z) / 4 the roots inside of the unit circle, and N
    roots at -1 (Daubechies, Ten Lectures on Wavelets, 6.1).
    """
    powers = [math.comb(moments - 1 + k, k) for k in range(moments)]
    roots: list[complex] = []
    for y in np.roots(powers[::-1]):
        pair = np.roots([1.0, 4.0 * y - 2.0, 1.0])
        roots.append(complex(pair[np.abs(pair).argmin()]))
    taps = np.real(np.poly([*roots, *[-1.0] * moments]))
    return np.asarray(taps * (math.sqrt(2.0) / taps.sum()))


class Daubechies(nn.Module):
    """(..., samples) to (..., samples): Daubechies' wavelets, orthonormal, `levels` deep, of a signal that goes round:
    pywt.wavedec(x, "db…", mode="periodization", level=levels), the coarsest averages first.

    moments: vanishing moments, 1 (Haar) to 10; the filters have twice as many taps. 2**levels divides samples, and the
    coarsest level has at least as many as there are moments.
    """

    def __init__(self, moments: int, levels: int) -> None:
        super().__init__()
        self.levels = whole_given(levels, "levels", "halvings")
        if not 1 <= whole_given(moments, "moments", "that vanish") <= _MOST_MOMENTS:
            raise UsageError(
                f"Daubechies' wavelets of {moments} vanishing moments", hint=f"1 to {_MOST_MOMENTS}"
            )
        taps = daubechies(moments)
        signs = (-1.0) ** np.arange(2 * moments - 1, -1, -1)
        # Products go from the oldest sample to the newest, as a convolution's do: both filters the other way round.
        filters = np.stack([taps, (taps * signs)[::-1]])[:, None]
        self.reach = moments - 1
        self.register_buffer("filters", torch.from_numpy(filters.copy()).float(), persistent=False)
        self.filters: Tensor

    def forward(self, x: Tensor) -> Tensor:
        count = x.shape[-1]
        if count % 2**self.levels or count >> self.levels < max(self.reach + 1, 1):
            raise UsageError(
                f"{count} samples are not halved {self.levels} times by filters of {2 * self.reach + 2} taps"
            )
        rows, parts = x.reshape(-1, 1, count), []
        for _ in range(self.levels):
            if self.reach:
                rows = torch.cat([rows[..., -self.reach :], rows, rows[..., : self.reach]], -1)
            both = nn.functional.conv1d(rows, self.filters, stride=2)
            rows = both[:, :1]
            parts.append(both[:, 1:])
        return torch.cat([rows, *reversed(parts)], -1).reshape(x.shape)


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
