# SPDX-License-Identifier: Apache-2.0
"""Comparisons and choices in a quantized model: layers around them stay integer, and the choice moves integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tests.torch_helpers import Lambda
from tinyet.ir import DType


class Chooser(nn.Module):
    """One layer or another, by the sign of the first; and by a number for the whole sample."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(3, 4, 3, padding=1)
        self.last = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        y = torch.where(y > 0, y, self.second(x))
        y = torch.where(x.mean() > 0, y, y * 0.5)
        result: torch.Tensor = self.last(y.mean((2, 3)))
        return result


def test_a_choice_between_layers() -> None:
    torch.manual_seed(1)
    model = Chooser().eval()
    data = torch.randn(48, 3, 8, 8)
    program = tinyet.compile(model, (data[:1],), calibration=data[16:], name="chooser")
    kinds = [(node.op, node.output.dtype) for node in program.graph.nodes]
    assert {dtype for op, dtype in kinds if op in ("conv2d", "linear", "where")} == {DType.INT8}
    assert sum(op == "compare" for op, _ in kinds) == 2
    assert sum(op == "where" for op, _ in kinds) == 2
    with torch.no_grad():
        wanted = torch.cat([model(x[None]) for x in data[:16]]).numpy()
    found = np.stack([program.run(x[None].numpy())[0].reshape(2) for x in data[:16]])
    noise = float(np.sum((found - wanted) ** 2))
    assert 10 * np.log10(float(np.sum(wanted**2)) / noise) > 25


@pytest.mark.parametrize(
    "function",
    [lambda x: (x > 0).float() * x, lambda x: (x > 0).float() * 0.5 + x, lambda x: (x > 0).float() * 0.5],
)
def test_truth_values_in_sums_and_products(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """They are no bytes, of which a table could be made."""
    data = torch.linspace(-1, 1, 256).reshape(32, 8)
    program = tinyet.compile(Lambda(function).eval(), (data[:1],), calibration=[data])
    found = np.concatenate([program.run(x[None].numpy()) for x in data])
    assert np.abs(found - function(data).numpy()).max() < 0.02
