# SPDX-License-Identifier: Apache-2.0
"""Which layers suffer from quantization, what an exception for each would bring and cost, and the cheapest set of
exceptions that keeps a wanted accuracy.

`measure` looks at every layer with weights; `search` applies exceptions. Nothing is estimated: each variant is
quantized anew, its outputs are those of the integers that ship (`quality`), and its bytes those of the program compiled
from it (`Costing`, from `tinyet.compiler.cost_on`). `remedies` tries before what costs no bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from tinyet.errors import QuantizationError, TinyetError
from tinyet.fx.capture import example_inputs_of
from tinyet.fx.exact import Exact
from tinyet.fx.examples import Inputs
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import Running, take_out
from tinyet.fx.origins import module_stack, origin_of
from tinyet.fx.recurrent_ops import RECURRENT
from tinyet.quality.yardstick import Quality, Yardstick, accuracy_on, compare, finite, or_infinite, shipped
from tinyet.quantization.annotate import LAYERS
from tinyet.quantization.config import QuantConfig, int8_config, int16_config
from tinyet.quantization.quantize import quantize, samples
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.quantization.recurrent import has_int16_form
from tinyet.quantization.threads import one_thread

Exceptions = Mapping[str, QuantConfig | None]
"""Kind ("int16", "float") → the configuration that a layer gets instead."""

Progress = Callable[[int, int | None], None]


def exceptions_for(config: QuantConfig | None) -> dict[str, QuantConfig | None]:
    """The alternatives of a layer with this configuration: more bits."""
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
    alone_sqnr_db: of the model's output when this layer alone is quantized. None where there is no signal; infinite
    without noise. source: file and line that asked for it. is_enough: whether the outputs are good enough (`quality`)
    when it is quantized alone.
    """

    module: str
    op: str
    source: str
    sqnr_db: float | None
    alone_sqnr_db: float | None
    is_enough: bool = True


@dataclass(frozen=True)
class Exception_:  # noqa: N801 - Exception is Python's
    """The effect of another configuration of one layer on the quantized model.

    config: the configuration's name (`make_config`). output_sqnr_db: SQNR of the model's worst output with it, None
    where it is refused; gain_db: how much more its worst output has. flash_bytes, arena_bytes: what it costs more
    (negative: less) than the model without exceptions; None when no costing was given. refused: why the variant cannot
    be compiled; empty when it can. is_enough: whether every output is good enough with it (`quality`).
    """

    module: str
    config: str
    output_sqnr_db: float | None
    gain_db: float
    flash_bytes: int | None
    arena_bytes: int | None
    refused: str = ""
    is_enough: bool = False

    @property
    def bytes(self) -> int:
        """Flash and arena together: what the search weighs a gain against."""
        return (self.flash_bytes or 0) + (self.arena_bytes or 0)


@dataclass(frozen=True)
class Sensitivity:
    """output_sqnr_db: SQNR of the quantized model's worst output. layers: in the model's order. exceptions: those that
    bring most first."""

    output_sqnr_db: float | None
    cost: Cost | None
    layers: tuple[LayerSensitivity, ...]
    exceptions: tuple[Exception_, ...]

    @property
    def worst(self) -> tuple[LayerSensitivity, ...]:
        """The layers that hurt the model's output most, when quantized alone, first."""
        return tuple(sorted(self.layers, key=lambda layer: or_infinite(layer.alone_sqnr_db)))

    def to_json(self, more: Sequence[Exception_] = ()) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md). more: exceptions that were tried beside these."""
        return {
            "output_sqnr_db": finite(self.output_sqnr_db),
            "layers": [
                {
                    "module": layer.module,
                    "op": layer.op,
                    "source": layer.source,
                    "sqnr_db": finite(layer.sqnr_db),
                    "alone_sqnr_db": finite(layer.alone_sqnr_db),
                }
                for layer in self.layers
            ],
            "exceptions": [
                {
                    "module": entry.module,
                    "config": entry.config,
                    "output_sqnr_db": finite(entry.output_sqnr_db),
                    "gain_db": finite(entry.gain_db),
                    "flash_bytes": entry.flash_bytes,
                    "arena_bytes": entry.arena_bytes,
                    "refused": entry.refused or None,
                }
                for entry in (*self.exceptions, *more)
            ],
        }


@dataclass(frozen=True, eq=False)
class _Model:
    """The shared data of all measurements."""

    program: ExportedProgram
    batches: list[Any]
    quantizer: TinyetQuantizer
    correct_bias: bool
    yardstick: Yardstick

    def quantized(self, quantizer: TinyetQuantizer) -> ExportedProgram:
        return quantize(self.program, self.batches, quantizer, correct_bias=self.correct_bias)

    def quality(self, quantized: ExportedProgram) -> Quality:
        return self.yardstick.quality(shipped(quantized))


def calibration_samples(program: ExportedProgram, batches: Iterable[Any]) -> list[Inputs]:
    """Calibration batches, cut into samples of the program's own shapes."""
    return [inputs for _, inputs in samples(batches, example_inputs_of(program))]


def _sqnr(exact: Sequence[torch.Tensor], found: Sequence[torch.Tensor]) -> float | None:
    """10 log10(sum of signal squared / sum of error squared) over all samples."""
    return compare(torch.stack([*exact]).numpy(), torch.stack([*found]).numpy()).sqnr_db


class _Values(Exact):
    """Keeps the values of some nodes of one run."""

    def __init__(self, module: fx.GraphModule, wanted: Iterable[fx.Node]) -> None:
        super().__init__(module)
        self.wanted = set(wanted)
        self.values: dict[fx.Node, torch.Tensor] = {}

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if n in self.wanted:
            self.values[n] = value[0] if isinstance(value, tuple) else value
        return value


def _layer_nodes(module: fx.GraphModule) -> dict[str, fx.Node]:
    """Key of the origin → node of a layer with a weight."""
    return {
        origin_of(node).key: node
        for node in module.graph.nodes
        if node.op == "call_function" and node.target in LAYERS
    }


def _layer_sqnr(model: _Model, quantized: ExportedProgram) -> dict[str, float | None]:
    """Key of each quantized layer → SQNR of its output."""
    with quiet():
        reference = model.program.module(check_guards=False)
        module = quantized.module(check_guards=False)
        kept, kept_quantized = take_out(reference), take_out(module)
    exact, layers = _layer_nodes(reference), _layer_nodes(module)
    shared = [
        key
        for key, node in layers.items()
        if key in exact and any("dequantize" in str(source.target) for source in node.all_input_nodes)
    ]
    pairs: dict[str, tuple[list[torch.Tensor], list[torch.Tensor]]] = {key: ([], []) for key in shared}
    with torch.no_grad(), one_thread():
        wanted = _Values(reference, [exact[key] for key in shared])
        found = _Values(module, [layers[key] for key in shared])
        both = Running(wanted.run, kept), Running(found.run, kept_quantized)
        for inputs in model.yardstick.chosen:
            for run in both:
                run(*inputs)
            for key, (a, b) in pairs.items():
                a.append(wanted.values[exact[key]])
                b.append(found.values[layers[key]])
    return {key: _sqnr(a, b) for key, (a, b) in pairs.items()}


def _layers(model: _Model, quantized: ExportedProgram) -> dict[str, LayerSensitivity]:
    """Path of each module with weights that is quantized → what is known of it from one quantized program; of
    several calls of one module, the worst."""
    sqnr = _layer_sqnr(model, quantized)
    found: dict[str, LayerSensitivity] = {}
    for node in model.program.graph.nodes:
        stack = module_stack(node) if node.op == "call_function" and node.target in LAYERS else []
        origin = origin_of(node) if stack else None
        if origin is None or origin.key not in sqnr or not stack[-1][0]:
            continue
        path, value = stack[-1][0], sqnr[origin.key]
        if path not in found or or_infinite(value) < or_infinite(found[path].sqnr_db):
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
    yardstick: Yardstick | None = None,
    progress: Progress | None = None,
) -> Sensitivity:
    """Per layer: SQNR in the quantized model and alone; per exception: what it brings and costs.

    program: of `capture` (equalize it first, if that is wanted). batches: calibration data. exceptions: to try;
    `exceptions_for` the layer by default, none for an empty mapping. worst: try them for so many of the layers that
    hurt most, for all by default. yardstick: what the outputs are measured with, the calibration data by default.
    progress: (variants done, in all).
    """
    model = _model(program, batches, quantizer, correct_bias, yardstick)
    base = model.quantized(model.quantizer)
    base_cost = None if cost is None else cost(base)
    quality = model.quality(base)
    layers = _layers(model, base)
    tried = len(layers) if worst is None else min(worst, len(layers))
    settings = _settings(model)
    kinds = {
        path: exceptions_for(settings[path]) if exceptions is None else dict(exceptions) for path in layers
    }
    for path in _without_int16(model) & kinds.keys():
        kinds[path].pop("int16", None)
    total, done = len(layers) + tried * max(map(len, kinds.values()), default=0), 0

    def advance() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    measured = []
    for path, layer in layers.items():
        alone = TinyetQuantizer().set_global(None).set_module_name(path, settings[path])
        left = model.quality(model.quantized(alone))
        measured.append(replace(layer, alone_sqnr_db=left.sqnr_db, is_enough=left.enough))
        advance()
    found = []
    for layer in sorted(measured, key=lambda entry: or_infinite(entry.alone_sqnr_db))[:tried]:
        for kind, config in kinds[layer.module].items():
            variant = model.quantized(model.quantizer.copy().set_module_name(layer.module, config))
            found.append(
                judge_exception(layer.module, kind, variant, model.yardstick, quality, base_cost, cost)
            )
            advance()
    found.sort(key=lambda entry: (bool(entry.refused), -entry.gain_db, entry.bytes))
    return Sensitivity(quality.sqnr_db, base_cost, tuple(measured), tuple(found))


def _model(
    program: ExportedProgram,
    batches: Iterable[Any],
    quantizer: TinyetQuantizer | None,
    correct_bias: bool,
    yardstick: Yardstick | None,
) -> _Model:
    kept = list(batches)
    given = yardstick or Yardstick(program, calibration_samples(program, kept))
    return _Model(program, kept, _own(quantizer), correct_bias, given)


def _settings(model: _Model) -> dict[str, QuantConfig | None]:
    """Path of each module with weights → the configuration that it has in the model."""
    return {
        module_stack(node)[-1][0]: model.quantizer.config_of(node)
        for node in model.program.graph.nodes
        if node.op == "call_function" and node.target in LAYERS and module_stack(node)
    }


def _without_int16(model: _Model) -> set[str]:
    """Paths of modules that are recurrent layers without a form in int16."""
    nodes = [node for node in model.program.graph.nodes if node.target in RECURRENT and module_stack(node)]
    return {module_stack(node)[-1][0] for node in nodes if not has_int16_form(node)}


def judge_exception(
    path: str,
    kind: str,
    quantized: ExportedProgram,
    yardstick: Yardstick,
    base: Quality,
    base_cost: Cost | None,
    cost: Costing | None,
) -> Exception_:
    """Compare the exception's model `quantized` with that of `base`."""
    try:
        quality = yardstick.quality(shipped(quantized))
        spent = None if cost is None else cost(quantized)
    except TinyetError as error:
        return Exception_(path, kind, None, 0.0, None, None, error.what)
    more: tuple[int | None, int | None] = None, None
    if spent is not None and base_cost is not None:
        more = spent.flash_bytes - base_cost.flash_bytes, spent.arena_bytes - base_cost.arena_bytes
    return Exception_(path, kind, quality.sqnr_db, quality.gain_over(base), *more, is_enough=quality.enough)


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
    """exceptions: path of a module → configuration. accuracy: with them. base_accuracy: without any. steps: all that
    was tried. quantizer: with the exceptions set; program: quantized by it."""

    exceptions: Mapping[str, str]
    accuracy: float
    base_accuracy: float
    cost: Cost | None
    steps: tuple[Step, ...]
    quantizer: TinyetQuantizer
    program: ExportedProgram
    sensitivity: Sensitivity | None


def accuracy_of(inputs: Sequence[Inputs], labels: Sequence[int]) -> Evaluation:
    """An evaluation by the integers that ship: the share of samples (of the program's own shapes) of which the host
    reference's first output names the label."""
    return lambda program: accuracy_on(shipped(program), inputs, labels)


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
    yardstick: Yardstick | None = None,
    progress: Progress | None = None,
) -> Found:
    """The cheapest set of exceptions that was found to reach `target`.

    Greedy, and each step is verified on the evaluation data: first none; then the exceptions one after the other,
    those that bring most dB at the model's output for a byte first (one that costs nothing before all others, those
    that bring nothing alone last; a second one for a layer replaces the first where it brings more), until the
    accuracy is reached; then each of them is left away again, the most expensive first, and stays away where the
    accuracy holds without it. The set is not proved to be the cheapest of all: that would need every subset.

    sensitivity: of `measure` for the same arguments, so that it is not measured twice. yardstick: as there.

    Raises QuantizationError, with the best that was reached, when all exceptions together are not enough.
    """
    model = _model(program, batches, quantizer, correct_bias, yardstick)
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
            correct_bias=correct_bias, yardstick=model.yardstick, progress=progress,
        )  # fmt: skip
        ranked = sorted((e for e in sensitivity.exceptions if not e.refused), key=_rank)
        expense = {(e.module, e.config): e.bytes for e in ranked}
        gains = {(e.module, e.config): e.gain_db for e in ranked}
        for entry in ranked:
            before = gains.get((entry.module, chosen.get(entry.module, "")))
            if before is not None and entry.gain_db <= before:
                continue
            chosen[entry.module] = entry.config
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
