# SPDX-License-Identifier: Apache-2.0
"""More of mistakes.py: other things than a model given as one, data in other forms, signals and images."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import tinyet
from tests import small
from tests.importers.mistaken_models import IMAGE, ROW
from tests.importers.mistakes import Attempt, Mistake
from tests.torch_helpers import Lambda
from tinyet.errors import (
    DataError,
    ModelError,
    QuantizationError,
    UnsupportedShape,
    UsageError,
)
from tinyet.project import Project

SIGNAL = torch.sin(torch.arange(64) * 0.7).reshape(1, 64)
FRAME = torch.arange(192, dtype=torch.uint8).reshape(1, 3, 8, 8)
NET = nn.Sequential(nn.Linear(8, 3)).eval()


def spectrum(x: Tensor) -> Tensor:
    lines: Tensor = torch.fft.rfft(x, n=67).abs()
    return lines


def spectrum_right(x: Tensor) -> Tensor:
    lines: Tensor = torch.fft.rfft(x, n=72).abs()
    return lines


def darker(x: Tensor) -> Tensor:
    return (x - 30).float()


def darker_right(x: Tensor) -> Tensor:
    return x.float() - 30


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def given(model: object) -> Callable[[], object]:
    """compile() with something for a model."""
    return lambda: tinyet.compile(model, (ROW,))  # type: ignore[arg-type]


def a_path() -> object:
    with _folder():
        torch.save(NET.state_dict(), "weights.pt")
        return tinyet.compile("weights.pt", (ROW,))  # type: ignore[arg-type]


def its_weights() -> object:
    with _folder():
        torch.save(NET.state_dict(), "weights.pt")
        net = nn.Sequential(nn.Linear(8, 3))
        net.load_state_dict(torch.load("weights.pt", weights_only=True))
        return tinyet.compile(net, (ROW,))


def exported(model: nn.Module, x: Tensor) -> Callable[[], object]:
    return lambda: tinyet.compile(torch.export.export(model, (x,)))


def calibrated(model: nn.Module, x: Tensor, batches: object) -> Callable[[], object]:
    return lambda: tinyet.compile(model, (x,), calibration=batches)  # type: ignore[arg-type]


def validated(use: Callable[[Project], object]) -> Callable[[], object]:
    def call() -> object:
        with _folder():
            return use(tinyet.generate(small.program(), "mps2_an386", Path("p")))

    return call


_TWO: Any = [np.zeros((6, 6, 3), np.float32), np.zeros(4, np.float32)]

MORE_MISTAKES = (
    Mistake(
        "the path of a checkpoint for a model", a_path, UsageError, "weights.pt", its_weights, same=False
    ),
    Mistake(
        "a state dict for a model",
        given(NET.state_dict()),
        UsageError,
        "weights without layers",
        given(NET),
        same=False,
    ),
    Mistake("a class for a model", given(nn.Linear), UsageError, "the class Linear", given(NET), same=False),
    Mistake(
        "the function that makes the model",
        given(small.program),
        UsageError,
        "the function",
        given(NET),
        same=False,
    ),
    Mistake(
        "TorchScript for a model",
        given(torch.jit.script(NET)),
        UsageError,
        "scripted",
        given(NET),
        same=False,
    ),
    Mistake(
        "a shape for an example input",
        lambda: tinyet.compile(NET, (1, 8)),
        ModelError,
        "torch.zeros(1, 8)",
        lambda: tinyet.compile(NET, (torch.zeros(1, 8),)),
        same=False,
    ),
    Mistake(
        "a program exported in half",
        exported(nn.Linear(8, 3).half(), ROW.half()),
        ModelError,
        "model.float()",
        exported(nn.Linear(8, 3).half().float(), ROW),
        same=False,
    ),
    Mistake(
        "`calibration=calibration`, without calling it",
        calibrated(NET, ROW, lambda: [ROW]),
        QuantizationError,
        "call it",
        calibrated(NET, ROW, [ROW]),
        same=False,
    ),
    Mistake(
        "`validate([a, b])`: inputs in a list",
        validated(lambda project: project.samples([_TWO])),
        DataError,
        "a list of 2 arrays of shapes (6, 6, 3), (4,)",
        validated(lambda project: project.samples([_TWO[0][None]])),
        same=False,
    ),
    Mistake(
        "an FFT of a length with large prime factors",
        Attempt(spectrum, SIGNAL),
        UnsupportedShape,
        "torch.fft.rfft(x, n=67)",
        Attempt(spectrum_right, SIGNAL),
        same=False,
    ),
    Mistake(
        "arithmetic with bytes",
        Attempt(darker, FRAME),
        UnsupportedShape,
        "(x - 30)",
        Attempt(darker_right, FRAME),
        same=False,
    ),
    Mistake(
        "calibration in floats for a model that takes bytes",
        calibrated(Lambda(darker_right), FRAME, [IMAGE]),
        QuantizationError,
        "torch.uint8",
        calibrated(Lambda(darker_right), FRAME, [FRAME]),
        same=False,
    ),
)
