# SPDX-License-Identifier: Apache-2.0
"""Mel bands of spectra, their logarithms, and cepstra."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tinyet.errors import UsageError
from tinyet.errors.arguments import whole_given
from tinyet.features.frames import PowerSpectrum
from tinyet.fx.biquad_ops import biquads
from tinyet.fx.log_bands_ops import AUTO, FIXED, FLOAT, log_bands

Scale = Literal["htk", "slaney"]
Arithmetic = Literal["auto", "fixed", "float"]
Reals = npt.NDArray[np.float64]

_SLANEY_HZ, _SLANEY_MEL, _SLANEY_STEP = 1000.0, 15.0, math.log(6.4) / 27.0


def _mel(hertz: npt.ArrayLike, scale: Scale) -> Reals:
    f = np.asarray(hertz, np.float64)
    if scale == "htk":
        return 2595.0 * np.log10(1.0 + f / 700.0)
    above = _SLANEY_MEL + np.log(np.maximum(f, _SLANEY_HZ) / _SLANEY_HZ) / _SLANEY_STEP
    return np.where(f < _SLANEY_HZ, f * (_SLANEY_MEL / _SLANEY_HZ), above)


def _hertz(mel: npt.ArrayLike, scale: Scale) -> Reals:
    m = np.asarray(mel, np.float64)
    if scale == "htk":
        return np.asarray(700.0 * (10.0 ** (m / 2595.0) - 1.0))
    above = _SLANEY_HZ * np.exp(_SLANEY_STEP * (m - _SLANEY_MEL))
    return np.where(m < _SLANEY_MEL, m * (_SLANEY_HZ / _SLANEY_MEL), above)


def mel_filters(
    rate: float,
    size: int,
    bands: int,
    low: float = 0.0,
    high: float | None = None,
    scale: Scale = "htk",
    norm: Literal["slaney"] | None = None,
) -> Tensor:
    """Triangles between frequencies that lie equally far apart in mel: (bands, size // 2 + 1), float32.

    rate: samples a second. size: of the transform. low, high: hertz; high is rate / 2 by default. scale, norm: as in
    librosa.filters.mel, whose formulas these are ("slaney" divides each triangle by half its width in hertz).
    """
    top = rate / 2 if high is None else high
    if not 0 <= low < top <= rate / 2:
        raise UsageError(f"mel bands from {low} to {top} Hz at {rate} samples a second")
    edges = _hertz(np.linspace(float(_mel(low, scale)), float(_mel(top, scale)), bands + 2), scale)
    bins = np.arange(size // 2 + 1) * (rate / size)
    width = np.diff(edges)
    slopes = edges[:, None] - bins[None]
    rise, fall = -slopes[:-2] / width[:-1, None], slopes[2:] / width[1:, None]
    filters = np.maximum(0.0, np.minimum(rise, fall))
    if norm == "slaney":
        filters *= (2.0 / (edges[2:] - edges[:-2]))[:, None]
    if empty := [int(band) for band in np.flatnonzero(~filters.any(1))]:
        raise UsageError(
            f"mel bands without a single frequency: {', '.join(map(str, empty[:8]))}",
            hint="take fewer bands, a longer transform, or a wider range",
        )
    return torch.from_numpy(filters).float()


class MelFilterBank(nn.Module):
    """(..., size // 2 + 1) to (..., bands): `mel_filters`, whose arguments it takes."""

    def __init__(
        self,
        rate: float,
        size: int,
        bands: int,
        low: float = 0.0,
        high: float | None = None,
        scale: Scale = "htk",
        norm: Literal["slaney"] | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer(
            "filters", mel_filters(rate, size, bands, low, high, scale, norm), persistent=False
        )
        self.filters: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.filters)


_ARITHMETICS = {"auto": AUTO, "fixed": FIXED, "float": FLOAT}


def _checked(arithmetic: Arithmetic, floor: float) -> tuple[int, float]:
    """The arithmetic's number, and the floor."""
    if not floor > 0:
        raise UsageError(f"the floor is {floor}, and the logarithm of silence is not finite")
    if arithmetic not in _ARITHMETICS:
        raise UsageError(f"no arithmetic is called {arithmetic!r}", hint=", ".join(_ARITHMETICS))
    return _ARITHMETICS[arithmetic], float(floor)


class _LogPowers(nn.Module):
    """(..., samples) to (..., frames, bands): natural logarithms of sums of a spectrum's powers: as one operator where
    fixed point is asked for or may be chosen."""

    def __init__(self, power: PowerSpectrum, floor: float, arithmetic: Arithmetic) -> None:
        super().__init__()
        self.arithmetic, self.floor = _checked(arithmetic, floor)
        self.power = power

    def _filters(self) -> Tensor:
        """(bands, size // 2 + 1): what each power counts in each band."""
        raise NotImplementedError

    def _bands(self, powers: Tensor) -> Tensor:
        return nn.functional.linear(powers, self._filters())

    def forward(self, x: Tensor) -> Tensor:
        power = self.power
        if x.dtype is torch.int16 and self.arithmetic != FLOAT:
            frames = x.unfold(-1, power.frame.size, power.frame.hop)
            window, size = power.frame.window, power.size
            found: Tensor = log_bands(frames, window, self._filters(), size, self.floor, self.arithmetic)
            return found
        if self.arithmetic == FIXED:
            raise UsageError(
                f"fixed point takes samples of int16, not {x.dtype}",
                hint='leave .float() away, or say arithmetic="auto"',
            )
        return torch.log(self._bands(power(x.float())) + self.floor)


class LogSpectrum(_LogPowers):
    """(..., samples) to (..., frames, size // 2 + 1): natural logarithms of the powers of each frequency.

    size, hop, window, frame: of `PowerSpectrum`. floor, arithmetic: as of `LogMel`. low, high: the first frequency that
    is given, and the last, by their numbers.
    """

    def __init__(
        self,
        size: int,
        hop: int,
        *,
        low: int = 0,
        high: int | None = None,
        window: str | Tensor = "hann",
        frame: int | None = None,
        floor: float = 1e-6,
        arithmetic: Arithmetic = "auto",
    ) -> None:
        super().__init__(PowerSpectrum(size, hop, window, frame), floor, arithmetic)
        last = size // 2 if high is None else high
        if not 0 <= low <= last <= size // 2:
            raise UsageError(f"frequencies {low} to {last} of a transform of {size}")
        self.low, self.high = low, last
        self.register_buffer("filters", torch.eye(size // 2 + 1)[low : last + 1].clone(), persistent=False)
        self.filters: Tensor

    def _filters(self) -> Tensor:
        return self.filters

    def _bands(self, powers: Tensor) -> Tensor:
        return powers[..., self.low : self.high + 1]


class LogBands(_LogPowers):
    """(..., samples) to (..., frames, bands): natural logarithms of sums of a spectrum's powers, of one's own bands.

    filters: (bands, size // 2 + 1), what each power counts in each band, none negative. size, hop, window, frame: of
    `PowerSpectrum`. floor, arithmetic: as of `LogMel`.
    """

    def __init__(
        self,
        filters: Tensor,
        size: int,
        hop: int,
        *,
        window: str | Tensor = "hann",
        frame: int | None = None,
        floor: float = 1e-6,
        arithmetic: Arithmetic = "auto",
    ) -> None:
        super().__init__(PowerSpectrum(size, hop, window, frame), floor, arithmetic)
        if filters.ndim != 2 or filters.shape[1] != size // 2 + 1 or bool((filters < 0).any()):
            raise UsageError(
                f"filters of shape {tuple(filters.shape)} for {size // 2 + 1} powers",
                hint="one row a band, none of it negative",
            )
        self.register_buffer("filters", filters.detach().float().clone(), persistent=False)
        self.filters: Tensor

    def _filters(self) -> Tensor:
        return self.filters


class LogMel(_LogPowers):
    """(..., samples) to (..., frames, bands): natural logarithms of the powers of mel bands.

    rate: samples a second. size, hop, window, frame: of `PowerSpectrum`. bands, low, high, scale, norm: of
    `mel_filters`. floor: is added to each power: what is quieter is all the same silence.

    arithmetic: how a program computes it of int16 samples, which the module takes as they are: in "fixed" point, in
    "float", or "auto": in fixed point where that loses next to nothing on the calibration data. Of floats it is
    computed in float32, and in torch it always is.
    """

    def __init__(
        self,
        rate: float,
        size: int,
        hop: int,
        bands: int = 40,
        *,
        low: float = 0.0,
        high: float | None = None,
        scale: Scale = "htk",
        norm: Literal["slaney"] | None = None,
        window: str | Tensor = "hann",
        frame: int | None = None,
        floor: float = 1e-6,
        arithmetic: Arithmetic = "auto",
    ) -> None:
        super().__init__(PowerSpectrum(size, hop, window, frame), floor, arithmetic)
        self.bank = MelFilterBank(rate, size, bands, low, high, scale, norm)

    def _filters(self) -> Tensor:
        return self.bank.filters


class PCEN(nn.Module):
    """(..., frames, bands) to the same: powers of bands, each divided by its own running mean, and compressed:
    librosa.pcen(x, gain=…, bias=…, power=…, eps=…, b=smoothing, axis=-2), the logarithm's place in LogMel.

        mean[t] = (1 - smoothing) * mean[t - 1] + smoothing * x[t]
        y[t] = (x[t] / (eps + mean[t])**gain + bias)**power - bias**power

    smoothing: from 0 to 1; librosa's is (sqrt(1 + 4 T**2) - 1) / (2 T**2) of T frames (`smoothing_of`). first: the mean
    before the first frame. In a stream the mean goes on. eps is in the powers' unit: of int16 samples, thousands.
    """

    def __init__(
        self,
        smoothing: float = 0.025,
        gain: float = 0.98,
        bias: float = 2.0,
        power: float = 0.5,
        eps: float = 1e-6,
        first: float = 1.0,
    ) -> None:
        super().__init__()
        if not (0 < smoothing < 1 and gain >= 0 and bias >= 0 and power > 0 and eps > 0):
            raise UsageError(
                f"PCEN of smoothing {smoothing}, gain {gain}, bias {bias}, power {power}, eps {eps}",
                hint="smoothing lies between 0 and 1, power and eps above 0",
            )
        self.smoothing, self.gain, self.bias, self.power = smoothing, gain, bias, power
        self.eps, self.first = eps, first
        section = torch.tensor([[smoothing, 0.0, 0.0, smoothing - 1.0, 0.0]])
        self.register_buffer("section", section, persistent=False)
        self.section: Tensor

    def forward(self, x: Tensor) -> Tensor:
        rows = x.transpose(-1, -2).reshape(-1, x.shape[-2])
        rest = torch.zeros(rows.shape[0], 1, 2)
        rest[:, :, 0] = (1.0 - self.smoothing) * self.first
        means = biquads(rows, rest, self.section)[0]
        mean = means.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2]).transpose(-1, -2)
        scaled = x * torch.exp(torch.log(mean + self.eps) * -self.gain)
        offset = float(self.bias**self.power)
        return torch.exp(torch.log(scaled + self.bias) * self.power) - offset


def smoothing_of(frames: float) -> float:
    """Of a running mean over about so many frames, as librosa computes it: seconds * rate / hop."""
    return (math.sqrt(1.0 + 4.0 * frames**2) - 1.0) / (2.0 * frames**2)


class DCT(nn.Module):
    """(..., count) to (..., kept): the first coefficients of the orthonormal DCT-II (scipy.fft.dct, norm="ortho")."""

    def __init__(self, count: int, kept: int) -> None:
        super().__init__()
        if not 1 <= whole_given(kept, "kept", "coefficients") <= count:
            raise UsageError(f"{kept} coefficients of a transform of {count}")
        matrix = np.cos(np.pi / count * np.outer(np.arange(kept), np.arange(count) + 0.5)) * np.sqrt(
            2.0 / count
        )
        matrix[0] /= np.sqrt(2.0)
        self.register_buffer("matrix", torch.from_numpy(matrix).float(), persistent=False)
        self.matrix: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.matrix)


class MFCC(nn.Module):
    """(..., samples) to (..., frames, coefficients): the DCT of what a LogMel gives.

    mel: the LogMel in front.
    """

    def __init__(self, mel: LogMel, coefficients: int = 13) -> None:
        super().__init__()
        self.mel = mel
        self.dct = DCT(mel.bank.filters.shape[0], coefficients)

    def forward(self, x: Tensor) -> Tensor:
        cepstra: Tensor = self.dct(self.mel(x))
        return cepstra
