# SPDX-License-Identifier: Apache-2.0
"""Matrices of recurrent layers with the weights of two rows in each int16, whose sums are printed functions
(tinyet/tiles/gates.py, tinyet_gate_sums_dsp.h)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.packing import pack_int16x2, words
from tinyet.ir import Node
from tinyet.ops.shared import counting
from tinyet.ops.shared.cost_models_recurrent import SizesOf, add_projections, steps
from tinyet.ops.shared.integers import sum_range
from tinyet.ops.shared.recurrent import Part, Sizes, gate_forms, part_blocks, rounded_up
from tinyet.opset import ByCore, Call, Constant, CostModel, Definition, Exact
from tinyet.opset.cost import cycles_of
from tinyet.opset.data_layout import Layouts
from tinyet.tiles.core import CorePage, page_of
from tinyet.tiles.gates import Gates, Scaling, files, function, turns_of
from tinyet.timing.cores import CORES
from tinyet.timing.work import Work

PartsOf = Callable[[Node], Sequence[Part]]
MATRICES = ("x", "h")
"""Of the input and of the state; a projection is none of the gates'."""


def part_constants(name: str, matrix: Part) -> tuple[Constant]:
    """The stream of tinyet_gates_dsp.h."""
    blocks, bias = part_blocks(matrix)
    rows = blocks.astype(np.int64)  # (gates, fours of rows, fours of inputs, row, input)
    a, b = rows[..., [0, 2], :], rows[..., [1, 3], :]
    lanes = 256 * b + a
    weights = np.stack([pack_int16x2(lanes[..., i], lanes[..., i + 2]) for i in (0, 1)], axis=-1)
    products = (a[..., 0] * a[..., 1] + a[..., 2] * a[..., 3]).sum(axis=2)
    own = bias.reshape(len(bias), -1, 2, 2)
    starts = np.stack([own[..., 0] - products, 256 * own[..., 1] + own[..., 0]], axis=-1)
    fours = starts.shape[:2]
    stream = np.concatenate([starts.reshape(*fours, -1), weights.reshape(*fours, -1)], axis=2)
    text = "bias and weights of four rows after another, two rows in an int16"
    return (Constant(f"{name}_bias", words(stream.ravel()).astype(np.int32), text),)


def scratch_bytes(sizes: Sizes) -> int:
    """Of a row of the input or of the state in int16, filled up to fours, and a word behind it."""
    return 2 * rounded_up(max(sizes.inputs, sizes.outputs)) + 4


def refuse_part(matrix: Part) -> str | None:
    rows = part_blocks(matrix)[0].astype(np.int64)
    a, b = rows[..., [0, 2], :], rows[..., [1, 3], :]
    if np.any((b == -128) & (a < 0)):
        return "a weight of -128"
    smallest, largest = sum_range(matrix.weights.astype(np.int64), matrix.bias)
    bound = int(max(-smallest.min(), largest.max()))
    return f"sums up to {bound}, needs fewer than 2**23" if bound >= 2**23 else None


def gates_of(matrix: Part, apart: bool) -> Gates:
    """apart: what comes of the state is saturated by itself, too."""
    forms = gate_forms(matrix)
    left = forms < 0
    scaling = Scaling.LEFT if left.all() else Scaling.ANY if left.any() else Scaling.RIGHT
    return Gates.of(rounded_up(matrix.weights.shape[1]) // 4, scaling, apart)


def with_functions(call: Call, matrices: Sequence[Part], target: Target, apart: bool) -> Call:
    """A library kernel's call with the functions that are printed for its two matrices."""
    assert isinstance(call.symbol, str)
    assert call.params is not None
    page, found = page_of(cycles_of(target)), [gates_of(matrix, apart) for matrix in matrices]
    # All values but the cell's are int8.
    states = ["x", "h", "c"][: len(call.args) // 2 - 1]
    types = {"c": "int16_t", "c_n": "int16_t"}
    made = ["y", *(f"{name}_n" for name in states[1:])]
    parameters = [f"const {types.get(name, 'int8_t')} *{name}" for name in states]
    parameters += [f"{types.get(name, 'int8_t')} *{name}" for name in made]
    parameters += ["void *scratch", f"const {call.params.ctype} *params"]
    given = ", ".join((*states, *made, "scratch", "params"))
    functions = ", ".join(page.named(each.name) for each in found)
    body = (f"  {call.symbol}({given},", f"      {functions});")
    wrapper = Definition(call.symbol, "TINYET_FUNCTION void", tuple(parameters), body)
    printed = {name: text for each in found for name, text in files(each, page).items()}
    return replace(call, symbol=wrapper, files=printed)


# ---------------------------------------------------------------- costs


@functools.cache
def work_of(gates: Gates, page: CorePage, core: str, count: int, rows: int, fours: int) -> Work:
    """Of one call."""
    return function(gates, page).work(CORES[core], turns_of(gates, count, rows, fours))


def cost_model(sizes_of: SizesOf, parts_of: PartsOf, apart: bool) -> CostModel:
    """What is around the functions, and these."""

    def work(node: Node) -> Mapping[str, int]:
        s = sizes_of(node)
        parts, times = steps(s), s.batch * s.steps
        for matrix in parts_of(node)[:2]:
            depth = matrix.weights.shape[1]
            counting.add(parts, "gate", times * matrix.gates)
            counting.add(parts, "four values", times * (depth // 4))
            counting.add(parts, "last values", times * min(depth % 4, 1))
        add_projections(parts, s, parts_of(node)[2:])
        return parts

    def exact(node: Node, _layouts: Layouts, printed_for: str) -> Exact:
        s, page, matrices = sizes_of(node), page_of(printed_for), parts_of(node)[:2]
        times, rows = s.batch * s.steps, rounded_up(s.units)
        calls = [
            (gates_of(matrix, apart), matrix.gates, rows, rounded_up(matrix.weights.shape[1]) // 4)
            for matrix in matrices
        ]

        def of(core: str) -> list[Work]:
            return [work_of(gates, page, core, *sizes) for gates, *sizes in calls]

        instructions = times * sum(done.instructions for done in of(page.cores[0]))
        weights = sum(4 * count * rows // 4 * (4 + 4 * fours) for _, count, rows, fours in calls)
        return Exact(
            instructions=instructions,
            cycles=ByCore(page.cores, lambda core: times * sum(done.cycles for done in of(core))),
            functions={page.named(each.name): function(each, page).code_bytes for each, *_ in calls},
            reads={
                "printed code": page.instruction_bytes * instructions,
                "read weights": times * weights,
            },
        )

    return CostModel(work, exact=exact)
