# SPDX-License-Identifier: Apache-2.0
"""The autoencoder of model.py with the spectrum in front and the score behind it, in one program: from a quarter of a
second of an accelerometer's samples to how unusual they are.

    tinyet generate examples/anomaly/vibration.py --board mps2_an386 -o build/vibration

The network, its weights and the data are those of model.py and motor.py; the sensor measures +-8 g in int16.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import model as anomaly
import motor

from tinyet import features
from tinyet.features.mel import Arithmetic

COUNTS_A_G = 4096


class Vibration(nn.Module):
    """(N, 2048) samples, int16, to (N, 1): the mean squared error of what the autoencoder makes of 64 bands."""

    def __init__(self, arithmetic: Arithmetic = "auto") -> None:
        super().__init__()
        filters = torch.zeros(motor.BANDS, motor.SAMPLES // 2 + 1)
        for band, bins in enumerate(motor.BINS):
            filters[band, bins] = 1.0 / (bins.stop - bins.start)
        self.bands = features.LogBands(
            filters,
            motor.SAMPLES,
            motor.SAMPLES,
            window=torch.from_numpy(np.hanning(motor.SAMPLES)),
            floor=motor.FLOOR * COUNTS_A_G**2,
            arithmetic=arithmetic,
        )
        mean, deviation = (torch.from_numpy(part).float() for part in motor.scale())
        # A power of counts is greater than one of g by the counts' square.
        self.register_buffer("mean", mean + 2 * np.log(COUNTS_A_G), persistent=False)
        self.register_buffer("scale", 1.0 / deviation, persistent=False)
        self.network = anomaly.model()

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        x = ((self.bands(samples) - self.mean) * self.scale)[:, 0]
        return (x - self.network(x)).square().mean(-1, keepdim=True)


def samples_of(sounds: np.ndarray) -> np.ndarray:
    """Accelerations (n, 2048) in g as the sensor's integers."""
    return np.clip(np.rint(sounds * COUNTS_A_G), -32768, 32767).astype(np.int16)


def model(arithmetic: Arithmetic = "auto") -> nn.Module:
    return Vibration(arithmetic).eval()


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (calibration()[0][:1],)


@cache
def calibration() -> list[torch.Tensor]:
    """96 healthy motors of the training set, and the same half and twice as strong: the network's integers cannot go
    beyond what calibration shows, and a fault is what no healthy motor shows."""
    sounds = np.stack([motor.vibration(1_000 + i) for i in range(96)])
    stronger = np.concatenate([gain * sounds for gain in (0.5, 1.0, 2.0)])
    return list(torch.from_numpy(samples_of(stronger)).split(16))


def motors(healthy: int = 200, each_fault: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Held-out motors (n, 2048), int16, and whether each is faulty."""
    sounds = [motor.vibration(900_000 + i) for i in range(healthy)]
    sounds += [motor.vibration(950_000 + i, fault) for i, fault in enumerate(motor.FAULTS * each_fault)]
    return samples_of(np.stack(sounds)), np.arange(len(sounds)) >= healthy


def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """Held-out motors, and the scores that the float model gives them."""
    samples = torch.from_numpy(motors(20, 5)[0])
    with torch.no_grad():
        return samples, model("float")(samples)
