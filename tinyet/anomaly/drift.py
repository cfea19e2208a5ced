# SPDX-License-Identifier: Apache-2.0
"""How far an input is from data: the distance of its statistics from those of the data, as another output.

Statistics f_1 … f_n of an input are its elements where it is a row of features; of an image, a signal or a spectrogram
they are the mean and the mean square of each channel. With their mean m_i and standard deviation s_i over the data, the
distance is

    1/n * sum over i of ((f_i - m_i) / s_i)^2

(Mahalanobis' with a diagonal covariance, squared, a feature): about 1 for inputs like the data, and greater for others,
without a bound. All of it is float32, by ordinary nodes in this order: dequantized, sliced, averaged, (f - m) * (1 /
(s * sqrt(n))), squared, added one after another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet.anomaly.building import Extension
from tinyet.data import array_of, make_samples, prepare_inputs
from tinyet.errors import DataError, UsageError
from tinyet.ir import DType, Graph, Note, Shape, Tensor
from tinyet.ops.concat import Concat
from tinyet.ops.mean import Mean
from tinyet.ops.mul import Mul
from tinyet.ops.slice import Slice
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.program import Program
from tinyet.reference import Session

MOST_ELEMENTS = 1024
"""Elements of an input that are looked at, evenly spaced: they are 4 KB of arena in float32."""

FEWEST_SAMPLES = 8

LEAST_SPREAD = 1e-3
"""Of a statistic's standard deviation, as a share of the greatest one of its input: what never changed in the data
must not turn noise into drift."""

Numeric = npt.NDArray[Any]
_KINDS = (DType.FLOAT32, DType.INT8, DType.INT16)


def with_drift(program: Program, *data: Any) -> Program:
    """The program with one more output, `drift`, (1,) float32: how far the input is from `data`. 1 is usual; a note
    says how far the data itself is.

    data: one array for each input, (samples, …), as `Program.evaluate` takes them: inputs as they should be.

    Raises DataError for data that does not fit, or fewer than 8 samples, UsageError where no input is of numbers.
    """
    arrays = [array_of(each) for each in data]
    samples = make_samples(program.inputs, arrays).inputs
    if len(samples) < FEWEST_SAMPLES:
        raise DataError(f"drift is measured against {len(samples)} sample(s), at least {FEWEST_SAMPLES}")
    first = Extension(program.graph, "drift")
    statistics, _ = described(first, program.inputs)
    session = Session(first.alone(statistics))
    found = np.stack(
        [session.outputs(prepare_inputs(program.inputs, each))[0].reshape(-1) for each in samples]
    ).astype(np.float64)
    mean, spread = found.mean(0), spreads(found, statistics_of(program.inputs))
    graph = extended(program.graph, mean, spread)
    float_graph = None if program.float_graph is None else extended(program.float_graph, mean, spread)
    distances = (((found - mean) / spread) ** 2).mean(1)
    text = (
        f"drift: {found.shape[1]} statistics of {len(samples)} samples; their own distances: median "
        f"{np.median(distances):.3g}, 99 % up to {np.quantile(distances, 0.99):.3g}, the greatest {distances.max():.3g}"
    )
    return replace(
        program, graph=graph, float_graph=float_graph, notes=(*program.notes, Note(text)), answers=None
    )


def extended(graph: Graph, mean: Numeric, spread: Numeric) -> Graph:
    """A graph with the distance behind it."""
    more = Extension(graph, "drift")
    statistics, count = described(more, graph.user_inputs)
    apart = more.emit(Sub(), [statistics, more.held(mean[None])])
    scaled = more.emit(Mul(), [apart, more.held(1 / (spread[None] * math.sqrt(count)))])
    total = more.emit(Sum((1,), True), [more.emit(Mul(), [scaled, scaled])])
    return more.whole(more.reshaped(total, (1,), "drift"))


def statistics_of(inputs: Sequence[Tensor]) -> list[int]:
    """How many statistics each input has."""
    counts = []
    for x in inputs:
        if x.dtype in _KINDS:
            shape = sliced_shape(x.shape)
            counts.append(shape[channels(shape)] * (1 if is_row(shape) else 2))
    return counts


def spreads(found: Numeric, counts: Sequence[int]) -> Numeric:
    """Standard deviations, at least a share of the greatest of the same input."""
    parts = np.split(found.std(0), np.cumsum(counts)[:-1])
    return np.concatenate([np.maximum(part, max(LEAST_SPREAD * float(part.max()), 1e-6)) for part in parts])


def described(more: Extension, inputs: Sequence[Tensor]) -> tuple[Tensor, int]:
    """The statistics of all inputs of numbers, (1, n), and n."""
    parts = [one for x in inputs if x.dtype in _KINDS for one in of_input(more, x)]
    if not parts:
        raise UsageError("no input has numbers to measure drift of", hint="inputs of float32, int16 or int8")
    whole = parts[0] if len(parts) == 1 else more.emit(Concat(1), parts)
    return whole, whole.shape[1]


def of_input(more: Extension, x: Tensor) -> list[Tensor]:
    """The statistics of an input, (1, n) each."""
    for axis, step in enumerate(steps(x.shape)):
        if step > 1:
            x = more.emit(Slice(axis, 0, x.shape[axis], step), [x], x.dtype, x.type.quant)
    real, axis = more.real(x), channels(x.shape)
    if is_row(x.shape):
        return [more.reshaped(real, (1, x.type.count))]
    others = tuple(a for a in range(len(x.shape)) if a != axis)
    means = (more.emit(Mean(others), [each]) for each in (real, more.emit(Mul(), [real, real])))
    return [more.reshaped(mean, (1, x.shape[axis])) for mean in means]


def is_row(shape: Shape) -> bool:
    """Whether an input is a row of features: at most one dimension is greater than 1."""
    return sum(size > 1 for size in shape) <= 1


def channels(shape: Shape) -> int:
    """The axis of the channels: the smallest dimension above 1, the last of equal ones."""
    return min(range(len(shape)), key=lambda axis: (shape[axis] == 1, shape[axis], -axis))


def steps(shape: Shape) -> list[int]:
    """For each axis every which element is looked at: the longest but the channels' is halved until few are left."""
    found, axis = [1] * len(shape), channels(shape)
    if is_row(shape):
        return found
    while math.prod(sizes := sliced(shape, found)) > MOST_ELEMENTS:
        longest = max((a for a in range(len(shape)) if a != axis), key=lambda a: sizes[a])
        if sizes[longest] == 1:
            break
        found[longest] *= 2
    return found


def sliced(shape: Shape, by: Sequence[int]) -> Shape:
    return tuple(-(-size // step) for size, step in zip(shape, by, strict=True))


def sliced_shape(shape: Shape) -> Shape:
    return sliced(shape, steps(shape))
