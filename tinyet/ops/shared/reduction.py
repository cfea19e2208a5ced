# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the operators that reduce over axes: shapes, the loops of the C kernels, and their order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared.integers import INTEGERS, check_activations
from tinyet.opset import AXES, ONE, Iteration, Nest, Struct, operand


@dataclass(frozen=True)
class Reduce(Attrs):
    """inputs: x; `axes` (distinct) disappear from the shape, or stay with size 1 when `keepdims`."""

    axes: tuple[int, ...] = field(metadata=AXES)
    keepdims: bool = False


def attrs_of(node: Node) -> Reduce:
    assert isinstance(node.attrs, Reduce)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    attrs, shape = attrs_of(node), node.input(0).shape
    if len(set(attrs.axes)) != len(attrs.axes) or any(not 0 <= axis < len(shape) for axis in attrs.axes):
        raise UnsupportedShape(f"{node.op}: axes {attrs.axes} of {len(shape)} dimensions", node.where)
    sizes = [1 if axis in attrs.axes else size for axis, size in enumerate(shape)]
    if attrs.keepdims:
        return (tuple(sizes),)
    return (tuple(size for axis, size in enumerate(sizes) if axis not in attrs.axes),)


def iterate(node: Node) -> Iteration:
    """Of operators that pick one of the values, whatever their order."""
    return over_axes(node, attrs_of(node).axes, keepdims=attrs_of(node).keepdims, ordered=False)


def iterate_sum(node: Node) -> Iteration:
    """In float, the elements are added in their order."""
    ordered = node.output.dtype is DType.FLOAT32
    return over_axes(node, attrs_of(node).axes, keepdims=attrs_of(node).keepdims, ordered=ordered)


def over_axes(node: Node, axes: Sequence[int], *, keepdims: bool, ordered: bool = True) -> Iteration:
    """Of operators that make one element of all along some axes."""
    nest = Nest()
    read = [nest.reduced(n) if a in axes else nest.parallel(n) for a, n in enumerate(node.input(0).shape)]
    out = [ONE if a in axes else place for a, place in enumerate(read) if keepdims or a not in axes]
    return nest.iteration([operand(*read)], [operand(*out)], ordered=ordered)


def check(node: Node) -> str | None:
    """int8 to int8 or int16 to int16 of any quantization, or float32 to float32."""
    x, out = node.input(0), node.output
    if x.dtype is not out.dtype or x.dtype not in (DType.FLOAT32, *INTEGERS):
        return f"no {x.dtype.value} to {out.dtype.value} form"
    return None if x.dtype is DType.FLOAT32 else check_activations(x, out)


def check_selecting(node: Node) -> str | None:
    """Like `check`, for an operator that picks one of the values: one quantization."""
    if node.input(0).type.quant != node.output.type.quant:
        return f"{node.op} selects values, so input and output must be quantized alike"
    return check(node)


def count(node: Node) -> int:
    """Elements that become one."""
    return math.prod(node.input(0).shape[axis] for axis in attrs_of(node).axes)


def groups(node: Node) -> tuple[tuple[int, bool], ...]:
    """(size, reduced) of each run of neighbouring axes treated alike, outermost first; size 1 left out."""
    found: list[tuple[int, bool]] = []
    for axis, size in enumerate(node.input(0).shape):
        reduced = axis in attrs_of(node).axes
        if size == 1:
            continue
        before = found.pop()[0] if found and found[-1][1] is reduced else 1
        found.append((before * size, reduced))
    return tuple(found)


def loops(node: Node) -> tuple[int, int, int, int, int] | None:
    """Sizes of (kept, reduced, kept, reduced, kept), outermost first; None when axes are more scattered."""
    # Right-aligned, so that what is contiguous in memory is the last loop.
    sizes, position = [1, 1, 1, 1, 1], 4
    for size, reduced in reversed(groups(node)):
        while (position % 2 == 1) is not reduced:
            position -= 1
        if position < 0:
            return None
        sizes[position] = size
        position -= 1
    return sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]


def refuse(node: Node, _target: Target) -> str | None:
    return "reduces three runs of axes with kept axes between them" if loops(node) is None else None


def shape_struct(node: Node) -> Struct:
    sizes = loops(node)
    assert sizes is not None
    names = ("outer", "reduced_outer", "middle", "reduced_inner", "inner")
    return Struct("tinyet_reduce_shape", dict(zip(names, sizes, strict=True)))


def slices(node: Node, x: Array) -> Iterator[Array]:
    """Every element of the reduced axes in row-major order, as arrays of the output's shape."""
    axes = sorted(attrs_of(node).axes)
    moved = np.moveaxis(x, axes, range(len(axes)))
    for part in moved.reshape(-1, *moved.shape[len(axes) :]):
        yield part.reshape(node.output.shape)
