# SPDX-License-Identifier: Apache-2.0
"""Resizing of an image, NHWC, to the nearest or by bilinear interpolation.

Positions and weights are tables made ahead of time. int8 bilinear is LiteRT's RESIZE_BILINEAR: weights of ten
bits, halves away from zero. float bilinear is PyTorch's, with positions in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.numerics import Int64, round_half_away, round_shift
from tinyet.ops.shared.access_orders import Walk, of_input, pixel_bytes
from tinyet.ops.shared.counting import Parts, copied
from tinyet.ops.shared.movement import check_moved
from tinyet.ops.shared.window import image_fields, resized_shape
from tinyet.opset import (
    AccessOrder,
    AxisMap,
    Call,
    Constant,
    CostModel,
    Index,
    Iteration,
    Kernel,
    Nest,
    Op,
    Pointer,
    Spans,
    Struct,
    library_call,
    operand,
)

MAX_RATIO = 65536.0

ResizeMode = Literal["nearest", "bilinear"]


@dataclass(frozen=True)
class Resize(Attrs):
    """input: x (N, H, W, C). Output: (N, out_h, out_w, C).

    mode: "nearest" or "bilinear". align_corners: the first and last samples of input and output coincide.
    half_pixel: samples lie at pixel centres. ratio_h, ratio_w: step in the input for a step in the output.
    """

    name: ClassVar[str] = "resize"
    out_h: int
    out_w: int
    mode: ResizeMode
    align_corners: bool
    half_pixel: bool
    ratio_h: float
    ratio_w: float


@dataclass(frozen=True)
class Sampled(Attrs):
    """input: x (N, H, W, C). Output: (N, rows, columns, C), of samples at places that are told one by one: some rows or
    columns of what Resize makes. No program holds it.

    rows, columns: of each the two samples of the input, and the weight of the second, as in Samples.
    """

    name: ClassVar[str] = "sampled"
    mode: ResizeMode
    rows: tuple[tuple[int, int, float], ...]
    columns: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, eq=False)
class Samples:
    """Positions of output samples along one dimension: lower + weight / one, with upper the sample after lower.

    lower, upper: int64 (out,). weight of `upper`: (out,), int64 in 1/1024 (integer form) or float32.
    """

    lower: Int64
    upper: Int64
    weight: Array

    def within(self, size: int) -> Samples:
        """Of an input of `size` samples: before the first and after the last both are the same."""
        lower, upper = np.clip(self.lower, 0, size - 1), np.clip(self.upper, 0, size - 1)
        beyond = (lower != self.lower) | (upper != self.upper)
        return Samples(lower, upper, np.where(beyond, self.weight.dtype.type(0), self.weight))

    def stride(self, count: int) -> int | None:
        """How far the samples of each position are from those of the one `count` before it; None where that differs."""
        apart = {*(self.lower[count:] - self.lower[:-count]), *(self.upper[count:] - self.upper[:-count])}
        same = np.array_equal(self.weight[count:], self.weight[:-count])
        return int(apart.pop()) if len(apart) == 1 and same else None

    def first(self, count: int) -> Samples:
        """The first `count` positions, counted from the least of their samples."""
        start = self.lower[:count].min()
        return Samples(self.lower[:count] - start, self.upper[:count] - start, self.weight[:count])

    def places(self) -> tuple[tuple[int, int, float], ...]:
        found = zip(self.lower.tolist(), self.upper.tolist(), self.weight.tolist(), strict=True)
        return tuple((low, high, float(weight)) for low, high, weight in found)


def attrs_of(node: Node) -> Resize:
    assert isinstance(node.attrs, Resize)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    attrs = attrs_of(node)
    shape = resized_shape(node, attrs.out_h, attrs.out_w)
    if not (0 <= attrs.ratio_h <= MAX_RATIO and 0 <= attrs.ratio_w <= MAX_RATIO):
        raise UnsupportedShape(f"resize: ratios {attrs.ratio_h} and {attrs.ratio_w}", node.where)
    if attrs.align_corners and attrs.half_pixel:
        raise UnsupportedShape("resize: aligned corners and half pixels exclude each other", node.where)
    return (shape,)


def infer_sampled(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.attrs, Sampled)
    batch, _, _, channels = node.input(0).shape
    return ((batch, len(node.attrs.rows), len(node.attrs.columns), channels),)


def nearest_index(size: int, out: int, ratio: float, align_corners: bool, half_pixel: bool) -> Int64:
    """Source index of each output index, as LiteRT and PyTorch: float32 arithmetic in this order."""
    position = (np.arange(out).astype(np.float32) + np.float32(0.5 * half_pixel)) * np.float32(ratio)
    index = round_half_away(position) if align_corners else np.floor(position)
    return np.clip(index.astype(np.int64), 0, size - 1)


def fixed_step(size: int, out: int, ratio: float) -> int:
    """The ratio in 1/1024, rounded half up: from the sizes, as LiteRT, where the float32 ratio is theirs."""
    for numerator, denominator in ((size, out), (size - 1, out - 1)):
        if denominator and np.float32(ratio) == np.float32(numerator) / np.float32(denominator):
            return (1024 * numerator + denominator // 2) // denominator
    return math.floor(1024 * ratio + 0.5)


def fixed_samples(size: int, out: int, ratio: float, half_pixel: bool) -> Samples:
    """LiteRT's positions in 1/1024 pixel, also before the first and after the last sample."""
    step = fixed_step(size, out, ratio)
    position = np.arange(out, dtype=np.int64) * step
    if half_pixel:
        position = position + step // 2 - 512
    return Samples(position >> 10, -(-position >> 10), position & 1023)


def float_samples(size: int, out: int, ratio: float, half_pixel: bool) -> Samples:
    """PyTorch's positions, in float32."""
    position = np.arange(out).astype(np.float32)
    if half_pixel:
        centred = (position + np.float32(0.5)) * np.float32(ratio) - np.float32(0.5)
        position = np.maximum(centred, np.float32(0))
    else:
        position = position * np.float32(ratio)
    lower = np.minimum(np.floor(position).astype(np.int64), size - 1)
    upper = np.minimum(lower + 1, size - 1)
    weight = np.clip(position - lower.astype(np.float32), np.float32(0), np.float32(1))
    return Samples(lower, upper, weight)


def unlimited(node: Node) -> tuple[Samples, Samples]:
    """(rows, columns), of integers also beyond the image."""
    a, (_, height, width, _) = attrs_of(node), node.input(0).shape
    if a.mode == "nearest":
        places = (
            nearest_index(size, out, ratio, a.align_corners, a.half_pixel)
            for size, out, ratio in ((height, a.out_h, a.ratio_h), (width, a.out_w, a.ratio_w))
        )
        rows, columns = (Samples(place, place, np.zeros_like(place)) for place in places)
        return rows, columns
    make = float_samples if node.input(0).dtype is DType.FLOAT32 else fixed_samples
    rows = make(height, a.out_h, a.ratio_h, a.half_pixel)
    return rows, make(width, a.out_w, a.ratio_w, a.half_pixel)


def samples(node: Node) -> tuple[Samples, Samples]:
    """(rows, columns)."""
    if isinstance(node.attrs, Sampled):
        rows, columns = (_table(node, places) for places in (node.attrs.rows, node.attrs.columns))
    else:
        rows, columns = unlimited(node)
    _, height, width, _ = node.input(0).shape
    return rows.within(height), columns.within(width)


def _table(node: Node, places: Sequence[tuple[int, int, float]]) -> Samples:
    lower, upper, weight = np.array(places, np.float64).T
    kind = np.float32 if node.input(0).dtype is DType.FLOAT32 else np.int64
    return Samples(lower.astype(np.int64), upper.astype(np.int64), weight.astype(kind))


def mode_of(node: Node) -> ResizeMode:
    assert isinstance(node.attrs, Resize | Sampled)
    return node.attrs.mode


def nearest(node: Node) -> tuple[Int64, Int64]:
    """Source rows and columns."""
    rows, columns = samples(node)
    return rows.lower, columns.lower


def resizes_nothing(attrs: Resize, shape: Shape) -> bool:
    """Whether every sample of the output lies on that of the input (N, H, W, C) at the same place."""
    steps = (shape[1], attrs.out_h, attrs.ratio_h), (shape[2], attrs.out_w, attrs.ratio_w)
    for size, out, ratio in steps:
        if size != out:
            return False
        if attrs.mode == "nearest":
            found = nearest_index(size, out, ratio, attrs.align_corners, attrs.half_pixel)
        else:
            sampled = float_samples(size, out, ratio, attrs.half_pixel)
            found = sampled.lower
            if sampled.weight.any():
                return False
        if not np.array_equal(found, np.arange(size)):
            return False
    return True


def iterate(node: Node) -> Iteration:
    """Where samples repeat at a regular distance, those beyond the image are those of its edge."""
    nest, shape = Nest(), node.output.shape
    n, c = nest.parallel(shape[0]), nest.parallel(shape[3])
    (y, out_y), (x, out_x) = (
        _sampled_axis(nest, found, size)
        for found, size in zip(unlimited(node), node.input(0).shape[1:3], strict=True)
    )
    return nest.iteration([operand(n, y, x, c, outside="edge")], [operand(n, out_y, out_x, c)])


def _sampled_axis(nest: Nest, found: Samples, size: int) -> tuple[AxisMap, Index]:
    """How an axis of the input and of the output is indexed."""
    count = len(found.lower)
    inside = found.within(size)
    if not np.array_equal(found.lower, inside.lower) or not np.array_equal(found.upper, inside.upper):
        for period in (p for p in range(1, count) if count % p == 0):
            stride = found.stride(period)
            if stride:
                first = int(found.lower[:period].min())
                reach = int(found.upper[:period].max()) - first + 1
                block, place = nest.parallel(count // period), nest.parallel(period)
                return stride * block + nest.reduced(reach) + first, period * block + place
    out = nest.parallel(count)
    (dim,) = out.dims
    taken = ((int(a), int(b - a) + 1) for a, b in zip(inside.lower, inside.upper, strict=True))
    return Spans(dim, tuple(taken)), out


def part(node: Node, axis: int, count: int) -> Attrs | str:
    """Samples of the same places. In float, what is beyond the image's edge is not the edge times all weights."""
    attrs, (rows, columns) = attrs_of(node), unlimited(node)
    if axis not in (1, 2):
        return attrs
    _, height, width, _ = node.input(0).shape
    if (rows, columns)[axis - 1].stride(count) is None:
        return f"{node.op} takes samples at other places for each index of its result"
    plain = replace(attrs, out_h=count) if axis == 1 else replace(attrs, out_w=count)
    found = (rows, columns)[axis - 1].first(count)
    reach = int(found.upper.max()) + 1
    ratio = attrs.ratio_h if axis == 1 else attrs.ratio_w
    if attrs.mode == "nearest" and np.array_equal(
        nearest_index(reach, count, ratio, attrs.align_corners, attrs.half_pixel), found.lower
    ):
        return plain
    rows, columns = (
        (rows.first(count), columns.within(width))
        if axis == 1
        else (rows.within(height), columns.first(count))
    )
    return Sampled(attrs.mode, rows.places(), columns.places())


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    if mode_of(node) == "nearest":
        source_rows, source_columns = nearest(node)
        return (np.ascontiguousarray(x[:, source_rows][:, :, source_columns]),)
    rows, columns = samples(node)
    if node.input(0).dtype is DType.FLOAT32:
        value = x.astype(np.float32)
        right = columns.weight.astype(np.float32)[:, None]
        down = rows.weight.astype(np.float32)[:, None, None]
        one = np.float32(1)
        with np.errstate(over="ignore", invalid="ignore"):
            lines = value[:, :, columns.lower] * (one - right) + value[:, :, columns.upper] * right
            return (lines[:, rows.lower] * (one - down) + lines[:, rows.upper] * down,)
    integer = x.astype(np.int64)
    right_, down_ = columns.weight.astype(np.int64)[:, None], rows.weight.astype(np.int64)[:, None, None]
    wide = integer[:, :, columns.lower] * (1024 - right_) + integer[:, :, columns.upper] * right_
    total = wide[:, rows.lower] * (1024 - down_) + wide[:, rows.upper] * down_
    return (round_shift(total, 20).astype(node.output.dtype.numpy),)


# ---------------------------------------------------------------- portable kernels


def refuse_nearest(node: Node, _target: Target) -> str | None:
    return None if mode_of(node) == "nearest" else "only the nearest sample"


def refuse_bilinear(node: Node, _target: Target) -> str | None:
    return None if mode_of(node) == "bilinear" else "only bilinear interpolation"


def lower_nearest(node: Node, _target: Target) -> Call:
    """Columns as byte offsets in a row, rows as byte offsets in an image."""
    rows, columns = nearest(node)
    sizes = image_fields(node)
    pixel = sizes["channels"] * node.input(0).dtype.bytes
    params = Struct(
        "tinyet_resize_nearest_params",
        {
            "batch": sizes["batch"],
            "image_bytes": sizes["in_h"] * sizes["in_w"] * pixel,
            "out_h": sizes["out_h"],
            "out_w": sizes["out_w"],
            "pixel_bytes": pixel,
            "rows": Pointer("rows"),
            "columns": Pointer("columns"),
        },
    )
    constants = (
        Constant("rows", (rows * sizes["in_w"] * pixel).astype(np.int32), "byte offset of each source row"),
        Constant("columns", (columns * pixel).astype(np.int32), "byte offset of each source column"),
    )
    return library_call("tinyet_resize_nearest", node, [0], params, constants)


def lower_bilinear(node: Node, symbol: str, dtype: type[np.generic]) -> Call:
    """Tables of pairs (lower, upper) as element offsets, and of the weights of `upper`."""
    rows, columns = samples(node)
    sizes = image_fields(node)
    constants = []
    for name, found, step in (
        ("row", rows, sizes["in_w"] * sizes["channels"]),
        ("column", columns, sizes["channels"]),
    ):
        pairs = np.stack([found.lower, found.upper], axis=1) * step
        constants.append(Constant(f"{name}s", pairs.astype(np.int32), "offsets of the two samples"))
        constants.append(Constant(f"{name}_weights", found.weight.astype(dtype), "of the second sample"))
    pointers = {c.name: Pointer(c.name) for c in constants}
    form = "f32" if dtype is np.float32 else "integer"
    params = Struct(f"tinyet_resize_bilinear_{form}_params", {**sizes, **pointers})
    return library_call(symbol, node, [0], params, constants)


def lower_integer(node: Node, _target: Target) -> Call:
    return lower_bilinear(node, f"tinyet_resize_bilinear_{node.output.dtype.suffix}", np.int16)


def lower_f32(node: Node, _target: Target) -> Call:
    return lower_bilinear(node, "tinyet_resize_bilinear_f32", np.float32)


def resized_nearest(node: Node) -> Parts:
    """tinyet_resize_nearest: a row that is the one before is copied whole, other rows pixel by pixel."""
    rows, _ = nearest(node)
    batch, out_w = node.output.shape[0], node.output.shape[2]
    new, size = (
        batch * (1 + int(np.count_nonzero(np.diff(rows)))),
        node.output.shape[3] * node.output.dtype.bytes,
    )
    parts: Parts = {"call": 1, "row": new, "pixel": new * out_w}
    copied(parts, "row again", batch * len(rows) - new, out_w * size)
    if size < SHORT:
        parts["byte of a pixel"] = new * out_w * size
    else:
        copied(parts, "long pixel", new * out_w, size)
    return parts


def interpolated(node: Node) -> Parts:
    batch, out_h, out_w, channels = node.output.shape
    return {
        "call": 1,
        "row": batch * out_h,
        "pixel": batch * out_h * out_w,
        "value": batch * out_h * out_w * channels,
    }


def walk(node: Node) -> Walk:
    batch, height, width, _ = node.input(0).shape
    tops, lefts = nearest(node)
    return Walk(batch, height, width, tops, lefts, *pixel_bytes(node))


@of_input
def access_order(node: Node) -> AccessOrder:
    """One pixel after another."""
    return walk(node).by_pixels()


HEADERS = ("tinyet_resize.h",)

SHORT = 16
"""Bytes from which on tinyet_resize_nearest copies pixels by memcpy."""


def nearest_kernel(dtypes: str) -> Kernel:
    sources = ("tinyet_resize_nearest.c",)
    return Kernel(
        "tinyet_resize_nearest",
        dtypes,
        lower_nearest,
        HEADERS,
        sources,
        refuse_nearest,
        cost_model=CostModel(resized_nearest),
        access_order=access_order,
    )


def bilinear_kernel(dtypes: str, lower: Callable[[Node, Target], Call]) -> Kernel:
    symbol = f"tinyet_resize_bilinear_{dtypes}"
    return Kernel(
        symbol,
        dtypes,
        lower,
        HEADERS,
        (f"{symbol}.c",),
        refuse_bilinear,
        cost_model=CostModel(interpolated),
        access_order=access_order,
    )


KERNELS = (
    nearest_kernel("s8"),
    nearest_kernel("s16"),
    nearest_kernel("f32"),
    bilinear_kernel("s8", lower_integer),
    bilinear_kernel("s16", lower_integer),
    bilinear_kernel("f32", lower_f32),
)

OP = Op(
    attrs=Resize,
    summary="resizing of an image: nearest, bilinear; aligned corners, half pixels",
    infer=infer,
    reference=reference,
    iteration=iterate,
    check=check_moved,
    same_scale=True,
    rounds=lambda node: attrs_of(node).mode != "nearest",
    part=part,
    kernels=KERNELS,
)

PART = Op(
    attrs=Sampled,
    summary="samples of an image, at places told one by one",
    infer=infer_sampled,
    reference=reference,
    check=check_moved,
    same_scale=True,
    kernels=KERNELS,
)
