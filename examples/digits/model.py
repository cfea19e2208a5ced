# SPDX-License-Identifier: Apache-2.0
"""A small CNN for 8x8 handwritten digits, trained in seconds on scikit-learn's data set.

    tinyet generate examples/digits/model.py --board mps2_an386 -o build/digits

calls `model()`, `example_inputs()`, `calibration()` and `evaluation()` below.
"""

from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

WEIGHTS = Path(__file__).with_name("digits.pt")
EPOCHS = 30
labels = list("0123456789")  # what tinyet puts into the generated header


class Digits(nn.Module):
    """(N, 1, 8, 8) images with values 0...1 to (N, 10) class probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 24, 1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.features(x).flatten(1)
        return F.softmax(self.classifier(x), dim=-1)


@cache
def data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training images and labels, held-out images and labels."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=0.3, random_state=0, stratify=digits.target
    )
    return tuple(torch.from_numpy(a) for a in (train_x, train_y, test_x, test_y))


def train() -> nn.Module:
    """A trained network; the weights are kept beside this file."""
    torch.manual_seed(0)
    network = Digits()
    if WEIGHTS.exists():
        network.load_state_dict(torch.load(WEIGHTS, weights_only=True))
        return network.eval()
    images, labels, _, _ = data()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            # The network ends in softmax, so its logarithm is what the likelihood wants.
            loss = F.nll_loss(torch.log(network(images[batch]) + 1e-9), labels[batch])
            loss.backward()
            optimizer.step()
        schedule.step()
    torch.save(network.state_dict(), WEIGHTS)
    return network.eval()


def model() -> nn.Module:
    return train()


def example_inputs() -> tuple[torch.Tensor, ...]:
    """One image: what the device sees at a time."""
    return (data()[2][:1],)


def calibration() -> list[torch.Tensor]:
    """Typical inputs, to find the range of every value: 200 training images."""
    return list(data()[0][:200].split(20))


def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """The held-out images and their labels."""
    return data()[2], data()[3]
