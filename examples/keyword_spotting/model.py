# SPDX-License-Identifier: Apache-2.0
"""A small DS-CNN that hears four words in the cepstra of one second of sound.

    tinyet generate examples/keyword_spotting/model.py --board mps2_an386 -o build/keywords

calls `model()`, `example_inputs()`, `calibration()` and `evaluation()` below. demo.py puts the front end of mfcc.c
before it.
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
import mfcc
import words

CLASSES = words.CLASSES
labels = CLASSES  # what tinyet puts into the generated header
WEIGHTS = Path(__file__).with_name("keyword_spotting.pt")
EPOCHS = 40

# Mean and deviation of each cepstral coefficient over the training words, rounded: what makes them alike in size. The
# mean is in units of the coefficients as mfcc.c gives them.
MEAN = (13600, 350, 140, 55, 45, 0, 16, 30, 10, 6, 12, 18, 6)
DEVIATION = (12.0, 6.0, 2.2, 1.4, 1.1, 1.05, 0.85, 0.7, 0.66, 0.65, 0.6, 0.57, 0.55)
SCALE = tuple(float(np.float32(1.0 / (d * 2**mfcc.FRACTION))) for d in DEVIATION)


def features(cepstra: np.ndarray) -> torch.Tensor:
    """Cepstra (n, 49, 13), int16, to (n, 1, 49, 13) as in main.c: one integer difference, one float32 product."""
    centred = (cepstra.astype(np.int32) - np.array(MEAN, np.int32)).astype(np.float32)
    return torch.from_numpy(centred * np.array(SCALE, np.float32))[:, None]


def _separable(inputs: int, outputs: int, stride: int = 1) -> list[nn.Module]:
    """A depthwise convolution, and a pointwise one."""
    return [
        nn.Conv2d(inputs, inputs, 3, stride=stride, padding=1, groups=inputs, bias=False),
        nn.BatchNorm2d(inputs),
        nn.ReLU(),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    ]


class KeywordSpotting(nn.Module):
    """(N, 1, 49, 13) features to (N, 6) class probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 24, (9, 4), stride=(2, 1), padding=(4, 1), bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            *_separable(24, 32, stride=2),
            *_separable(32, 32),
            *_separable(32, 40),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(40, len(CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.classifier(self.layers(x))
        return F.softmax(x, dim=-1)


def _recorded(each: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    sounds, labels = words.recordings(each, seed)
    return features(mfcc.mfcc(sounds)), torch.from_numpy(labels)


def _later(x: torch.Tensor) -> torch.Tensor:
    """The same a little earlier or later, and never twice the same noise."""
    return torch.roll(x, int(torch.randint(-4, 5, ())), dims=2) + 0.1 * torch.randn_like(x)


def train(network: nn.Module) -> None:
    """About a minute, half of which goes into speaking the words."""
    inputs, labels = _recorded(120, seed=1_000)

    # The network ends in softmax, so its logarithm is what the likelihood wants.
    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.nll_loss(torch.log(output + 1e-6), target)

    gallery.fit(network, inputs, labels, loss, epochs=EPOCHS, augment=_later)


def model() -> nn.Module:
    return gallery.trained(KeywordSpotting, train, WEIGHTS)


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (evaluation()[0][:1],)


def calibration() -> list[torch.Tensor]:
    """Features of 72 recordings of the training set."""
    return list(_recorded(12, seed=1_000)[0].split(12))


@cache
def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """240 recordings by voices that were not trained on, and what they are."""
    return _recorded(40, seed=900_000)
