# SPDX-License-Identifier: Apache-2.0
"""Strided copies of runs of neighbours for Helium (tinyet_copy_runs_mve.h), of any type: slices, and permutations and
repetitions that leave the last axis in its place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tinyet.boards.cpus import Target
from tinyet.delegates.cortex_m.conv2d_mve import no_helium, vectors
from tinyet.ir import DType, Node
from tinyet.ops import expand, flip, permute, unfold
from tinyet.ops import slice as slices
from tinyet.ops.shared.access_orders import of_input
from tinyet.ops.shared.movement import MOVABLE, Loop, Move, order_of
from tinyet.opset import Call, CostModel, FieldValue, Kernel, Struct, library_call
from tinyet.tiles.helium import LANES

SYMBOL = "tinyet_copy_runs_mve"
HEADERS = ("tinyet_dsp.h", "tinyet_mve.h", f"{SYMBOL}.h")
LOOPS = 4
"""Around a run: TINYET_COPY_RUNS_LOOPS."""


def outer_loops(move: Move) -> tuple[Loop, ...]:
    """All of the C kernel's."""
    return (Loop(1, 0, 0),) * (LOOPS + 1 - len(move.loops)) + move.loops[:-1]


def kernels(plan_of: Callable[[Node], Move]) -> tuple[Kernel, ...]:
    """One for each type, of an operator whose copy `plan_of` knows."""

    def refuse(node: Node, target: Target) -> str | None:
        if (reason := no_helium(target)) is not None:
            return reason
        loops = plan_of(node).loops
        if not 1 < len(loops) <= LOOPS + 1:
            return f"{len(loops)} loops, takes 2 to {LOOPS + 1}"
        inner = loops[-1]
        return None if inner.in_stride == inner.out_stride == 1 else "no runs of neighbours"

    def lower(node: Node, _target: Target) -> Call:
        move, item = plan_of(node), node.output.dtype.bytes
        loops = outer_loops(move)
        fields: dict[str, FieldValue] = {
            "in_offset": item * move.in_offset,
            "bytes": item * move.loops[-1].size,
            "size": tuple(loop.size for loop in loops),
            "in_stride": tuple(item * loop.in_stride for loop in loops),
            "out_stride": tuple(item * loop.out_stride for loop in loops),
        }
        return library_call(SYMBOL, node, [0], Struct(f"{SYMBOL}_params", fields))

    def work(node: Node) -> Mapping[str, int]:
        move = plan_of(node)
        sizes = [loop.size for loop in outer_loops(move)]
        runs, size = math.prod(sizes), move.loops[-1].size * node.output.dtype.bytes
        if size <= LANES:
            return {"call": 1, "short runs": math.prod(sizes[:-1]), "short run": runs}
        return {
            "call": 1,
            "long runs": math.prod(sizes[:-1]),
            "long run": runs,
            "vector": runs * vectors(size),
        }

    def kernel(dtype: DType) -> Kernel:
        return Kernel(
            SYMBOL,
            dtype.suffix,
            lower,
            HEADERS,
            (f"{SYMBOL}.c",),
            refuse,
            "cortex_m",
            cost_model=CostModel(work),
            access_order=of_input(lambda node: order_of(plan_of(node), node)),
        )

    return tuple(kernel(dtype) for dtype in MOVABLE)


SLICE_KERNELS = kernels(slices.plan_of)
PERMUTE_KERNELS = kernels(permute.plan_of)
EXPAND_KERNELS = kernels(expand.plan_of)
FLIP_KERNELS = kernels(flip.plan_of)
UNFOLD_KERNELS = kernels(unfold.plan_of)
