# SPDX-License-Identifier: Apache-2.0
"""Padding of any dimensions: with a constant, by reflection (the edge not repeated) or by repeating the edge.

A negative pad crops (constant mode). Integers: the constant becomes round(value / scale) + zero point, saturated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import Int64, quantize
from tinyet.ops.shared.access_orders import in_groups, of_input
from tinyet.ops.shared.counting import Parts, copied, copied_to
from tinyet.ops.shared.movement import check_moved
from tinyet.opset import (
    PER_AXIS,
    AccessOrder,
    Call,
    CostModel,
    Iteration,
    Kernel,
    Nest,
    Op,
    Outside,
    Struct,
    library_call,
    operand,
)

PadMode = Literal["constant", "reflect", "replicate"]

MODES: tuple[PadMode, ...] = ("constant", "reflect", "replicate")
"""In the order of the C enumeration."""

MAX_DIMS = 6
"""Dimensions of the C kernel (TINYET_PAD_DIMS), counted after merging; more than this is refused."""


@dataclass(frozen=True)
class Pad(Attrs):
    """input: x of any shape. pads: (before, after) in elements, one pair a dimension; value: real number."""

    name: ClassVar[str] = "pad"
    pads: tuple[tuple[int, int], ...] = field(metadata=PER_AXIS)
    mode: PadMode = "constant"
    value: float = 0.0


@dataclass(frozen=True)
class Axis:
    """One dimension of the copy: `size` items in, `before` and `after` items around them."""

    size: int
    before: int = 0
    after: int = 0

    @property
    def length(self) -> int:
        """Of the output."""
        return self.before + self.size + self.after

    @property
    def inside(self) -> int:
        """Positions of the output that lie in the image."""
        return self.size + min(self.before, 0) + min(self.after, 0)


def attrs_of(node: Node) -> Pad:
    assert isinstance(node.attrs, Pad)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    attrs, shape = attrs_of(node), node.input(0).shape
    if len(attrs.pads) != len(shape):
        raise UnsupportedShape(f"pad: {len(attrs.pads)} pads for {len(shape)} dimensions", node.where)
    out = tuple(before + size + after for size, (before, after) in zip(shape, attrs.pads, strict=True))
    for size, (before, after), result in zip(shape, attrs.pads, out, strict=True):
        if attrs.mode != "constant" and min(before, after) < 0:
            raise UnsupportedShape(f"pad: a negative pad in mode {attrs.mode}", node.where)
        if attrs.mode == "reflect" and max(before, after) >= size:
            what = f"pad: {size} elements cannot be reflected by {max(before, after)}"
            raise UnsupportedShape(what, node.where)
        if result < 1 or size + min(before, 0) < 1 or size + min(after, 0) < 1:
            what = f"pad: pads ({before}, {after}) leave nothing of {size} elements"
            raise UnsupportedShape(what, node.where)
    return (out,)


def fill_value(node: Node) -> Array:
    """The constant in the type of the tensor, shape (1,)."""
    value, kind = attrs_of(node).value, node.input(0).type
    if kind.quant is None:
        return np.array([value], kind.dtype.numpy)
    return quantize(np.array([value], np.float32), kind)


def check(node: Node) -> str | None:
    kind, value = node.input(0).type, attrs_of(node).value
    if kind.quant is None and kind.dtype is not DType.FLOAT32:
        low, high = kind.dtype.range
        if not (low <= value <= high and value == int(value)):
            return f"pad: {value} is no {kind.dtype.value}"
    return check_moved(node)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    attrs, x = attrs_of(node), inputs[0]
    assert x is not None
    for axis, (before, after) in enumerate(attrs.pads):
        index = np.arange(-before, x.shape[axis] + after)
        last = x.shape[axis] - 1
        reflected, clipped = last - np.abs(last - np.abs(index)), np.clip(index, 0, last)
        inside = reflected if attrs.mode == "reflect" else clipped
        moved = np.take(x, inside, axis)
        if attrs.mode == "constant":
            shape = [1] * x.ndim
            shape[axis] = -1
            moved = np.where((index == inside).reshape(shape), moved, fill_value(node))
        x = moved.astype(x.dtype)
    return (x,)


def iterate(node: Node) -> Iteration:
    nest, a = Nest(), attrs_of(node)
    out = nest.all_parallel(node.output.shape)
    inside = (place - before for place, (before, _) in zip(out, a.pads, strict=True))
    beyond: dict[str, Outside] = {"reflect": "reflect", "replicate": "edge"}
    outside = beyond[a.mode] if a.mode in beyond else fill_value(node).item()
    return nest.iteration([operand(*inside, outside=outside)], [operand(*out)])


def part(node: Node, axis: int, _count: int) -> Pad | None:
    attrs = attrs_of(node)
    pads = tuple((0, 0) if a == axis else each for a, each in enumerate(attrs.pads))
    return replace(attrs, pads=pads) if any(map(any, pads)) else None


# ---------------------------------------------------------------- portable kernels


def axes(node: Node) -> tuple[tuple[Axis, ...], int]:
    """(dimensions outermost first, elements in an item): neighbours without pads merged, the last an item."""
    merged: list[Axis] = []
    for size, (before, after) in zip(node.input(0).shape, attrs_of(node).pads, strict=True):
        if merged and not (before or after) and not (merged[-1].before or merged[-1].after):
            merged[-1] = Axis(merged[-1].size * size)
        else:
            merged.append(Axis(size, before, after))
    item = 1
    if merged and not (merged[-1].before or merged[-1].after):
        item = merged.pop().size
    return tuple(merged), item


def padded(node: Node) -> Parts:
    """tinyet_pad: rows of the last dimension; with a constant those outside the image are filled."""
    dims, item = axes(node)
    *outer, last = (Axis(1),) * (MAX_DIMS - len(dims)) + dims
    size, constant = item * node.input(0).dtype.bytes, attrs_of(node).mode == "constant"
    rows = math.prod(axis.length for axis in outer)
    parts: Parts = {"call": 1, "row": rows}
    parts["loop ended"] = sum(math.prod(axis.length for axis in outer[:loop]) for loop in range(len(outer)))
    there = np.ones((), np.bool_)
    for axis in outer:
        at = np.arange(axis.length) - axis.before
        there = there[..., None] & (((at >= 0) & (at < axis.size)) | (not constant))
    starts = np.arange(rows, dtype=np.int64) * last.length * size
    inner, blank = starts[there.ravel()], starts[~there.ravel()]
    before, after = max(last.before, 0) * size, max(last.after, 0) * size
    if constant:
        copied_to(parts, "fill", inner, before)
        copied_to(parts, "fill", inner + last.length * size - after, after)
        copied_to(parts, "fill", blank, last.length * size)
    else:
        copied(parts, "repeat", rows * (last.before + last.after), size)
    copied_to(parts, "copy", inner + before, last.inside * size)
    parts["no fill"] = len(inner) * ((before == 0) + (after == 0))
    parts["row outside"] = len(blank)
    parts["row of repeats"] = 0 if constant else rows
    parts["row reflected"] = rows * (attrs_of(node).mode == "reflect")
    return parts


@of_input
def access_order(node: Node) -> AccessOrder | None:
    """One row of the last dimension after another; but for a constant, some are read again."""
    if attrs_of(node).mode != "constant":
        return None
    dims, item = axes(node)
    *outer, last = (Axis(1), *dims)
    size = item * node.input(0).dtype.bytes

    def first(rows: Int64) -> Int64:
        found, there = np.zeros_like(rows), np.ones(rows.shape, np.bool_)
        inner = math.prod(axis.length for axis in outer)
        for axis in outer:
            inner //= axis.length
            at = rows // inner % axis.length - axis.before
            found = found * axis.size + np.where(there, np.clip(at, 0, axis.size), 0)
            there &= (at >= 0) & (at < axis.size)
        return np.asarray(found * last.size * size, np.int64)

    rows = math.prod(axis.length for axis in outer)
    in_bytes = node.input(0).type.bytes
    return in_groups(rows, lambda row: (row + 1) * (last.length * size), first, in_bytes)


def refuse(node: Node, _target: Target) -> str | None:
    count = len(axes(node)[0])
    return f"{count} dimensions after merging, at most {MAX_DIMS}" if count > MAX_DIMS else None


def lower(node: Node, _target: Target) -> Call:
    dims, item = axes(node)
    dims = (Axis(1),) * (MAX_DIMS - len(dims)) + dims
    outs = tuple(axis.length for axis in dims)
    pattern = fill_value(node).tobytes()
    params = Struct(
        "tinyet_pad_params",
        {
            "in_size": tuple(axis.size for axis in dims),
            "out_size": outs,
            "before": tuple(axis.before for axis in dims),
            "rows": math.prod(outs[:-1]),
            "item_bytes": item * node.input(0).dtype.bytes,
            "mode": MODES.index(attrs_of(node).mode),
            "fill": int.from_bytes(pattern * (4 // len(pattern)), "little"),
        },
    )
    return library_call("tinyet_pad", node, [0], params)


def kernel(dtypes: str) -> Kernel:
    return Kernel(
        "tinyet_pad",
        dtypes,
        lower,
        ("tinyet_pad.h",),
        ("tinyet_pad.c",),
        refuse,
        cost_model=CostModel(padded),
        access_order=access_order,
    )


OP = Op(
    attrs=Pad,
    summary="padding of any dimensions: constant (negative pads crop), reflect, replicate",
    infer=infer,
    reference=reference,
    iteration=iterate,
    part=part,
    check=check,
    same_scale=True,
    kernels=(kernel("s8"), kernel("s16"), kernel("f32")),
)
