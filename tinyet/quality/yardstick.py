# SPDX-License-Identifier: Apache-2.0
"""The quality of the integers that ship: the host reference's outputs against the float model's, and whether that is
enough.

Nothing here is a simulation: a quantized program is imported and goes through all passes, and its graph is evaluated
as the device will: by the host reference, and where samples are many by compiled C that it judges (`native`).

What is enough, and why, is said where the limits are: `tinyet/answers/quality.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch.export import ExportedProgram

from tinyet import passes
from tinyet.answers import (
    ALIKE,
    EIGHT_BITS_DB,
    ENOUGH_DB,
    ENOUGH_LABELLED,
    LARGEST_DROP,
    MOVING_DB,
    Accuracy,
    OutputQuality,
    Quality,
    decibels,
    finite,
    or_infinite,
)
from tinyet.answers.confusion import confusion_of
from tinyet.data import predicted, prepare_inputs
from tinyet.errors import QuantizationError
from tinyet.fx.exact import Exact
from tinyet.fx.examples import Inputs
from tinyet.fx.mutable_buffers import Running, take_out, written_buffers
from tinyet.ir import Array, Graph
from tinyet.native import Runs
from tinyet.numerics import dequantize
from tinyet.quantization.lowering import lower_program
from tinyet.quantization.threads import one_thread

__all__ = [
    "ALIKE",
    "EIGHT_BITS_DB",
    "ENOUGH_DB",
    "ENOUGH_LABELLED",
    "LARGEST_DROP",
    "MOST_SAMPLES",
    "MOVING_DB",
    "Accuracy",
    "OutputQuality",
    "Quality",
    "Yardstick",
    "accuracy_on",
    "compare",
    "finite",
    "or_infinite",
    "shipped",
]

MOST_SAMPLES = 64


def shipped(program: ExportedProgram) -> Graph:
    """The graph that a captured program, quantized or not, becomes on every device. Raises what the import and the
    passes raise."""
    return passes.run(lower_program(program, name="model").graph)[0]


def _answers(graph: Graph, samples: Sequence[Inputs]) -> Iterator[list[Array]]:
    """The graph's outputs for each sample as real numbers; states go from sample to sample."""
    runs = Runs(graph, len(samples))
    for inputs in samples:
        given = prepare_inputs(graph.user_inputs, [tensor.detach().numpy() for tensor in inputs])
        yield [
            dequantize(value, tensor.type.quant) if tensor.type.quant is not None else value
            for tensor, value in zip(graph.user_outputs, runs.outputs(given), strict=True)
        ]


def compare(exact: Array, found: Array) -> OutputQuality:
    """One output, exact and as found, (samples, ...). Where the exact value is not finite nothing is compared."""
    known = np.isfinite(exact)
    wanted = np.where(known, exact, 0.0).astype(np.float64)
    error = np.where(known, found.astype(np.float64) - wanted, 0.0)
    noise = float(np.sum(np.where(np.isfinite(error), error, math.inf) ** 2))
    moving = float(np.sum(np.where(known, wanted - wanted.mean(axis=0), 0.0) ** 2))
    return OutputQuality(
        decibels(float(np.sum(wanted**2)), noise),
        decibels(moving, noise) if len(wanted) > 1 else None,
    )


@dataclass(frozen=True, eq=False)
class Yardstick:
    """Samples, each an input of the float program's own shapes, and what that program answers to them.

    program: the float model. samples: at most MOST_SAMPLES of them, in equal steps, are compared; one sequence
    where the model keeps something from run to run. labels: the class of
    each sample, of all of which accuracy is taken.
    """

    program: ExportedProgram
    samples: Sequence[Inputs]
    labels: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if not self.samples:
            raise QuantizationError(
                "there are no samples to measure with",
                hint="define calibration() or evaluation() in the model's file, or give --calibration",
            )

    @cached_property
    def chosen(self) -> list[Inputs]:
        """The samples that are compared. Of a program that keeps something from one to the next, the first."""
        keeps = any(True for _ in written_buffers(self.program))
        step = 1 if keeps else max(1, len(self.samples) // MOST_SAMPLES)
        return list(self.samples[::step][:MOST_SAMPLES])

    def _exactly(self, samples: Sequence[Inputs]) -> list[list[Array]]:
        """The float program's outputs, computed in float64."""
        module = self.program.module(check_guards=False)
        run = Running(Exact(module).run, take_out(module))
        with torch.no_grad(), one_thread():
            return [[t.numpy() for t in run(*sample)] for sample in samples]

    @cached_property
    def _exact(self) -> list[list[Array]]:
        return self._exactly(self.chosen)

    @cached_property
    def _float_classes(self) -> list[int]:
        return [predicted(outputs[0]) for outputs in self._exactly(self.samples)]

    def quality(self, graph: Graph, *, accuracy: bool = False) -> Quality:
        """Of a graph that ships. accuracy: with that, too, where there are labels."""
        found = list(_answers(graph, self.chosen))
        columns = [
            (np.stack(exact), np.stack([*answers]).reshape(len(exact), *exact[0].shape))
            for exact, answers in zip(zip(*self._exact, strict=True), zip(*found, strict=True), strict=True)
        ]
        real = [pair for pair in columns if pair[0].dtype.kind == "f"]
        same = [exact == values for exact, values in columns if exact.dtype.kind != "f"]
        named = self._named(graph) if accuracy else []
        return Quality(
            tuple(compare(exact, values) for exact, values in real),
            len(self.chosen),
            min((float(values.mean()) for values in same), default=1.0),
            _accuracy(named) if named else None,
            confusion_of((), ((label, None, found, exact) for label, found, exact in named)),
        )

    def _named(self, graph: Graph) -> list[tuple[int, int, int]]:
        """Of each labelled sample the label, and what the integers and the float model name."""
        if self.labels is None:
            return []
        classes = [predicted(answers[0]) for answers in _answers(graph, self.samples)]
        return list(zip(self.labels, classes, self._float_classes, strict=True))


def _accuracy(rows: Sequence[tuple[int, int, int]]) -> Accuracy:
    return Accuracy(
        samples=len(rows),
        right=sum(found == label for label, found, _ in rows),
        float_right=sum(exact == label for label, _, exact in rows),
        lost=sum(exact == label != found for label, found, exact in rows),
        won=sum(found == label != exact for label, found, exact in rows),
        alike=sum(found == exact for _, found, exact in rows),
    )


def accuracy_on(graph: Graph, samples: Sequence[Inputs], labels: Sequence[int]) -> float:
    """The share of samples of which the graph's first output names the label."""
    found = zip(_answers(graph, samples), labels, strict=True)
    right = sum(predicted(answers[0]) == label for answers, label in found)
    return right / len(labels)
