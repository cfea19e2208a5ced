# SPDX-License-Identifier: Apache-2.0
"""What is typically wrong with a value that eight bits spoil, with the numbers that show it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from tinyet.quality.simulation import Operator, Rescaled, Simulation, Step
from tinyet.quality.yardstick import Quality

aten = torch.ops.aten

STEEP: frozenset[object] = frozenset({
    aten.log.default, aten.sqrt.default, aten.rsqrt.default, aten.reciprocal.default, aten.div.Tensor,
})  # fmt: skip
"""Operators that change fast where what they read is small."""

UNEQUAL = 30.0
"""So many times the spread of one column is that of another: the smaller one has eight steps of 256 left."""
FEW_STEPS = 4.0
CLIPPED = 0.01
NEAR_ZERO = 0.05
MANY_COLUMNS = 256


@dataclass(frozen=True)
class Pattern:
    """kind: "columns", "near_zero", "clipped", "unequal_units" or "few_steps". operator: its name, or that of an
    input of the model; source: the line. text: what was seen, in numbers. gain_db: what other parameters of that
    value alone bring at the output, in torch; None where none were tried."""

    kind: str
    operator: str
    source: str
    text: str
    gain_db: float | None = None

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        known = self.gain_db is not None and math.isfinite(self.gain_db)
        return {
            "kind": self.kind,
            "operator": self.operator,
            "source": self.source,
            "text": self.text,
            "gain_db": self.gain_db if known else None,
        }


def patterns_of(
    simulation: Simulation, operator: Operator, readers: Iterable[Operator] = ()
) -> list[Pattern]:
    """Of the values that an operator reads and makes, and of what their readers do with them."""
    steep = [o for o in readers if o.name != operator.name and o.nodes[0].target in STEEP]
    beyond = [pattern for o in steep for pattern in _near_zero(simulation, o, o.nodes[0])]
    return [*_patterns(simulation, operator), *beyond]


def _patterns(simulation: Simulation, operator: Operator) -> Iterator[Pattern]:
    node = operator.nodes[-1]
    value, step = simulation.values(node, simulation.exact), simulation.step_of(node)
    if value is not None and step is not None and operator.makes:
        unequal = list(_columns(simulation, operator, node, value, step))
        yield from unequal
        yield from _clipped(operator, operator.name, value, step)
        if not unequal:
            yield from _few_steps(operator, value, step)
    head = operator.nodes[0]
    if head.target in STEEP:
        yield from _near_zero(simulation, operator, head)
    if head.target is aten.cat.default:
        yield from _unequal_units(simulation, operator, head)
    for read in simulation.reads(head):
        if read.source.op == "placeholder" and read.first is not None:
            given = simulation.values(read.source, simulation.exact)
            if given is not None:
                yield from _columns(simulation, operator, read.source, given, read.first)
                yield from _clipped(operator, read.source.name, given, read.first)


def _number(value: float) -> str:
    return f"{value:.3g}"


def _db(quality: Quality) -> str:
    return "–" if quality.sqnr_db is None else f"{quality.sqnr_db:.1f}"


def _axes(value: torch.Tensor) -> list[int]:
    """Axes of (samples, 1, …) that count columns: the last one and the one behind the batch, if they are short."""
    axes = [axis for axis in dict.fromkeys((value.ndim - 1, 2)) if 2 <= axis < value.ndim]
    return [axis for axis in axes if 1 < value.shape[axis] <= MANY_COLUMNS]


def _by_column(value: torch.Tensor, axis: int) -> torch.Tensor:
    return value.movedim(axis, 0).reshape(value.shape[axis], -1)


def _columns(
    simulation: Simulation, operator: Operator, node: fx.Node, value: torch.Tensor, step: Step
) -> Iterator[Pattern]:
    """Columns of which some move by less than a few steps, and others by many."""
    for axis in _axes(value):
        columns = _by_column(value, axis)
        if not bool(torch.isfinite(columns).all()):
            continue
        spread = columns.amax(1) - columns.amin(1)
        moving = spread[spread > 0]
        if len(moving) < 2 or float(moving.max() / moving.min()) < UNEQUAL:
            continue
        lost = [i for i, width in enumerate(spread.tolist()) if 0 < width < FEW_STEPS * step.scale]
        if not lost:
            continue
        low, high = int(torch.where(spread > 0, spread, math.inf).argmin()), int(spread.argmax())
        one = simulation.rounded(node, step.rounded)
        each = simulation.rounded(node, _per_column(columns, axis - 1))
        yield Pattern(
            "columns",
            _name(operator, node),
            operator.source,
            f"{_name(operator, node)}: its columns need scales of their own (axis {axis - 1}): column {high} ranges "
            f"over {_number(float(spread[high]))}, column {low} over {_number(float(spread[low]))}, and one step is "
            f"{_number(step.scale)}: {len(lost)} of {len(spread)} columns move by less than {FEW_STEPS:.0f} steps. It "
            f"alone leaves {_db(one)} dB at the output, with a scale for each column {_db(each)}",
            each.gain_over(one),
        )
        return


def _name(operator: Operator, node: fx.Node) -> str:
    return node.name if node.op == "placeholder" else operator.name


def _per_column(columns: torch.Tensor, axis: int) -> Rescaled:
    """Eight bits for each column. axis: of the value itself, without the samples."""
    low, high = columns.amin(1).clamp(max=0), columns.amax(1).clamp(min=0)
    scale = torch.where(high > low, (high - low) / 255, 1.0)

    def rounded(value: torch.Tensor) -> torch.Tensor:
        shape = [-1 if a == axis else 1 for a in range(value.ndim)]
        steps, first = scale.reshape(shape), low.reshape(shape)
        return torch.round((torch.nan_to_num(value) - first) / steps).clamp(0, 255) * steps + first

    return rounded


def _clipped(operator: Operator, name: str, value: torch.Tensor, step: Step) -> Iterator[Pattern]:
    low, high = step.range
    margin = step.scale / 2
    outside = float(((value < low - margin) | (value > high + margin)).float().mean())
    if outside > CLIPPED:
        yield Pattern(
            "clipped",
            name,
            operator.source,
            f"{name}: {100 * outside:.1f} % of the values lie outside of what its integers stand for, {_number(low)} … "
            f"{_number(high)}; they reach from {_number(float(value.min()))} to {_number(float(value.max()))}",
        )


def _few_steps(operator: Operator, value: torch.Tensor, step: Step) -> Iterator[Pattern]:
    if len(value) < 2 or not bool(torch.isfinite(value).all()):
        return
    middle = float((value - value.mean(0, keepdim=True)).abs().median())
    if 0 < middle < step.scale / 2:
        yield Pattern(
            "few_steps",
            operator.name,
            operator.source,
            f"{operator.name}: half of its values differ by less than {_number(middle)} from sample to sample, and one "
            f"step is {_number(step.scale)}",
        )


def _near_zero(simulation: Simulation, operator: Operator, head: fx.Node) -> Iterator[Pattern]:
    """What a logarithm, a root or a division reads where it changes fast."""
    arguments = simulation.reads(head)
    for read in arguments[-1:]:
        value = read.exact if read.constant is not None else simulation.values(read.source, simulation.exact)
        if value is None or read.first is None or not value.numel():
            continue
        size = value.abs()
        share = float((size < read.first.scale).float().mean())
        if share > NEAR_ZERO:
            yield Pattern(
                "near_zero",
                operator.name,
                operator.source,
                f"{operator.name} ({operator.op.split('.')[1]}): {100 * share:.0f} % of what it reads is smaller than "
                f"one step ({_number(read.first.scale)}), down to {_number(float(size.min()))}; there its result "
                "changes most",
            )


def _unequal_units(simulation: Simulation, operator: Operator, head: fx.Node) -> Iterator[Pattern]:
    spreads: list[tuple[str, float, float]] = []
    for read in simulation.reads(head):
        value: Any = simulation.values(read.source, simulation.exact)
        if value is not None and read.source.op == "call_function":
            spreads.append((read.source.name, float(value.max() - value.min()), float(value.abs().max())))
    sizes: Sequence[float] = [spread for _, spread, _ in spreads if spread > 0]
    step = simulation.step_of(operator.nodes[-1])
    if len(sizes) < 2 or step is None or max(sizes) < UNEQUAL * min(sizes):
        return
    most, least = max(spreads, key=lambda s: s[1]), min((s for s in spreads if s[1] > 0), key=lambda s: s[1])
    lost = [name for name, spread, _ in spreads if 0 < spread < FEW_STEPS * step.scale]
    yield Pattern(
        "unequal_units",
        operator.name,
        operator.source,
        f"{operator.name}: joins unequal units: {most[0]} ranges over {_number(most[1])}, {least[0]} over "
        f"{_number(least[1])}, and one step is {_number(step.scale)} for all"
        + (f": {', '.join(lost)} move by less than {FEW_STEPS:.0f} steps" if lost else ""),
    )
