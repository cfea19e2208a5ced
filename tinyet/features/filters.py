# SPDX-License-Identifier: Apache-2.0
"""Filters over time, and other rates of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tinyet.errors import UsageError
from tinyet.errors.arguments import whole_given
from tinyet.fx.biquad_ops import biquads


class PreEmphasis(nn.Module):
    """(..., samples) to the same: x[i] - factor * x[i - 1]; the first sample has nothing before it."""

    def __init__(self, factor: float = 0.97) -> None:
        super().__init__()
        self.factor = float(factor)

    def forward(self, x: Tensor) -> Tensor:
        return x - self.factor * nn.functional.pad(x[..., :-1], (1, 0))


class FIR(nn.Module):
    """(..., samples) to the same: scipy.signal.lfilter(taps, 1, x), every sum of a tap's products from the oldest
    sample to the newest. padded: False leaves away the len(taps) - 1 samples that have none before them."""

    def __init__(self, taps: Sequence[float] | Tensor, padded: bool = True) -> None:
        super().__init__()
        values = torch.as_tensor(taps, dtype=torch.float64).float()
        if values.ndim != 1 or not len(values):
            raise UsageError(f"taps of shape {tuple(values.shape)}", hint="one list of numbers")
        self.padded = padded
        self.register_buffer("weight", values.flip(0).reshape(1, 1, -1).clone(), persistent=False)
        self.weight: Tensor

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, 1, x.shape[-1])
        if self.padded:
            rows = nn.functional.pad(rows, (self.weight.shape[-1] - 1, 0))
        y = nn.functional.conv1d(rows, self.weight)
        return y.reshape(*x.shape[:-1], y.shape[-1])


class Biquads(nn.Module):
    """(..., samples) to the same: second-order sections one behind the other, scipy.signal.sosfilt(sections, x).

    sections: (count, 6) as scipy.signal.butter(…, output="sos") gives them: b0, b1, b2, a0, a1, a2. A filter given by
    b and a is scipy.signal.tf2sos(b, a). The filter begins at rest.
    """

    def __init__(self, sections: npt.ArrayLike) -> None:
        super().__init__()
        sos = np.asarray(sections, np.float64)
        if sos.ndim != 2 or sos.shape[1] != 6 or not len(sos) or not sos[:, 3].all():
            raise UsageError(f"second-order sections of shape {sos.shape}", hint="(count, 6), a0 not 0")
        sos = sos / sos[:, 3:4]
        if any(np.abs(np.roots(section[3:])).max(initial=0.0) >= 1 for section in sos):
            raise UsageError("a section is not stable: a pole lies on the unit circle, or outside of it")
        kept = torch.from_numpy(sos[:, [0, 1, 2, 4, 5]]).float()
        self.register_buffer("sections", kept, persistent=False)
        self.sections: Tensor

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        rest = torch.zeros(rows.shape[0], len(self.sections), 2)
        y: Tensor = biquads(rows, rest, self.sections)[0]
        return y.reshape(x.shape)


class Resample(nn.Module):
    """(..., samples) to (..., ceil(samples * up / down)): scipy.signal.resample_poly(x, up, down), with its filter.

    up, down: the rates' ratio; common factors are taken out.
    """

    def __init__(self, up: int, down: int) -> None:
        super().__init__()
        common = math.gcd(whole_given(up, "up", "samples"), whole_given(down, "down", "samples"))
        self.up, self.down = up // common, down // common
        most = max(self.up, self.down)
        self.reach = 10 * most
        times = np.arange(-self.reach, self.reach + 1)
        taps = np.sinc(times / most) * np.kaiser(2 * self.reach + 1, 5.0)
        taps *= self.up / taps.sum()
        # Output m lies at down * m in the samples with up - 1 zeros between them: phase m % up reads every up-th tap.
        firsts = [-((self.reach - phase * self.down) // self.up) for phase in range(self.up)]
        lasts = [(self.reach + phase * self.down) // self.up for phase in range(self.up)]
        self.before, self.last = -min(firsts), max(lasts)
        kernel = np.zeros((self.up, self.before + self.last + 1))
        for phase in range(self.up):
            for at in range(firsts[phase], lasts[phase] + 1):
                kernel[phase, at + self.before] = taps[phase * self.down - at * self.up + self.reach]
        self.register_buffer("kernel", torch.from_numpy(kernel[:, None]).float(), persistent=False)
        self.kernel: Tensor

    def forward(self, x: Tensor) -> Tensor:
        if self.up == self.down:
            return x
        count = -(-x.shape[-1] * self.up // self.down)
        blocks = -(-count // self.up)
        behind = (blocks - 1) * self.down + self.last + 1 - x.shape[-1]
        rows = nn.functional.pad(x.reshape(-1, 1, x.shape[-1]), (self.before, max(behind, 0)))
        y = nn.functional.conv1d(rows, self.kernel, stride=self.down)[..., :blocks]
        return y.transpose(1, 2).reshape(*x.shape[:-1], -1)[..., :count]
