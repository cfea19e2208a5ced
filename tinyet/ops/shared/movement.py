# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the operators that only move elements: their type rule, and the loops of one strided copy.

Permute, Slice, Expand, Flip and Unfold are the same copy with different strides. Here it is reduced ahead of time to
the fewest loops, so that one C function an element size (`tinyet_strided_copy_x8`, `_b16`, `_b32`) serves all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import DType, Node, Shape
from tinyet.numerics import Int64
from tinyet.ops.shared.access_orders import in_groups, of_input
from tinyet.ops.shared.counting import Parts, copied
from tinyet.opset import AccessOrder, AccessOrders, Call, CostModel, Kernel, Struct, library_call

MOVABLE = (DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.UINT32, DType.FLOAT32)
"""The types of run-time tensors."""

MAX_LOOPS = 6
"""Loops of the C kernel (TINYET_STRIDED_COPY_LOOPS); more than this after merging is refused."""


@dataclass(frozen=True)
class Loop:
    """`size` steps, each `in_stride` elements on in the input, back where that is negative, and `out_stride` in the
    output."""

    size: int
    in_stride: int
    out_stride: int


@dataclass(frozen=True)
class Move:
    """A strided copy: loops outermost first, and the element of the input where it starts."""

    loops: tuple[Loop, ...]
    in_offset: int = 0

    @property
    def is_copy(self) -> bool:
        """The input's bytes, as they stand, are the output."""
        return not self.in_offset and (not self.loops or self.loops == (Loop(self.loops[0].size, 1, 1),))


def strides(shape: Shape) -> tuple[int, ...]:
    """Row-major strides in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def plan(shape: Shape, in_strides: tuple[int, ...], in_offset: int = 0) -> Move:
    """The copy that fills a contiguous output of `shape` from an input read with `in_strides` (0 repeats).

    Strides and offset in elements. Loops of one step are dropped, loops that are one in both tensors are
    merged. A row that is contiguous in both stays innermost (it becomes a memcpy); otherwise the longest loop
    goes there, because it is the cheapest one.
    """
    merged: list[Loop] = []
    for size, source, target in zip(shape, in_strides, strides(shape), strict=True):
        if size == 1:
            continue
        inner = Loop(size, source, target)
        if merged and merged[-1].in_stride == size * source and merged[-1].out_stride == size * target:
            inner = Loop(merged.pop().size * size, source, target)
        merged.append(inner)
    if merged and merged[-1].in_stride != 1:
        merged.sort(key=lambda loop: loop.size)
    return Move(tuple(merged), in_offset)


def move_struct(move: Move) -> Struct:
    loops = (Loop(1, 0, 0),) * (MAX_LOOPS - len(move.loops)) + move.loops
    return Struct(
        "tinyet_strided_copy_params",
        {
            "in_offset": move.in_offset,
            "size": tuple(loop.size for loop in loops),
            "in_stride": tuple(loop.in_stride for loop in loops),
            "out_stride": tuple(loop.out_stride for loop in loops),
        },
    )


def moved(move: Move, item: int) -> Parts:
    """tinyet_strided_copy of elements of `item` bytes: runs of the innermost loop, and ends of those around it."""
    loops = (Loop(1, 0, 0),) * (MAX_LOOPS - len(move.loops)) + move.loops
    sizes, inner = [loop.size for loop in loops[:-1]], loops[-1]
    runs = math.prod(sizes)
    parts: Parts = {"call": 1, "run": runs}
    parts["loop ended"] = sum(math.prod(sizes[:loop]) for loop in range(len(sizes)))
    if inner.in_stride == inner.out_stride == 1:
        copied(parts, "copy", runs, inner.size * item)
    else:
        fours = inner.size // 4 if inner.in_stride == 1 else 0
        parts |= {"strided run": runs, "strided element": runs * (inner.size - 4 * fours)}
        parts["four neighbours"] = runs * fours
    return parts


def copied_whole(node: Node) -> Parts:
    """tinyet_copy."""
    parts: Parts = {"call": 1}
    copied(parts, "copy", 1, node.output.type.bytes)
    return parts


def order_of(move: Move, node: Node) -> AccessOrder | None:
    """Of tinyet_strided_copy, run by run of the innermost loop, where neither input nor output ever goes back."""
    *outer, inner = (Loop(1, 0, 0), *move.loops)
    read, written = (inner.size - 1) * inner.in_stride + 1, inner.size
    item, apart = node.input(0).dtype.bytes, math.prod(loop.size for loop in outer)
    if move.loops and inner.out_stride != 1:
        return None
    if any(loop.in_stride < 0 for loop in move.loops):
        return None
    for loop in reversed(outer[1:]):
        if loop.in_stride < read or loop.out_stride != written:
            return None
        read, written = read + (loop.size - 1) * loop.in_stride, written * loop.size

    def first(runs: Int64) -> Int64:
        found, left = np.full_like(runs, move.in_offset), apart
        for loop in outer:
            left //= loop.size
            found += runs // left % loop.size * loop.in_stride
        return np.asarray(found * item, np.int64)

    size = inner.size * item
    return in_groups(apart, lambda run: (run + 1) * size, first, node.input(0).type.bytes)


def move_kernels(plan_of: Callable[[Node], Move]) -> tuple[Kernel, ...]:
    """One kernel a dtype for an operator whose copy `plan_of` knows."""

    def refuse(node: Node, _target: Target) -> str | None:
        count = len(plan_of(node).loops)
        return f"{count} dimensions move on their own, at most {MAX_LOOPS} can" if count > MAX_LOOPS else None

    def kernel(dtype: DType) -> Kernel:
        symbol = f"tinyet_strided_copy_x{8 * dtype.bytes}"

        def lower(node: Node, _target: Target) -> Call:
            return library_call(symbol, node, [0], move_struct(plan_of(node)))

        cost_model = CostModel(lambda node: moved(plan_of(node), dtype.bytes))
        access_order = of_input(lambda node: order_of(plan_of(node), node))
        return Kernel(
            symbol,
            dtype.suffix,
            lower,
            ("tinyet_strided_copy.h",),
            (f"{symbol}.c",),
            refuse,
            cost_model=cost_model,
            access_order=access_order,
        )

    return tuple(kernel(dtype) for dtype in MOVABLE)


def lower_copy(node: Node, _target: Target) -> Call:
    params = Struct("tinyet_copy_params", {"bytes": node.output.type.bytes})
    return library_call("tinyet_copy", node, [0], params)


def copy_kernels(access_order: AccessOrders | None = None) -> tuple[Kernel, ...]:
    """memmove, for every dtype."""
    files = ("tinyet_copy.h",), ("tinyet_copy.c",)
    cost_model = CostModel(copied_whole)
    return tuple(
        Kernel(
            "tinyet_copy", dtype.suffix, lower_copy, *files, cost_model=cost_model, access_order=access_order
        )
        for dtype in MOVABLE
    )


def check_moved(node: Node) -> str | None:
    """The type rule: inputs and output have one dtype and one quantization, and that is per tensor. Bytes (uint8) and
    uint32 are refused: see `check_rearranged`."""
    if node.output.dtype is DType.UINT8:
        return f"{node.op} does not work on bytes (uint8)"
    if node.output.dtype is DType.UINT32:
        return f"{node.op} does not work on uint32"
    return check_rearranged(node)


def check_rearranged(node: Node) -> str | None:
    """`check_moved` for operators that only move elements, and so move bytes and uint32 as well."""
    out = node.output.type
    for tensor in node.inputs:
        if tensor is None:
            return f"{node.op} has an input missing"
        if tensor.dtype is not out.dtype:
            return f"{node.op} cannot turn {tensor.dtype.value} into {out.dtype.value}"
        if tensor.type.quant != out.quant:
            return f"{node.op} moves values, so {tensor.name} and the output must be quantized alike"
    if out.quant is not None and out.quant.axis is not None:
        return f"{node.op} cannot move a tensor that is quantized per channel"
    return None
