# SPDX-License-Identifier: Apache-2.0
"""Networks that keep something from one run to the next: in a buffer, which becomes a state; or where torch sees a
constant, which is refused, not frozen."""

from __future__ import annotations

import torch
from torch import nn


class InAttribute(nn.Module):
    """A state in a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.state = torch.zeros(1, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state = torch.tanh(self.layer(x) + self.state)
        return self.state


class InBuffer(nn.Module):
    """A state in a buffer that is assigned."""

    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("state", torch.zeros(1, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state = torch.tanh(self.layer(x) + self.state)
        return self.state


class WrittenInto(nn.Module):
    """A ring of the last inputs, written in place."""

    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.register_buffer("state", torch.zeros(4, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.copy_(torch.cat([self.state[1:], x]))
        out: torch.Tensor = self.layer(self.state.mean(0, keepdim=True))
        return out


REFUSED = (InAttribute,)
KEPT = (InBuffer, WrittenInto)
