# SPDX-License-Identifier: Apache-2.0
"""Matrices transposed where they lie: a permutation without room for its output beside its input.

Each item goes to the place that the last one has left, cycle by cycle. It takes several times the instructions of a
copy to another place, so it is for a limit of RAM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Node
from tinyet.ops.shared.counting import Parts, copied, copied_to
from tinyet.ops.shared.movement import MOVABLE, Move
from tinyet.opset import Call, CostModel, Kernel, Struct, library_call


@dataclass(frozen=True)
class Transposition:
    """`matrices` of rows by columns items, of so many elements each, become columns by rows."""

    matrices: int
    rows: int
    columns: int
    item: int

    @property
    def count(self) -> int:
        """Items of a matrix."""
        return self.rows * self.columns


def transposition(move: Move) -> Transposition | None:
    """The copy as a transposition of matrices; None where it is another."""
    loops = sorted(move.loops, key=lambda loop: -loop.out_stride)
    matrices = item = 1
    if len(loops) > 2 and loops[0].in_stride == loops[0].out_stride:
        matrices = loops.pop(0).size
    if len(loops) > 2 and loops[-1].in_stride == loops[-1].out_stride == 1:
        item = loops.pop().size
    if len(loops) != 2 or move.in_offset:
        return None
    columns, rows = loops
    strides = columns.in_stride, columns.out_stride, rows.in_stride, rows.out_stride
    if strides != (item, rows.size * item, columns.size * item, item):
        return None
    return Transposition(matrices, rows.size, columns.size, item)


def cycles(found: Transposition) -> tuple[int, int]:
    """How many there are, and how many of them are of a single item, which stays where it is."""
    places = np.arange(found.count)
    source = step = places % found.rows * found.columns + places // found.rows
    # The least place of each item's cycle: of its own, then of two, of four, ... places in a row.
    least, hops = places, 1
    while hops < found.count:
        least = np.minimum(least, least[step])
        step, hops = step[step], 2 * hops
    return int((least == places).sum()), int((source == places).sum())


def in_place_kernels(plan_of: Callable[[Node], Move]) -> tuple[Kernel, ...]:
    """tinyet_transpose, for every dtype, of an operator whose copy `plan_of` knows."""

    def of(node: Node) -> Transposition:
        found = transposition(plan_of(node))
        assert found is not None
        return found

    def refuse(node: Node, _target: Target) -> str | None:
        return "no transposed matrix" if transposition(plan_of(node)) is None else None

    def lower(node: Node, _target: Target) -> Call:
        found = of(node)
        item = found.item * node.output.dtype.bytes
        fields = {
            "matrices": found.matrices,
            "rows": found.rows,
            "columns": found.columns,
            "item_bytes": item,
        }
        scratch = 4 * -(-found.count // 32) + -(-item // 4) * 4
        return library_call(
            "tinyet_transpose", node, [0], Struct("tinyet_transpose_params", fields), (), scratch
        )

    def work(node: Node) -> Parts:
        found = of(node)
        item = found.item * node.output.dtype.bytes
        each, alone = cycles(found)
        kind, moved = "byte" if item == 1 else "item", found.matrices * (found.count - alone)
        parts: Parts = {"call": 1, "matrix": found.matrices}
        parts |= {"stays": found.matrices * (alone - 2)}
        # Of a core that divides in software.
        parts["bit of a quotient"] = moved * found.columns.bit_length()
        parts |= {f"{kind} moved": moved, f"{kind} cycle": found.matrices * (each - alone)}
        if item > 1:
            # Into each place, and out of the first and last of each cycle.
            copied_to(parts, "copy", np.arange(moved) * item, item)
            copied(parts, "copy", found.matrices * (each - alone), item)
        return parts

    return tuple(
        Kernel(
            "tinyet_transpose",
            dtype.suffix,
            lower,
            ("tinyet_transpose.h",),
            ("tinyet_transpose.c",),
            refuse,
            cost_model=CostModel(work),
            replaces=lambda _node, index: index == 0,
        )
        for dtype in MOVABLE
    )
