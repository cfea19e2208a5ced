# SPDX-License-Identifier: Apache-2.0
"""The gestures of model.py from an accelerometer's buffer as it is: x, y, z of one sample behind those of the other.

    tinyet generate examples/gesture/buffer.py --board mps2_an386 -o build/gesture_buffer

The network, its weights and the data are those of model.py.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import model as gesture
import motion

from tinyet import features

CLASSES = motion.CLASSES
labels = CLASSES


class Buffer(nn.Module):
    """(N, 128, 3) accelerations, int16, to (N, 5) class probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.samples = features.Samples(interleaved=True)
        self.network = gesture.model()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.network(self.samples(x).float() / motion.COUNTS_A_G)
        return y


def model() -> nn.Module:
    return Buffer().eval()


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (evaluation()[0][:1],)


def _performed(each: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    raw, answers = motion.windows(each, seed)
    return torch.from_numpy(np.ascontiguousarray(raw.transpose(0, 2, 1))), torch.from_numpy(answers)


def calibration() -> list[torch.Tensor]:
    """200 windows of the training set."""
    return list(_performed(40, seed=1_000)[0].split(20))


@cache
def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """300 gestures that were not trained on, and what they are."""
    return _performed(60, seed=900_000)
