# SPDX-License-Identifier: Apache-2.0
"""Buffers that forward() writes become states: float and int8, run after run as torch does it."""

from __future__ import annotations

import copy
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tests.quantization.kept_models import (
    MODELS,
    Delayed,
    MovingAverage,
    Recurrent,
    Window,
    answers,
    frames,
    made,
)
from tinyet.errors import ModelError, UnsupportedOp
from tinyet.fx.capture import capture
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.requantize import Requantize
from tinyet.program import Program
from tinyet.quality.yardstick import Yardstick
from tinyet.reference import Session

CALIBRATION = frames(64)
FIELD = frames(40, seed=2)


@cache
def _program(kind: Any) -> Program:
    """kind: a class of `MODELS`."""
    model = made(kind)
    before = copy.deepcopy(model.state_dict())
    program = tinyet.compile(model, (CALIBRATION[0],), calibration=CALIBRATION, name="kept")
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    return program


def _decibels(exact: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> float:
    return float(10 * np.log10(np.sum(exact**2) / np.sum((exact - found) ** 2)))


@pytest.mark.parametrize("kind", MODELS)
def test_run_after_run_as_torch(kind: Any) -> None:
    program = _program(kind)
    assert program.float_graph is not None
    wanted = answers(made(kind), FIELD)
    exact, session = Session(program.float_graph), program.session()
    found = []
    for x, want in zip(FIELD, wanted, strict=True):
        for ours, theirs in zip(exact.outputs([x.numpy()]), want, strict=True):
            assert np.allclose(ours, theirs, rtol=0, atol=1e-5)
        result = session.run(x.numpy())
        found.append(result if isinstance(result, list) else [result])
    for index in range(len(wanted[0])):
        assert _decibels(*(np.stack([run[index] for run in runs]) for runs in (wanted, found))) > 25
    session.reset()
    first = session.run(FIELD[0].numpy())
    assert all(map(np.array_equal, first if isinstance(first, list) else [first], found[0]))


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_kept_is_of_integers_which_nothing_rescales(kind: Any) -> None:
    """The value that is written has the parameters that it is read with."""
    program = _program(kind)
    written = dict(made(kind).named_buffers())
    assert [state.name for state in program.states] == [name.replace(".", "_") for name in written]
    for state, buffer in zip(program.states, written.values(), strict=True):
        assert state.value.type.quant is not None
        assert np.allclose(_real(state.initial.array, state.value.type), buffer.numpy(), atol=0.01)
    assert not [n for n in program.graph.nodes if isinstance(n.attrs, Requantize | Dequantize)]


def _real(array: np.ndarray[Any, Any], kind: Any) -> np.ndarray[Any, Any]:
    quant = kind.quant
    return np.asarray((array.astype(np.float32) - quant.zero_point[0]) * quant.scale[0])


def test_calibration_data_is_one_sequence() -> None:
    """A frame alone moves the average by a quarter; only a sequence shows how far it gets."""
    model: Any = made(MovingAverage)
    with torch.no_grad():
        model.linear.weight.copy_(torch.eye(4))
        model.linear.bias.zero_()
        model.h.zero_()
    ones = [torch.ones(1, 4)] * 30
    program = tinyet.compile(model, (ones[0],), calibration=ones)
    session = program.session()
    last = [session.run(x.numpy()) for x in ones][-1]
    assert np.allclose(last, 1, atol=0.02)


def test_quality_is_that_of_a_sequence() -> None:
    program = capture(made(Recurrent), (CALIBRATION[0],))
    sequence = [(x,) for x in FIELD]
    found = Yardstick(program, sequence).quality(_program(Recurrent).graph)
    wanted = answers(made(Recurrent), FIELD)
    session = _program(Recurrent).session()
    ours = np.stack([session.run(x.numpy()) for x in FIELD])
    assert found.sqnr_db == pytest.approx(_decibels(np.stack([w[0] for w in wanted]), ours), abs=0.01)


def test_equalized_and_with_corrected_biases() -> None:
    options: Any = {"equalize": True, "correct_bias": True}
    program = tinyet.compile(made(Window), (CALIBRATION[0],), calibration=CALIBRATION, **options)
    session = program.session()
    wanted = np.stack([w[0] for w in answers(made(Window), FIELD)])
    assert _decibels(wanted, np.stack([session.run(x.numpy()) for x in FIELD])) > 25


def test_training_carries_along_what_is_kept() -> None:
    training: Any = tinyet.prepare_training(made(MovingAverage), (CALIBRATION[0],), batch_size=1)
    optimizer = torch.optim.SGD(training.parameters(), lr=1e-3)
    for _ in range(2):
        training.reset()
        steps = [training(x) for x in CALIBRATION[:4]]
        optimizer.zero_grad()
        torch.cat(steps).pow(2).sum().backward()
        optimizer.step()
    assert not torch.equal(training(CALIBRATION[0]), training(CALIBRATION[0]))
    (state,) = tinyet.compile(training.convert()).states
    assert state.value.type.quant is not None
    assert np.allclose(_real(state.initial.array, state.value.type), 0.25, atol=0.02)


class Idle(MovingAverage):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.h = self.h + x
        return self.linear(x)  # type: ignore[no-any-return]


class Truth(nn.Module):
    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, 4, dtype=torch.bool))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = self.seen | (x > 1)
        return torch.where(self.seen, x, 0.0)


def test_what_cannot_be_kept_is_refused_with_its_line() -> None:
    with pytest.raises(
        ModelError, match=r"no output depends:\n.*- h .*test_kept.py:\d+: self.h = self.h \+ x"
    ):
        capture(Idle().eval(), (FIELD[0],))
    with pytest.raises((ModelError, UnsupportedOp), match=r"buffer seen(.|\n)*bool(.|\n)*test_kept.py:\d+"):
        tinyet.compile(Truth(), (FIELD[0],))


@pytest.mark.parametrize("kind", [Recurrent, Delayed])
def test_generated_code_keeps_the_same_bits(kind: Any, tmp_path: Path) -> None:
    """The samples are one sequence for the device as for the session."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    program = _program(kind)
    project = tinyet.generate(program, "mps2_an386", tmp_path / "kept")
    result = project.validate(torch.stack(FIELD).numpy(), on="host")
    assert result.bit_exact
    session = program.session()
    for frame, outputs in zip(FIELD, result.outputs, strict=True):
        wanted: Any = session.run(frame.numpy(), as_float=False)
        assert all(map(np.array_equal, outputs, wanted if isinstance(wanted, list) else [wanted]))
