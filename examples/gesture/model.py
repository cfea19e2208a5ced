# SPDX-License-Identifier: Apache-2.0
"""A small 1-d CNN that knows gestures from 1.28 s of a three-axis accelerometer.

    tinyet generate examples/gesture/model.py --board mps2_an386 -o build/gestures

calls `model()`, `example_inputs()`, `calibration()` and `evaluation()` below.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gallery
import motion

CLASSES = motion.CLASSES
labels = CLASSES  # what tinyet puts into the generated header
WEIGHTS = Path(__file__).with_name("gesture.pt")
EPOCHS = 40


def features(raw: np.ndarray) -> torch.Tensor:
    """Raw samples (n, 3, 128), int16, in g; exact, because the counts in a g are a power of two."""
    return torch.from_numpy(raw.astype(np.float32) / motion.COUNTS_A_G)


def _block(inputs: int, outputs: int) -> list[nn.Module]:
    """A depthwise convolution over time that halves it, and a pointwise one."""
    return [
        nn.Conv1d(inputs, inputs, 5, stride=2, padding=2, groups=inputs, bias=False),
        nn.BatchNorm1d(inputs),
        nn.ReLU(),
        nn.Conv1d(inputs, outputs, 1, bias=False),
        nn.BatchNorm1d(outputs),
        nn.ReLU(),
    ]


class Gesture(nn.Module):
    """(N, 3, 128) accelerations in g to (N, 5) class probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(3, 16, 9, padding=4, bias=False),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            *_block(16, 24),
            *_block(24, 32),
            *_block(32, 32),
        )
        self.classifier = nn.Linear(32, len(CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers(x).mean(dim=2)
        return F.softmax(self.classifier(x), dim=-1)


def _performed(each: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    raw, labels = motion.windows(each, seed)
    return features(raw), torch.from_numpy(labels)


def train(network: nn.Module) -> None:
    """About half a minute."""
    inputs, labels = _performed(600, seed=1_000)

    # The network ends in softmax, so its logarithm is what the likelihood wants.
    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.nll_loss(torch.log(output + 1e-6), target)

    gallery.fit(network, inputs, labels, loss, epochs=EPOCHS)


def model() -> nn.Module:
    return gallery.trained(Gesture, train, WEIGHTS)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (evaluation()[0][:1],)


def calibration() -> list[torch.Tensor]:
    """200 windows of the training set."""
    return list(_performed(40, seed=1_000)[0].split(20))


@cache
def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """300 gestures that were not trained on, and what they are."""
    return _performed(60, seed=900_000)
