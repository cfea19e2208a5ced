# SPDX-License-Identifier: Apache-2.0
"""A call in parts, for the checker: what each part does to the arena, and that all parts together are the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinyet.errors import InternalError
from tinyet.ir import Array, DType, Node, Tensor
from tinyet.memory.accesses import Access, Alias, Piece, Span
from tinyet.memory.plan import MemoryPlan
from tinyet.opset import AccessOrder, AccessOrders, Op
from tinyet.opset.parts import Part


def part_accesses(
    plan: MemoryPlan,
    node: Node,
    parts: Sequence[Part],
    op: Op,
    scratch_align: int,
    align: int,
    access_order: AccessOrders | None,
    replaces: Callable[[Node, int], bool] | None,
) -> tuple[list[Access], list[Alias]]:
    """The parts in order, and what the tensors that they read and write are beside the call's own. Every part reads all
    that its operator reads, so what a part before it has written over is found."""
    steps, aliases, output = list[Access](), list[Alias](), node.output
    pieces: list[Piece] = []
    plain = not any(
        plan.pixel_stride(t) or plan.data_layout(t)
        for t in (*node.inputs, output)
        if t is not None and not t.is_constant
    )
    for number, part in enumerate(parts):
        made = f"part {number} of {output.name}"
        reads: dict[int, Span] = {}
        for index, start in part.reads.items():
            tensor = node.input(index)
            name = f"what part {number} of {output.name} takes of {tensor.name}"
            reads[index], piece = _region(plan, tensor, part.node.input(index), start, name, align)
            if not any(alias.tensor == name for alias in aliases):
                aliases.append(Alias(name, (piece,)))
        write, piece = _region(plan, output, part.node.output, part.writes, made, align)
        pieces += _pieces(output, part.node.output, made, piece)
        allowed = {
            i for i in reads if i in op.inplace or (replaces is not None and plain and replaces(part.node, i))
        }
        orders: dict[tuple[str, str], list[AccessOrder]] = {}
        if plain and access_order is not None:
            said = {i: access_order(part.node, i) for i in reads}
            for span in reads.values():
                all_ = [said[i] for i, other in reads.items() if other == span]
                if all(order is not None for order in all_):
                    orders[span.tensor, made] = [order for order in all_ if order is not None]
        size = part.call.scratch_bytes
        steps.append(
            Access(
                f"{node.op} {made}",
                tuple(dict.fromkeys(reads.values())),
                (write,),
                (plan.scratch[node], size, scratch_align) if size else None,
                frozenset((reads[i].tensor, made) for i in allowed if reads[i].bytes == write.bytes),
                orders,
            )
        )
    return steps, [*aliases, Alias(output.name, tuple(pieces))]


def _region(
    plan: MemoryPlan, tensor: Tensor, part: Tensor, start: int, name: str, align: int
) -> tuple[Span, Piece]:
    """Where a part of a tensor lies, which begins `start` bytes behind it; and which of its bytes these are."""
    width, stride, layout = tensor.dtype.bytes, plan.pixel_stride(tensor), plan.data_layout(tensor)
    offset, size = plan.offset(tensor) + start, part.type.bytes if layout is None else layout.size(part)
    if layout is None and part.shape[-1] < tensor.shape[-1]:
        stride = stride or tensor.shape[-1] * width
    if layout is not None:
        return Span(name, offset, size, max(align, layout.align)), Piece(0, size, tensor.name, start)
    if not stride:
        return Span(name, offset, size, max(align, width)), Piece(0, size, tensor.name, start)
    run, first = part.shape[-1] * width, _row_major(plan, tensor, start)
    return Span(name, offset, size, width, run, stride), Piece(0, size, tensor.name, first)


def _pieces(tensor: Tensor, part: Tensor, name: str, piece: Piece) -> list[Piece]:
    """The values of a tensor that a part has made: some channels of each pixel, or all."""
    run, whole = part.shape[-1] * part.dtype.bytes, tensor.shape[-1] * tensor.dtype.bytes
    if run == whole:
        return [Piece(piece.source_start, piece.bytes, name, 0)]
    pixels = part.type.count // part.shape[-1]
    return [Piece(piece.source_start + k * whole, run, name, k * run) for k in range(pixels)]


def check_meaning(plan: MemoryPlan, node: Node, parts: Sequence[Part], op: Op) -> None:
    """Raise InternalError unless the parts make the whole output, each of its values once, and all of them what the
    call makes: both references are run on drawn values."""
    random = np.random.default_rng(len(parts))
    drawn = {i: _drawn(node.input(i), random) for i in parts[0].reads}
    given = [drawn.get(i, None if t is None else t.data) for i, t in enumerate(node.inputs)]
    wanted, width = op.reference(node, given)[0].ravel(), node.output.dtype.bytes
    made = np.zeros(wanted.size, np.int64)
    for part in parts:
        taken = [None if t is None else t.data for t in part.node.inputs]
        for index, start in part.reads.items():
            tensor = part.node.input(index)
            at = _row_major(plan, node.input(index), start)
            data = drawn[index].tobytes()[at : at + tensor.type.bytes]
            if len(data) < tensor.type.bytes:
                raise InternalError(f"{node.op}: a part reads beyond {tensor.name}", node.where)
            taken[index] = np.frombuffer(data, tensor.dtype.numpy).reshape(tensor.shape)
        (found,) = op.reference(part.node, taken)
        at = _row_major(plan, node.output, part.writes) // width
        pixels, channels = np.indices((found.size // found.shape[-1], found.shape[-1]))
        there = (at + pixels * node.output.shape[-1] + channels).ravel()
        if there[-1] >= wanted.size or found.tobytes() != wanted[there].tobytes():
            raise InternalError(
                f"{node.op}: what is made from {part.first} to {part.end} is not the layer's", node.where
            )
        made[there] += 1
    if not (made == 1).all():
        raise InternalError(f"{node.op} is not made once, from end to end", node.where)


def _row_major(plan: MemoryPlan, tensor: Tensor, start: int) -> int:
    """Which byte of a tensor's values, row by row, lies `start` bytes behind its first."""
    stride, layout = plan.pixel_stride(tensor), plan.data_layout(tensor)
    if layout is not None:
        return start * tensor.type.bytes // layout.size(tensor)
    return start // stride * tensor.shape[-1] * tensor.dtype.bytes + start % stride if stride else start


def _drawn(tensor: Tensor, random: np.random.Generator) -> Array:
    """Values of every kind that the type has."""
    if tensor.dtype is DType.FLOAT32:
        return random.normal(size=tensor.shape).astype(np.float32)
    low, high = tensor.dtype.range
    return random.integers(low, high + 1, tensor.shape).astype(tensor.dtype.numpy)
