# SPDX-License-Identifier: Apache-2.0
"""Which layers suffer from quantization, what an exception for each would bring and cost, and the cheapest set of
exceptions that keeps a wanted accuracy.

`measure` looks at every layer with weights; `search` applies exceptions. Nothing is estimated: each variant is
quantized anew, and its bytes are those of the program compiled from it (`Costing`, from `tinyet.compiler.cost_on`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from tinyet.errors import QuantizationError, TinyetError
from tinyet.importers.torch.capture import Inputs, example_inputs_of
from tinyet.importers.torch.exact import Exact
from tinyet.importers.torch.origins import module_stack, origin_of
from tinyet.importers.torch.quiet import quiet
from tinyet.quantization.annotate import WEIGHTED
from tinyet.quantization.config import QuantConfig, int8_config, int16_config
from tinyet.quantization.quantize import quantize, samples
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.quantization.threads import one_thread

Exceptions = Mapping[str, QuantConfig | None]
"""Kind ("int16", "float") → the configuration that a layer gets instead."""

Progress = Callable[[int, int | None], None]

DEFAULT_SAMPLES = 32


def exceptions_for(config: QuantConfig | None) -> dict[str, QuantConfig | None]:
    """What a layer with this configuration may have instead: more bits."""
    more: dict[str, QuantConfig | None] = {"int16": int16_config(), "float": None}
    if config is not None and config.weight.quant_max < 127:
        return {"int8": int8_config(), **more}
    if config is not None and config.activation.dtype is torch.int16:
        return {"float": None}
    return more


@dataclass(frozen=True)
class Cost:
    """Bytes of a compiled program: weights and tables in flash, and the arena. Code is not in it."""

    flash_bytes: int
    arena_bytes: int


Costing = Callable[[ExportedProgram], Cost]
"""Compiles a quantized program. Raises TinyetError for one that cannot be."""

Evaluation = Callable[[ExportedProgram], float]
"""Accuracy of a program, 0...1."""


@dataclass(frozen=True)
class LayerSensitivity:
    """A module with weights that is quantized.

    sqnr_db: signal to quantization noise of its output in the quantized model: its own error and all before it.
    alone_db: of the model's output when this layer alone is quantized. None where there is no signal; infinite
    without noise. source: file and line that asked for it.
    """

    module: str
    op: str
    source: str
    sqnr_db: float | None
    alone_db: float | None


@dataclass(frozen=True)
class Exception_:  # noqa: N801 - Exception is Python's
    """What another configuration of one layer would change in the quantized model.

    output_db: SQNR of the model's output with it; gain_db: how much more that is. flash_bytes, arena_bytes: what it
    costs more (negative: less) than the model without exceptions; None when no costing was given. refused: why the
    variant cannot be compiled; empty when it can.
    """

    module: str
    kind: str
    output_db: float | None
    gain_db: float
    flash_bytes: int | None
    arena_bytes: int | None
    refused: str = ""

    @property
    def bytes(self) -> int:
        """Flash and arena together: what the search weighs a gain against."""
        return (self.flash_bytes or 0) + (self.arena_bytes or 0)


@dataclass(frozen=True)
class Sensitivity:
    """output_db: SQNR of the quantized model's output. layers: in the model's order. exceptions: those that bring
    most first."""

    output_db: float | None
    cost: Cost | None
    layers: tuple[LayerSensitivity, ...]
    exceptions: tuple[Exception_, ...]

    @property
    def worst(self) -> tuple[LayerSensitivity, ...]:
        """The layers that hurt the model's output most, when quantized alone, first."""
        return tuple(sorted(self.layers, key=lambda layer: _number(layer.alone_db)))

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "output_sqnr_db": finite(self.output_db),
            "layers": [
                {
                    "module": layer.module,
                    "op": layer.op,
                    "source": layer.source,
                    "sqnr_db": finite(layer.sqnr_db),
                    "alone_sqnr_db": finite(layer.alone_db),
                }
                for layer in self.layers
            ],
            "exceptions": [
                {
                    "module": entry.module,
                    "config": entry.kind,
                    "output_sqnr_db": finite(entry.output_db),
                    "gain_db": finite(entry.gain_db),
                    "flash_bytes": entry.flash_bytes,
                    "arena_bytes": entry.arena_bytes,
                    "refused": entry.refused or None,
                }
                for entry in self.exceptions
            ],
        }


def finite(db: float | None) -> float | None:
    """A ratio as JSON knows it: infinity becomes null."""
    return None if db is None or not math.isfinite(db) else db


def _number(db: float | None) -> float:
    return math.inf if db is None else db


@dataclass
class _Model:
    """What all measurements share."""

    program: ExportedProgram
    batches: list[Any]
    quantizer: TinyetQuantizer
    correct_bias: bool
    inputs: list[Inputs] = field(init=False)
    exact: list[list[torch.Tensor]] = field(init=False)

    def __post_init__(self) -> None:
        every = [inputs for _, inputs in samples(self.batches, example_inputs_of(self.program))]
        if not every:
            raise QuantizationError("there are no calibration batches to measure with")
        step = max(1, len(every) // DEFAULT_SAMPLES)
        self.inputs = every[::step][:DEFAULT_SAMPLES]
        self.exact = _outputs(self.program, self.inputs)

    def quantized(self, quantizer: TinyetQuantizer) -> ExportedProgram:
        return quantize(self.program, self.batches, quantizer, correct_bias=self.correct_bias)

    def output_db(self, quantized: ExportedProgram) -> float | None:
        return _sqnr(self.exact, _outputs(quantized, self.inputs))


def _outputs(program: ExportedProgram, inputs: Sequence[Inputs]) -> list[list[torch.Tensor]]:
    """For each sample the outputs, computed in float64."""
    exact = Exact(program.module(check_guards=False))
    with torch.no_grad(), one_thread():
        results = [exact.run(*sample) for sample in inputs]
    return [list(r) if isinstance(r, (tuple, list)) else [r] for r in results]


def _sqnr(exact: Sequence[Sequence[torch.Tensor]], found: Sequence[Sequence[torch.Tensor]]) -> float | None:
    """10 log10(sum of signal squared / sum of error squared) over all samples."""
    signal = noise = 0.0
    for wanted, values in zip(exact, found, strict=True):
        for a, b in zip(wanted, values, strict=True):
            signal += float((a.double() ** 2).sum())
            noise += float(((a.double() - b.double()) ** 2).sum())
    if signal == 0.0:
        return None
    return math.inf if noise == 0.0 else 10.0 * math.log10(signal / noise)


class _Values(Exact):
    """Keeps the values of some nodes of one run."""

    def __init__(self, module: fx.GraphModule, wanted: Iterable[fx.Node]) -> None:
        super().__init__(module)
        self.wanted = set(wanted)
        self.values: dict[fx.Node, torch.Tensor] = {}

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if n in self.wanted:
            self.values[n] = value
        return value


def _layer_nodes(module: fx.GraphModule) -> dict[str, fx.Node]:
    """Key of the origin → node of a layer with a weight."""
    return {
        origin_of(node).key: node
        for node in module.graph.nodes
        if node.op == "call_function" and node.target in WEIGHTED
    }


def _layer_sqnr(model: _Model, quantized: ExportedProgram) -> dict[str, float | None]:
    """Key of each quantized layer → SQNR of its output."""
    with quiet():
        reference = model.program.module(check_guards=False)
        module = quantized.module(check_guards=False)
    exact, layers = _layer_nodes(reference), _layer_nodes(module)
    shared = [
        key
        for key, node in layers.items()
        if key in exact and any("dequantize" in str(source.target) for source in node.all_input_nodes)
    ]
    pairs: dict[str, tuple[list[list[torch.Tensor]], list[list[torch.Tensor]]]] = {
        key: ([], []) for key in shared
    }
    with torch.no_grad(), one_thread():
        for inputs in model.inputs:
            wanted = _Values(reference, [exact[key] for key in shared])
            found = _Values(module, [layers[key] for key in shared])
            wanted.run(*inputs)
            found.run(*inputs)
            for key, (a, b) in pairs.items():
                a.append([wanted.values[exact[key]]])
                b.append([found.values[layers[key]]])
    return {key: _sqnr(a, b) for key, (a, b) in pairs.items()}


def _layers(model: _Model, quantized: ExportedProgram) -> dict[str, LayerSensitivity]:
    """Path of each module with weights that is quantized → what is known of it from one quantized program; of
    several calls of one module, the worst."""
    sqnr = _layer_sqnr(model, quantized)
    found: dict[str, LayerSensitivity] = {}
    for node in model.program.graph.nodes:
        stack = module_stack(node) if node.op == "call_function" and node.target in WEIGHTED else []
        origin = origin_of(node) if stack else None
        if origin is None or origin.key not in sqnr or not stack[-1][0]:
            continue
        path, value = stack[-1][0], sqnr[origin.key]
        if path not in found or _number(value) < _number(found[path].sqnr_db):
            found[path] = LayerSensitivity(path, origin.aten, origin.source, value, None)
    return found


def _own(quantizer: TinyetQuantizer | None) -> TinyetQuantizer:
    if quantizer is None:
        return TinyetQuantizer()
    if not isinstance(quantizer, TinyetQuantizer):
        raise QuantizationError(
            f"exceptions can be tried with a TinyetQuantizer, not with {type(quantizer).__name__}"
        )
    return quantizer


def measure(
    program: ExportedProgram,
    batches: Iterable[Any],
    quantizer: TinyetQuantizer | None = None,
    *,
    exceptions: Exceptions | None = None,
    worst: int | None = None,
    cost: Costing | None = None,
    correct_bias: bool = False,
    progress: Progress | None = None,
) -> Sensitivity:
    """Per layer: SQNR in the quantized model and alone; per exception: what it brings and costs.

    program: of `capture` (equalize it first, if that is wanted). batches: calibration data; at most
    `DEFAULT_SAMPLES` of them are measured with. exceptions: to try; `exceptions_for` the layer by default. worst: try
    them for so many of the layers that hurt most, for all by default. progress: (variants done, in all).
    """
    model = _Model(program, list(batches), _own(quantizer), correct_bias)
    base = model.quantized(model.quantizer)
    base_cost = None if cost is None else cost(base)
    base_db = model.output_db(base)
    layers = _layers(model, base)
    tried = len(layers) if worst is None else min(worst, len(layers))
    settings = _settings(model)
    kinds = {
        path: exceptions_for(settings[path]) if exceptions is None else dict(exceptions) for path in layers
    }
    total, done = len(layers) + tried * max(map(len, kinds.values()), default=0), 0

    def advance() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    measured = []
    for path, layer in layers.items():
        alone = TinyetQuantizer().set_global(None).set_module_name(path, settings[path])
        alone_db = model.output_db(model.quantized(alone))
        measured.append(LayerSensitivity(path, layer.op, layer.source, layer.sqnr_db, alone_db))
        advance()
    found = []
    for layer in sorted(measured, key=lambda entry: _number(entry.alone_db))[:tried]:
        for kind, config in kinds[layer.module].items():
            found.append(_try(model, layer.module, kind, config, base_db, base_cost, cost))
            advance()
    found.sort(key=lambda entry: (bool(entry.refused), -entry.gain_db, entry.bytes))
    return Sensitivity(base_db, base_cost, tuple(measured), tuple(found))


def _settings(model: _Model) -> dict[str, QuantConfig | None]:
    """Path of each module with weights → the configuration that it has in the model."""
    return {
        module_stack(node)[-1][0]: model.quantizer.config_of(node)
        for node in model.program.graph.nodes
        if node.op == "call_function" and node.target in WEIGHTED and module_stack(node)
    }


def _try(
    model: _Model,
    path: str,
    kind: str,
    config: QuantConfig | None,
    base_db: float | None,
    base_cost: Cost | None,
    cost: Costing | None,
) -> Exception_:
    """One exception, compiled and measured."""
    quantized = model.quantized(model.quantizer.copy().set_module_name(path, config))
    output_db = model.output_db(quantized)
    # Both infinite: no noise before, none now.
    gain = 0.0 if output_db == base_db else _number(output_db) - _number(base_db)
    if cost is None or base_cost is None:
        return Exception_(path, kind, output_db, gain, None, None)
    try:
        spent = cost(quantized)
    except TinyetError as error:
        return Exception_(path, kind, output_db, gain, None, None, error.what)
    return Exception_(
        path,
        kind,
        output_db,
        gain,
        spent.flash_bytes - base_cost.flash_bytes,
        spent.arena_bytes - base_cost.arena_bytes,
    )


# ---------------------------------------------------------------- search


def _rank(entry: Exception_) -> tuple[bool, bool, float]:
    """Order of trying: what brings something, what costs nothing, most dB a byte."""
    return entry.gain_db <= 0, entry.bytes > 0, -entry.gain_db / max(entry.bytes, 1)


@dataclass(frozen=True)
class Step:
    """One set of exceptions that was tried, and the accuracy it gave."""

    exceptions: tuple[tuple[str, str], ...]
    accuracy: float


@dataclass(frozen=True, eq=False)
class Found:
    """exceptions: path of a module → kind. accuracy: with them. base_accuracy: without any. steps: all that was
    tried. quantizer: with the exceptions set; program: quantized by it."""

    exceptions: Mapping[str, str]
    accuracy: float
    base_accuracy: float
    cost: Cost | None
    steps: tuple[Step, ...]
    quantizer: TinyetQuantizer
    program: ExportedProgram
    sensitivity: Sensitivity | None


def accuracy_of(inputs: Sequence[Inputs], labels: Sequence[int]) -> Evaluation:
    """An evaluation by the quantized torch program: the share of samples (of the program's own shapes) of which the
    first output's largest element is the label."""

    def evaluate(program: ExportedProgram) -> float:
        answers = [int(values[0].flatten().argmax()) for values in _outputs(program, inputs)]
        return sum(a == b for a, b in zip(answers, labels, strict=True)) / len(labels)

    return evaluate


def search(
    program: ExportedProgram,
    batches: Iterable[Any],
    evaluate: Evaluation,
    target: float,
    quantizer: TinyetQuantizer | None = None,
    *,
    exceptions: Exceptions | None = None,
    cost: Costing | None = None,
    correct_bias: bool = False,
    sensitivity: Sensitivity | None = None,
    progress: Progress | None = None,
) -> Found:
    """The cheapest set of exceptions that was found to reach `target`.

    Greedy, and each step is verified on the evaluation data: first none; then the exceptions one after the other,
    those that bring most dB at the model's output for a byte first (one that costs nothing before all others, those
    that bring nothing alone last; a second one for a layer replaces the first where it brings more), until the
    accuracy is reached; then each of them is left away again, the most expensive first, and stays away where the
    accuracy holds without it. The set is not proved to be the cheapest of all: that would need every subset.

    sensitivity: of `measure` for the same arguments, so that it is not measured twice.

    Raises QuantizationError, with the best that was reached, when all exceptions together are not enough.
    """
    model = _Model(program, list(batches), _own(quantizer), correct_bias)
    settings = _settings(model)
    steps: list[Step] = []

    def attempt(chosen: Mapping[str, str]) -> tuple[float, TinyetQuantizer, ExportedProgram]:
        trial = model.quantizer.copy()
        for path, kind in chosen.items():
            known = exceptions_for(settings[path]) if exceptions is None else exceptions
            trial.set_module_name(path, known[kind])
        quantized = model.quantized(trial)
        accuracy = evaluate(quantized)
        steps.append(Step(tuple(chosen.items()), accuracy))
        return accuracy, trial, quantized

    best = attempt({})
    base = best[0]
    chosen: dict[str, str] = {}
    if base < target:
        sensitivity = sensitivity or measure(
            program, model.batches, model.quantizer, exceptions=exceptions, cost=cost,
            correct_bias=correct_bias, progress=progress,
        )  # fmt: skip
        ranked = sorted((e for e in sensitivity.exceptions if not e.refused), key=_rank)
        expense = {(e.module, e.kind): e.bytes for e in ranked}
        gains = {(e.module, e.kind): e.gain_db for e in ranked}
        for entry in ranked:
            before = gains.get((entry.module, chosen.get(entry.module, "")))
            if before is not None and entry.gain_db <= before:
                continue
            chosen[entry.module] = entry.kind
            best = attempt(chosen)
            if best[0] >= target:
                break
        else:
            top = max(steps, key=lambda step: step.accuracy)
            raise QuantizationError(
                f"no set of exceptions reaches an accuracy of {target:.4f}: the best of {len(steps)} tried "
                f"reached {top.accuracy:.4f}",
                hint="ask for less, give more calibration data, or train with the rounding in the loop "
                "(docs/quantization.md)",
            )
        for path, kind in sorted(chosen.items(), key=lambda item: -expense[item]):
            fewer = {p: k for p, k in chosen.items() if p != path}
            tried = any(set(step.exceptions) == set(fewer.items()) for step in steps)
            if tried or expense[path, kind] < 0:
                continue  # it was not enough on the way up; and what saves bytes may stay
            trial = attempt(fewer)
            if trial[0] >= target:
                chosen, best = fewer, trial
    accuracy, trial_quantizer, quantized = best
    return Found(
        dict(chosen),
        accuracy,
        base,
        None if cost is None else cost(quantized),
        tuple(steps),
        trial_quantizer,
        quantized,
        sensitivity,
    )
