# SPDX-License-Identifier: Apache-2.0
"""The search for the cheapest set of exceptions that keeps a wanted accuracy, each step verified in the integers that
ship."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch.export import ExportedProgram

from tinyet.errors import QuantizationError
from tinyet.fx.examples import Inputs
from tinyet.quality.parts import Part
from tinyet.quality.sensitivity import (
    Bench,
    Cost,
    Costing,
    Exception_,
    Exceptions,
    Progress,
    Sensitivity,
    Tell,
    bench_of,
    measure,
)
from tinyet.quality.simulation import Operator
from tinyet.quality.yardstick import Yardstick, accuracy_on, shipped
from tinyet.quantization.config import make_config
from tinyet.quantization.quantizer import TinyetQuantizer

Evaluation = Callable[[ExportedProgram], float]
"""Accuracy of a program, 0...1."""

MOST_SHRINKING = 12
"""Sets that are tried to make one exception smaller."""


@dataclass(frozen=True)
class Step:
    """One set of exceptions that was tried, (part, configuration), and the accuracy it gave. cost: None where none was
    counted. kept: whether the search went on from it."""

    exceptions: tuple[tuple[str, str], ...]
    accuracy: float
    cost: Cost | None = None
    kept: bool = True


@dataclass(frozen=True, eq=False)
class Found:
    """exceptions: name of a part → configuration. flags: the same as options of `tinyet quantize`. accuracy: with them.
    base_accuracy: without any. steps: all that was tried. quantizer: with the exceptions set; program: quantized by
    it."""

    exceptions: Mapping[str, str]
    accuracy: float
    base_accuracy: float
    cost: Cost | None
    steps: tuple[Step, ...]
    quantizer: TinyetQuantizer
    program: ExportedProgram
    sensitivity: Sensitivity | None
    flags: tuple[str, ...] = ()


def accuracy_of(inputs: Sequence[Inputs], labels: Sequence[int]) -> Evaluation:
    """An evaluation by the integers that ship: the share of samples (of the program's own shapes) of which the host
    reference's first output names the label."""
    return lambda program: accuracy_on(shipped(program), inputs, labels)


def _rank(entry: Exception_) -> tuple[bool, bool, float]:
    """Order of trying: what brings something, what is enough or costs nothing, most dB a byte; of what is enough, the
    fewest bytes."""
    if entry.is_enough and entry.gain_db > 0:
        return False, False, float(entry.bytes)
    return entry.gain_db <= 0, entry.bytes > 0, -entry.gain_db / max(entry.bytes, 1)


@dataclass(frozen=True, eq=False)
class _Tried:
    """A set of exceptions with all that is known of it."""

    chosen: Mapping[str, tuple[Part, str]]
    accuracy: float
    cost: Cost | None
    quantizer: TinyetQuantizer
    program: ExportedProgram

    @property
    def bytes(self) -> int:
        return 0 if self.cost is None else self.cost.flash_bytes + self.cost.arena_bytes


class _Search:
    def __init__(
        self,
        model: Bench,
        evaluate: Evaluation,
        target: float,
        exceptions: Exceptions | None,
        cost: Costing | None,
        tell: Tell | None,
    ) -> None:
        self._model, self._evaluate, self._target = model, evaluate, target
        self._exceptions, self._cost, self._tell = exceptions, cost, tell
        self.steps: list[Step] = []

    def attempt(self, chosen: Mapping[str, tuple[Part, str]], than: _Tried | None = None) -> _Tried:
        """Evaluate a set. than: what it is to be cheaper than."""
        trial = self._model.quantizer.copy()
        for part, kind in chosen.values():
            config = make_config(kind) if self._exceptions is None else self._exceptions[kind]
            part.set_in(trial, config)
        quantized = self._model.quantized(trial)
        accuracy = self._evaluate(quantized)
        spent = None if self._cost is None else self._cost(quantized)
        tried = _Tried(dict(chosen), accuracy, spent, trial, quantized)
        named = tuple((name, kind) for name, (_, kind) in chosen.items())
        kept = than is None or self.replaces(tried, than)
        self.steps.append(Step(named, accuracy, spent, kept))
        if self._tell is not None:
            self._tell(self.steps[-1])
        return tried

    def replaces(self, tried: _Tried, known: _Tried) -> bool:
        """Whether a smaller set is taken: it keeps the aim and costs no more."""
        return tried.accuracy >= self._target and tried.bytes <= known.bytes

    def smaller(self, best: _Tried) -> _Tried:
        """Leave exceptions away, the most operators first, then operators of those that stay."""
        for name in sorted(best.chosen, key=lambda n: -len(best.chosen[n][0].operators)):
            fewer = {other: entry for other, entry in best.chosen.items() if other != name}
            if not any(
                set(step.exceptions) == {(n, kind) for n, (_, kind) in fewer.items()} for step in self.steps
            ):
                trial = self.attempt(fewer, best)
                best = trial if self.replaces(trial, best) else best
        for name in list(best.chosen):
            best = self._shrunk(name, best)
        return best

    def _shrunk(self, name: str, best: _Tried) -> _Tried:
        """Leave away operators of one exception: halves, then quarters, …, then each."""
        left = MOST_SHRINKING
        part, kind = best.chosen[name]
        size = len(part.operators) // 2
        while size >= 1 and left > 0:
            for piece in _pieces(part, size):
                if len(part.operators) <= len(piece) or left == 0:
                    continue
                fewer = part.without(piece)
                left -= 1
                others = {n: entry for n, entry in best.chosen.items() if n != part.name}
                trial = self.attempt({**others, fewer.name: (fewer, kind)}, best)
                if self.replaces(trial, best):
                    best, part = trial, fewer
            size //= 2
        return best


def _pieces(part: Part, size: int) -> Iterator[tuple[Operator, ...]]:
    operators = part.operators
    for first in range(0, len(operators), size):
        yield operators[first : first + size]


def search(
    program: ExportedProgram,
    batches: Iterable[object],
    evaluate: Evaluation,
    target: float,
    quantizer: TinyetQuantizer | None = None,
    *,
    exceptions: Exceptions | None = None,
    cost: Costing | None = None,
    correct_bias: bool = False,
    sensitivity: Sensitivity | None = None,
    yardstick: Yardstick | None = None,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Found:
    """The cheapest set of exceptions that was found to reach `target`.

    Greedy, and each step is verified on the evaluation data: first none; then the exceptions of `measure` one after the
    other, those first that are enough for the output's decibels, the cheapest of them before others, then those that
    bring most dB for a byte (a second one for a part replaces the first where it brings more), until the accuracy is
    reached. Then each is left away again, then operators of those that stay, and stays away where the accuracy holds
    and no byte is added. The set is not proved to be the cheapest of all: that would need every subset.

    sensitivity: of `measure` for the same arguments, so that it is not measured twice. yardstick: as there. tell: each
    finding, and each Step.

    Raises QuantizationError, with the best that was reached, when all exceptions together are not enough.
    """
    model = bench_of(program, batches, quantizer, correct_bias, yardstick)
    at = _Search(model, evaluate, target, exceptions, cost, tell)
    best = at.attempt({})
    base = best.accuracy
    if base < target:
        sensitivity = sensitivity or measure(
            program, model.batches, model.quantizer, exceptions=exceptions, cost=cost,
            correct_bias=correct_bias, yardstick=model.yardstick, progress=progress, tell=tell,
        )  # fmt: skip
        best = at.smaller(_reached(at, sensitivity, best, target))
    chosen = {name: kind for name, (_, kind) in best.chosen.items()}
    flags = tuple(word for part, kind in best.chosen.values() for word in part.flags(kind))
    return Found(
        chosen,
        best.accuracy,
        base,
        best.cost,
        tuple(at.steps),
        best.quantizer,
        best.program,
        sensitivity,
        flags,
    )


def _reached(at: _Search, sensitivity: Sensitivity, best: _Tried, target: float) -> _Tried:
    """Add exceptions until the aim is reached."""
    ranked = sorted((e for e in sensitivity.exceptions if not e.refused and e.part), key=_rank)
    gains = {(e.name, e.config): e.gain_db for e in ranked}
    chosen: dict[str, tuple[Part, str]] = {}
    for entry in ranked:
        assert entry.part is not None
        before = chosen.get(entry.name)
        if before is not None and entry.gain_db <= gains[entry.name, before[1]]:
            continue
        chosen.pop(entry.name, None)  # what comes later counts where parts overlap
        chosen[entry.name] = (entry.part, entry.config)
        best = at.attempt(chosen)
        if best.accuracy >= target:
            return best
    top = max(at.steps, key=lambda step: step.accuracy)
    raise QuantizationError(
        f"no set of exceptions reaches an accuracy of {target:.4f}: the best of {len(at.steps)} tried "
        f"reached {top.accuracy:.4f}",
        hint="ask for less, give more calibration data, or train with the rounding in the loop "
        "(docs/quantization.md)",
    )
