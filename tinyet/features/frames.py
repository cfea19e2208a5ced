# SPDX-License-Identifier: Apache-2.0
"""Frames that overlap, their windows, their spectra."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from tinyet.errors import UsageError
from tinyet.errors.arguments import whole_given

_COSINES = {
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
}
"""Sums of cosines: a0 - a1 cos t + a2 cos 2t (scipy.signal.windows.general_cosine)."""


def window_of(kind: str | Tensor, size: int) -> Tensor:
    """A periodic window (size,), float32: "hann", "hamming", "blackman", "ones", or one's own values."""
    if isinstance(kind, Tensor):
        if tuple(kind.shape) != (size,):
            raise UsageError(f"a window of shape {tuple(kind.shape)} for frames of {size}")
        return kind.detach().float().clone()
    if kind == "ones":
        return torch.ones(size)
    if kind not in _COSINES:
        known = ", ".join([*_COSINES, "ones"])
        raise UsageError(f"no window is called {kind!r}", hint=f"{known}, or a tensor of {size} values")
    turns = 2 * np.pi * np.arange(size) / size
    values = sum((-1) ** k * a * np.cos(k * turns) for k, a in enumerate(_COSINES[kind]))
    return torch.from_numpy(np.asarray(values)).float()


class Frame(nn.Module):
    """(..., samples) to (..., frames, size): frame i begins at sample i * hop; as many as there are whole.

    window: what frames are multiplied with (`window_of`).
    """

    def __init__(self, size: int, hop: int, window: str | Tensor = "ones") -> None:
        super().__init__()
        self.size = whole_given(size, "size", "samples in a frame")
        self.hop = whole_given(hop, "hop", "samples from one frame to the next")
        values = window_of(window, size)
        self.windowed = not bool((values == 1).all())
        self.register_buffer("window", values, persistent=False)
        self.window: Tensor

    def forward(self, x: Tensor) -> Tensor:
        frames = x.unfold(-1, self.size, self.hop)
        return frames * self.window if self.windowed else frames


class PowerSpectrum(nn.Module):
    """(..., samples) to (..., frames, size // 2 + 1): |rfft|**2 of each frame times its window.

    size: of the transform: even, without other prime factors than 2, 3 and 5. frame: samples of a frame, behind which
    zeros are added; `size` by default. scale: what powers are multiplied with.
    """

    def __init__(
        self,
        size: int,
        hop: int,
        window: str | Tensor = "hann",
        frame: int | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.size, self.scale = whole_given(size, "size", "values that are transformed"), float(scale)
        self.frame = Frame(size if frame is None else frame, hop, window)
        if self.frame.size > size:
            raise UsageError(f"frames of {self.frame.size} samples do not fit a transform of {size}")

    def forward(self, x: Tensor) -> Tensor:
        power: Tensor = torch.fft.rfft(self.frame(x), n=self.size).abs() ** 2
        return power if self.scale == 1.0 else power * self.scale


class Spectrum(PowerSpectrum):
    """As PowerSpectrum, but |rfft|."""

    def forward(self, x: Tensor) -> Tensor:
        magnitude: Tensor = torch.fft.rfft(self.frame(x), n=self.size).abs()
        return magnitude if self.scale == 1.0 else magnitude * self.scale
