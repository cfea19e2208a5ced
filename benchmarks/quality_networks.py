# SPDX-License-Identifier: Apache-2.0
"""Networks to try what quantization does to answers on: fifteen kinds, each trained in seconds from fixed seeds, and
the two of MLPerf Tiny that come trained. `NETWORKS` has them by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "got_worse"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import gallery
import motion
import sound
import table

from benchmarks.mlperf_tiny import data_of, load_models
from tinyet import TinyetQuantizer, int4_config

Score = Callable[[Sequence[torch.Tensor], torch.Tensor], float]
"""Outputs over all samples, and what they should be → 0 … 1."""


@dataclass(frozen=True, eq=False)
class Trained:
    """module: in eval mode. calibration: batches of one sample. x, y: samples that training has not seen, stacked, and
    what they are. labels: whether y names classes, and the first output's largest element one. score: of the outputs;
    figure: what it is called. quantizer: None for the default one."""

    module: nn.Module
    calibration: list[torch.Tensor]
    x: torch.Tensor
    y: torch.Tensor
    labels: bool
    score: Score
    figure: str
    quantizer: Callable[[], TinyetQuantizer] | None = None


def _accuracy(outputs: Sequence[torch.Tensor], y: torch.Tensor) -> float:
    return float((outputs[0].flatten(1).argmax(1) == y).double().mean())


def _classifier(
    network: nn.Module,
    data: Callable[[int, int], tuple[torch.Tensor, torch.Tensor]],
    count: int,
    epochs: int,
    loss: Callable[[Any, torch.Tensor], torch.Tensor] = F.cross_entropy,
    quantizer: Callable[[], TinyetQuantizer] | None = None,
) -> Trained:
    x, y = data(count, 1)
    gallery.fit(network, x, y, loss, epochs=epochs)
    unseen, labels = data(400, 2)
    return Trained(
        network.eval(), list(x[:100, None]), unseen, labels, True, _accuracy, "accuracy", quantizer
    )


def _example(module: Any) -> Trained:
    """A network of examples/got_worse/."""
    x, y = module.evaluation()
    return Trained(module.model(), module.calibration(), x[:400], y[:400], True, _accuracy, "accuracy")


def _mlperf(name: str) -> Trained:
    models = load_models()
    calibration, x, y, counted = data_of(models, name)
    step = max(1, len(calibration) // 100)
    samples = [image[None] for image in calibration[::step]]
    seen, labels = x[counted][:300], y[counted][:300]
    return Trained(getattr(models, name)().eval(), samples, seen, labels, True, _accuracy, "accuracy")


# ---------------------------------------------------------------- images

SIDE = 16


def _shapes(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images (count, 1, SIDE, SIDE) of a bar across, a bar upright, a cross or a disc; the pixels that belong to it;
    which it is; and its middle (x, y)."""
    rng = torch.Generator().manual_seed(seed)
    kinds = torch.arange(count) % 4
    middle = 4 + 8 * torch.rand(count, 2, generator=rng)
    radius = (2 + 2 * torch.rand(count, generator=rng))[:, None, None]
    place = torch.arange(SIDE) + 0.5
    dx = (place[None, None, :] - middle[:, 0, None, None]).abs().expand(count, SIDE, SIDE)
    dy = (place[None, :, None] - middle[:, 1, None, None]).abs().expand(count, SIDE, SIDE)
    across, upright = (dy < 1) & (dx < radius), (dx < 1) & (dy < radius)
    every = torch.stack([across, upright, across | upright, dx**2 + dy**2 < radius**2])
    mask = every[kinds, torch.arange(count)].float()[:, None]
    bright = 0.4 + 0.6 * torch.rand(count, 1, 1, 1, generator=rng)
    image = mask * bright + 0.12 * torch.randn(count, 1, SIDE, SIDE, generator=rng)
    return image, mask, kinds, middle


def _kinds(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    image, _, kinds, _ = _shapes(count, seed)
    return image, kinds


def _conv(into: int, out: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(into, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU())


def _cnn(quantizer: Callable[[], TinyetQuantizer] | None = None) -> Trained:
    layers = [_conv(1, 8), _conv(8, 16, 2), _conv(16, 24, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return _classifier(nn.Sequential(*layers, nn.Linear(24, 4)), _kinds, 1600, 6, quantizer=quantizer)


class _UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.low = _conv(1, 8), _conv(8, 16), _conv(16, 16)
        self.up1, self.up2 = nn.ConvTranspose2d(16, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)
        self.third, self.fourth = _conv(32, 16), _conv(16, 8)
        self.last = nn.Conv2d(8, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.first(x)
        b = self.second(F.max_pool2d(a, 2))
        c = self.third(torch.cat([b, self.up1(self.low(F.max_pool2d(b, 2)))], 1))
        y: torch.Tensor = self.last(self.fourth(torch.cat([a, self.up2(c)], 1)))
        return y


def _overlap(outputs: Sequence[torch.Tensor], mask: torch.Tensor) -> float:
    """Intersection over union."""
    found, wanted = outputs[0] > 0, mask > 0.5
    return float((found & wanted).sum() / (found | wanted).sum())


def _unet() -> Trained:
    network = _UNet()
    x, mask, _, _ = _shapes(1200, 1)
    gallery.fit(network, x, mask, F.binary_cross_entropy_with_logits, epochs=6)
    unseen, wanted, _, _ = _shapes(200, 2)
    return Trained(network.eval(), list(x[:100, None]), unseen, wanted, False, _overlap, "IoU")


class _Detector(nn.Module):
    """Scores (N, 4, 4, 4) of kinds and cells, and where in its cell the middle is (N, 2, 4, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(_conv(1, 8), _conv(8, 16, 2), _conv(16, 32, 2), _conv(32, 32))
        self.kind, self.place = nn.Conv2d(32, 4, 1), nn.Conv2d(32, 2, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.body(x)
        return self.kind(y), torch.sigmoid(self.place(y))


def _objects(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images, and rows of the kind and cell as an index, and the middle's place in the cell."""
    image, _, kinds, middle = _shapes(count, seed)
    cell = (middle / 4).floor().clamp(0, 3)
    index = kinds * 16 + cell[:, 1].long() * 4 + cell[:, 0].long()
    return image, torch.cat([index[:, None].float(), middle / 4 - cell], 1)


def _detection_loss(found: tuple[torch.Tensor, torch.Tensor], wanted: torch.Tensor) -> torch.Tensor:
    index = wanted[:, 0].long()
    place = found[1].flatten(2)[torch.arange(len(index)), :, index % 16]
    return F.cross_entropy(found[0].flatten(1), index) + F.l1_loss(place, wanted[:, 1:])


def _detected(outputs: Sequence[torch.Tensor], wanted: torch.Tensor) -> float:
    """Objects of the right kind whose middle is found within a pixel."""
    index = outputs[0].flatten(1).argmax(1)
    column, row = index % 4, index % 16 // 4
    place = outputs[1].flatten(2)[torch.arange(len(index)), :, index % 16]
    at = 4 * (torch.stack([column, row], 1) + place)
    true = wanted[:, 0].long()
    middle = 4 * (torch.stack([true % 4, true % 16 // 4], 1) + wanted[:, 1:])
    near = (at - middle).abs().amax(1) < 1
    return float(((index // 16 == true // 16) & near).double().mean())


def _detector() -> Trained:
    network = _Detector()
    x, y = _objects(2400, 1)
    gallery.fit(network, x, y, _detection_loss, epochs=10)
    unseen, wanted = _objects(300, 2)
    return Trained(network.eval(), list(x[:100, None]), unseen, wanted, False, _detected, "found")


# ---------------------------------------------------------------- sequences

STEPS, CHANNELS = 32, 4


def _sequences(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(count, STEPS, CHANNELS): two pulses, each in one of two shapes, in noise; the class says which came first and
    which second."""
    rng = torch.Generator().manual_seed(seed)
    kinds = torch.arange(count) % 4
    t = torch.arange(STEPS)[None, :, None]
    shapes = torch.tensor([[1.0, 0.5, -0.5, 0.0], [0.0, -0.5, 0.5, 1.0]])
    x = 0.2 * torch.randn(count, STEPS, CHANNELS, generator=rng)
    for which, start in ((kinds % 2, 4), (kinds // 2, 18)):
        at = start + 8 * torch.rand(count, 1, 1, generator=rng)
        size = 0.6 + 0.8 * torch.rand(count, 1, 1, generator=rng)
        x = x + size * torch.exp(-(((t - at) / 1.5) ** 2)) * shapes[which][:, None]
    return x, kinds


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(CHANNELS, 24, batch_first=True)
        self.head = nn.Linear(24, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.gru(x)[0][:, -1])
        return y


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(CHANNELS, 24)
        self.places = nn.Parameter(0.1 * torch.randn(1, STEPS, 24))
        self.layer = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.0, batch_first=True)
        self.head = nn.Linear(24, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.layer(self.into(x) + self.places).mean(1))
        return y


class _Causal(nn.Module):
    """A temporal convolutional network with residual sums."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Conv1d(CHANNELS, 16, 1)
        self.layers = nn.ModuleList(nn.Conv1d(16, 16, 3, dilation=2**i) for i in range(4))
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.into(x.transpose(1, 2))
        for i, layer in enumerate(self.layers):
            x = x + F.relu(layer(F.pad(x, (2 * 2**i, 0))))
        y: torch.Tensor = self.head(x[:, :, -1])
        return y


class _Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.LSTM(CHANNELS, 16, batch_first=True)
        self.decoder = nn.LSTM(16, 16, batch_first=True)
        self.head = nn.Linear(16, CHANNELS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        last = self.encoder(x)[0][:, -1:]
        y: torch.Tensor = self.head(self.decoder(last.expand(-1, STEPS, -1))[0])
        return y


def _turning(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sines of one frequency, in which every second one has a jolt; (x, whether it has)."""
    rng = torch.Generator().manual_seed(seed)
    t = torch.arange(STEPS)[None, :, None] / STEPS
    phase = 6.28 * torch.rand(count, 1, 1, generator=rng) + torch.tensor([0.0, 0.8, 1.6, 2.4])
    size = 0.8 + 0.4 * torch.rand(count, 1, 1, generator=rng)
    x = size * torch.sin(12.57 * t + phase) + 0.03 * torch.randn(count, STEPS, CHANNELS, generator=rng)
    jolted = torch.arange(count) % 2 == 1
    at = 0.2 + 0.6 * torch.rand(count, 1, 1, generator=rng)
    jolt = 0.6 * torch.exp(-(((t - at) * 20) ** 2)) * torch.tensor([1.0, -1.0, 1.0, 0.0])
    return x + jolt * jolted[:, None, None], jolted


def _separated(x: torch.Tensor, outputs: Sequence[torch.Tensor], jolted: torch.Tensor) -> float:
    """The area under the curve: how often a jolted one has the larger error."""
    error = (outputs[0] - x).square().mean((1, 2))
    return float((error[jolted][:, None] > error[~jolted][None]).double().mean())


def _lstm_autoencoder() -> Trained:
    network = _Autoencoder()
    x, jolted = _turning(2400, 1)
    smooth = x[~jolted]
    gallery.fit(network, smooth, smooth, F.mse_loss, epochs=40, rate=1e-2)
    unseen, wanted = _turning(300, 2)
    score = partial(_separated, unseen)
    return Trained(network.eval(), list(smooth[:100, None]), unseen, wanted, False, score, "AUC")


# ---------------------------------------------------------------- features


class _Loudness(nn.Module):
    """A waveform → magnitudes to the power of 0.3, as an ear has them → a TCN."""

    def __init__(self) -> None:
        super().__init__()
        self.spectrum = sound.SoundNet()
        self.conv1, self.conv2 = nn.Conv1d(sound.MELS, 16, 3), nn.Conv1d(16, 16, 3)
        self.head = nn.Linear(16, sound.SOUNDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frames = x.unfold(1, sound.FRAME, sound.HOP) * self.spectrum.window
        real, imaginary = frames @ self.spectrum.cosines, frames @ self.spectrum.sines
        mel = (real * real + imaginary * imaginary) @ self.spectrum.mel
        y = F.relu(self.conv1((mel + 1e-6).pow(0.3).transpose(1, 2)))
        z: torch.Tensor = self.head(F.relu(self.conv2(y)).amax(2))
        return z


class _Ratios(nn.Module):
    """Features that people make of columns: logarithms, ratios, differences from what is usual."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        age, income, volts, pressure, share, errors = x.unbind(1)
        columns = [
            (age - 45) / 10, 2 * torch.log(income / 40000), (volts - 3.7) * 5, (pressure - 1013) / 10,
            torch.log(share / (1 - share)), torch.log1p(errors),
        ]  # fmt: skip
        y: torch.Tensor = self.body(torch.stack(columns, 1))
        return y


def _normalized_table() -> Trained:
    """The scaler is a batch norm in front."""
    body = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
    return _classifier(body, table._rows, 4000, 8)


NETWORKS: dict[str, tuple[str, Callable[[], Trained]]] = {
    "sound": ("sound, log-mel in `forward`", partial(_example, sound)),
    "table": ("table in raw units", partial(_example, table)),
    "motion": ("motion, features of a window", partial(_example, motion)),
    "cnn": ("CNN", _cnn),
    "unet": ("U-Net", _unet),
    "detector": ("detector, two outputs", _detector),
    "transformer": ("transformer", lambda: _classifier(_Attention(), _sequences, 2000, 12)),
    "gru": ("GRU", lambda: _classifier(_Recurrent(), _sequences, 2000, 8)),
    "lstm": ("LSTM autoencoder", _lstm_autoencoder),
    "tcn": ("TCN", lambda: _classifier(_Causal(), _sequences, 2000, 8)),
    "loudness": ("audio, `pow` in `forward`", lambda: _classifier(_Loudness(), sound._sounds, 900, 20)),
    "batchnorm": ("table, batch norm in front", _normalized_table),
    "ratios": ("table, logarithms and ratios", lambda: _classifier(_Ratios(), table._rows, 4000, 30)),
    "int4": ("CNN, int4 weights", lambda: _cnn(lambda: TinyetQuantizer(int4_config()))),
    "ternary": ("CNN, ternary weights", lambda: _cnn(lambda: TinyetQuantizer(int4_config(bits=2)))),
    "ds_cnn": ("DS-CNN of MLPerf Tiny", partial(_mlperf, "ds_cnn")),
    "resnet8": ("ResNet8 of MLPerf Tiny", partial(_mlperf, "resnet8")),
}
"""Name → what tables call it, and what makes it."""


@cache
def trained(name: str) -> Trained:
    """Of one thread and fixed seeds."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return NETWORKS[name][1]()
