# SPDX-License-Identifier: Apache-2.0
"""Tensors one after another along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, Node, Shape
from tinyet.ops.shared.counting import Parts, add, copied
from tinyet.ops.shared.movement import MOVABLE, check_rearranged
from tinyet.ops.shared.shapes import expect_axis
from tinyet.opset import Arg, Call, Claim, Definition, InputArg, Kernel, Op, OutputArg

MAX_INPUTS = 4096
HEADERS = ("tinyet_concat.h",)

SHORT = 64
"""Bytes of the longest row that compilers copy without memcpy."""


@dataclass(frozen=True)
class Concat(Attrs):
    """inputs: one or more tensors whose shapes differ along `axis` only."""

    name: ClassVar[str] = "concat"
    axis: int


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


def lower(node: Node, _target: Target) -> Call:
    """A wrapper a set of sizes: the number of inputs varies, so no library function has the right signature,
    and with literal sizes the compiler turns short rows into plain loads and stores."""
    axis, out = attrs_of(node).axis, node.output
    rows = math.prod(out.shape[:axis])
    stride = out.type.bytes // rows
    widths = [node.input(index).type.bytes // rows for index in range(len(node.inputs))]
    parameters = [f"const void *in_{index}" for index in range(len(widths))]
    lines, offset = [], 0
    for index, width in enumerate(widths):
        lines.append(f"  tinyet_concat_part(in_{index}, out, {offset}u, {width}u, {stride}u, {rows}u);")
        offset += width
    args: list[Arg] = [InputArg(index) for index in range(len(widths))]
    function = Definition("tinyet_concat", "TINYET_FUNCTION void", (*parameters, "void *out"), tuple(lines))
    return Call(function, (*args, OutputArg(0)))


def joined(node: Node) -> Parts:
    """A row of each input after another; the compiler knows the sizes, and makes loads and stores of short rows."""
    rows = math.prod(node.output.shape[: attrs_of(node).axis])
    stride = node.output.type.bytes // rows
    parts: Parts = {"call": 1}
    for index in range(len(node.inputs)):
        width = node.input(index).type.bytes // rows
        times, size = (1, rows * width) if width == stride else (rows, width)
        add(parts, "part", 1)
        copied(parts, "short row" if size <= SHORT else "row", times, size)
    return parts


def joined_code(node: Node) -> Parts:
    rows = math.prod(node.output.shape[: attrs_of(node).axis])
    sizes = [node.input(index).type.bytes // rows for index in range(len(node.inputs))]
    short = [size for size in sizes if size <= SHORT]
    return {
        "call": 1,
        "part": len(sizes),
        "short part": len(short),
        "short word": sum(size // 4 for size in short),
        "short rest": sum(size % 4 for size in short),
    }


OP = Op(
    attrs=Concat,
    summary="tensors one after another along an axis (cat, stack)",
    infer=infer,
    inputs=(1, MAX_INPUTS),
    reference=reference,
    check=check_rearranged,
    same_scale=True,
    kernels=tuple(
        Kernel("tinyet_concat", dtype.suffix, lower, HEADERS, (), claim=Claim(joined, joined_code))
        for dtype in MOVABLE
    ),
)
