# SPDX-License-Identifier: Apache-2.0
"""Remedies for a quantized model, in the order in which they are worth trying: first those that cost nothing on the
device.

Equalized layers, corrected biases and other observers change numbers, not types: no byte, no instruction more. Each is
measured by quantizing anew, one calibration each. Only what they leave is for exceptions, which cost bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from torch import nn
from torch.export import ExportedProgram

from tinyet.data import Data
from tinyet.fx.capture import example_inputs_of
from tinyet.fx.mutable_buffers import written_buffers
from tinyet.ir import Graph
from tinyet.quality.search import Evaluation, Found, search
from tinyet.quality.sensitivity import (
    Cost,
    Costing,
    Exception_,
    PartSensitivity,
    Sensitivity,
    Tell,
    calibration_samples,
    counts,
    judge_exception,
    measure,
)
from tinyet.quality.yardstick import Quality, Yardstick, finite, or_infinite, shipped
from tinyet.quantization.batches import batches_of
from tinyet.quantization.config import USUAL_OBSERVERS, make_config
from tinyet.quantization.equalize import equalize
from tinyet.quantization.lowering import captured
from tinyet.quantization.quantize import Quantized, quantize, quantize_fully
from tinyet.quantization.quantizer import TinyetQuantizer

OBSERVERS = ("histogram", "minmax", "mse", "percentile")
WORTH_DB = 1.0
"""The least gain worth reporting: so much differs from one calibration sample to the next."""
CULPRIT_DB = 6.0
"""What leaves so much more than the worst, when it alone is rounded, is not at fault beside it: a quarter of its
noise."""

FEW_SAMPLES = 24
"""Samples that what is free is calibrated with while it is compared; what is chosen is measured with all."""

MORE_BITS = {"int8": ("int16",), "int4": ("int8", "int16")}
"""Of a configuration, those with more bits for all layers."""

Phase = Callable[[str, int, int | None], None]
"""Told what is being measured: its name, how many are done, and of how many."""


@dataclass(frozen=True)
class Settings:
    """Settings that cost nothing on the device. observer: None for the configuration's own."""

    equalize: bool = False
    correct_bias: bool = False
    observer: str | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        """The settings as options of `tinyet quantize`."""
        return (
            *(("--equalize",) if self.equalize else ()),
            *(("--correct-bias",) if self.correct_bias else ()),
            *(("--observer", self.observer) if self.observer is not None else ()),
        )

    def to_json(self) -> dict[str, object]:
        return {"equalize": self.equalize, "correct_bias": self.correct_bias, "observer": self.observer}


@dataclass(frozen=True)
class Trial:
    """Settings that were tried, and what the quantized model is like with them. gain_db: how much more its worst output
    has than with the settings that were given."""

    settings: Settings
    quality: Quality
    gain_db: float

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            **self.settings.to_json(),
            "output_sqnr_db": finite(self.quality.sqnr_db),
            "gain_db": finite(self.gain_db),
            "healthy": self.quality.healthy,
        }


@dataclass(frozen=True, eq=False)
class Workbench:
    """A captured float program with its calibration batches, quantized in one way after another.

    make: a fresh quantizer with the observer that is named, or for None the configuration's own.
    """

    program: ExportedProgram
    batches: Sequence[Any]
    make: Callable[[str | None], TinyetQuantizer]
    yardstick: Yardstick
    _made: dict[Settings, Quantized] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def _equalized(self) -> tuple[ExportedProgram, bool]:
        program, pairs = equalize(self.program, calibration_samples(self.program, self.batches))
        return program, bool(pairs)

    def with_few(self) -> Workbench:
        """The same with at most FEW_SAMPLES to calibrate with, in equal steps; the first ones, of a program that keeps
        something."""
        samples = calibration_samples(self.program, self.batches)
        keeps = any(True for _ in written_buffers(self.program))
        step = 1 if keeps else max(1, len(samples) // FEW_SAMPLES)
        if len(samples) <= FEW_SAMPLES:
            return self
        return replace(self, batches=samples[::step][:FEW_SAMPLES])

    @property
    def equalizes(self) -> bool:
        """Whether there are layers to equalize."""
        return self._equalized[1]

    def float_program(self, settings: Settings) -> ExportedProgram:
        return self._equalized[0] if settings.equalize else self.program

    def quantized(self, settings: Settings) -> ExportedProgram:
        """The program in integers; made once."""
        return self._fully(settings).program

    def _fully(self, settings: Settings) -> Quantized:
        if settings not in self._made:
            self._made[settings] = quantize_fully(
                self.float_program(settings),
                self.batches,
                self.make(settings.observer),
                correct_bias=settings.correct_bias,
            )
        return self._made[settings]

    def quality(self, settings: Settings, *, accuracy: bool = False) -> Quality:
        return self.yardstick.quality(shipped(self.quantized(settings)), accuracy=accuracy)

    def measure(self, settings: Settings, **options: Any) -> Sensitivity:
        """`sensitivity.measure` with these settings; options: its own."""
        return measure(
            self.float_program(settings),
            self.batches,
            self.make(settings.observer),
            correct_bias=settings.correct_bias,
            yardstick=self.yardstick,
            base=self._fully(settings),
            **options,
        )


def _alternatives(bench: Workbench, given: Settings, observers: Sequence[str]) -> list[Settings]:
    """All settings that are tried by themselves; the first ones change layers, the others the observer."""
    equalizing = (False, True) if bench.equalizes else (given.equalize,)
    layers = [
        replace(given, equalize=first, correct_bias=second)
        for first in equalizing
        for second in (False, True)
        if (first, second) != (given.equalize, given.correct_bias)
    ]
    return [*layers, *(replace(given, observer=name) for name in observers if name != given.observer)]


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The trial that brings most; of those that bring nearly as much, the one with the fewest changes. None when none
    brings what is worth it."""
    worth = [trial for trial in trials if trial.gain_db >= WORTH_DB]
    if not worth:
        return None
    top = max(trial.gain_db for trial in worth)
    near = [trial for trial in worth if trial.gain_db >= top - WORTH_DB or trial.gain_db == top]
    return min(near, key=lambda trial: (len(trial.settings.flags), -trial.gain_db))


def try_free(
    bench: Workbench,
    given: Settings,
    observers: Sequence[str],
    progress: Phase | None = None,
    tell: Tell | None = None,
) -> tuple[Trial, ...]:
    """Each change by itself, then the best of layers together with the best observer; those that bring most first. All
    of them, and what they are compared with, are calibrated with at most FEW_SAMPLES.

    observers: names to try; empty where they do not apply. tell: each Trial.
    """
    few = bench.with_few()
    base = few.quality(given)
    alternatives = _alternatives(bench, given, observers)
    done: list[Trial] = []

    def attempt(settings: Settings) -> None:
        if progress is not None:
            progress("trying what is free", len(done), len(alternatives) + 1)
        quality = few.quality(settings)
        done.append(Trial(settings, quality, quality.gain_over(base)))
        if tell is not None:
            tell(done[-1])

    for settings in alternatives:
        attempt(settings)
    layers = best_of([trial for trial in done if trial.settings.observer == given.observer])
    observer = best_of([trial for trial in done if trial.settings.observer != given.observer])
    if layers is not None and observer is not None:
        attempt(replace(layers.settings, observer=observer.settings.observer))
    return tuple(sorted(done, key=lambda trial: (-trial.gain_db, len(trial.settings.flags))))


@dataclass(frozen=True)
class Diagnosis:
    """Whether a quantized model is healthy, and what heals it.

    graph: that ships with the settings that were given; quality: its own. free: what was tried at no cost; nothing
    where the model is healthy. remedy: the best of it with its accuracy, None where none brings anything. sensitivity:
    the operators and groups, with the remedy where it alone does not heal; exceptions were tried only then. whole: all
    layers in another configuration, tried where no exception heals; an exception without a name.
    """

    given: Settings
    graph: Graph
    quality: Quality
    free: tuple[Trial, ...]
    remedy: Trial | None
    sensitivity: Sensitivity
    whole: tuple[Exception_, ...] = ()

    @property
    def healed(self) -> bool:
        """Whether what is free is enough."""
        return self.remedy is not None and self.remedy.quality.healthy

    @property
    def exceptions(self) -> tuple[Exception_, ...]:
        """The exceptions that are worth their bytes, those that bring most first; all layers at once last."""
        tried = (*self.sensitivity.exceptions, *self.whole)
        return tuple(entry for entry in tried if not entry.refused and entry.gain_db >= WORTH_DB)

    @property
    def _tells(self) -> bool:
        """Whether the outputs' decibels say what is enough: not where they are, and it is accuracy that suffers."""
        return not (self.quality if self.remedy is None else self.remedy.quality).enough

    @property
    def advised(self) -> Exception_ | None:
        """The cheapest exception that makes every output good enough, else the one that brings most; None where none
        is needed or helps."""
        if not self.exceptions:
            return None
        enough = [entry for entry in self.exceptions if self._known(entry)]
        if enough:
            return min(enough, key=lambda e: e.bytes)
        some = [entry for entry in self.exceptions if not self._is_everything(entry)]
        return max(some or self.exceptions, key=lambda e: e.gain_db)

    def _known(self, entry: Exception_) -> bool:
        """Whether the model is known to be healthy with it."""
        return entry.is_enough and (self._tells or entry.accuracy is not None)

    def _is_everything(self, entry: Exception_) -> bool:
        """Whether it leaves the whole model in float, which helps always."""
        parts = sum(part.kind != "input" for part in self.sensitivity.operators)
        own = () if entry.part is None else entry.part.operators
        return entry.config == "float" and 0 < parts <= sum(operator.makes for operator in own)

    @property
    def suffices(self) -> bool:
        """Whether the model is known to be healthy with what is advised."""
        return self.healed or (self.advised is not None and self._known(self.advised))

    @property
    def flags(self) -> tuple[str, ...]:
        """The options of `tinyet quantize` to use in place of the given settings; empty where the model is healthy or
        nothing helps."""
        advised = self.advised
        if self.remedy is None and advised is None:
            return ()
        flags = (self.given if self.remedy is None else self.remedy.settings).flags
        return flags if advised is None else (*flags, *advised.flags)

    @property
    def culprits(self) -> tuple[PartSensitivity, ...]:
        """The inputs and operators that hurt most when they alone are rounded, as much as the worst of them or
        nearly; none where each is good enough alone, so that it is all of them together."""
        worst = [part for part in self.sensitivity.worst_operators if part.alone_sqnr_db is not None]
        if not worst or worst[0].is_enough:
            return ()
        least = max(or_infinite(worst[0].alone_sqnr_db), 0.0)  # less than nothing is no worse than nothing
        near = [part for part in worst if or_infinite(part.alone_sqnr_db) < least + CULPRIT_DB]
        return tuple(near)

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "healthy": self.quality.healthy,
            **self.quality.to_json(),
            "confusion": None if self.quality.confusion is None else self.quality.confusion.to_json(),
            "free": [trial.to_json() for trial in self.free],
            "healed": self.healed,
            "advice": list(self.flags),
        }


def diagnose(
    bench: Workbench,
    given: Settings,
    observers: Sequence[str] = (),
    *,
    whole: Sequence[str] = (),
    cost: Costing | None = None,
    worst: int | None = None,
    progress: Phase | None = None,
    tell: Tell | None = None,
) -> Diagnosis:
    """Judge the model; where it suffers try what is free, and where that is not enough exceptions on top of it.

    whole: names of configurations (`make_config`) to try for all layers at last. worst: exceptions are verified for so
    many parts, a few by default. tell: each finding as soon as it is known: a Quality first, then Trials, and what
    `measure` tells.
    """

    def phase(name: str) -> Callable[[int, int | None], None]:
        def tell(done: int, total: int | None) -> None:
            if progress is not None:
                progress(name, done, total)

        tell(0, None)
        return tell

    phase("measuring the quantized model")
    graph = shipped(bench.quantized(given))
    quality = bench.yardstick.quality(graph, accuracy=True)
    say = tell or _unheard
    say(quality)
    if quality.healthy:
        layers = bench.measure(given, exceptions={}, cost=cost, progress=phase("measuring operators"))
        return Diagnosis(given, graph, quality, (), None, layers)
    free = try_free(bench, given, observers, progress, tell)
    remedy = _verified(bench, free, quality, phase)
    if remedy is not None and remedy.quality.healthy:
        layers = bench.measure(
            given, exceptions={}, cost=cost, progress=phase("measuring operators"), tell=tell
        )
        return Diagnosis(given, graph, quality, free, remedy, layers)
    taken = given if remedy is None else remedy.settings
    layers = bench.measure(
        taken, worst=worst, cost=cost, progress=phase("measuring operators and exceptions"), tell=tell
    )
    diagnosis = Diagnosis(given, graph, quality, free, remedy, layers)
    if diagnosis.suffices:
        return diagnosis
    base = quality if remedy is None else remedy.quality
    step = phase("measuring all layers in other types")
    tried = []
    counted = counts(bench.yardstick, graph)
    for done, kind in enumerate(whole, 1):
        tried.append(_whole(bench, taken, kind, base, layers.cost, cost, counted))
        say(tried[-1])
        step(done, len(whole))
    return replace(diagnosis, whole=tuple(tried))


def _unheard(_finding: object) -> None:
    """Where nobody is told."""


def _verified(
    bench: Workbench, free: Sequence[Trial], base: Quality, phase: Callable[[str], object]
) -> Trial | None:
    """The best of what is free, measured as it will ship; None where it brings nothing then."""
    best = best_of(free)
    if best is None:
        return None
    phase("measuring the best of what is free")
    quality = bench.quality(best.settings, accuracy=True)
    return best_of([Trial(best.settings, quality, quality.gain_over(base))])


def _whole(
    bench: Workbench,
    settings: Settings,
    kind: str,
    base: Quality,
    base_cost: Cost | None,
    cost: Costing | None,
    counted: bool,
) -> Exception_:
    """All layers in one configuration."""
    quantizer = TinyetQuantizer().set_global(make_config(kind))
    program = bench.float_program(settings)
    quantized = quantize(program, bench.batches, quantizer, correct_bias=settings.correct_bias)
    return judge_exception(None, kind, quantized, bench.yardstick, base, base_cost, cost, counted)


# ---------------------------------------------------------------- search


@dataclass(frozen=True)
class Evaluated:
    """Settings that cost nothing, and the accuracy with them."""

    settings: Settings
    accuracy: float


@dataclass(frozen=True, eq=False)
class Choice:
    """The settings that keep a wanted accuracy. base_accuracy: with the given settings. free: trials at no cost, with
    their accuracy. found: the chosen settings, and the exceptions on top of them; graph: the one that ships then."""

    settings: Settings
    base_accuracy: float
    free: tuple[tuple[Settings, float], ...]
    found: Found
    graph: Graph


def choose(
    bench: Workbench,
    evaluate: Evaluation,
    target: float,
    given: Settings,
    observers: Sequence[str] = (),
    *,
    cost: Costing | None = None,
    progress: Phase | None = None,
    tell: Tell | None = None,
) -> Choice:
    """The cheapest way that was found to reach an accuracy: nothing, then what is free, by the decibels that it brings,
    then `search` for exceptions on top of the best of that. tell: each finding, as in `diagnose`; an Evaluated for
    each of what is free. Raises what `search` raises."""

    def choice(settings: Settings, tried: Sequence[tuple[Settings, float]]) -> Choice:
        found = search(
            bench.float_program(settings),
            bench.batches,
            evaluate,
            target,
            bench.make(settings.observer),
            cost=cost,
            correct_bias=settings.correct_bias,
            yardstick=bench.yardstick,
            progress=None if progress is None else lambda *done: progress("searching exceptions", *done),
            tell=tell,
        )
        return Choice(settings, base, tuple(tried), found, shipped(found.program))

    base_program = bench.quantized(given)
    base = evaluate(base_program)
    if base >= target:
        return choice(given, ())
    trials = [t for t in try_free(bench, given, observers, progress, tell) if t.gain_db >= WORTH_DB]
    tried: list[tuple[Settings, float]] = []
    for number, trial in enumerate(trials):
        if progress is not None:
            progress("evaluating what is free", number, len(trials))
        tried.append((trial.settings, evaluate(bench.quantized(trial.settings))))
        if tell is not None:
            tell(Evaluated(*tried[-1]))
        if tried[-1][1] >= target:
            break
    best, accuracy = max(tried, key=lambda pair: pair[1], default=(given, base))
    return choice(best if accuracy > base else given, tried)


# ---------------------------------------------------------------- the whole of it


def diagnosis_of(
    model: nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None,
    calibration: Iterable[Any],
    evaluation: Data | None,
    config: str,
    observer: str | None,
    quantizer: TinyetQuantizer | None,
    *,
    equalize: bool,
    correct_bias: bool,
    **options: Any,
) -> Diagnosis:
    """`diagnose` of a model that is not captured yet. quantizer: its own, or None for one of config and observer.
    options: those of `diagnose`."""
    program, given = captured(model, example_inputs, calibration)
    batches = list(given or ())
    labels = None
    samples = calibration_samples(program, batches)
    if evaluation is not None:
        samples = batches_of(evaluation.arrays, example_inputs_of(program), "evaluation")
        labels = None if evaluation.labels is None else [int(label) for label in evaluation.labels]

    def make(name: str | None) -> TinyetQuantizer:
        if quantizer is not None:
            return quantizer.copy()
        return TinyetQuantizer().set_global(make_config(config, name))

    bench = Workbench(program, batches, make, Yardstick(program, samples, labels))
    settings = Settings(equalize, correct_bias, observer)
    observers = observers_to_try(config, observer, quantizer)
    return diagnose(bench, settings, observers, whole=MORE_BITS.get(config, ()), **options)


def observers_to_try(config: str, observer: str | None, quantizer: object) -> tuple[str, ...]:
    """Names of observers other than the one in use; none where a quantizer of the user's own says its observers, or
    where the configuration has none."""
    usual = USUAL_OBSERVERS.get(config) if quantizer is None else None
    return tuple(name for name in OBSERVERS if usual is not None and name != (observer or usual))
