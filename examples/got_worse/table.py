# SPDX-License-Identifier: Apache-2.0
"""Rows of a table in raw units: years, incomes, volts, hectopascals. The scaler is part of the network.

    tinyet quantize examples/got_worse/table.py --report

It is written as people write it, with the preprocessing in `forward`, is right in float, and plain int8 spoils it
(docs/my-network-got-worse.md). Training takes seconds; its weights are in table.pt.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gallery

WEIGHTS = Path(__file__).with_name("table.pt")
EPOCHS = 13
CALIBRATED = 100
"""Samples of the training data to calibrate with."""

COLUMNS = ("age in years", "income in a year", "volts", "hectopascals", "share", "errors in a week")


class TableNet(nn.Module):
    """Rows (N, 6) in the units of COLUMNS → scores of three classes. The scaler is part of the network."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        rows, _ = training_data()
        self.register_buffer("mean", rows.double().mean(0).float())
        self.register_buffer("std", rows.double().std(0).float())
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


def train(network: nn.Module) -> None:
    x, y = training_data()
    gallery.fit(network, x, y, F.cross_entropy, epochs=EPOCHS, rate=1e-2)


@cache
def training_data() -> tuple[torch.Tensor, torch.Tensor]:
    return _rows(4000, seed=1)


def model() -> nn.Module:
    return gallery.trained(TableNet, train, WEIGHTS)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (training_data()[0][:1],)


def calibration() -> list[torch.Tensor]:
    return [sample[None] for sample in training_data()[0][:CALIBRATED]]


@cache
def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """Samples that training has not seen, and their classes."""
    return _rows(1000, seed=2)
