# SPDX-License-Identifier: Apache-2.0
"""A network over a window that is to take its newest frames only: `tinyet.streaming`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from tinyet.errors import UsageError
from tinyet.errors.arguments import OverTime, over_time_given
from tinyet.fx.examples import Example, example_of


class Streamed(nn.Module):
    """In torch the network over the window, as it is: it is calibrated and tested on windows.

    over_time: the form that `tinyet.compile` gives it.
    """

    model: nn.Module
    example_inputs: Example
    over_time: OverTime

    def __init__(self, model: nn.Module, example_inputs: Example, over_time: OverTime) -> None:
        super().__init__()
        self.model = model
        self.example_inputs = example_inputs
        self.over_time = over_time
        self.train(model.training)

    def forward(self, *inputs: Any) -> Any:
        return self.model(*inputs)


def streaming(
    model: nn.Module,
    example_inputs: torch.Tensor | Sequence[Any] | Mapping[str, Any],
    *,
    axis: int | Sequence[int | None],
    hop: int | None = None,
    edges: str = "exact",
) -> Streamed:
    """A network over a window of time, for `tinyet.compile` to make one of that takes the newest frames only and gives
    the answer of the window that ends with them: see docs/streaming.md.

    example_inputs: a whole window, as for `tinyet.compile`; so is calibration data. axis: the one that is time, of all
    inputs, or one for each input, None where it has none. hop: frames of a run; by default the fewest that give each
    layer a whole number of steps. edges: "exact", or "continue" to have frames in the place of padding in time.

    Raises UsageError for an object that is no module, for an invalid axis, and for other words.
    """
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"streaming takes a module, not a {type(model).__name__}",
            hint="program.streaming(axis=…) is for programs",
        )
    return Streamed(model, example_of(example_inputs), over_time_given(axis, hop, edges))
