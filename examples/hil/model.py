# SPDX-License-Identifier: Apache-2.0
"""Which of four tones is in a window of a microphone's signal: a network whose weights are computed, not trained.

    tinyet generate model.py --board mps2_an386 -o build/tones

Each tone has four filters, its cosine and its sine and their negatives: their rectified outputs add up to the tone's
strength, whatever its phase.
"""

from functools import cache

import numpy as np
import torch
from torch import nn

RATE = 8000
WINDOW = 160
TONES = (697, 852, 1209, 1477)
_FILTER = 48


def window(tone: int, seed: int, *, strength: float = 0.5, noise: float = 0.1) -> np.ndarray:
    """A window (1, 160) of TONES[tone], of any phase, in noise."""
    rng = np.random.default_rng([tone, seed])
    time = np.arange(WINDOW) / RATE
    wave = strength * np.sin(2 * np.pi * TONES[tone] * time + rng.uniform(0, 2 * np.pi))
    return np.clip(wave + noise * rng.standard_normal(WINDOW), -1, 1).astype(np.float32)[None]


class Tones(nn.Module):
    """(N, 1, 160) samples in -1...1 to (N, 4) strengths."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Conv1d(1, 4 * len(TONES), _FILTER, stride=4, bias=False)
        self.sums = nn.Linear(4 * len(TONES), len(TONES), bias=False)
        time = np.arange(_FILTER) / RATE
        shape = np.hanning(_FILTER) / _FILTER
        waves = [
            sign * function(2 * np.pi * tone * time) * shape
            for tone in TONES
            for function in (np.cos, np.sin)
            for sign in (1, -1)
        ]
        with torch.no_grad():
            self.filters.weight.copy_(torch.from_numpy(np.stack(waves)[:, None].astype(np.float32)))
            self.sums.weight.copy_(torch.eye(len(TONES)).repeat_interleave(4, dim=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.sums(torch.relu(self.filters(x)).mean(dim=2))


def model() -> nn.Module:
    return Tones().eval()


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (torch.from_numpy(window(0, seed=0))[None],)


def _windows(seeds: range) -> tuple[torch.Tensor, torch.Tensor]:
    pairs = [(window(tone, seed), tone) for seed in seeds for tone in range(len(TONES))]
    return torch.from_numpy(np.stack([x for x, _ in pairs])), torch.tensor([label for _, label in pairs])


def calibration() -> list[torch.Tensor]:
    """128 windows."""
    return list(_windows(range(1000, 1032))[0].split(16))


@cache
def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """80 other windows, and the number of the tone in each."""
    return _windows(range(20))
