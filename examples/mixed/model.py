# SPDX-License-Identifier: Apache-2.0
"""A graph of two worlds: the head is int8, the convolution stays float on purpose, resize and softmax fall
back to float.

    interpolate (float) -> conv (float) -> linear + relu (int8) -> softmax (float)

    tinyet generate examples/mixed/model.py --board mps2_an386 -o build/mixed

`quantizer()` says who is quantized; conversions appear only where int8 and float meet, and the firmware still
answers bit for bit what the host reference answers, because tinyet's float kernels round in the same order, too.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tinyet import TinyetQuantizer, int8_config


class Mixed(nn.Module):
    """(N, 1, 12, 12) images to (N, 4) probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2)
        self.head = nn.Sequential(nn.Linear(4 * 3 * 3, 4), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.interpolate(x, size=(8, 8), mode="bilinear")
        x = self.conv(x)
        x = self.head(x.flatten(1))
        return F.softmax(x, dim=-1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Mixed().eval()


def images(count: int, seed: int) -> torch.Tensor:
    return torch.rand(count, 1, 12, 12, generator=torch.Generator().manual_seed(seed))


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (images(1, 0),)


def calibration() -> list[torch.Tensor]:
    return list(images(64, 1).split(8))


def evaluation() -> tuple[torch.Tensor, torch.Tensor]:
    """Images, and what the float network says of them."""
    x = images(50, 2)
    with torch.no_grad():
        return x, model()(x).argmax(-1)


def quantizer() -> TinyetQuantizer:
    """Only the head computes in integers; everything else is left in float on purpose."""
    return TinyetQuantizer().set_global(None).set_module_name("head", int8_config())
