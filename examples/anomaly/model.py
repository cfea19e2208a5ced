# SPDX-License-Identifier: Apache-2.0
"""An autoencoder of a healthy motor's vibration: what it cannot reproduce is a fault.

    tinyet generate examples/anomaly/model.py --board mps2_an386 -o build/anomaly_model

calls `model()`, `example_inputs()`, `calibration()` and `evaluation()` below.
"""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gallery
import motor

WEIGHTS = Path(__file__).with_name("anomaly.pt")
EPOCHS = 120
EXAGGERATED = 2.5


class Autoencoder(nn.Module):
    """(N, 64) features to (N, 64), through 8 numbers: enough for speed and load, not for faults."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(motor.BANDS, 48),
            nn.ReLU(),
            nn.Linear(48, 8),
            nn.ReLU(),
            nn.Linear(8, 48),
            nn.ReLU(),
            nn.Linear(48, motor.BANDS),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def scores(inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """(n,) mean squared errors: how unusual each sample is."""
    return np.asarray(((inputs - outputs) ** 2).mean(1))


def train(network: nn.Module) -> None:
    """About twenty seconds; on healthy motors only."""
    inputs = torch.from_numpy(motor.healthy(4000, seed=1_000))
    gallery.fit(network, inputs, inputs, F.mse_loss, epochs=EPOCHS)


def model() -> nn.Module:
    return gallery.trained(Autoencoder, train, WEIGHTS)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (calibration()[0][:1],)


def calibration() -> list[torch.Tensor]:
    """Features of 256 healthy motors of the training set, and exaggerated ones.

    Integers cannot go beyond what calibration shows, and a fault is what no healthy motor shows.
    """
    inputs = torch.from_numpy(motor.healthy(256, seed=1_000))
    return list(torch.cat([inputs, EXAGGERATED * inputs]).split(32))


def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """Held-out motors, and what an autoencoder ought to give: the same."""
    inputs = torch.from_numpy(np.concatenate([motor.healthy(100, 900_000), motor.faulty(25, 950_000)[0]]))
    return inputs, inputs
