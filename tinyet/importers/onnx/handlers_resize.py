# SPDX-License-Identifier: Apache-2.0
"""Handler of Resize: to the nearest along any axes, by bilinear interpolation of images and rows.

ONNX has five rules for positions and four for what is nearest. The graph's operator has some of them; what it takes
from elsewhere is chosen by look-ups of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context
from tinyet.importers.onnx.handlers_layers import in_float
from tinyet.importers.onnx.handlers_select import by_constants
from tinyet.importers.onnx.handlers_shape import moved, tensor_of
from tinyet.importers.onnx.values import Float32, Value, axis_of, shape_of
from tinyet.numerics import Int64
from tinyet.ops.resize import MAX_RATIO, Resize, nearest_index

_HALF = np.float32(0.5)
_ROUNDINGS: Mapping[str, Callable[[Float32], Float32]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - _HALF),
    "round_prefer_ceil": lambda x: np.floor(x + _HALF),
}


def sizes_and_scales(ctx: Context, shape: Sequence[int]) -> tuple[list[int], list[float]]:
    """Of each dimension: its new size, and how many new elements one old one is."""
    axes = [axis_of(a, len(shape)) for a in ctx.attribute("axes", list(range(len(shape))))]
    sizes, scales = list(shape), [1.0] * len(shape)
    if ctx.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise RefusedError("keeps the aspect ratio", "give the sizes")
    if ctx.has(3):
        given = ctx.integers(3, "sizes")
        if len(given) != len(axes) or min(given, default=1) < 1:
            raise RefusedError(f"makes {tuple(given)} of {tuple(shape)}")
        for axis, size in zip(axes, given, strict=True):
            sizes[axis], scales[axis] = size, size / shape[axis]
    else:
        factors = np.asarray(ctx.constant(2, "scales").real, np.float64).reshape(-1)
        sensible = np.isfinite(factors).all() and (factors > 0).all() and (factors <= MAX_RATIO).all()
        if factors.size != len(axes) or not sensible:
            raise RefusedError(f"has {factors.size} scales for {len(axes)} dimensions")
        for axis, factor in zip(axes, factors, strict=True):
            sizes[axis], scales[axis] = math.floor(shape[axis] * factor), float(factor)
    if min(sizes) < 1:
        raise RefusedError(f"makes {tuple(sizes)} of {tuple(shape)}")
    ctx.budget.run(math.prod(sizes), 4 * math.prod(sizes))
    return sizes, scales


def resize(ctx: Context) -> Value:
    x = ctx.value(0)
    shape = shape_of(x)
    if not shape or ctx.attribute("antialias", 0) or ctx.attribute("exclude_outside", 0):
        raise RefusedError("smooths what it makes smaller, or leaves out what is outside")
    mode = ctx.attribute("mode", "nearest")
    where = ctx.attribute("coordinate_transformation_mode", "half_pixel")
    if where not in ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"):
        raise RefusedError(f"has the coordinates {where[:40]!r}", "half_pixel, asymmetric or align_corners")
    sizes, scales = sizes_and_scales(ctx, shape)
    if tuple(sizes) == tuple(shape) and all(s == 1 for s in scales):
        return x
    if mode == "nearest":
        return to_nearest(ctx, x, sizes, scales, where)
    if mode != "linear" or len(shape) not in (3, 4) or sizes[:2] != list(shape[:2]):
        raise RefusedError(
            f"resizes {tuple(shape)} to {tuple(sizes)} by {mode[:40]!r}", "nearest, or linear of images"
        )
    in_float(ctx)
    sides = [ratio(*each, where) for each in zip(shape[2:], sizes[2:], scales[2:], strict=True)]
    if len(shape) == 3:
        sizes, sides = [*sizes[:2], 1, sizes[2]], [0.0 if where == "align_corners" else 1.0, *sides]
    corners = where == "align_corners"
    attrs = Resize(sizes[2], sizes[3], "bilinear", corners, where.endswith("half_pixel"), *sides)
    return ctx.from_image(ctx.emit(attrs, [ctx.image(ctx.real(x))]), len(shape))


def ratio(size: int, out: int, scale: float, where: str) -> float:
    """Old elements a new one."""
    if where == "align_corners":
        return float(np.float32(size - 1) / np.float32(out - 1)) if out > 1 else 0.0
    if where == "pytorch_half_pixel" and out == 1:
        return 0.0
    return float(np.float32(size) / np.float32(out) if scale == out / size else np.float32(1 / scale))


def to_nearest(ctx: Context, x: Value, sizes: Sequence[int], scales: Sequence[float], where: str) -> Value:
    """As one operator of the graph, where that takes the same elements of height and width; else axis by axis."""
    shape, tensor = shape_of(x), tensor_of(ctx, x)
    rounding = ctx.attribute("nearest_mode", "round_prefer_floor")
    if rounding not in _ROUNDINGS:
        raise RefusedError(f"has the nearest mode {rounding[:40]!r}")
    found = [
        places(size, out, scale, where, _ROUNDINGS[rounding])
        for size, out, scale in zip(shape, sizes, scales, strict=True)
    ]
    attrs = as_operator(shape, sizes, found)
    if attrs is not None:
        return moved(x, ctx.from_image(ctx.emit(attrs, [ctx.image(tensor)]), len(shape)))
    for axis, chosen in enumerate(found):
        if list(chosen) != list(range(shape[axis])):
            tensor = by_constants(ctx, tensor, axis, [int(i) for i in chosen])
    return moved(x, tensor)


def places(size: int, out: int, scale: float, where: str, rounded: Callable[[Float32], Float32]) -> Int64:
    """The old element that each new one is, in float32 as ONNX Runtime."""
    index, step = np.arange(out).astype(np.float32), np.float32(scale)
    if where == "align_corners":
        position = index * np.float32(size - 1) / np.float32(max(out - 1, 1))
    elif where == "asymmetric":
        position = index / step
    elif where == "pytorch_half_pixel" and out == 1:
        position = np.zeros(1, np.float32)
    else:
        position = (index + _HALF) / step - _HALF
    nearest = rounded(np.asarray(position, np.float32))
    return np.asarray(np.clip(nearest, 0, size - 1), np.int64)


def as_operator(shape: Sequence[int], sizes: Sequence[int], wanted: Sequence[Int64]) -> Resize | None:
    """The graph's operator of height and width that takes these elements."""
    if len(shape) not in (3, 4) or any(
        list(w) != list(range(n)) for w, n in zip(wanted[:2], shape[:2], strict=True)
    ):
        return None
    sides = [(1, 1, np.zeros(1, np.int64))] if len(shape) == 3 else []
    sides += list(zip(shape[2:], sizes[2:], wanted[2:], strict=True))
    for half_pixel in (False, True):
        ratios = [float(np.float32(size) / np.float32(out)) for size, out, _ in sides]
        if all(
            np.array_equal(nearest_index(size, out, step, False, half_pixel), each)
            for (size, out, each), step in zip(sides, ratios, strict=True)
        ):
            (_, out_h, _), (_, out_w, _) = sides
            return Resize(out_h, out_w, "nearest", False, half_pixel, *ratios)
    return None
