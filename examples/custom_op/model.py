# SPDX-License-Identifier: Apache-2.0
"""A small network on 16 x 16 images with the snake activation, in the form that the command line takes."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))

from snake import snake


class Snake(nn.Module):
    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = snake(x, self.alpha)
        return out


def model() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        Snake(0.75),
        nn.Conv2d(8, 8, 3, stride=2, padding=1),
        Snake(1.5),
        nn.Flatten(),
        nn.Linear(128, 4),
    ).eval()


def images(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, 1, 16, 16, generator=torch.Generator().manual_seed(seed))


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (images(1, 0),)


def calibration() -> list[torch.Tensor]:
    return list(images(32, 1).split(1))
