# SPDX-License-Identifier: Apache-2.0
"""Networks to try the choice of kernels on: of known shapes, with random weights that are the same everywhere.

Batch norms have the statistics of random data, so that every layer's values have ranges as in a trained network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn


def conv(into: int, out: int, kernel: int, stride: int = 1, *, groups: int = 1) -> nn.Sequential:
    """Convolution, batch norm, ReLU; the same size where the stride is 1."""
    middle = nn.Conv2d(into, out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(middle, nn.BatchNorm2d(out), nn.ReLU())


class Residual(nn.Module):
    """x + body(x)"""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


class Classifier(nn.Module):
    """The mean over all pixels, and a fully connected layer."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x.mean((2, 3)))


def mobilenet_v1() -> nn.Module:
    """MobileNetV1 (Howard et al., 2017) of width 0.25 for 96x96x3 and two classes."""
    plan = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]
    parts, before = [conv(3, 8, 3, 2)], 8
    for channels, stride in plan:
        parts += [conv(before, before, 3, stride, groups=before), conv(before, channels, 1)]
        before = channels
    return nn.Sequential(*parts, Classifier(before, 2))


def inverted_residual(into: int, out: int, stride: int, expand: int) -> nn.Module:
    """Of MobileNetV2 (Sandler et al., 2018)."""
    wide = into * expand
    parts = [] if expand == 1 else [conv(into, wide, 1)]
    parts += [conv(wide, wide, 3, stride, groups=wide)]
    parts += [nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out)]
    body = nn.Sequential(*parts)
    return Residual(body) if stride == 1 and into == out else body


def mobilenet_v2(width: float = 0.35, classes: int = 2) -> nn.Module:
    """MobileNetV2 for three channels; channels are multiples of eight."""

    def wide(channels: int) -> int:
        """At least nine tenths of channels times the width."""
        near = max(8, int(channels * width + 4) // 8 * 8)
        return near + 8 if near < 0.9 * channels * width else near

    plan = [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]
    parts, before = [conv(3, wide(32), 3, 2)], wide(32)
    for expand, channels, count, stride in plan:
        for i in range(count):
            parts.append(inverted_residual(before, wide(channels), stride if i == 0 else 1, expand))
            before = wide(channels)
    return nn.Sequential(*parts, conv(before, 1280, 1), Classifier(1280, classes))


def autoencoder() -> nn.Module:
    """Fully connected layers around eight values, for the 640 of five frames of a spectrogram."""
    sizes = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128]
    parts: list[nn.Module] = []
    for into, out in pairwise(sizes):
        parts += [nn.Linear(into, out), nn.BatchNorm1d(out), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(sizes[-1], 640))


def linear_chain() -> nn.Module:
    """The autoencoder with one layer between its widths, and no normalization."""
    parts: list[nn.Module] = []
    for into, out in pairwise([640, 128, 128, 8, 128]):
        parts += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(128, 640))


class Dense(nn.Module):
    """A block of DenseNet (Huang et al., 2017): each layer sees all before it."""

    def __init__(self, into: int, growth: int, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(conv(into + i * growth, growth, 3) for i in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


def densely_connected() -> nn.Module:
    """Three dense blocks of three layers for 32x32x3, a pointwise layer and a pool between them."""
    parts: list[nn.Module] = [conv(3, 16, 3)]
    channels = 16
    for block in range(3):
        parts.append(Dense(channels, 12, 3))
        channels += 36
        if block < 2:
            parts += [conv(channels, channels // 2, 1), nn.AvgPool2d(2)]
            channels //= 2
    return nn.Sequential(*parts, Classifier(channels, 10))


class UNet(nn.Module):
    """U-Net (Ronneberger et al., 2015), of two levels: what is pooled away is joined again on the way up."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([conv(1, 8, 3), conv(8, 16, 3)])
        self.middle = nn.Sequential(conv(16, 32, 3), conv(32, 32, 3))
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
        self.joined = nn.ModuleList([conv(32, 16, 3), conv(16, 8, 3)])
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for layer in self.down:
            kept.append(layer(x))
            x = self.pool(kept[-1])
        x = self.middle(x)
        for up, joined in zip(self.up, self.joined, strict=True):
            x = joined(torch.cat([up(x), kept.pop()], 1))
        return self.head(x)


class Inception(nn.Module):
    """A module of Inception (Szegedy et al., 2015): kernels of several sizes and a pool, side by side."""

    def __init__(self, into: int, wide: int) -> None:
        super().__init__()
        self.one = conv(into, wide, 1)
        self.three = nn.Sequential(conv(into, wide // 2, 1), conv(wide // 2, wide, 3))
        self.five = nn.Sequential(conv(into, wide // 4, 1), conv(wide // 4, wide // 2, 5))
        self.pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(into, wide // 2, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pooled(x)], 1)


def inception() -> nn.Module:
    """Two modules for 32x32x3."""
    return nn.Sequential(
        conv(3, 16, 3, 2),
        Inception(16, 16),
        nn.MaxPool2d(2),
        Inception(48, 24),
        Classifier(72, 10),
    )


def encoder_layer() -> nn.Module:
    """Of a transformer (Vaswani et al., 2017), for vectors of 64: four heads, normalised first."""
    return nn.TransformerEncoderLayer(64, 4, 128, dropout=0, batch_first=True, norm_first=True)


class KeywordTransformer(nn.Module):
    """The Keyword Transformer (Berg et al., 2021), small: 98 frames of 40 bands, two layers, twelve classes."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded = nn.Linear(40, 64)
        self.places = nn.Parameter(torch.randn(1, 98, 64) / 8)
        self.layers = nn.TransformerEncoder(encoder_layer(), 2, enable_nested_tensor=False)
        self.head = nn.Linear(64, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embedded(x) + self.places).mean(1))


@dataclass(frozen=True)
class Network:
    """shape: of the input, without the batch."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]

    def built(self) -> nn.Module:
        """In eval mode."""
        torch.manual_seed(7)
        module = self.make()
        norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
        for norm in norms:
            norm.momentum = None  # statistics are those of all data seen
        with torch.no_grad():
            for part in self.data(32).split(16):
                module.train()(part)
            for norm in norms:
                norm.weight.uniform_(0.7, 1.3)
                norm.bias.uniform_(-0.3, 0.3)
        return module.eval()

    def data(self, count: int) -> torch.Tensor:
        return torch.randn(count, *self.shape, generator=torch.Generator().manual_seed(count))


NETWORKS: dict[str, Network] = {
    "mobilenet_v1": Network(mobilenet_v1, (3, 96, 96)),
    "mobilenet_v2": Network(mobilenet_v2, (3, 96, 96)),
    "mobilenet_v2_144": Network(mobilenet_v2, (3, 144, 144)),
    "autoencoder": Network(autoencoder, (640,)),
    "linear_chain": Network(linear_chain, (640,)),
    "densely_connected": Network(densely_connected, (3, 32, 32)),
    "unet": Network(UNet, (1, 32, 32)),
    "unet_64": Network(UNet, (1, 64, 64)),
    "inception": Network(inception, (3, 32, 32)),
    "encoder_layer": Network(encoder_layer, (128, 64)),
    "keyword_transformer": Network(KeywordTransformer, (98, 40)),
}
