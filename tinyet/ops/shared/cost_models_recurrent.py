# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of recurrent layers, loop by loop as in their C files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tinyet.ir import Node
from tinyet.ops.shared import counting
from tinyet.ops.shared.counting import Parts
from tinyet.ops.shared.recurrent import Part, Sizes, gate_forms, rounded_up
from tinyet.opset import CostModel

SizesOf = Callable[[Node], Sizes]
QUICKER_ON_HELIUM = "the one other kernel, for Helium, is always quicker"
"""A reason to state no cost."""


def steps(s: Sizes) -> Parts:
    """Iterations of a call, a sequence, a step, a unit of a step, and of eight units."""
    count = s.batch * s.steps
    units = {"unit": count * s.units, "eight units": count * -(-s.units // 8)}
    return {"call": 1, "sequence": s.batch, "step": count, **units}


def sums(parts: Parts, times: int, rows: int, depth: int) -> None:
    """tinyet_dot_1x4 of so many rows, filled up to fours, so often."""
    fours = times * rounded_up(rows) // 4
    counting.add(parts, "four rows", fours)
    counting.add(parts, "odd block", fours * (depth // 4 % 2))
    counting.add(parts, "two blocks", fours * (depth // 8))
    counting.add(parts, "rest", fours * (depth % 4))
    counting.add(parts, "four rows with a rest", fours * min(depth % 4, 1))


def integers(sizes_of: SizesOf, parts_of: Callable[[Node], Sequence[Part]]) -> CostModel:
    """Of kernels whose gates are tinyet_gate_sums; parts_of: input, state, and a projection if there is one."""

    def work(node: Node) -> Mapping[str, int]:
        s, matrices = sizes_of(node), parts_of(node)
        parts, times = steps(s), s.batch * s.steps
        for matrix in matrices[:2]:
            sums(parts, times * matrix.gates, s.units, matrix.weights.shape[1])
            general = int((gate_forms(matrix) < 0).sum())
            counting.add(parts, "row by the general rule", times * general * rounded_up(s.units))
        for _projection in matrices[2:]:
            sums(parts, times, s.outputs, s.units)
            parts["output"] = times * s.outputs
            parts["four outputs"] = times * rounded_up(s.outputs) // 4
        return parts

    return CostModel(work)


def add_projections(parts: Parts, s: Sizes, projections: Sequence[Part]) -> None:
    """tinyet_lstm_project, with the sums apart from those of gates."""
    for _projection in projections:
        projected: Parts = {}
        sums(projected, s.batch * s.steps, s.outputs, s.units)
        parts.update({f"projected {name}": count for name, count in projected.items()})
        parts["output"] = s.batch * s.steps * s.outputs


def in_rows(sizes_of: SizesOf, parts_of: Callable[[Node], Sequence[Part]]) -> CostModel:
    """Of kernels whose gates are tinyet_gate_sums_mve, and that compute eight units at a time."""

    def work(node: Node) -> Mapping[str, int]:
        s = sizes_of(node)
        parts, times = steps(s), s.batch * s.steps
        for matrix in parts_of(node)[:2]:
            eights, four = divmod(rounded_up(matrix.units), 8)
            eights, fours = times * matrix.gates * eights, times * matrix.gates * (four // 4)
            depth = matrix.weights.shape[1]
            half = int(depth > 16 and 0 < depth % 16 <= 8)
            sixteens = -(-depth // 16) - half
            counting.add(parts, "copied sixteen", times * -(-depth // 16) if depth % 16 else 0)
            counting.add(parts, "copied half", times * half)
            if four == 0 and sixteens + 2 * half <= 4:  # vectors hold the input
                counting.add(parts, "gate of held input", times * matrix.gates)
                counting.add(parts, "eight rows of held input", eights)
                counting.add(parts, "sixteen of eight rows of held input", eights * sixteens)
                counting.add(parts, "half of eight rows of held input", eights * half)
                continue
            counting.add(parts, "gate", times * matrix.gates)
            counting.add(parts, "eight rows", eights)
            counting.add(parts, "odd sixteen of eight rows", eights * (sixteens % 2))
            counting.add(parts, "two sixteens of eight rows", eights * (sixteens // 2))
            counting.add(parts, "half of eight rows", eights * half)
            counting.add(parts, "four rows", fours)
            counting.add(parts, "sixteen of four rows", fours * sixteens)
            counting.add(parts, "half of four rows", fours * half)
        add_projections(parts, s, parts_of(node)[2:])
        return parts

    return CostModel(work)


def floats(sizes_of: SizesOf, projected: bool = False) -> CostModel:
    """Of kernels that compute a unit's gates side by side."""

    def work(node: Node) -> Mapping[str, int]:
        s = sizes_of(node)
        parts = steps(s)
        del parts["eight units"]
        parts["product"] = parts["unit"] * (s.inputs + s.outputs)
        if projected:
            parts["output"] = parts["step"] * s.outputs
            parts["projected product"] = parts["output"] * s.units
        return parts

    return CostModel(work)


def of_function(cost_model: CostModel, is_relu: Callable[[Node], bool]) -> CostModel:
    """With a unit's work by its function."""

    def work(node: Node) -> Mapping[str, int]:
        parts = dict(cost_model.work(node))
        for name in ("unit", "eight units"):
            if name in parts:
                parts[f"{name} of relu" if is_relu(node) else f"{name} of tanh"] = parts.pop(name)
        return parts

    return replace(cost_model, work=work)
