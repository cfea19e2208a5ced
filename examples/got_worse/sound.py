# SPDX-License-Identifier: Apache-2.0
"""Sounds of six kinds, by a log-mel image and a small CNN.

    tinyet quantize examples/got_worse/sound.py --report

It is written as people write it, with the preprocessing in `forward`, is right in float, and plain int8 spoils it
(docs/my-network-got-worse.md). Training takes seconds; its weights are in sound.pt.
"""

from __future__ import annotations

import math
import sys
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gallery

WEIGHTS = Path(__file__).with_name("sound.pt")
EPOCHS = 20
CALIBRATED = 100
"""Samples of the training data to calibrate with."""

RATE, SAMPLES, FRAME, HOP, MELS, SOUNDS = 8000, 2048, 256, 128, 20, 6


def _mel_filters(bins: int) -> torch.Tensor:
    """(bins, MELS): triangles between 60 Hz and half of the rate, of area one."""

    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    edges = 700 * (10 ** (torch.linspace(mel(60), mel(RATE / 2), MELS + 2, dtype=torch.float64) / 2595) - 1)
    bins_at = torch.arange(bins, dtype=torch.float64)[:, None] * RATE / FRAME
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (bins_at - low) / (middle - low), (high - bins_at) / (high - middle)
    filters = torch.minimum(rising, falling).clamp(min=0)
    return (filters / filters.sum(0).clamp(min=1e-9)).float()


class SoundNet(nn.Module):
    """A waveform (N, SAMPLES), -1 ... 1 → scores of SOUNDS classes, by a log-mel image and a small CNN."""

    window: torch.Tensor
    cosines: torch.Tensor
    sines: torch.Tensor
    mel: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        bins = FRAME // 2 + 1
        angle = 2 * math.pi * torch.outer(torch.arange(FRAME), torch.arange(bins)).double() / FRAME
        self.register_buffer("window", torch.hann_window(FRAME), persistent=False)
        self.register_buffer("cosines", angle.cos().float(), persistent=False)
        self.register_buffer("sines", angle.sin().float(), persistent=False)
        self.register_buffer("mel", _mel_filters(bins), persistent=False)
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.head = nn.Linear(16, SOUNDS)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """(N, frames, MELS)"""
        frames = x.unfold(1, FRAME, HOP) * self.window
        power = torch.matmul(frames, self.cosines) ** 2 + torch.matmul(frames, self.sines) ** 2
        return torch.log(torch.matmul(power, self.mel) + 1e-6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        image = (self.features(x) + 6.0) / 4.0
        x = F.max_pool2d(F.relu(self.conv1(image.unsqueeze(1))), 2)
        x = F.relu(self.conv2(x)).amax((2, 3))
        y: torch.Tensor = self.head(x)
        return y


def _sounds(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """count sounds and their classes: three tones that differ in pitch, one that rises, one that trembles, hiss. Their
    loudness varies over 40 dB, above a little noise."""
    rng = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(count, 1, generator=rng)

    t = torch.arange(SAMPLES)[None] / RATE
    kinds = torch.arange(count) % SOUNDS
    phase = uniform(0, 2 * math.pi)
    pitch = uniform(0.85, 1.2)
    low, middle, high = (
        torch.sin(2 * math.pi * hertz * pitch * t + phase) for hertz in (250.0, 700.0, 1900.0)
    )
    rising = torch.sin(2 * math.pi * (500 * pitch * t + 3000 * t * t) + phase)
    trembling = torch.sin(2 * math.pi * 700 * pitch * t + phase) * (
        torch.sin(2 * math.pi * 14 * t + phase) > 0
    )
    hiss = torch.randn(count, SAMPLES, generator=rng) * 0.5
    every = torch.stack([low, middle, high, rising, trembling, hiss])
    chosen = every[kinds, torch.arange(count)]
    loud = 10 ** uniform(-2.0, 0.0) * 0.9
    noise = torch.randn(count, SAMPLES, generator=rng) * 10 ** uniform(-3.7, -3.0)
    return (chosen * loud + noise).clamp(-1, 1), kinds


def train(network: nn.Module) -> None:
    x, y = training_data()
    gallery.fit(network, x, y, F.cross_entropy, epochs=EPOCHS, rate=1e-2)


@cache
def training_data() -> tuple[torch.Tensor, torch.Tensor]:
    return _sounds(900, seed=1)


def model() -> nn.Module:
    return gallery.trained(SoundNet, train, WEIGHTS)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (training_data()[0][:1],)


def calibration() -> list[torch.Tensor]:
    return [sample[None] for sample in training_data()[0][:CALIBRATED]]


@cache
def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """Samples that training has not seen, and their classes."""
    return _sounds(240, seed=2)
