# SPDX-License-Identifier: Apache-2.0
"""Which operators and groups of them suffer from quantization, and what an exception for each would bring and cost.

`measure` looks at all of them in torch, with one program's scales (`simulation`), and verifies the few exceptions that
bring most there: each of these is quantized anew, its outputs are those of the integers that ship (`quality`), and its
bytes those of the program compiled from it (`Costing`, from `tinyet.compiler.cost_on`). `search` applies them;
`remedies` tries before what costs no bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram

from tinyet import ops
from tinyet.errors import QuantizationError, TinyetError
from tinyet.fx.capture import example_inputs_of
from tinyet.fx.examples import Inputs
from tinyet.fx.origins import origin_of
from tinyet.fx.recurrent_ops import RECURRENT
from tinyet.ir import Graph
from tinyet.quality.parts import Part, Parts
from tinyet.quality.patterns import Pattern, patterns_of
from tinyet.quality.simulation import Bits, Operator, Simulation
from tinyet.quality.yardstick import Quality, Yardstick, compare, finite, or_infinite, shipped
from tinyet.quantization.config import QuantConfig, int8_config, int16_config
from tinyet.quantization.quantize import Quantized, quantize_fully, samples
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.quantization.recurrent import has_int16_form

Exceptions = Mapping[str, QuantConfig | None]
"""Kind ("int16", "float") → the configuration that a layer gets instead."""

Progress = Callable[[int, int | None], None]

Tell = Callable[[object], None]
"""Told each finding as soon as it is known: a PartSensitivity, Pattern, Exception_ or Step."""

FEW = 3
"""Parts that exceptions are verified for, unless it is said how many."""
MOST_COUNTED = 1_000_000_000
"""Multiply-accumulates of all labelled samples, to count what each exception does to accuracy."""
NEAR_DB = 1.0
"""What brings as much but for this is as good."""


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


@dataclass(frozen=True)
class LayerSensitivity:
    """A module with weights that is quantized.

    sqnr_db: signal to quantization noise of its output in the quantized model: its own error and all before it.
    alone_sqnr_db: of the model's output when this layer's weights and results alone are rounded, in torch. None where
    there is no signal; infinite without noise. source: file and line that asked for it. is_enough: whether the
    outputs are good enough (`quality`) when it alone is rounded.
    """

    module: str
    op: str
    source: str
    sqnr_db: float | None
    alone_sqnr_db: float | None
    is_enough: bool = True


@dataclass(frozen=True)
class PartSensitivity:
    """An input of the model, a quantized operator that makes values, or a group of operators.

    kind: "input", "operator", or that of a group (`parts.Part`). name: how `--layer` (a module) or `--op` takes it.
    op: the ATen operator; empty for groups. sqnr_db: of an operator's result in the quantized model.
    alone_sqnr_db: of the model's output when its constants and results alone are rounded. gains_db: configuration →
    what the output gains when it has that instead. All in torch, with the scales of the program that ships.
    """

    kind: str
    name: str
    op: str
    source: str
    sqnr_db: float | None
    alone_sqnr_db: float | None
    is_enough: bool
    gains_db: Mapping[str, float]
    module: str = ""

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "kind": self.kind,
            "name": self.name,
            "op": self.op or None,
            "source": self.source,
            "sqnr_db": finite(self.sqnr_db),
            "alone_sqnr_db": finite(self.alone_sqnr_db),
            "gains_db": {kind: finite(gain) for kind, gain in self.gains_db.items()},
        }


@dataclass(frozen=True)
class Exception_:  # noqa: N801 - Exception is Python's
    """The effect of another configuration of one part on the quantized model.

    module: path, where the part is a module; operators: how `--op` takes it, where it is not; both empty for all
    layers. config: the configuration's name (`make_config`). output_sqnr_db: SQNR of the model's worst output with
    it, None where it is refused; gain_db: how much more its worst output has. flash_bytes, arena_bytes: what it costs
    more (negative: less) than the model without exceptions; None when no costing was given. refused: why the variant
    cannot be compiled; empty when it can. is_enough: whether the model is healthy with it (`quality`). accuracy: with
    it, None where that was not counted.
    """

    module: str
    config: str
    output_sqnr_db: float | None
    gain_db: float
    flash_bytes: int | None
    arena_bytes: int | None
    refused: str = ""
    is_enough: bool = False
    operators: str = ""
    part: Part | None = field(default=None, repr=False, compare=False)
    accuracy: float | None = None

    @property
    def bytes(self) -> int:
        """Flash and arena together: what the search weighs a gain against."""
        return (self.flash_bytes or 0) + (self.arena_bytes or 0)

    @property
    def name(self) -> str:
        """What it is an exception for; empty for all layers."""
        return self.module or self.operators

    @property
    def flags(self) -> tuple[str, str]:
        """As an option of `tinyet quantize`."""
        if not self.name:
            return "--config", self.config
        return ("--layer" if self.module else "--op"), f"{self.name}={self.config}"


@dataclass(frozen=True)
class Sensitivity:
    """output_sqnr_db: SQNR of the quantized model's worst output. layers: with weights, in the model's order.
    exceptions: those that bring most first. operators: all that make values, and the model's inputs; groups: of
    operators; patterns: of those that hurt; all three as they are in torch."""

    output_sqnr_db: float | None
    cost: Cost | None
    layers: tuple[LayerSensitivity, ...]
    exceptions: tuple[Exception_, ...]
    operators: tuple[PartSensitivity, ...] = ()
    groups: tuple[PartSensitivity, ...] = ()
    patterns: tuple[Pattern, ...] = ()

    @property
    def worst(self) -> tuple[LayerSensitivity, ...]:
        """The layers that hurt the model's output most, when rounded alone, first."""
        return tuple(sorted(self.layers, key=lambda layer: or_infinite(layer.alone_sqnr_db)))

    @property
    def worst_operators(self) -> tuple[PartSensitivity, ...]:
        """The inputs and operators that hurt the model's output most, when rounded alone, first."""
        return tuple(sorted(self.operators, key=lambda part: or_infinite(part.alone_sqnr_db)))

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
            "operators": [part.to_json() for part in self.operators],
            "groups": [part.to_json() for part in self.groups],
            "patterns": [pattern.to_json() for pattern in self.patterns],
            "exceptions": [
                {
                    "module": entry.module,
                    "operators": entry.operators,
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
class Bench:
    """The shared data of all measurements."""

    program: ExportedProgram
    batches: list[Any]
    quantizer: TinyetQuantizer
    correct_bias: bool
    yardstick: Yardstick

    def quantized(self, quantizer: TinyetQuantizer) -> ExportedProgram:
        return self.quantized_fully(quantizer).program

    def quantized_fully(self, quantizer: TinyetQuantizer) -> Quantized:
        return quantize_fully(self.program, self.batches, quantizer, correct_bias=self.correct_bias)


def calibration_samples(program: ExportedProgram, batches: Iterable[Any]) -> list[Inputs]:
    """Calibration batches, cut into samples of the program's own shapes."""
    return [inputs for _, inputs in samples(batches, example_inputs_of(program))]


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
    tell: Tell | None = None,
    base: Quantized | None = None,
) -> Sensitivity:
    """What each operator and group costs the output, and what exceptions for the best of them bring and cost.

    program: of `capture` (equalize it first, if that is wanted). batches: calibration data. exceptions: to try;
    `exceptions_for` the operators by default, none for an empty mapping. worst: verify them for so many parts, those
    that bring most in torch; for a few by default. yardstick: what the outputs are measured with, the calibration data
    by default. progress: (variants done, in all). tell: each finding. base: the program quantized without exceptions,
    where it is at hand.
    """
    model = bench_of(program, batches, quantizer, correct_bias, yardstick)
    base = base or model.quantized_fully(model.quantizer)
    base_cost = None if cost is None else cost(base.program)
    graph = shipped(base.program)
    quality = model.yardstick.quality(graph)
    counted = counts(model.yardstick, graph)
    say = tell or _unheard
    looked = _Look(model, base, exceptions, say)
    chosen = [] if exceptions is not None and not exceptions else looked.promising(worst or FEW)
    found: list[Exception_] = []
    wholes = looked.wholes() if chosen and worst is None and not quality.enough else []
    later = [(part, kind) for part, kind in wholes if (part.name, kind) not in _names(chosen)]
    for part, kind in (*chosen, *later):
        # All operators where nothing that torch has chosen is enough in integers.
        if len(found) >= len(chosen) and any(entry.is_enough for entry in found):
            break
        variant = model.quantized(part.set_in(model.quantizer.copy(), looked.config(kind)))
        entry = judge_exception(part, kind, variant, model.yardstick, quality, base_cost, cost, counted)
        found.append(entry)
        say(entry)
        if progress is not None:
            progress(len(found), max(len(chosen), len(found)))
    found.sort(key=lambda entry: (bool(entry.refused), -entry.gain_db, entry.bytes))
    return Sensitivity(
        quality.sqnr_db,
        base_cost,
        looked.layers(),
        tuple(found),
        looked.operators,
        looked.groups,
        looked.patterns,
    )


def _unheard(_finding: object) -> None:
    """Where nobody is told."""


def counts(yardstick: Yardstick, graph: Graph) -> bool:
    """Whether there are labelled samples, and they can be run once for each exception. graph: that ships without."""
    macs = sum(ops.op_of(node).macs(node) for node in graph.nodes)
    return yardstick.labels is not None and macs * len(yardstick.samples) <= MOST_COUNTED


class _Look:
    """All parts of a quantized program, as they are in torch."""

    def __init__(self, model: Bench, quantized: Quantized, exceptions: Exceptions | None, say: Tell) -> None:
        self._exceptions = exceptions
        self._simulation = Simulation(quantized.float_program, quantized.program, model.yardstick.chosen)
        self._parts = Parts(self._simulation, model.program)
        self._base = self._simulation.left((), "float")
        self._configs = _configs(model, self._simulation)
        self._qualities: dict[tuple[str, str], Quality] = {}
        self.operators = tuple(self._inputs())
        found: list[PartSensitivity] = []
        patterns: list[Pattern] = []
        for part in self._parts.operators:
            found.append(self._measured(part))
            if not found[-1].is_enough:
                say(found[-1])
                for pattern in patterns_of(
                    self._simulation, part.operators[0], self._parts.around(part.operators[0])
                ):
                    if pattern not in patterns:
                        patterns.append(pattern)
                        say(pattern)
        self.operators += tuple(found)
        self._candidates = [*self._parts.addressed, *self._parts.groups]
        self.groups = tuple(self._measured(part) for part in self._parts.groups)
        for group in sorted(self.groups, key=lambda g: -max(g.gains_db.values(), default=0.0))[:FEW]:
            if max(group.gains_db.values(), default=0.0) >= NEAR_DB and not self._base.enough:
                say(group)
        self.patterns = tuple(patterns)

    def config(self, kind: str) -> QuantConfig | None:
        """What an exception of this name is."""
        if self._exceptions is not None:
            return self._exceptions[kind]
        configs: dict[str, Callable[[], QuantConfig | None]] = {
            "int8": int8_config,
            "int16": int16_config,
            "float": lambda: None,
        }
        return configs[kind]()

    def layers(self) -> tuple[LayerSensitivity, ...]:
        """Modules with weights; of several calls of one, the worst."""
        found: dict[str, LayerSensitivity] = {}
        by_name = {part.operators[0].name: part.operators[0] for part in self._parts.operators}
        names = {operator.name for operator in self._simulation.operators}
        for entry, operator in zip(
            (part for part in self.operators if part.kind != "input"), by_name.values(), strict=True
        ):
            if not operator.layer or not operator.module or operator.name not in names:
                continue
            layer = LayerSensitivity(
                operator.module,
                operator.op,
                entry.source,
                entry.sqnr_db,
                entry.alone_sqnr_db,
                entry.is_enough,
            )
            before = found.get(operator.module)
            if before is None or or_infinite(layer.alone_sqnr_db) < or_infinite(before.alone_sqnr_db):
                found[operator.module] = layer
        return tuple(found.values())

    def _inputs(self) -> Iterable[PartSensitivity]:
        for node, step in self._simulation.inputs:
            alone = self._simulation.rounded(node, step.rounded)
            reader = self._simulation.readers(node)[0]
            yield PartSensitivity(
                "input", node.name, "", origin_of(reader).source, None, alone.sqnr_db, alone.enough, {}
            )

    def _measured(self, part: Part) -> PartSensitivity:
        alone = self._simulation.alone(part.operators)
        single = part.operators[0] if len(part.operators) == 1 else None
        return PartSensitivity(
            part.kind,
            part.name,
            "" if single is None else single.op,
            part.source,
            None if single is None else self._own_sqnr(single),
            alone.sqnr_db,
            alone.enough,
            {kind: self.gain(part, kind) for kind in self._kinds(part)},
            "" if single is None else single.module,
        )

    def _own_sqnr(self, operator: Operator) -> float | None:
        node = operator.nodes[0]
        exact = self._simulation.values(node, self._simulation.exact)
        found = self._simulation.values(node, self._simulation.quantized)
        if exact is None or found is None:
            return None
        return compare(exact.numpy(), found.numpy()).sqnr_db

    def _kinds(self, part: Part) -> list[str]:
        """Exceptions that all operators of a part may have."""
        if self._exceptions is not None:
            return list(self._exceptions)
        each = [self._configs[operator.name] for operator in part.operators]
        return [kind for kind in ("int8", "int16", "float") if all(kind in kinds for kinds in each)]

    def _bits(self, kind: str) -> Bits:
        config = self.config(kind)
        if config is None or config.dynamic:
            return "float"
        return "int16" if config.activation.dtype is torch.int16 else "int8"

    def gain(self, part: Part, kind: str) -> float:
        """What the output gains in torch."""
        return self._quality(part, kind).gain_over(self._base)

    def _quality(self, part: Part, kind: str) -> Quality:
        key = (part.name, kind)
        if key not in self._qualities:
            self._qualities[key] = self._simulation.left(part.operators, self._bits(kind))
        return self._qualities[key]

    def promising(self, count: int) -> list[tuple[Part, str]]:
        """The parts with the exceptions that bring most: those first that are the smallest of all that bring about as
        much; and for each kind a set that is made for it, or all operators where decibels are enough already."""
        rated = [
            (self.gain(part, kind), part, kind) for part in self._candidates for kind in self._kinds(part)
        ]
        kinds = list(dict.fromkeys(kind for _, _, kind in rated))
        chosen: dict[str, Part] = {}
        for kind in kinds if not self._base.enough else ():
            best = self._built(kind)
            if best is not None:
                chosen.setdefault(best.name, best)
        for part in chosen.values():
            rated = self._without(rated, part)
        while rated and len(chosen) < count:
            top = max(gain for gain, _, _ in rated)
            if chosen and not top >= NEAR_DB:
                break
            near = [entry for entry in rated if entry[0] >= top - NEAR_DB or entry[0] == top]
            part = min(near, key=lambda entry: (len(entry[1].operators), -entry[0]))[1]
            chosen.setdefault(part.name, part)
            rated = self._without(rated, part)
        parts = list(chosen.values())[:count]
        found = [(part, kind) for part in parts for kind in self._worthy(part)]
        if self._base.enough:
            found += [(part, kind) for part, kind in self.wholes() if (part.name, kind) not in _names(found)]
        return found

    def wholes(self) -> list[tuple[Part, str]]:
        """All operators with each exception; in int8, those with weights, which alone have less now."""
        kinds = dict.fromkeys(kind for part in self._candidates for kind in self._kinds(part))
        able = {kind: [o for o in self._able(kind) if kind != "int8" or o.layer] for kind in kinds}
        return [(self._parts.part(operators), kind) for kind, operators in able.items() if operators]

    def _able(self, kind: str) -> list[Operator]:
        """All operators that may have this exception."""
        able = {o.name: o for part in self._candidates if kind in self._kinds(part) for o in part.operators}
        return list(able.values())

    def _without(self, rated: list[tuple[float, Part, str]], part: Part) -> list[tuple[float, Part, str]]:
        """Without those that hold the part and bring no more, or more than is enough where that is told by decibels."""
        names = {operator.name for operator in part.operators}
        best = max(self.gain(part, kind) for kind in self._kinds(part))
        enough = not self._base.enough and any(self._quality(part, kind).enough for kind in self._kinds(part))
        return [
            (gain, other, kind)
            for gain, other, kind in rated
            if not names <= {o.name for o in other.operators} or (gain > best + NEAR_DB and not enough)
        ]

    def _worthy(self, part: Part) -> list[str]:
        """The part's exceptions but for those that bring less than half as many dB as another."""
        gains = {kind: self.gain(part, kind) for kind in self._kinds(part)}
        top = max(gains.values())
        return [kind for kind, gain in gains.items() if gain == top or gain >= top / 2]

    def _built(self, kind: str) -> Part | None:
        """A set of operators that is enough with this exception, or brings most of what all bring: parts are added,
        those first that bring most, then operators left away that bring nothing. None where it brings nothing."""
        bits = self._bits(kind)
        able = [part for part in self._candidates if kind in self._kinds(part)]
        chosen: dict[str, Operator] = {}
        quality = self._base
        while not quality.enough:
            tried = []
            for part in able:
                more = {**chosen, **{o.name: o for o in part.operators}}
                if len(more) > len(chosen):
                    found = self._simulation.left(more.values(), bits)
                    tried.append((found.gain_over(quality), len(more), more, found))
            top = max((entry[0] for entry in tried), default=0.0)
            if not top >= NEAR_DB:
                everything = {o.name: o for o in self._able(kind)}
                found = self._simulation.left(everything.values(), bits)
                if len(everything) > len(chosen) and found.gain_over(quality) >= NEAR_DB:
                    chosen, quality = everything, found
                break
            near = [entry for entry in tried if entry[0] >= top - NEAR_DB or entry[0] == top]
            _, _, chosen, quality = min(near, key=lambda entry: entry[1])
        for name in list(chosen):
            fewer = {other: operator for other, operator in chosen.items() if other != name}
            left = self._simulation.left(fewer.values(), bits)
            if fewer and (left.enough if quality.enough else left.gain_over(quality) > -NEAR_DB / 4):
                chosen = fewer
                quality = left if quality.enough else quality
        return self._parts.part(chosen.values()) if chosen else None


def _names(found: Sequence[tuple[Part, str]]) -> set[tuple[str, str]]:
    return {(part.name, kind) for part, kind in found}


def bench_of(
    program: ExportedProgram,
    batches: Iterable[Any],
    quantizer: TinyetQuantizer | None,
    correct_bias: bool,
    yardstick: Yardstick | None,
) -> Bench:
    kept = list(batches)
    given = yardstick or Yardstick(program, calibration_samples(program, kept))
    return Bench(program, kept, _own(quantizer), correct_bias, given)


def _configs(model: Bench, simulation: Simulation) -> dict[str, list[str]]:
    """Operator → exceptions that it may have."""
    nodes = {origin_of(n).key: n for n in model.program.graph.nodes if n.op == "call_function"}
    found: dict[str, list[str]] = {}
    for operator in simulation.operators:
        node = nodes.get(operator.name)
        if node is None:  # made by quantizing, not the user's: nobody can name it
            found[operator.name] = []
            continue
        kinds = list(exceptions_for(model.quantizer.config_of(node)))
        if node.target in RECURRENT and not has_int16_form(node):
            kinds = [kind for kind in kinds if kind != "int16"]
        found[operator.name] = kinds
    return found


def judge_exception(
    part: Part | None,
    kind: str,
    quantized: ExportedProgram,
    yardstick: Yardstick,
    base: Quality,
    base_cost: Cost | None,
    cost: Costing | None,
    counted: bool = False,
) -> Exception_:
    """Compare the exception's model `quantized` with that of `base`. part: None for all layers. counted: by
    accuracy, too."""
    path = "" if part is None else part.module
    others = "" if part is None or path else part.name
    try:
        quality = yardstick.quality(shipped(quantized), accuracy=counted)
        spent = None if cost is None else cost(quantized)
    except TinyetError as error:
        return Exception_(path, kind, None, 0.0, None, None, error.what, operators=others, part=part)
    more: tuple[int | None, int | None] = None, None
    if spent is not None and base_cost is not None:
        more = spent.flash_bytes - base_cost.flash_bytes, spent.arena_bytes - base_cost.arena_bytes
    return Exception_(
        path,
        kind,
        quality.sqnr_db,
        quality.gain_over(base),
        *more,
        "",
        quality.healthy if counted else quality.enough,
        others,
        part,
        None if quality.accuracy is None else quality.accuracy.share,
    )
