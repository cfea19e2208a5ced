# SPDX-License-Identifier: Apache-2.0
"""Functions that have no value everywhere, and arguments that only integers take there: a note each, and none else."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tinyet.errors import TinyetWarning
from tinyet.ir import DType
from tinyet.ops.unary import Unary
from tinyet.program import Program


class Calls(nn.Module):
    """forward is a function."""

    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def waves() -> torch.Tensor:
    """(40, 1, 4, 16) of very different loudness, as sounds have it."""
    loudness = np.logspace(-3, 0, 40).reshape(-1, 1, 1, 1)
    return torch.from_numpy(
        (np.random.default_rng(0).normal(size=(40, 1, 4, 16)) * loudness).astype(np.float32)
    )


def compiled(function: Callable[[torch.Tensor], Any], x: torch.Tensor | None = None) -> Program:
    x = waves() if x is None else x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TinyetWarning)  # their answers are bad, too
        return tinyet.compile(Calls(function), (x[0],), calibration=list(x), name="net")


def power(x: torch.Tensor) -> torch.Tensor:
    return x.square().mean(2)


WRONG: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "log": lambda x: torch.log(power(x) + 1e-10),
    "sqrt": lambda x: torch.sqrt(power(x) + 1e-10),
    "rsqrt": lambda x: torch.rsqrt(power(x) + 1e-6),
    "reciprocal": lambda x: torch.reciprocal(power(x) + 1e-6),
    "division": lambda x: x.mean(2) / (power(x) + 1e-6),
    "pow": lambda x: torch.pow(power(x) + 1e-6, -0.4),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_that_only_integers_take_to_zero_is_told(name: str) -> None:
    notes = [
        str(note)
        for note in compiled(WRONG[name]).notes
        if "in float, and becomes 0 in integers" in note.text
    ]
    assert len(notes) == 1
    place, _, text = notes[0].partition(f": {name}: ")
    assert "test_ranges.py:" in place
    assert "power(x) + 1e-" in place
    assert "which have steps of " in text
    assert "there the root is 0" in text if name == "sqrt" else "there it is saturated" in text


def test_an_infinity_in_a_layer_that_stays_in_float_is_told() -> None:
    """torch.log10 becomes a logarithm and a product, between integers: there nothing saturates."""
    program = compiled(lambda x: torch.log10(power(x) + 1e-10))
    node = next(n for n in program.graph.nodes if isinstance(n.attrs, Unary) and n.attrs.function == "log")
    assert node.output.dtype is DType.FLOAT32
    silence = np.full((1, 4, 16), program.inputs[0].type.zero_point, np.int8)
    values = program.values([silence])
    assert np.all(values[node.output] == -np.inf)
    assert any("there it gives an infinity or NaN" in note.text for note in program.notes)


RIGHT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "log": lambda x: torch.log(power(x) + 0.1),
    "division": lambda x: x.mean(2) / (power(x) + 1.0),
    "a negative divisor": lambda x: x.mean(2) / (-1.0 - power(x)),
    "a root of what is zero in float, too": lambda x: torch.sqrt(torch.relu(x)),
    "a power without a bound": lambda x: torch.pow(x, 3.0),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_stays_away_from_zero_is_no_note(name: str) -> None:
    assert [note.text for note in compiled(RIGHT[name]).notes if "in float, and becomes" in note.text] == []


MASK = torch.ones(6, 6).tril().bool()


def attention(fill: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Of words (1, 6, 8) to those before them."""
    return lambda x: (x @ x.transpose(1, 2) / 8).masked_fill(~MASK, fill).softmax(-1) @ x


@pytest.mark.parametrize(("fill", "told"), [(-100.0, True), (-math.inf, False), (-1e9, False), (-2.0, False)])
def test_a_mask_that_costs_range_is_told(fill: float, told: bool) -> None:
    """-1e9 counts as infinity to the observers, -2 as a value like any other."""
    words = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 1, 6, 8)).astype(np.float32))
    notes = [str(note) for note in compiled(attention(fill), words).notes if "softmax: values" in note.text]
    assert len(notes) == told
    if told:
        assert "test_ranges.py:" in notes[0]
        assert "values such as -100 are 0 behind it" in notes[0]


def test_a_constant_divisor_that_one_scale_makes_zero_is_told() -> None:
    """The deviations of columns in raw units: 0.01 volts beside 20 000 a year."""
    deviation = torch.tensor([20000.0, 14.0, 0.01])
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 1, 3)).astype(np.float32)) * deviation
    notes = [note.text for note in compiled(lambda x: x / deviation, rows).notes]
    assert any(text.startswith("division: its divisor is 0.01 ... 2e+04") for text in notes)
