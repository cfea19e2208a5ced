# SPDX-License-Identifier: Apache-2.0
"""Warnings about data: too little of it, a single value only, or other values than the rest of the data.

Every doubt is a sentence with the numbers and what to do. The thresholds are wide: ordinary data, of which a part was
set aside to evaluate with, stays far below them, and a wrong unit (0 … 255 against 0 … 1, metres against millimetres)
lies far beyond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tinyet.ir import Array, Tensor

FEW_SAMPLES = 8
"""Fewer calibration samples than this show no range; docs/quantization.md asks for a few dozen."""

_FACTOR = 4.0
"""Of two data sets' standard deviations. Keywords, images and the examples' data stay below 1.5."""

_FACTOR_OF_FEW = 16.0
"""The same where one of the sets has fewer than FEW_SAMPLES: one dark image is ordinary."""

_DISTANCE = 3.0
"""Of two data sets' means, in the larger standard deviation."""

_CLIPPED = 0.01
"""Share of values outside of the calibrated range. Observers leave out at most a thousandth on purpose."""

_USED = 0.05
"""Share of the calibrated range that all values of a data set lie in: some 13 of 256 steps."""


@dataclass
class Values:
    """Statistics of one input over many samples, kept while they pass by."""

    samples: int = 0
    count: int = 0
    low: float = math.inf
    high: float = -math.inf
    total: float = 0.0
    squares: float = 0.0
    alike: bool = True
    """Whether every sample is the first one."""
    _first: Array | None = field(default=None, repr=False)

    def add(self, array: Array) -> None:
        """Take in samples, stacked along the first dimension. Values that are not finite are not counted."""
        if array.ndim == 0 or array.size == 0:
            return
        self._first = array[0].copy() if self._first is None else self._first
        first = self._first
        self.alike = self.alike and array[0].shape == first.shape and bool((array == first).all())
        self.samples += len(array)
        values = array.astype(np.float64)
        values = values[np.isfinite(values)]
        if values.size:
            self.count += values.size
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
            self.total += float(values.sum())
            self.squares += float((values**2).sum())

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation; 0 where all values are one."""
        if self.low == self.high or not self.count:
            return 0.0
        return math.sqrt(max(self.squares / self.count - self.mean**2, 0.0))

    def __str__(self) -> str:
        return (
            f"{self.low:.4g} … {self.high:.4g}, mean {self.mean:.3g}, standard deviation {self.deviation:.3g}"
        )


def values_of(array: Array) -> Values:
    """The statistics of stacked samples."""
    values = Values()
    values.add(array)
    return values


def calibration_warnings(columns: Sequence[Values], names: Sequence[str]) -> list[str]:
    """Warnings about calibration data by itself. columns: one an input; names: of the inputs."""
    count = max((column.samples for column in columns), default=0)
    found = sameness_warnings(columns, names, "calibration")
    if 0 < count < FEW_SAMPLES:
        found.append(
            f"calibration: {count} sample{'s' if count > 1 else ''}; ranges that so few show are clipped on others: "
            "give some dozens, such as the device will see"
        )
    return found


def sameness_warnings(columns: Sequence[Values], names: Sequence[str], what: str) -> list[str]:
    """Whether data, called `what`, holds one sample only, or one value only."""
    count = max((column.samples for column in columns), default=0)
    if count > 1 and all(column.alike for column in columns):
        return [
            f"{what}: all {count} samples are the same one: give different ones, such as the device will see"
        ]
    return [
        f"{what}: input {name} is {column.low:.4g} in all of {column.samples} samples: nothing can be told of its "
        "range; give values such as the device will see"
        for name, column in zip(names, columns, strict=True)
        if column.count > 1 and column.low == column.high
    ]


def shift_warnings(
    calibration: Sequence[Values], evaluation: Sequence[Values], names: Sequence[str]
) -> list[str]:
    """Inputs whose values differ so much between both data sets that one of them is not what the device will see."""
    found = []
    for name, seen, used in zip(names, calibration, evaluation, strict=True):
        if not seen.count or not used.count:
            continue
        few = min(seen.samples, used.samples) < FEW_SAMPLES
        factor = _FACTOR_OF_FEW if few else _FACTOR
        smaller, larger = sorted((seen.deviation, used.deviation))
        # One constant is doubtful by itself; it says nothing of scale.
        apart = smaller > 0.0 and larger > factor * smaller
        distance = factor / _FACTOR * _DISTANCE * larger
        if not apart and not abs(seen.mean - used.mean) > distance:
            continue
        way = "wider" if used.deviation == larger else "narrower"
        what = f", {larger / smaller:,.0f} times {way}" if apart else ""
        found.append(
            f"input {name}: calibration has {seen}; evaluation {used}{what}: "
            "one of them is not what the device will see; prepare both alike (scale, offset, units)"
        )
    return found


@dataclass(frozen=True)
class Fit:
    """The fit of one input's real values to its calibrated range.

    range: what the input's integers stand for. outside: the share of the values that is clipped.
    """

    name: str
    values: Values
    range: tuple[float, float]
    outside: float


def fits_of(tensors: Sequence[Tensor], arrays: Sequence[Array]) -> list[Fit]:
    """The fit of stacked samples, one array an input, to the inputs. Inputs that are not quantized are left out, and
    integers, which are taken as they are."""
    found = []
    for tensor, array in zip(tensors, arrays, strict=True):
        quant = tensor.type.quant
        if quant is None or array.dtype.kind != "f" or not array.size:
            continue
        low, high = ((bound - quant.one_zero_point) * quant.one_scale for bound in tensor.dtype.range)
        # What rounds to the last step is not clipped.
        values, half = array.astype(np.float64), quant.one_scale / 2
        outside = (values < low - half) | (values > high + half)
        found.append(Fit(tensor.name, values_of(array), (low, high), float(outside.mean())))
    return found


def fit_warnings(fits: Sequence[Fit]) -> list[str]:
    """Evaluation data that leaves the calibrated range, or hardly uses it."""
    found = []
    for fit in fits:
        low, high = fit.range
        if fit.outside > _CLIPPED:
            found.append(
                f"input {fit.name}: {100 * fit.outside:.1f} % of the values lie outside of {low:.4g} … {high:.4g}, the "
                f"calibrated range, and are clipped ({fit.values}): calibrate with data such as this, or prepare "
                "this as the calibration data was"
            )
        elif fit.values.samples >= FEW_SAMPLES and fit.values.high - fit.values.low < _USED * (high - low):
            found.append(
                f"input {fit.name}: all values lie within {fit.values.low:.4g} … {fit.values.high:.4g}, of the "
                f"calibrated {low:.4g} … {high:.4g}: few steps of the integers are left for them; prepare this "
                "data as the calibration data was"
            )
    return found


def label_warnings(labels: Array | None, classes: int) -> list[str]:
    """Labels that name no class. classes: elements of the first output; 1 is an index, of any range upwards of 0."""
    if labels is None or labels.dtype.kind not in "iu" or not labels.size:
        return []
    values = labels.ravel().astype(np.int64)
    wrong = (values < 0) | (values >= classes) if classes > 1 else values < 0
    if not wrong.any():
        return []
    at = int(np.flatnonzero(wrong)[0])
    which = f"0 … {classes - 1}" if classes > 1 else "0 and above"
    said = (
        f"labels: {int(wrong.sum())} of {labels.size} are no class of the model, which are {which} (they run from "
        f"{values.min()} to {values.max()}; the first is {values[at]}, of sample {at}): such samples count as wrong; "
        "count classes from 0, and leave out samples that belong to none"
    )
    return [said]
