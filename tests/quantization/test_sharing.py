# SPDX-License-Identifier: Apache-2.0
"""One set of parameters for the inputs of cat, maximum and where only as far as nobody else pays for it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tinyet
from tests.torch_helpers import Lambda
from tinyet.program import Program
from tinyet.quantization.observers import CLOSE

Outputs = torch.Tensor | tuple[torch.Tensor, ...]

GENERATOR = torch.Generator().manual_seed(11)
IMAGES = torch.randn(32, 3, 6, 6, generator=GENERATOR)
ROWS = torch.randn(64, 8, generator=GENERATOR)


def layer(make: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return make()


CONV = layer(lambda: nn.Conv2d(3, 4, 3, padding=1))
DEEP = layer(lambda: nn.Conv2d(4, 4, 3, padding=1))
STRIDED = layer(lambda: nn.Conv2d(3, 2, 5, padding=2))
LINEAR, OTHER = layer(lambda: nn.Linear(8, 8)), layer(lambda: nn.Linear(8, 8))


def compiled(function: Callable[..., Outputs], data: torch.Tensor) -> tuple[Program, float]:
    """The program, and the SQNR of its first output in dB over the data."""
    model = Lambda(function).eval()
    program = tinyet.compile(model, (data[:1],), calibration=[data])
    with torch.no_grad():
        exact = torch.cat([_first(model(row[None])).flatten() for row in data]).double().numpy()
    found = []
    for row in data:
        result = program.run(row[None].numpy())
        found.append(np.ravel(result[0] if isinstance(result, list) else result).astype(np.float64))
    noise = float(((exact - np.concatenate(found)) ** 2).sum())
    return program, 10 * math.log10(float((exact**2).sum()) / max(noise, 1e-30))


def _first(value: Outputs) -> torch.Tensor:
    return value[0] if isinstance(value, tuple) else value


def ops(program: Program) -> list[str]:
    return [node.op for node in program.graph.nodes]


MASK = torch.arange(8) % 3 > 0


def head_beside_a_concat(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = CONV(x)
    return y.mean((2, 3)), torch.cat([y, 60 * DEEP(y)], 1).amax((2, 3))


def input_beside_a_concat(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return CONV(x), torch.cat([x, 50 * x], 1)


def head_beside_a_maximum(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a = LINEAR(x)
    return torch.tanh(a), torch.maximum(a, 40 * OTHER(x))


def head_beside_a_where(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a = LINEAR(x)
    return torch.tanh(a), torch.where(MASK, a, 40 * OTHER(x))


def head_behind_a_pool_beside_a_concat(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = CONV(x)
    return DEEP(y), torch.cat([F.max_pool2d(y, 2), 60 * F.max_pool2d(DEEP(y), 2)], 1)


@pytest.mark.parametrize(
    ("function", "data", "at_least"),
    [
        (head_beside_a_concat, IMAGES, 35),
        (input_beside_a_concat, IMAGES, 35),
        (head_beside_a_maximum, ROWS, 33),
        (head_beside_a_where, ROWS, 33),
        (head_behind_a_pool_beside_a_concat, IMAGES, 33),
    ],
)
def test_another_reader_keeps_its_precision(
    function: Callable[..., Outputs], data: torch.Tensor, at_least: float
) -> None:
    """With the parameters of the coarse result it would lose most of it."""
    _, sqnr = compiled(function, data)
    assert sqnr > at_least


def test_what_nobody_else_reads_needs_no_requantization() -> None:
    program, sqnr = compiled(lambda x: torch.cat([CONV(x), 60 * STRIDED(x)], 1), IMAGES)
    assert sqnr > 35
    assert "requantize" not in ops(program)


def test_close_ranges_are_shared_and_far_ones_are_not() -> None:
    for factor, shared in ((1.0, True), (1.1, True), (CLOSE * 1.1, False), (8.0, False)):

        def two(x: torch.Tensor, factor: float = factor) -> tuple[torch.Tensor, torch.Tensor]:
            a = F.relu6(LINEAR(x))
            return torch.cat([a, a * factor], 1), LINEAR(a)

        program, _ = compiled(two, 4 * ROWS)
        assert ("requantize" not in ops(program)) == shared, factor


def test_parts_of_one_value_come_together_without_a_call() -> None:
    program, _ = compiled(lambda x: torch.cat([x[:, 4:], x[:, :4]], 1) + LINEAR(x), ROWS)
    assert "requantize" not in ops(program)


class Dense(nn.Module):
    """A dense block: each layer reads all before it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3 + 4 * i, 4, 3, padding=1) for i in range(4))
        self.head = nn.Linear(19, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for one in self.layers:
            x = torch.cat([x, F.relu(one(x))], 1)
        out: torch.Tensor = self.head(x.mean((2, 3)))
        return out


def test_a_dense_block_shares_where_it_costs_nothing() -> None:
    block = layer(Dense)
    program, sqnr = compiled(block.forward, IMAGES)
    assert sqnr > 38
    assert ops(program).count("requantize") <= 1


@pytest.mark.parametrize(
    ("value", "kernel", "is_seen"), [(-10.0, 3, False), (-10.0, 1, True), (10.0, 3, True)]
)
def test_what_a_pool_pads_with_takes_range_where_it_is_seen(value: float, kernel: int, is_seen: bool) -> None:
    """A maximum never is what lies below all values, but in windows of nothing else."""

    def padded(x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(F.pad(CONV(x), (1, 1, 1, 1), value=value), kernel, 2 if kernel > 1 else 1)

    program, sqnr_db = compiled(padded, IMAGES)
    low, high = (
        (bound - program.outputs[0].type.zero_point) * program.outputs[0].type.scale for bound in (-128, 127)
    )
    assert (low < value + 0.1 if value < 0 else high > value - 0.1) == is_seen
    assert sqnr_db > 30
