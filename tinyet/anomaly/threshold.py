# SPDX-License-Identifier: Apache-2.0
"""A threshold for a score, chosen on data and compiled in: another output says whether the score is above it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinyet.anomaly import FALSE_ALARMS
from tinyet.anomaly.building import Extension
from tinyet.data import array_of
from tinyet.errors import DataError, UsageError
from tinyet.ir import Array, DType, Graph, Note, Tensor
from tinyet.ops.compare import Compare
from tinyet.program import Program


@dataclass(frozen=True)
class Threshold:
    """value: a float32; what is greater is flagged. text: what it does to the data that it was chosen on."""

    value: float
    text: str


def with_flag(
    program: Program,
    *data: Any,
    labels: Any = None,
    false_alarms: float = FALSE_ALARMS,
    output: int = -1,
) -> Program:
    """The program with one more output, `flag`, (1,) int32: 1 where a score is above a threshold, else 0.

    data: one array for each input, (samples, …), as `Program.evaluate` takes them. Without labels all of it is as it
        should be, and the threshold is the lowest that flags at most this share of it: `false_alarms`. labels: of each
        sample 1 where it is to be flagged, else 0: the threshold is the one of the greatest difference between the
        shares that are flagged of both (Youden's J).
    output: which output is the score, one number; the last by default.

    The scores are the program's own, so that what the note says of the data holds on every device. Raises UsageError
    for an output that is no score and shares that cannot be, DataError for data that does not fit, or labels of one
    kind.
    """
    outputs = program.outputs
    if not -len(outputs) <= output < len(outputs):
        raise UsageError(f"output={output}: the program has {len(outputs)} output(s)")
    score = outputs[output]
    if score.type.count != 1 or (score.dtype is not DType.FLOAT32 and score.type.quant is None):
        raise UsageError(
            f"the output {score.name}, {score.type}, is no score",
            hint="one number: of scikit-learn's models method anomaly_score",
        )
    given = [array_of(each) for each in data]
    scores = program.evaluate(*given, as_float=True).outputs[output].reshape(-1)
    names = None if labels is None else array_of(labels).reshape(-1)
    chosen = choose_threshold(scores, names, false_alarms)
    number = outputs.index(score)
    graph = flagged(program.graph, program.graph.outputs[number], chosen.value)
    float_graph = program.float_graph
    if float_graph is not None:
        float_graph = flagged(float_graph, float_graph.outputs[number], chosen.value)
    notes = (*program.notes, Note(f"flag: {chosen.text}"))
    return replace(program, graph=graph, float_graph=float_graph, notes=notes, answers=None)


def flagged(graph: Graph, score: Tensor, threshold: float) -> Graph:
    more = Extension(graph, "flag")
    real = more.real(score)
    bound = more.held(np.full(real.shape, threshold))
    return more.whole(more.reshaped(more.emit(Compare("greater"), [real, bound], DType.INT32), (1,), "flag"))


def choose_threshold(
    scores: Array, labels: Array | None = None, false_alarms: float = FALSE_ALARMS
) -> Threshold:
    """The threshold of `with_flag` for some scores. It lies in the middle between two of them, or at the greatest."""
    if not 0 <= false_alarms < 1:
        raise UsageError(f"false_alarms={false_alarms}", hint="a share of the data, from 0 to below 1")
    found = np.asarray(scores, np.float32).reshape(-1)
    if not len(found) or not np.isfinite(found).all():
        raise DataError(f"{len(found)} score(s), of which some are not finite" if len(found) else "no scores")
    if labels is None:
        ordered = np.sort(found)
        value = between(ordered, ordered[len(found) - 1 - math.floor(false_alarms * len(found))])
        alarms = int((found > value).sum())
        return Threshold(
            value, f"scores above {value:.9g}: {alarms} of {len(found)} samples as they should be"
        )
    given = np.asarray(labels)
    if given.shape != found.shape or not set(np.unique(given).tolist()) == {0, 1}:
        raise DataError("labels are 0 or 1 for each sample, and some of each")
    bad, good = np.sort(found[given == 1]), np.sort(found[given == 0])
    ordered = np.unique(found)
    caught = 1 - np.searchsorted(bad, ordered, side="right") / len(bad)
    alarmed = 1 - np.searchsorted(good, ordered, side="right") / len(good)
    gain = caught - alarmed
    # Of equally good ones the greatest, with the fewest false alarms.
    best = len(ordered) - 1 - int(np.argmax(gain[::-1]))
    value = between(ordered, ordered[best])
    text = (
        f"scores above {value:.9g}: {int((bad > value).sum())} of {len(bad)} samples labelled 1, and "
        f"{int((good > value).sum())} of {len(good)} others"
    )
    return Threshold(value, text)


def between(ordered: Array, below: np.float32) -> float:
    """A number that is at least `below`, and less than the next greater of the scores: the middle of both."""
    place = int(np.searchsorted(ordered, below, side="right"))
    if place == len(ordered):
        return float(below)
    middle = np.float32((float(below) + float(ordered[place])) / 2)
    return float(middle if below <= middle < ordered[place] else below)
