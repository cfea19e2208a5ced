# SPDX-License-Identifier: Apache-2.0
"""A small residual network that knows traffic signs in pictures of 32 x 32.

    tinyet generate examples/image/model.py --board mps2_an386 -o build/signs

calls `model()`, `example_inputs()`, `calibration()` and `evaluation()` below.
"""

import sys
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import gallery
import signs

CLASSES = signs.CLASSES
labels = CLASSES  # what tinyet puts into the generated header
WEIGHTS = Path(__file__).with_name("image.pt")
EPOCHS = 20


def _convolution(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False),
        nn.BatchNorm2d(outputs),
    )


class Block(nn.Module):
    """Two convolutions, the first of which halves the picture, beside a shortcut that does the same."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = _convolution(inputs, outputs, stride=2)
        self.second = _convolution(outputs, outputs)
        self.shortcut = _convolution(inputs, outputs, size=1, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(F.relu(self.first(x)))
        return F.relu(y + self.shortcut(x))


class Signs(nn.Module):
    """(N, 3, 32, 32) pictures with values 0...1 to (N, 7) class probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _convolution(3, 12, stride=2)
        self.blocks = nn.Sequential(Block(12, 20), Block(20, 32))
        self.classifier = nn.Linear(32, len(CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(F.relu(self.stem(x)))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return F.softmax(self.classifier(x), dim=-1)


def _drawn(each: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    pictures, labels = signs.pictures(each, seed)
    return torch.from_numpy(pictures), torch.from_numpy(labels)


def train(network: nn.Module) -> None:
    """About a minute, a third of which goes into drawing."""
    inputs, labels = _drawn(450, seed=100_000)

    # The network ends in softmax, so its logarithm is what the likelihood wants.
    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.nll_loss(torch.log(output + 1e-6), target)

    gallery.fit(network, inputs, labels, loss, epochs=EPOCHS)


def model() -> nn.Module:
    return gallery.trained(Signs, train, WEIGHTS)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (evaluation()[0][:1],)


def calibration() -> list[torch.Tensor]:
    """140 pictures of the training set."""
    return list(_drawn(20, seed=100_000)[0].split(20))


@cache
def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """140 pictures that were not trained on, and what they show."""
    return _drawn(20, seed=900_000)
