# SPDX-License-Identifier: Apache-2.0
"""Small models that keep something from run to run in buffers, each written as people write them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

WIDTH = 4
"""Of a frame, (1, WIDTH), which all of them take."""


class MovingAverage(nn.Module):
    """Assigns to the buffer, and begins with something else than zero."""

    h: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", torch.full((1, WIDTH), 0.25))
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.h = 0.75 * self.h + 0.25 * self.linear(x)
        return F.relu(self.h)


class Window(nn.Module):
    """A ring buffer of frames: `cat` of the old ones and the new one."""

    frames: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frames", torch.zeros(1, 5, WIDTH), persistent=False)
        self.linear = nn.Linear(5 * WIDTH, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.frames.copy_(torch.cat([self.frames[:, 1:], x[:, None]], 1))
        return self.linear(self.frames.flatten(1))  # type: ignore[no-any-return]


class Rolled(Window):
    """The same, rolled and written into."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.frames[:] = torch.roll(self.frames, -1, 1)
        self.frames[:, -1] = x
        return self.linear(self.frames.flatten(1))  # type: ignore[no-any-return]


class Cell(nn.Module):
    """A gated recurrent unit by hand."""

    h: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", torch.zeros(1, 6))
        self.of_x, self.of_h = nn.Linear(WIDTH, 18), nn.Linear(6, 18)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        xr, xz, xn = self.of_x(x).chunk(3, 1)
        hr, hz, hn = self.of_h(self.h).chunk(3, 1)
        z = torch.sigmoid(xz + hz)
        n = torch.tanh(xn + torch.sigmoid(xr + hr) * hn)
        self.h.copy_((1 - z) * n + z * self.h)
        return self.h


class Recurrent(nn.Module):
    """A cell inside of a network: the buffer's path has a dot."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell()
        self.head = nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cell(x))  # type: ignore[no-any-return]


class CachedConv(nn.Module):
    """A dilated convolution over the last five frames, of which four are kept."""

    cache: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, WIDTH, 4))
        self.conv = nn.Conv1d(WIDTH, 8, 3, dilation=2)
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frames = torch.cat([self.cache, x[:, :, None]], 2)
        self.cache.copy_(frames[:, :, 1:])
        return self.head(F.relu(self.conv(frames)[:, :, 0]))  # type: ignore[no-any-return]


class Delayed(nn.Module):
    """Each buffer is written with the next one, which is written, too: what was there before is meant. Beside it, two
    outputs."""

    a: torch.Tensor
    b: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("a", "b"):
            self.register_buffer(name, torch.zeros(1, WIDTH))
        self.linear = nn.Linear(WIDTH, 2)

    def forward(self, x: torch.Tensor) -> Any:
        delayed = self.linear(self.b)
        self.b.copy_(self.a)
        self.a.copy_(x)
        return delayed, self.linear(x)


MODELS = (MovingAverage, Window, Rolled, Recurrent, CachedConv, Delayed)


def made(kind: type[nn.Module]) -> nn.Module:
    """A model with weights that are always the same."""
    torch.manual_seed(3)
    return kind().eval()


def frames(count: int, seed: int = 1) -> list[torch.Tensor]:
    return list(torch.randn(count, 1, WIDTH, generator=torch.Generator().manual_seed(seed)))


def answers(model: nn.Module, inputs: list[torch.Tensor]) -> list[list[Any]]:
    """What torch gives, run after run: a list of arrays a run."""
    with torch.no_grad():
        found = [model(x) for x in inputs]
    return [[y.numpy().copy() for y in (f if isinstance(f, tuple) else (f,))] for f in found]
