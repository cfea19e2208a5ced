# SPDX-License-Identifier: Apache-2.0
"""Three networks that are right in float and that plain int8 spoils: those of examples/got_worse/, with their data.

Each carries its preprocessing in `forward`: a sound becomes a log-mel image, a row of a table in raw units is
standardized, a window of an accelerometer becomes features. That is good practice. Eight bits are too few there: one
scale has to serve power and silence, or incomes and volts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import nn

from tests.examples.loading import load
from tinyet.quantization.threads import one_thread


@dataclass(frozen=True)
class Ruined:
    """A trained network with its data.

    module: in eval mode. example_inputs: one sample. calibration: batches of one sample. evaluation: samples that
    neither training nor calibration has seen, stacked, and their labels, int64.
    """

    name: str
    module: nn.Module
    example_inputs: tuple[torch.Tensor]
    calibration: list[torch.Tensor]
    evaluation: tuple[torch.Tensor, torch.Tensor]

    def float_accuracy(self) -> float:
        """0 ... 1, of the float model over all of the evaluation data."""
        x, y = self.evaluation
        with torch.no_grad(), one_thread():
            return float((self.module(x).argmax(1) == y).double().mean())


def _loaded(name: str) -> Ruined:
    example = load(f"got_worse/{name}.py")
    with torch.random.fork_rng():
        network = example.model()
    return Ruined(name, network, example.example_inputs(), example.calibration(), example.evaluation())


@cache
def sound() -> Ruined:
    """Log-mel in `forward`."""
    return _loaded("sound")


@cache
def table() -> Ruined:
    """Raw units side by side."""
    return _loaded("table")


@cache
def motion() -> Ruined:
    """Features of a window."""
    return _loaded("motion")


NETWORKS = (sound, table, motion)
