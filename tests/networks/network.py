# SPDX-License-Identifier: Apache-2.0
"""What a network of the suite is, and the data that they are calibrated and judged with."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

CALIBRATION = 64
"""Samples that ranges are found with; below 32 they are known to be clipped visibly."""
EVALUATION = 32
"""Other samples of the same kind, by which results are judged."""

Make = Callable[[], nn.Module]
Data = Callable[[np.random.Generator], np.ndarray[Any, Any]]
"""All samples of one input, float32 or int32, of shape (CALIBRATION + EVALUATION, …). numpy draws the same numbers on
every processor, torch.randn does not."""


@dataclass(frozen=True)
class Network:
    """A small network and its inputs. make: the module, its weights drawn by a seed made of the name."""

    name: str
    theme: str
    make: Make
    data: tuple[Data, ...]

    def build(self) -> nn.Module:
        """The module in eval mode, the same at every call and on every processor."""
        with torch.random.fork_rng():
            torch.manual_seed(zlib.crc32(self.name.encode()))
            return self.make().eval()

    def samples(self) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
        """Inputs to calibrate with and to judge by, one tensor an input, the samples along the first dimension."""
        generator = np.random.default_rng(zlib.crc32(self.name.encode()))
        drawn = [torch.from_numpy(np.ascontiguousarray(one(generator))) for one in self.data]
        return tuple(x[:CALIBRATION] for x in drawn), tuple(x[CALIBRATION:] for x in drawn)


class Layers(nn.Module):
    """Layers by name, and what is computed with them: forward(layers, *inputs)."""

    def __init__(self, function: Callable[..., Any], layers: dict[str, Make]) -> None:
        super().__init__()
        self.function = function
        for name, make in layers.items():
            self.add_module(name, make())

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(self, *inputs)


class Theme(list[Network]):
    """The networks of one theme, in the order in which they are added."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def add(
        self, name: str, data: Data | tuple[Data, ...], function: Callable[..., Any], **layers: Make
    ) -> None:
        """A network that computes function(m, *inputs), with the layers as attributes of m."""
        self.add_module(name, data, lambda: Layers(function, layers))

    def add_module(self, name: str, data: Data | tuple[Data, ...], make: Make) -> None:
        """A network that is a module of its own."""
        self.append(Network(name, self.name, make, data if isinstance(data, tuple) else (data,)))


# ---------------------------------------------------------------- inputs


def normal(*shape: int, scale: float = 1.0, offset: float = 0.0) -> Data:
    """Gaussian numbers, float32. shape: of one sample."""

    def draw(generator: np.random.Generator) -> np.ndarray[Any, Any]:
        drawn = generator.normal(size=(CALIBRATION + EVALUATION, *shape))
        return np.asarray(drawn * scale + offset, np.float32)

    return draw


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Data:
    """Numbers of low … high, float32. shape: of one sample."""

    def draw(generator: np.random.Generator) -> np.ndarray[Any, Any]:
        return np.asarray(generator.uniform(low, high, (CALIBRATION + EVALUATION, *shape)), np.float32)

    return draw


def tokens(*shape: int, below: int) -> Data:
    """Indices of 0 … below - 1, int32. shape: of one sample."""

    def draw(generator: np.random.Generator) -> np.ndarray[Any, Any]:
        return np.asarray(generator.integers(0, below, (CALIBRATION + EVALUATION, *shape)), np.int32)

    return draw


ROWS = normal(8)
IMAGES = normal(3, 8, 8)
SERIES = normal(4, 16)
WORDS = normal(6, 8)
"""Six vectors of eight, as attention takes them."""


# ---------------------------------------------------------------- layers


def linear(inputs: int = 8, outputs: int = 8, *, gain: float = 1.0, bias: float = 0.0) -> Make:
    """A linear layer; gain: factor on its weights, bias: added to its bias."""
    return lambda: _scaled(nn.Linear(inputs, outputs), gain, bias)


def conv(inputs: int = 3, outputs: int = 4, kernel: int = 3, *, gain: float = 1.0, **options: Any) -> Make:
    """A convolution that keeps the size of images (unless options say otherwise); gain: factor on its weights."""
    options.setdefault("padding", kernel // 2)
    return lambda: _scaled(nn.Conv2d(inputs, outputs, kernel, **options), gain, 0.0)


def conv1d(inputs: int = 4, outputs: int = 4, kernel: int = 3, *, gain: float = 1.0, **options: Any) -> Make:
    """The same along one dimension."""
    options.setdefault("padding", kernel // 2)
    return lambda: _scaled(nn.Conv1d(inputs, outputs, kernel, **options), gain, 0.0)


def _scaled(layer: Any, gain: float, bias: float) -> nn.Module:
    with torch.no_grad():
        layer.weight.mul_(gain)
        if layer.bias is not None:
            layer.bias.add_(bias)
    made: nn.Module = layer
    return made
