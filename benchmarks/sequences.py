# SPDX-License-Identifier: Apache-2.0
"""Networks of one dimension, over samples of a sensor, with random weights as in benchmarks/nets.py: what benchmarks of
memory try by rows."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.nets import Network


def conv(into: int, out: int, kernel: int, stride: int = 1, *, groups: int = 1) -> nn.Sequential:
    """Convolution, batch norm, ReLU; the same length where the stride is 1."""
    middle = nn.Conv1d(into, out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(middle, nn.BatchNorm1d(out), nn.ReLU())


def separable(into: int, out: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(conv(into, into, kernel, stride, groups=into), conv(into, out, 1))


class Residual(nn.Module):
    """Two convolutions beside a shorter way, added (He et al., 2016, in one dimension)."""

    def __init__(self, into: int, out: int, kernel: int, stride: int) -> None:
        super().__init__()
        last = nn.Conv1d(out, out, kernel, 1, kernel // 2, bias=False)
        self.body = nn.Sequential(conv(into, out, kernel, stride), last, nn.BatchNorm1d(out))
        same = stride == 1 and into == out
        self.short = nn.Identity() if same else nn.Conv1d(into, out, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.short(x))


class Classifier(nn.Module):
    """The mean over all samples, and a fully connected layer."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.linear(x.mean(2))
        return found


class TimeFirst(nn.Module):
    """Of samples as a sensor gives them, one of all axes after the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2)


def raw_audio() -> nn.Module:
    """Half a second at 16 kHz, to ten classes: depthwise and pointwise layers."""
    return nn.Sequential(
        conv(1, 16, 9, 4),
        separable(16, 32, 9, 2),
        separable(32, 32, 9, 2),
        nn.MaxPool1d(2),
        separable(32, 64, 5),
        separable(64, 64, 5, 2),
        Classifier(64, 10),
    )


def ecg() -> nn.Module:
    """Eight seconds at 250 Hz, to five classes: four residual blocks."""
    blocks = Residual(16, 16, 7, 1), Residual(16, 32, 7, 2), Residual(32, 32, 7, 1), Residual(32, 64, 5, 2)
    return nn.Sequential(conv(1, 16, 7, 2), *blocks, Classifier(64, 5))


def accelerometer() -> nn.Module:
    """Ten seconds of six axes at 100 Hz, to six classes: convolutions, each with a pool."""
    return nn.Sequential(
        TimeFirst(),
        *(conv(6, 32, 5), nn.MaxPool1d(2), conv(32, 32, 5), nn.MaxPool1d(2), conv(32, 64, 3)),
        Classifier(64, 6),
    )


SEQUENCES: dict[str, Network] = {
    "raw_audio": Network(raw_audio, (1, 8000)),
    "ecg": Network(ecg, (1, 2000)),
    "accelerometer": Network(accelerometer, (1000, 6)),
}
