# SPDX-License-Identifier: Apache-2.0
"""The quality of the integers that ship: the host reference's outputs against the float model's, and whether that is
enough.

Nothing here is a simulation: a quantized program is imported and goes through all passes, and its graph is evaluated
as the device will (`reference`).

When a model is healthy, and why:

    accuracy      where there are labels: no more than a point below the float model's, or no more than chance explains
                  (two standard deviations of the samples that only one of both names rightly).
    18 dB         at each output where no labels decide: the noise is an eighth of the signal. That is where a
                  point of accuracy goes: trained networks (DS-CNN, ResNet8) keep theirs at 21 dB and more, DS-CNN loses
                  one at 18, 1.6 at 15 and six at 11 (docs/quantization.md, "Measured").
    6 dB          of what moves at an output from sample to sample, twice as much as the noise: beside a large offset
                  (1013 hPa) 30 dB of everything can hide that nothing is left of it. From 40 dB of everything on that
                  is no fault of the model's layers any more: eight bits hold no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch.export import ExportedProgram

from tinyet import passes
from tinyet.data import predicted, prepare_inputs
from tinyet.errors import QuantizationError
from tinyet.fx.exact import Exact
from tinyet.fx.examples import Inputs
from tinyet.fx.mutable_buffers import Running, take_out, written_buffers
from tinyet.ir import Array, Graph
from tinyet.numerics import dequantize
from tinyet.quantization.lowering import lower_program
from tinyet.quantization.threads import one_thread
from tinyet.reference import Session

MOST_SAMPLES = 64
ENOUGH_DB = 18.0
MOVING_DB = 6.0
EIGHT_BITS_DB = 40.0
LARGEST_DROP = 0.01
ENOUGH_LABELLED = 100
"""With so many labelled samples accuracy alone decides, if the answers are mostly the float model's."""
ALIKE = 0.9
"""Share of samples with the float model's class, and of equal integers at an output of such (an index, say); below, an
accuracy that holds is luck."""


def shipped(program: ExportedProgram) -> Graph:
    """The graph that a captured program, quantized or not, becomes on every device. Raises what the import and the
    passes raise."""
    return passes.run(lower_program(program, name="model").graph)[0]


def _answers(graph: Graph, samples: Iterable[Inputs]) -> Iterator[list[Array]]:
    """The host reference's outputs for each sample as real numbers; states go from sample to sample."""
    session = Session(graph)
    for inputs in samples:
        given = prepare_inputs(graph.user_inputs, [tensor.detach().numpy() for tensor in inputs])
        yield [
            dequantize(value, tensor.type.quant) if tensor.type.quant is not None else value
            for tensor, value in zip(graph.user_outputs, session.outputs(given), strict=True)
        ]


@dataclass(frozen=True)
class OutputQuality:
    """One output over all samples, in dB; None without a signal, infinite without noise.

    sqnr_db: of the output. moving_db: of what differs in it from sample to sample.
    """

    sqnr_db: float | None
    moving_db: float | None

    @property
    def drowned(self) -> bool:
        """Whether noise hides what moves, for which the output has bits."""
        return or_infinite(self.moving_db) < MOVING_DB and or_infinite(self.sqnr_db) < EIGHT_BITS_DB

    @property
    def enough(self) -> bool:
        return or_infinite(self.sqnr_db) >= ENOUGH_DB and not self.drowned


@dataclass(frozen=True)
class Accuracy:
    """Of labelled samples: how many the integers name rightly, and the float model; how many only the one (won) or the
    other (lost); how many both name alike."""

    samples: int
    right: int
    float_right: int
    lost: int
    won: int
    alike: int

    @property
    def share(self) -> float:
        return self.right / self.samples

    @property
    def float_share(self) -> float:
        return self.float_right / self.samples

    @property
    def agreement(self) -> float:
        return self.alike / self.samples

    @property
    def suffers(self) -> bool:
        """Whether it is lower than the float model's, by more than a point and more than chance."""
        drop = self.lost - self.won
        return drop > LARGEST_DROP * self.samples and drop > 2 * math.sqrt(self.lost + self.won)

    @property
    def decides(self) -> bool:
        """Whether it says alone that the model is healthy."""
        return not self.suffers and self.samples >= ENOUGH_LABELLED and self.agreement >= ALIKE


@dataclass(frozen=True)
class Quality:
    """outputs: the model's real-valued ones. samples: they were measured with. equal: share of the values of its other
    outputs that are the float model's; 1 where there are none. accuracy: None where it was not measured."""

    outputs: tuple[OutputQuality, ...]
    samples: int
    equal: float = 1.0
    accuracy: Accuracy | None = None

    @property
    def sqnr_db(self) -> float | None:
        """Of the worst output."""
        known = [output.sqnr_db for output in self.outputs if output.sqnr_db is not None]
        return min(known) if known else None

    @property
    def moving_db(self) -> float | None:
        """Of the worst output."""
        known = [output.moving_db for output in self.outputs if output.moving_db is not None]
        return min(known) if known else None

    @property
    def enough(self) -> bool:
        """Whether every output is good enough, whatever the accuracy."""
        return all(output.enough for output in self.outputs) and self.equal >= ALIKE

    @property
    def healthy(self) -> bool:
        if self.accuracy is not None and (self.accuracy.suffers or self.accuracy.decides):
            return not self.accuracy.suffers
        return self.enough

    def gain_over(self, base: Quality) -> float:
        """Gain in dB of the outputs over `base`: of the outputs that are not good enough there, or else of all, the
        smallest gain."""
        if not self.outputs:
            return _gain(_decibels(1.0, 1.0 - self.equal), _decibels(1.0, 1.0 - base.equal))
        pairs = list(zip(self.outputs, base.outputs, strict=True))
        bad = [pair for pair in pairs if not pair[1].enough]
        return min(_gain(now.sqnr_db, before.sqnr_db) for now, before in bad or pairs)

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        accuracy = self.accuracy
        return {
            "sqnr_db": finite(self.sqnr_db),
            "moving_db": finite(self.moving_db),
            "equal": self.equal,
            "samples": self.samples,
            "labelled": 0 if accuracy is None else accuracy.samples,
            "accuracy": None if accuracy is None else accuracy.share,
            "float_accuracy": None if accuracy is None else accuracy.float_share,
            "agreement": None if accuracy is None else accuracy.agreement,
        }


def finite(db: float | None) -> float | None:
    """A ratio as JSON knows it: infinity becomes null."""
    return None if db is None or not math.isfinite(db) else db


def or_infinite(db: float | None) -> float:
    """A ratio to compare by: where there is no signal, nothing is amiss."""
    return math.inf if db is None else db


def _decibels(signal: float, noise: float) -> float | None:
    if signal == 0.0:
        return None
    if noise == 0.0:
        return math.inf
    return 10.0 * math.log10(signal / noise) if math.isfinite(noise) else -math.inf


def _gain(now: float | None, before: float | None) -> float:
    """The difference; 0 where both are infinite, or there is no signal."""
    return 0.0 if now == before or now is None or before is None else now - before


def compare(exact: Array, found: Array) -> OutputQuality:
    """One output, exact and as found, (samples, ...). Where the exact value is not finite nothing is compared."""
    known = np.isfinite(exact)
    wanted = np.where(known, exact, 0.0).astype(np.float64)
    error = np.where(known, found.astype(np.float64) - wanted, 0.0)
    noise = float(np.sum(np.where(np.isfinite(error), error, math.inf) ** 2))
    moving = float(np.sum(np.where(known, wanted - wanted.mean(axis=0), 0.0) ** 2))
    return OutputQuality(
        _decibels(float(np.sum(wanted**2)), noise),
        _decibels(moving, noise) if len(wanted) > 1 else None,
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
        labelled = accuracy and self.labels is not None
        return Quality(
            tuple(compare(exact, values) for exact, values in real),
            len(self.chosen),
            min((float(values.mean()) for values in same), default=1.0),
            self._accuracy(graph) if labelled else None,
        )

    def _accuracy(self, graph: Graph) -> Accuracy:
        assert self.labels is not None
        classes = [predicted(answers[0]) for answers in _answers(graph, self.samples)]
        rows = list(zip(self.labels, classes, self._float_classes, strict=True))
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
