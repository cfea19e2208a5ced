# SPDX-License-Identifier: Apache-2.0
"""The data that comes with a model, looked at while it passes by: what is doubtful about it is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from tinyet.data import Data, array_of
from tinyet.data.warnings import (
    Values,
    calibration_warnings,
    fit_warnings,
    fits_of,
    label_warnings,
    sameness_warnings,
    shift_warnings,
    values_of,
)
from tinyet.ir import Tensor


class Watched:
    """Calibration batches, handed on as they come, and the statistics of each input over the last pass.

    What is no batch is left to the calibration, which says so.
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches
        self.columns: list[Values] = []

    def __iter__(self) -> Iterator[Any]:
        self.columns = []
        for batch in self._batches:
            values = batch if isinstance(batch, (tuple, list)) else (batch,)
            if not self.columns:
                self.columns = [Values() for _ in values]
            # Without strict: the calibration refuses another number of inputs.
            for column, value in zip(self.columns, values, strict=False):
                if hasattr(value, "detach"):
                    column.add(array_of(value))
            yield batch


class WatchedSequence(Watched):
    """Batches that can be counted, so that progress is told of how many."""

    def __len__(self) -> int:
        assert isinstance(self._batches, Sized)
        return len(self._batches)


def watch(batches: Iterable[Any]) -> Watched:
    return WatchedSequence(batches) if isinstance(batches, Sized) else Watched(batches)


def data_warnings_of(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], calibration: Watched | None, evaluation: Data | None
) -> list[str]:
    """All warnings about a model's data. inputs, outputs: the program's. calibration: after its use."""
    names = [tensor.name for tensor in inputs]
    seen = [] if calibration is None else calibration.columns
    found = calibration_warnings(seen, names) if seen else []
    if evaluation is None:
        return found
    used = [values_of(np.asarray(array)) for array in evaluation.arrays]
    found += sameness_warnings(used, names, "evaluation")
    apart = shift_warnings(seen, used, names) if seen else []
    # Data that is prepared in two ways is clipped, too: that is told once.
    found += apart or fit_warnings(fits_of(inputs, evaluation.arrays))
    return [*found, *label_warnings(evaluation.labels, outputs[0].type.count)]
