# SPDX-License-Identifier: Apache-2.0
"""Windows of an accelerometer, five kinds of motion, by features of each axis.

    tinyet quantize examples/got_worse/motion.py --report

It is written as people write it, with the preprocessing in `forward`, is right in float, and plain int8 spoils it
(docs/my-network-got-worse.md). Training takes seconds; its weights are in motion.pt.
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

WEIGHTS = Path(__file__).with_name("motion.pt")
EPOCHS = 21
CALIBRATED = 100
"""Samples of the training data to calibrate with."""

STEPS, AXES, MOTIONS = 64, 3, 5


class MotionNet(nn.Module):
    """A window (N, AXES, STEPS) in m/s² → scores of MOTIONS classes, by features of each axis."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        windows = self.features(training_data()[0])
        self.register_buffer("mean", windows.double().mean(0).float())
        self.register_buffer("std", windows.double().std(0).float())
        self.hidden = nn.Linear(6 * AXES, 24)
        self.head = nn.Linear(24, MOTIONS)

    @staticmethod
    def features(x: torch.Tensor) -> torch.Tensor:
        """(N, 6 · AXES)"""
        mean = x.mean(2)
        moved = x - mean.unsqueeze(2)
        deviation = torch.sqrt((moved * moved).mean(2) + 1e-6)
        energy = (x * x).sum(2)
        jerk = (x[:, :, 1:] - x[:, :, :-1]).abs().mean(2)
        return torch.cat([mean, deviation, x.amin(2), x.amax(2), energy, jerk], 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = (self.features(x) - self.mean) / self.std
        y: torch.Tensor = self.head(F.relu(self.hidden(z)))
        return y


def _windows(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rest, a little shaking, walking, running, and falling onto something hard, held in about the same way.
    The sensor ends at 4 g."""
    rng = torch.Generator().manual_seed(seed)
    kinds = torch.arange(count) % MOTIONS
    t = torch.arange(STEPS)[None, None] / 32
    lean = 0.25 * torch.randn(count, AXES, 1, generator=rng)
    gravity = torch.tensor([0.0, 0.0, 9.81])[None, :, None] + lean
    phase = 2 * math.pi * torch.rand(count, AXES, 1, generator=rng)
    stretch = 0.8 + 0.4 * torch.rand(count, 1, 1, generator=rng)
    hertz = torch.tensor([0.4, 6.0, 1.8, 3.0, 0.4])[kinds][:, None, None] * stretch
    size = torch.tensor([0.03, 0.15, 2.0, 6.0, 0.1])[kinds][:, None, None] * stretch
    moving = size * torch.sin(2 * math.pi * hertz * t + phase)
    at = torch.randint(8, STEPS - 8, (count, 1, 1), generator=rng) / 32
    hit = 60 * stretch * torch.exp(-(((t - at) * 20) ** 2)) * (kinds == 4)[:, None, None]
    noise = 0.03 * torch.randn(count, AXES, STEPS, generator=rng)
    return (gravity + moving + hit + noise).clamp(-39.2, 39.2), kinds


def train(network: nn.Module) -> None:
    x, y = training_data()
    gallery.fit(network, x, y, F.cross_entropy, epochs=EPOCHS, rate=1e-2)


@cache
def training_data() -> tuple[torch.Tensor, torch.Tensor]:
    return _windows(3000, seed=1)


def model() -> nn.Module:
    return gallery.trained(MotionNet, train, WEIGHTS)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (training_data()[0][:1],)


def calibration() -> list[torch.Tensor]:
    return [sample[None] for sample in training_data()[0][:CALIBRATED]]


@cache
def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """Samples that training has not seen, and their classes."""
    return _windows(400, seed=2)
