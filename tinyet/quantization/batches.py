# SPDX-License-Identifier: Apache-2.0
"""Calibration batches: arrays of a file as such, and what is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from tinyet.data import array_of
from tinyet.errors import DataError, QuantizationError
from tinyet.errors.arguments import described
from tinyet.fx.edit import dtype_name
from tinyet.fx.examples import Inputs
from tinyet.ir import Array


def batches_of(arrays: Sequence[Array], example: Inputs, where: str) -> list[Inputs]:
    """Stacked samples, one array an input, as batches of the example inputs' size.

    Numbers take the example's type if they stay integers or floats. Shapes are left to the calibration,
    which says what is wrong with them. Raises DataError, with `where`, for arrays that do not go together.
    """
    if len(arrays) != len(example):
        raise DataError(f"the file holds {len(arrays)} arrays, the model takes {len(example)} inputs", where)
    if any(array.ndim == 0 for array in arrays) or len({len(array) for array in arrays}) > 1:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise DataError(f"the arrays hold different numbers of samples: {shapes}", where)
    columns: list[list[torch.Tensor]] = []
    for array, wanted in zip(arrays, example, strict=True):
        try:
            tensor = torch.from_numpy(np.ascontiguousarray(array))
        except TypeError as error:
            raise DataError(f"torch has no type for {array.dtype}", where) from error
        # uint8 pixels for a float model are not converted: whether 255 means 1.0 is for the user to say.
        if wanted.dtype is torch.uint8 and tensor.dtype is not torch.uint8:
            low, high = (float(tensor.min()), float(tensor.max())) if tensor.numel() else (0.0, 0.0)
            if tensor.is_floating_point() or low < 0 or high > 255:
                raise DataError(
                    f"the model takes bytes (uint8), the array is {array.dtype} from {low:g} to {high:g}",
                    where,
                    "save the bytes as the camera gives them: x.astype(numpy.uint8)",
                )
        if wanted.dtype in (torch.int8, torch.int16) and not tensor.is_floating_point() and tensor.numel():
            low, high = int(tensor.min()), int(tensor.max())
            most = torch.iinfo(wanted.dtype)
            if low < most.min or high > most.max:
                what = f"the model takes {dtype_name(wanted.dtype)}, the array holds {low} … {high}"
                raise DataError(what, where)
        if tensor.is_floating_point() == wanted.is_floating_point():
            tensor = tensor.to(wanted.dtype)
        # A sample comes with the batch dimension of the model's input, or without.
        if tensor.ndim == wanted.ndim + 1:
            columns.append(list(tensor))
            continue
        batch = max(1, len(wanted)) if wanted.ndim else 1
        columns.append([tensor[at : at + batch] for at in range(0, len(tensor), batch)])
    return list(zip(*columns, strict=True))


MOST_KEPT = 64
"""Samples that are kept of a calibration."""


class KeptSamples:
    """Some of the samples that pass by, in equal steps; the first of each step, however many there are.

    all_of: the first ones, one sequence, for a model that keeps something from one to the next.
    """

    def __init__(self, *, all_of: bool = False) -> None:
        self._all_of = all_of
        self._step = 1
        self._seen = 0
        self._kept: list[tuple[Array, ...]] = []

    def add(self, inputs: Inputs) -> None:
        """Take in one sample."""
        if self._all_of and len(self._kept) >= MOST_KEPT:
            return
        if self._seen % self._step == 0:
            self._kept.append(tuple(np.array(array_of(tensor)) for tensor in inputs))
        self._seen += 1
        if len(self._kept) >= 2 * MOST_KEPT:
            self._kept, self._step = self._kept[::2], 2 * self._step

    @property
    def samples(self) -> tuple[tuple[Array, ...], ...]:
        return tuple(self._kept)


def iterable_of(batches: object) -> Iterable[Any]:
    """Calibration data, if it can be batches at all. Raises QuantizationError with what was given instead."""
    if isinstance(batches, Iterable) and not isinstance(batches, (str, bytes, dict)):
        return batches
    hint = "a list of tensors, one a batch, or of tuples with one tensor per input"
    if callable(batches):
        hint = "call it: calibration=calibration()"
    raise QuantizationError(f"the calibration data is {described(batches)}, not batches", hint=hint)
