# SPDX-License-Identifier: Apache-2.0
"""Tensors one after another along an axis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.ops.shared import counting
from tinyet.ops.shared.access_orders import in_groups
from tinyet.ops.shared.counting import Parts
from tinyet.ops.shared.movement import MOVABLE, check_rearranged
from tinyet.ops.shared.shapes import expect_axis
from tinyet.opset import (
    AXIS,
    AccessOrder,
    Arg,
    Call,
    CostModel,
    Definition,
    InputArg,
    Iteration,
    Kernel,
    Nest,
    Op,
    Operand,
    OutputArg,
    operand,
)

MAX_INPUTS = 4096


@dataclass(frozen=True)
class Concat(Attrs):
    """inputs: one or more tensors whose shapes differ along `axis` only."""

    name: ClassVar[str] = "concat"
    axis: int = field(metadata=AXIS)


def attrs_of(node: Node) -> Concat:
    assert isinstance(node.attrs, Concat)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    axis = attrs_of(node).axis
    present = [tensor for tensor in node.inputs if tensor is not None]
    if not present or len(present) != len(node.inputs):
        raise UnsupportedShape("concat: an input is missing", node.where)
    shapes = [tensor.shape for tensor in present]
    expect_axis(node, axis)
    rest = {(*shape[:axis], 0, *shape[axis + 1 :]) for shape in shapes}
    if len(rest) != 1:
        listed = ", ".join(str(shape) for shape in shapes)
        raise UnsupportedShape(f"concat: {listed} differ in more than axis {axis}", node.where)
    return ((*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :]),)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    return (np.concatenate([x for x in inputs if x is not None], axis=attrs_of(node).axis),)


def iterate(node: Node) -> Iteration:
    """Outside of its own part of the axis, an input is not read. One between constants of one value is padded."""
    nest, axis, before = Nest(), attrs_of(node).axis, 0
    out, parts = nest.all_parallel(node.output.shape), list[Operand | None]()
    constants = [tensor.array for tensor in node.inputs if tensor and tensor.is_constant]
    values = np.unique(np.concatenate([each.ravel() for each in constants])) if constants else np.zeros(0)
    padding = values.item() if len(values) == 1 and len(constants) == len(node.inputs) - 1 else None
    for tensor in node.inputs:
        assert tensor is not None
        own = [place - before if a == axis else place for a, place in enumerate(out)]
        parts.append(operand(*own, outside=None if tensor.is_constant else padding))
        before += tensor.shape[axis]
    return nest.iteration(parts, [operand(*out)])


def part(node: Node, axis: int, _count: int) -> Concat | None:
    """Of one input along the axis itself: its own indices."""
    attrs = attrs_of(node)
    return None if axis == attrs.axis else attrs


def widths_of(node: Node) -> tuple[int, list[int]]:
    """Rows, and the bytes of each input in one of them."""
    rows = math.prod(node.output.shape[: attrs_of(node).axis])
    return rows, [node.input(index).type.bytes // rows for index in range(len(node.inputs))]


@dataclass(frozen=True)
class Part:
    """An input's part of an output row: `width` bytes from byte `offset` on."""

    index: int
    offset: int
    width: int


def parts_of(node: Node) -> list[Part]:
    """In the order in which they are copied, each in all rows: all but the first have to lie beside the output, so that
    is the one over which it can lie with most bytes."""
    rows, widths = widths_of(node)
    stride, offsets = sum(widths), itertools.accumulate(widths, initial=0)
    parts = [Part(i, offset, width) for i, (offset, width) in enumerate(zip(offsets, widths, strict=False))]

    def shared(part: Part) -> int:
        """Bytes of the output that the input can lie in, were it the first; constants lie elsewhere."""
        if node.input(part.index).is_constant:
            return 0
        return rows * part.width - max(part.offset + 2 * part.width - stride, 0)

    first = max(parts, key=shared)
    return [first, *(part for part in parts if part is not first)]


def access_order(node: Node, index: int) -> AccessOrder | None:
    """The input that is copied first, row by row. A row is read and written by one `memcpy`, whose two sides must not
    overlap. The others are read when the first has been written down to the last row."""
    first, *others = parts_of(node)
    if index != first.index or not others:
        return None
    rows, widths = widths_of(node)
    stride, in_bytes = sum(widths), node.input(index).type.bytes
    steps = in_groups(
        rows,
        lambda row: row * stride + first.offset + first.width,
        lambda row: row * first.width,
        in_bytes,
    )
    return AccessOrder(np.append(steps.written, node.output.type.bytes), np.append(steps.needed, in_bytes))


def lower(node: Node, _target: Target) -> Call:
    """A wrapper a set of sizes: the number of inputs varies, so no library function has the right signature,
    and with literal sizes the compiler turns short rows into plain loads and stores."""
    rows, widths = widths_of(node)
    stride = sum(widths)
    parameters = [f"const void *in_{index}" for index in range(len(widths))]
    lines = [
        f"  tinyet_concat_part(in_{p.index}, out, {p.offset}u, {p.width}u, {stride}u, {rows}u);"
        for p in parts_of(node)
    ]
    args: list[Arg] = [InputArg(index) for index in range(len(widths))]
    function = Definition("tinyet_concat", "TINYET_FUNCTION void", (*parameters, "void *out"), tuple(lines))
    return Call(function, (*args, OutputArg(0)))


MOST_INLINE = 64
"""Bytes of a row that GCC copies with loads and stores of its own, by the largest of its limits."""


def work(node: Node) -> Parts:
    """Rows of an input: copied as they are where they are the whole output, by loads and stores where they are short,
    else by the C library."""
    rows, widths = widths_of(node)
    parts: Parts = {"call": 1, "input": len(widths)}
    stride, offset = sum(widths), 0
    for width in widths:
        if rows == 1 or width == stride or width > MOST_INLINE:
            times, size = (1, rows * width) if width == stride else (rows, width)
            counting.copied_to(parts, "copy", offset + stride * np.arange(times), size)
        else:
            counting.add(parts, "row", rows)
            counting.add(parts, "word", rows * (width // 4))
            counting.add(parts, "half", rows * (width % 4 // 2))
            counting.add(parts, "byte", rows * (width % 2))
        offset += width
    return parts


def code(node: Node) -> Parts:
    rows, widths = widths_of(node)
    short = [w for w in widths if rows > 1 and w <= MOST_INLINE]
    return {
        "call": 1,
        "long": len(widths) - len(short),
        "short": len(short),
        "word": sum(w // 4 for w in short),
        "rest": sum(w % 4 // 2 + w % 2 for w in short),
    }


OP = Op(
    attrs=Concat,
    summary="tensors one after another along an axis (cat, stack)",
    infer=infer,
    inputs=(1, MAX_INPUTS),
    reference=reference,
    iteration=iterate,
    part=part,
    check=check_rearranged,
    same_scale=True,
    kernels=tuple(
        Kernel(
            "tinyet_concat",
            dtype.suffix,
            lower,
            ("tinyet_concat.h",),
            (),
            cost_model=CostModel(work, code),
            access_order=access_order,
            open_code=True,
        )
        for dtype in MOVABLE
    ),
)
