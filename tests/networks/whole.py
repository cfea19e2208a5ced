# SPDX-License-Identifier: Apache-2.0
"""Whole networks, small: dense blocks, inceptions, U-Nets with unequal branches; transformers, residuals, encoders."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from tests.networks.network import IMAGES, SERIES, Theme, normal, tokens, uniform

WHOLE = Theme("whole networks")
add = WHOLE.add_module


class Dense(nn.Module):
    """A DenseNet's block, a transition and a block; each layer's result is `factor` times as large as the last's."""

    def __init__(self, factor: float, growth: int = 4) -> None:
        super().__init__()
        self.factor = factor
        self.first = nn.ModuleList(nn.Conv2d(3 + growth * i, growth, 3, padding=1) for i in range(3))
        self.between = nn.Conv2d(3 + 3 * growth, 6, 1)
        self.second = nn.ModuleList(nn.Conv2d(6 + growth * i, growth, 3, padding=1) for i in range(2))
        self.head = nn.Linear(6 + 2 * growth, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = 1.0
        for layer in self.first:
            size *= self.factor
            x = torch.cat([x, F.relu(layer(x)) * size], 1)
        x = F.avg_pool2d(F.relu(self.between(x)), 2)
        for layer in self.second:
            x = torch.cat([x, F.relu(layer(x))], 1)
        out: torch.Tensor = self.head(x.mean((2, 3)))
        return out


class Inception(nn.Module):
    """Four branches side by side, one `factor` times as large, twice; and a head that reads between."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.blocks = nn.ModuleList(_Branches(channels) for channels in (3, 12))
        self.aside = nn.Linear(12, 3)
        self.head = nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.blocks[0](x, self.factor)
        aside = self.aside(x.mean((2, 3)))
        return self.head(self.blocks[1](F.max_pool2d(x, 2), self.factor).mean((2, 3))), aside


class _Branches(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(channels, 3, 1)
        self.three = nn.Conv2d(channels, 3, 3, padding=1)
        self.five = nn.Conv2d(channels, 3, 5, padding=2)
        self.pooled = nn.Conv2d(channels, 3, 1)

    def forward(self, x: torch.Tensor, factor: float) -> torch.Tensor:
        pooled = self.pooled(F.max_pool2d(x, 3, 1, 1))
        branches = [F.relu(self.one(x)), F.relu(self.three(x)) * factor, F.relu(self.five(x)), pooled]
        return torch.cat(branches, 1)


class UNet(nn.Module):
    """Two levels; what comes from below is `factor` times as large as what is kept beside it."""

    def __init__(self, factor: float, *, transposed: bool) -> None:
        super().__init__()
        self.factor = factor
        self.down = nn.Conv2d(3, 4, 3, padding=1)
        self.deep = nn.Conv2d(4, 8, 3, padding=1)
        self.bottom = nn.Conv2d(8, 8, 3, padding=1)
        self.up_deep = nn.ConvTranspose2d(8, 8, 2, 2) if transposed else nn.Upsample(scale_factor=2)
        self.join_deep = nn.Conv2d(16, 4, 3, padding=1)
        self.up = (
            nn.ConvTranspose2d(4, 4, 2, 2) if transposed else nn.Upsample(scale_factor=2, mode="bilinear")
        )
        self.join = nn.Conv2d(8, 4, 3, padding=1)
        self.head = nn.Conv2d(4, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        top = F.relu(self.down(x))
        deep = F.relu(self.deep(F.max_pool2d(top, 2)))
        x = F.relu(self.bottom(F.max_pool2d(deep, 2)))
        x = F.relu(self.join_deep(torch.cat([deep, self.factor * self.up_deep(x)], 1)))
        x = F.relu(self.join(torch.cat([top, self.factor * self.up(x)], 1)))
        out: torch.Tensor = self.head(x)
        return out


class Transformer(nn.Module):
    """A causal transformer of one block over an alphabet: masked by -inf, by a fill, or by torch itself."""

    def __init__(self, fill: float | None) -> None:
        super().__init__()
        self.fill = fill
        self.letters = nn.Embedding(12, 16)
        self.places = nn.Parameter(torch.rand(1, 8, 16) * 0.5)
        self.before, self.behind = nn.LayerNorm(16), nn.LayerNorm(16)
        self.query, self.key, self.value, self.out = (nn.Linear(16, 16) for _ in range(4))
        self.wide, self.narrow = nn.Linear(16, 32), nn.Linear(32, 16)
        self.head = nn.Linear(16, 12)
        nn.init.uniform_(self.letters.weight, -1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.letters(x) + self.places
        z = self.before(y)
        y = y + self.out(self._attend(self.query(z), self.key(z), self.value(z)))
        y = y + self.narrow(F.gelu(self.wide(self.behind(y))))
        out: torch.Tensor = self.head(y)
        return out

    def _attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        query, key, value = (v.reshape(1, 8, 2, 8).transpose(1, 2) for v in (query, key, value))
        if self.fill is None:
            found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = query @ key.transpose(-1, -2) / math.sqrt(8)
            masked = scores.masked_fill(torch.ones(8, 8).triu(1).bool(), self.fill)
            found = masked.softmax(-1) @ value
        return found.transpose(1, 2).reshape(1, 8, 16)


class Residual(nn.Module):
    """Three residual blocks with batch norms; the third has stride 2 and a shortcut of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(6, 6, 3, padding=1, bias=False) for _ in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm2d(6) for _ in range(4))
        self.strided = nn.Conv2d(6, 8, 3, 2, 1)
        self.shortcut = nn.Conv2d(6, 8, 1, 2)
        self.head = nn.Linear(8, 5)
        for norm in self.norms:
            assert isinstance(norm, nn.BatchNorm2d)
            assert norm.running_var is not None
            nn.init.uniform_(norm.weight, 0.3, 2.0)
            nn.init.uniform_(norm.bias, -0.5, 0.5)
            nn.init.uniform_(norm.running_var, 0.1, 1.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.first(x))
        for i in (0, 2):
            y = F.relu(self.norms[i](self.layers[i](x)))
            x = F.relu(x + self.norms[i + 1](self.layers[i + 1](y)))
        x = F.relu(self.strided(x) + self.shortcut(x))
        out: torch.Tensor = self.head(x.mean((2, 3))).softmax(-1)
        return out


class Separable(nn.Module):
    """Inverted residuals with depthwise layers and ReLU6, as MobileNetV2's."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, 2, 1)
        self.wide, self.depthwise = nn.Conv2d(6, 18, 1), nn.Conv2d(18, 18, 3, padding=1, groups=18)
        self.narrow = nn.Conv2d(18, 6, 1)
        self.head = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu6(self.stem(x))
        x = x + self.narrow(F.relu6(self.depthwise(F.relu6(self.wide(x)))))
        out: torch.Tensor = self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))
        return out


class Autoencoder(nn.Module):
    """Encoder and decoder; the code is small, and so is what is left over."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 4))
        self.decoder = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 24))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        decoded = self.decoder(self.encoder(x))
        return decoded, ((decoded - x) ** 2).mean(-1)


class Variational(nn.Module):
    """The encoder of a variational autoencoder: mean and variance, of different size, from one trunk."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 6, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(96, 12), nn.ReLU()
        )
        self.mean, self.spread = nn.Linear(12, 4), nn.Linear(12, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.trunk(x)
        return self.mean(y), torch.exp(0.5 * self.spread(y) - 3.0)


class Detector(nn.Module):
    """Boxes in pixels, probabilities of objects, and classes, of one map: three sizes in one result."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Conv2d(3, 8, 3, 2, 1)
        self.boxes, self.objects, self.classes = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 1, 1), nn.Conv2d(8, 3, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = F.relu(self.trunk(x))
        boxes, objects = 64 * torch.sigmoid(self.boxes(y)), torch.sigmoid(self.objects(y) - 3)
        classes = self.classes(y).softmax(1)
        return torch.cat([boxes, objects, classes], 1), objects, classes


class TemporalNet(nn.Module):
    """Dilated convolutions over time with gates and a sum of skips, as WaveNet's."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(4, 6, 1)
        self.filters = nn.ModuleList(nn.Conv1d(6, 12, 2, dilation=2**i) for i in range(3))
        self.skips = nn.ModuleList(nn.Conv1d(6, 6, 1) for _ in range(3))
        self.head = nn.Conv1d(6, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        total = torch.zeros(1, 6, 16)
        for i, (layer, skip) in enumerate(zip(self.filters, self.skips, strict=True)):
            a, b = layer(F.pad(x, (2**i, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            total = total + skip(y)
            x = x + y
        out: torch.Tensor = self.head(F.relu(total))
        return out


class ShuffleUnit(nn.Module):
    """Half of the channels go through, half are left; then they are shuffled."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.branch = nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1, groups=4))
        self.head = nn.Conv2d(8, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = F.relu(self.stem(x)).chunk(2, 1)
        x = torch.cat([left, 12 * self.branch(right)], 1)
        out: torch.Tensor = self.head(F.channel_shuffle(x, 2))
        return out


for factor in (1.0, 5.0, 50.0):
    add(f"DenseNet ×{factor:g}", IMAGES, partial(Dense, factor**0.5))
    add(f"Inception ×{factor:g}", IMAGES, partial(Inception, factor))
    add(f"U-Net ×{factor:g}", IMAGES, partial(UNet, factor, transposed=False))
    add(f"U-Net, transposed, ×{factor:g}", IMAGES, partial(UNet, factor, transposed=True))
for fill, how in ((None, "torch's own"), (-math.inf, "-inf"), (-1e9, "-1e9"), (-1e4, "-1e4")):
    add(f"causal transformer, {how} mask", tokens(8, below=12), partial(Transformer, fill))
add("residual network", IMAGES, Residual)
add("inverted residual", uniform(3, 8, 8), Separable)
add("autoencoder", normal(24), Autoencoder)
add("variational encoder", IMAGES, Variational)
add("detector", uniform(3, 8, 8), Detector)
add("WaveNet", SERIES, TemporalNet)
add("ShuffleNet unit", IMAGES, ShuffleUnit)

THEMES = (WHOLE,)
