# SPDX-License-Identifier: Apache-2.0
"""Three networks that are right in float and that plain int8 spoils, written as people write them.

Each carries its preprocessing in `forward`: a sound becomes a log-mel image, a row of a table in raw units is
standardized, a window of an accelerometer becomes features. That is good practice. Eight bits are too few there: one
scale has to serve power and silence, or incomes and volts.

They are small, and trained in a few seconds, on one thread, from fixed seeds. `NETWORKS` has them by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import nn

from tinyet.quantization.threads import one_thread

CALIBRATED = 100
"""Samples to calibrate with; they are part of what the network was trained with."""


@dataclass(frozen=True)
class Ruined:
    """A trained network with its data.

    module: in eval mode. example_inputs: one sample. calibration: batches of one sample. evaluation: samples that
    neither training nor calibration has seen, stacked, and their labels, int64.
    """

    name: str
    module: nn.Module
    example_inputs: tuple[torch.Tensor]
    calibration: list[torch.Tensor]
    evaluation: tuple[torch.Tensor, torch.Tensor]

    def float_accuracy(self) -> float:
        """0 ... 1, of the float model over all of the evaluation data."""
        x, y = self.evaluation
        with torch.no_grad(), one_thread():
            return float((self.module(x).argmax(1) == y).double().mean())


# ---------------------------------------------------------------- sounds

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
        self.register_buffer("window", torch.hann_window(FRAME))
        self.register_buffer("cosines", angle.cos().float())
        self.register_buffer("sines", angle.sin().float())
        self.register_buffer("mel", _mel_filters(bins))
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


# ---------------------------------------------------------------- a table

COLUMNS = ("age in years", "income in a year", "volts", "hectopascals", "share", "errors in a week")


class TableNet(nn.Module):
    """Rows (N, 6) in the units of COLUMNS → scores of three classes. The scaler is part of the network."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.body = nn.Sequential(nn.Linear(len(COLUMNS), 24), nn.ReLU(), nn.Linear(24, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.body((x - self.mean) / self.std))
        return y


def _rows(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows, and a class that hangs on all columns, on some of them together, and a little on chance."""
    rng = torch.Generator().manual_seed(seed)
    z = torch.randn(count, len(COLUMNS), generator=rng)
    columns = (
        (45 + 14 * z[:, 0]).clamp(18, 95),
        torch.exp(10.6 + 0.5 * z[:, 1]),
        3.7 + 0.2 * z[:, 2],
        1013 + 9 * z[:, 3],
        torch.sigmoid(z[:, 4]),
        (3 * (0.8 * z[:, 5]).exp()).round().clamp(max=60),
    )
    score = z[:, 0] * 0.6 - z[:, 1] * 1.3 + z[:, 2] * 0.9 + z[:, 4] * 0.7 * z[:, 0].sign() + z[:, 5] * 0.6
    score = score + 0.5 * z[:, 2] * z[:, 4] + 0.5 * z[:, 3] + 0.45 * torch.randn(count, generator=rng)
    return torch.stack(columns, 1), (score > -0.7).long() + (score > 0.7).long()


# ---------------------------------------------------------------- windows of an accelerometer

STEPS, AXES, MOTIONS = 64, 3, 5


class MotionNet(nn.Module):
    """A window (N, AXES, STEPS) in m/s² → scores of MOTIONS classes, by features of each axis."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.hidden = nn.Linear(len(mean), 24)
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


# ---------------------------------------------------------------- all of them


def _train(module: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int, rate: float) -> None:
    optimizer = torch.optim.Adam(module.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    order = torch.Generator().manual_seed(1)
    for _ in range(steps):
        chosen = torch.randint(len(x), (64,), generator=order)
        optimizer.zero_grad()
        F.cross_entropy(module(x[chosen]), y[chosen]).backward()
        optimizer.step()
        schedule.step()


def _scaled(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.double().mean(0).float(), x.double().std(0).float()


def _made(
    name: str,
    data: Callable[[int, int], tuple[torch.Tensor, torch.Tensor]],
    make: Callable[[torch.Tensor], nn.Module],
    counts: tuple[int, int],
    steps: int,
    rate: float = 1e-2,
) -> Ruined:
    with one_thread(), torch.random.fork_rng():
        torch.manual_seed(0)
        (x, y), (unseen, labels) = data(counts[0], 1), data(counts[1], 2)
        module = make(x)
        _train(module, x, y, steps, rate)
    calibration = [sample[None] for sample in x[:CALIBRATED]]
    return Ruined(name, module.eval(), (x[:1],), calibration, (unseen, labels))


@cache
def sound() -> Ruined:
    """Log-mel in `forward`."""
    return _made("sound", _sounds, lambda _: SoundNet(), (900, 240), 300)


@cache
def table() -> Ruined:
    """Raw units side by side."""
    return _made("table", _rows, lambda x: TableNet(*_scaled(x)), (4000, 1000), 800)


@cache
def motion() -> Ruined:
    """Features of a window."""
    return _made("motion", _windows, lambda x: MotionNet(*_scaled(MotionNet.features(x))), (3000, 400), 1000)


NETWORKS = (sound, table, motion)
