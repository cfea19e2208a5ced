# SPDX-License-Identifier: Apache-2.0
"""How a graph's values spread over the integers that they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tinyet.ir import Array, DType, Tensor

BINS = 32
"""Of a histogram: int8 in steps of 8, int16 in steps of 2048."""


class Histograms:
    """Counts of quantized int8 and int16 tensors' integers, sample by sample, in BINS equal steps from the least to the
    largest integer; and how many values are at the very ends, where what is beyond was clipped to."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        kinds = (DType.INT8, DType.INT16)
        self._counts = {
            tensor: np.zeros(BINS, np.int64)
            for tensor in tensors
            if tensor.type.dtype in kinds and not tensor.type.is_itself
        }
        self._ends = dict.fromkeys(self._counts, 0)

    def add(self, values: Mapping[Tensor, Array]) -> None:
        """The values of one sample."""
        for tensor in self._counts:
            if tensor in values:
                half, found = 1 << (tensor.type.dtype.bits - 1), values[tensor].ravel()
                steps = (found.astype(np.int64) + half) // (2 * half // BINS)
                self._counts[tensor] += np.bincount(steps, minlength=BINS)
                self._ends[tensor] += int(np.sum((found == -half) | (found == half - 1)))

    def of(self, tensor: Tensor) -> tuple[int, ...]:
        """Its counts, from the least integers on; empty where it has none."""
        return tuple(map(int, self._counts.get(tensor, ())))

    def at_ends(self, tensor: Tensor) -> int | None:
        """How many of its values are the least or the largest integer; None where it has no histogram."""
        return self._ends.get(tensor)
