# SPDX-License-Identifier: Apache-2.0
"""The alarm: a quantized program's answers beside those of its float graph, and the layers where they part.

It needs no torch: a program holds both graphs. Both run on the same samples, and every integer value that has a float
partner (`reference/float_reference.py`) is compared with it. Where an output is not good enough, the way back leads
to the first layers whose inputs still are: there it begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tinyet import ops
from tinyet.answers import Accuracy, Answers, Beginning, OutputQuality, Quality, Source, or_infinite
from tinyet.answers.record import MOST_BEGINNINGS, MOST_OUTPUTS
from tinyet.data import Data, make_samples, predicted, prepare_inputs
from tinyet.ir import Array, Graph, Node, Tensor
from tinyet.messages.stages import stage
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.reshape import Reshape
from tinyet.ops.softmax import Softmax
from tinyet.ops.unary import Unary
from tinyet.program import Program
from tinyet.quality.ranges import Arguments
from tinyet.reference import Session
from tinyet.reference.float_reference import Comparison, float_inputs

MOST_SAMPLES = 16
"""Samples that are compared. Of DS-CNN both graphs take 33 ms for one, in numpy, and compiling it 8 s."""
MOST_MACS = 250_000_000
"""Multiply-accumulates of them together; ResNet8 has 12.5 M, and takes 20 ms for a sample."""
FEWEST_SAMPLES = 4
MOST_LABELLED = 1000
"""Labelled samples that are asked where decibels alone say that a program is spoilt: a loss of a point is ten."""
FEWEST_LABELLED = 256
"""As many are asked however large the network is."""


@dataclass
class Judge:
    """Compares the values of a program's graph with its float graph's, sample by sample.

    graph: of the program, or of its deployment. float_graph: the float graph. classifies: whether the first output
    names a class.
    """

    graph: Graph
    float_graph: Graph
    classifies: bool
    comparison: Comparison = field(init=False)
    arguments: Arguments = field(init=False)
    samples: int = 0
    changed: int = 0
    equal: list[int] = field(default_factory=lambda: [0, 0])
    named: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.comparison = Comparison(self.graph, self.float_graph)
        self.arguments = Arguments(self.graph, self.float_graph)

    def add(
        self, values: Mapping[Tensor, Array], arrays: Sequence[Array], label: int | None = None
    ) -> list[Array]:
        """One sample: the program's values for it, the user's arrays, its label. Returns the float outputs."""
        graph = self.graph
        exact = self.comparison.add(
            values, float_inputs(graph.user_inputs, self.float_graph.user_inputs, arrays)
        )
        found = [values[tensor] for tensor in graph.user_outputs]
        self.arguments.add(values, self.comparison.exact)
        self.samples += 1
        self.changed += predicted(found[0]) != predicted(exact[0])
        for wanted, value in zip(exact, found, strict=True):
            if wanted.dtype.kind != "f":
                self.equal[0] += int(np.sum(wanted == value))
                self.equal[1] += wanted.size
        if label is not None:
            self.named.append((label, predicted(found[0]), predicted(exact[0])))
        return exact

    def answers(self, source: Source) -> Answers | None:
        """What was found; None where no sample was added, or no output can be compared."""
        outputs = [(t, self.comparison.quality(t)) for t in self.graph.user_outputs]
        real = [(t.name, _rounded(quality)) for t, quality in outputs if quality is not None]
        if not self.samples or not (real or self.equal[1]):
            return None
        real = sorted(real, key=lambda pair: or_infinite(pair[1].sqnr_db))[:MOST_OUTPUTS]
        quality = Quality(
            tuple(each for _, each in real),
            self.samples,
            round(self.equal[0] / self.equal[1], 6) if self.equal[1] else 1.0,
            self._accuracy(),
        )
        first = self.graph.user_outputs[0]
        row = first.type.count > 1 and sum(size > 1 for size in first.shape) == 1
        found = Answers(
            source,
            quality,
            tuple(name for name, _ in real),
            self.changed if row or self.equal[1] else None,
            self.classifies,
        )
        return found if found.healthy else replace(found, begins=self._beginnings())

    def _accuracy(self) -> Accuracy | None:
        rows = self.named
        if not rows:
            return None
        return Accuracy(
            samples=len(rows),
            right=sum(found == label for label, found, _ in rows),
            float_right=sum(exact == label for label, _, exact in rows),
            lost=sum(exact == label != found for label, found, exact in rows),
            won=sum(found == label != exact for label, found, exact in rows),
            alike=sum(found == exact for _, found, exact in rows),
        )

    def _beginnings(self) -> tuple[Beginning, ...]:
        """The layers that outputs which are not good enough are made of, whose inputs are good enough and whose own
        values are not. Where there is none, the one that loses most."""
        quality, graph = self.comparison.quality, self.graph
        bad = [t for t in graph.user_outputs if (known := quality(t)) is not None and not known.enough]
        found = [
            Beginning(f"input {tensor.name}", "quantize", known.sqnr_db, known.moving_db, None)
            for tensor in graph.user_inputs
            if (known := quality(tensor)) is not None and not known.enough
        ]
        falls: list[tuple[float, Beginning]] = []
        for node, before in _behind(graph, bad or list(graph.user_outputs), self.comparison):
            own = [known for t in node.outputs if (known := quality(t)) is not None]
            if not own:
                continue
            worst = min(own, key=lambda each: (each.enough, or_infinite(each.sqnr_db)))
            given = [known for t in before if (known := quality(t)) is not None]
            least = min((or_infinite(known.sqnr_db) for known in given), default=math.inf)
            rounded = _rounded(worst)
            beginning = Beginning(
                node.where or node.outputs[0].name,
                node.attrs.function if isinstance(node.attrs, Unary) else node.op,
                rounded.sqnr_db,
                rounded.moving_db,
                round(least, 2) if math.isfinite(least) else None,
            )
            if not worst.enough and all(known.enough for known in given):
                found.append(beginning)
            elif math.isfinite(least):
                falls.append((least - or_infinite(worst.sqnr_db), beginning))
        if not found and falls:
            found = [max(falls, key=lambda pair: pair[0])[1]]
        return tuple(found[:MOST_BEGINNINGS])


def _rounded(quality: OutputQuality) -> OutputQuality:
    """In hundredths of a decibel, the same on every machine."""

    def one(ratio: float | None) -> float | None:
        return None if ratio is None else round(ratio, 2)

    return OutputQuality(one(quality.sqnr_db), one(quality.moving_db))


def names_classes(graph: Graph) -> bool:
    """Whether the first output is probabilities, or an index."""
    output = graph.user_outputs[0]
    makers = {tensor: node for node in graph.nodes for tensor in node.outputs}
    node = makers.get(output)
    while node is not None and isinstance(node.attrs, Reshape):
        node = makers.get(node.input(0))
    return node is not None and isinstance(node.attrs, (Softmax, LogSoftmax))


def _behind(
    graph: Graph, ends: Sequence[Tensor], comparison: Comparison
) -> list[tuple[Node, tuple[Tensor, ...]]]:
    """The nodes that the ends are computed from, in the graph's order, each with the nearest values before it that can
    be compared."""
    wanted = set(ends)
    taken: list[Node] = []
    for node in reversed(graph.nodes):
        if wanted.intersection(node.outputs):
            taken.append(node)
            wanted.update(t for t in node.inputs if t is not None)
    nearest: dict[Tensor, tuple[Tensor, ...]] = {}
    result = []
    for node in reversed(taken):
        before = tuple(
            dict.fromkeys(
                known
                for t in node.inputs
                if t is not None
                for known in ((t,) if comparison.quality(t) is not None else nearest.get(t, ()))
            )
        )
        nearest |= dict.fromkeys(node.outputs, before)
        result.append((node, before))
    return result


def measure(
    program: Program,
    samples: Sequence[Sequence[Array]],
    source: Source,
    labels: Sequence[int] | None = None,
) -> Answers | None:
    """The answers of a program to samples, each one array an input as `Program.run` takes them; None where the program
    is not quantized, or holds no float graph. labels: the class of each, of all of which accuracy is taken.

    Of more than MOST_SAMPLES samples, some in equal steps are taken, unless there are labels; of a program with states
    the first, one sequence. Raises DataError for samples that do not fit.
    """
    judge = _judged(program, samples, labels)
    return None if judge is None else judge.answers(source)


def _judged(
    program: Program, samples: Sequence[Sequence[Array]], labels: Sequence[int] | None = None
) -> Judge | None:
    """A judge that has seen the samples, as `measure` takes them."""
    float_graph = program.float_graph
    if float_graph is None or not samples:
        return None
    stage("comparing with the float model")
    classifies = bool(program.labels) or names_classes(program.graph)
    judge, session = Judge(program.graph, float_graph, classifies), Session(program.graph)
    chosen = range(len(samples)) if labels is not None else _chosen(program, len(samples))
    for index in chosen:
        values = session.values(prepare_inputs(program.inputs, list(samples[index])))
        judge.add(values, samples[index], None if labels is None else labels[index])
    return judge


def _chosen(program: Program, count: int) -> Sequence[int]:
    """Indices of the samples to compare."""
    most = _affordable(program, FEWEST_SAMPLES, MOST_SAMPLES)
    step = 1 if program.states else max(1, count // most)
    return range(0, count, step)[:most]


def _affordable(program: Program, fewest: int, most: int) -> int:
    """How many samples MOST_MACS allow."""
    macs = sum(ops.op_of(node).macs(node) for node in program.graph.nodes)
    return min(most, max(fewest, MOST_MACS // max(macs, 1)))


def measured(
    program: Program,
    samples: Sequence[Sequence[Array]],
    evaluation: Callable[[Program], Data | None] | None = None,
) -> Program:
    """The program with its answers to calibration samples, and notes of what integers do there to functions that have
    no value everywhere (`ranges.py`). Where answers are bad by decibels, the model's evaluation data
    is asked for: labels know better, if there are any."""
    judge = _judged(program, samples)
    if judge is None:
        return program
    notes = (*program.notes, *judge.arguments.notes)
    program = replace(program, answers=judge.answers("calibration"), notes=notes)
    if program.answers is not None and not program.answers.healthy and evaluation is not None:
        data = evaluation(program)
        if data is not None:
            program = replace(program, answers=on_evaluation(program, data))
    return program


def on_evaluation(program: Program, data: Data) -> Answers | None:
    """The answers to evaluation data, with the accuracy of up to MOST_LABELLED samples where there are labels. What the
    program's own say of where it begins in calibration data stays: there nothing is clipped. Raises DataError for data
    that does not fit."""
    count = _affordable(program, FEWEST_LABELLED, MOST_LABELLED)
    given = make_samples(program.inputs, data.arrays, data.labels).first(count)
    return beginning_as_known(program, measure(program, given.inputs, "evaluation", given.labels))


def beginning_as_known(program: Program, found: Answers | None) -> Answers | None:
    """Answers to other data, which begin to go wrong where those of the program itself do, if these do."""
    known = program.answers
    if known is None or found is None or found.healthy or not known.begins:
        return found
    return replace(found, begins=known.begins)
