# SPDX-License-Identifier: Apache-2.0
"""Handlers of operators that choose or overwrite elements: by constants, as torch's older exporter writes them for
masks and for assignments to slices, or by values that the model computes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context
from tinyet.importers.onnx.handlers_shape import moved, tensor_of
from tinyet.importers.onnx.handlers_whole import choose, elementwise, is_whole, truth, whole
from tinyet.importers.onnx.values import Bytes, Integers, Numbers, Value, axis_of, shape_of
from tinyet.ir import Array, DType, Tensor
from tinyet.ops.concat import Concat
from tinyet.ops.embedding import Embedding
from tinyet.ops.expand import Expand
from tinyet.ops.gather import Gather
from tinyet.ops.pad import Pad
from tinyet.ops.slice import Slice
from tinyet.ops.where import Where

_MOST_RUNS = 8
"""Runs of neighbours that are a slice each; more become one look-up."""


def gather(ctx: Context) -> Value:
    """Rows of a constant table by computed indices, or elements of values by either."""
    x, places = ctx.value(0), ctx.value(1)
    shape = shape_of(x)
    axis = axis_of(ctx.attribute("axis", 0), len(shape))
    wanted = (*shape[:axis], *shape_of(places), *shape[axis + 1 :])
    if isinstance(places, Numbers):
        tensor = by_constants(
            ctx, tensor_of(ctx, x), axis, [axis_of(i, shape[axis]) for i in places.integers()]
        )
        return moved(x, ctx.reshape(tensor, wanted))
    listed = whole(ctx, places)
    if isinstance(x, Numbers) and axis == 0 and len(shape) == 2:
        return embedded(ctx, x, listed)
    listed = ctx.reshape(listed, (listed.type.count,))
    return moved(x, ctx.reshape(ctx.emit(Gather(axis), [tensor_of(ctx, x), listed]), wanted))


def embedded(ctx: Context, table: Numbers, places: Tensor) -> Value:
    """Of a table that is quantized, integers."""
    if table.scale is not None and table.scale.axis is None:
        shift, quant = table.scale.shift, table.scale.per_tensor()
        rows = ctx.held(table.name or "table", (table.data.astype(np.int64) - shift).astype(np.int8), quant)
        y = ctx.emit(Embedding(), [places, rows], quant, DType.INT8)
        return ctx.meaning(Integers(y, table.scale.dtype == "uint8"), table.scale)
    rows = ctx.held(table.name or "table", np.asarray(table.real, np.float32))
    return ctx.emit(Embedding(), [places, rows], dtype=DType.FLOAT32)


def by_constants(ctx: Context, x: Tensor, axis: int, chosen: Sequence[int]) -> Tensor:
    """A few runs of neighbours, or one of equal distances, are slices; else a look-up."""
    if not chosen:
        raise RefusedError("gathers nothing")
    steps = set(np.diff(chosen).tolist()) or {1}
    if len(steps) == 1 and min(steps) > 0:
        return sliced(ctx, x, axis, chosen[0], chosen[-1] + 1, min(steps))
    runs: list[tuple[int, int]] = []
    for index in chosen:
        if runs and runs[-1][1] == index:
            runs[-1] = runs[-1][0], index + 1
        else:
            runs.append((index, index + 1))
    if len(runs) > _MOST_RUNS:
        return ctx.emit(Gather(axis), [x, ctx.held("places", np.array(chosen, np.int32))])
    return ctx.emit(Concat(axis), [sliced(ctx, x, axis, start, stop) for start, stop in runs])


def sliced(ctx: Context, x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    if (start, stop, step) == (0, x.shape[axis], 1):
        return x
    return ctx.emit(Slice(axis, start, stop, step), [x])


def gather_elements(ctx: Context) -> Value:
    """An element for each place. The places may be fewer than x's elements along the other axes."""
    x, places = ctx.value(0), whole(ctx, ctx.value(1))
    tensor = tensor_of(ctx, x)
    axis = axis_of(ctx.attribute("axis", 0), len(tensor.shape))
    if len(places.shape) != len(tensor.shape):
        raise RefusedError(f"takes {places.shape} of {tensor.shape}")
    for at, size in enumerate(places.shape):
        tensor = tensor if at == axis else sliced(ctx, tensor, at, 0, size)
    return moved(x, ctx.emit(Gather(axis), [tensor, places]))


def tile(ctx: Context) -> Value:
    x, times = ctx.value(0), ctx.integers(1, "repeats")
    shape = shape_of(x)
    if len(times) != len(shape) or any(n < 1 for n in times):
        raise RefusedError(f"repeats {len(shape)} dimensions {times} times")
    tensor = tensor_of(ctx, x)
    for axis, count in enumerate(times):
        if count > 1:
            lead, size, rest = tensor.shape[:axis], tensor.shape[axis], tensor.shape[axis + 1 :]
            spread = ctx.emit(
                Expand((*lead, count, size, *rest)), [ctx.reshape(tensor, (*lead, 1, size, *rest))]
            )
            tensor = ctx.reshape(spread, (*lead, count * size, *rest))
    return moved(x, tensor)


def where(ctx: Context) -> Value:
    """By a mask that is a constant, as of attention, or computed. Of bytes it is ONNX Runtime's QLinearWhere: each side
    is brought to the result's scale by a table."""
    condition, yes, no = (ctx.value(i) for i in range(3))
    if any(is_whole(v) for v in (yes, no)):
        return choose(ctx)
    mask = whole(ctx, condition) if is_whole(condition) else truth(ctx, condition)
    target = ctx.target()
    quantized = [isinstance(v, Bytes) or (isinstance(v, Numbers) and v.scale is not None) for v in (yes, no)]
    if target is not None and all(quantized):
        quant = target.per_tensor()
        sides = [ctx.to_scale(v, target).tensor for v in (yes, no)]
        chosen = elementwise(ctx, Where(), [mask, *sides], DType.INT8, quant=quant)
        return ctx.meaning(Integers(chosen, target.dtype == "uint8"), target)
    return elementwise(ctx, Where(), [mask, ctx.real(yes), ctx.real(no)], DType.FLOAT32)


def scatter_nd(ctx: Context) -> Value:
    """At constant indices: constants, or a box of computed values (an assignment to slices)."""
    if ctx.attribute("reduction", "none") != "none":
        raise RefusedError("adds or multiplies at its indices", "assign instead")
    x, updates = ctx.value(0), ctx.value(2)
    shape, indices = shape_of(x), ctx.constant(1, "indices").data
    if indices.dtype.kind not in "iu" or not indices.ndim or indices.shape[-1] > len(shape):
        raise RefusedError(f"has indices {indices.shape} of {indices.dtype} for {shape}")
    ctx.budget.fold(2 * math.prod(shape) + indices.size)
    every = np.arange(math.prod(shape)).reshape(shape)
    sizes = np.array(shape[: indices.shape[-1]])
    inside = (indices >= -sizes) & (indices < sizes)
    if not inside.all():
        raise RefusedError(f"puts elements outside of {shape}")
    places = every[tuple(np.moveaxis(indices, -1, 0))]
    if places.shape != shape_of(updates):
        raise RefusedError(f"puts {shape_of(updates)} where {places.shape} have room")
    mask = np.zeros(shape, np.int32)
    mask.reshape(-1)[places.reshape(-1)] = 1
    held = ctx.held("mask", mask)
    of_integers = is_whole(x) or is_whole(updates)
    as_tensor = whole if of_integers else Context.real
    dtype = DType.INT32 if of_integers else DType.FLOAT32
    if isinstance(updates, Numbers):
        ctx.budget.hold(8 * mask.size)
        spread = np.zeros(shape, dtype.numpy)
        spread.reshape(-1)[places.reshape(-1)] = updates.real.reshape(-1)
        put = ctx.held("updates", spread)
    else:
        put = boxed(ctx, as_tensor(ctx, updates), mask, every, places)
    return elementwise(ctx, Where(), [held, put, as_tensor(ctx, x)], dtype)


def boxed(ctx: Context, updates: Tensor, mask: Array, every: Array, places: Array) -> Tensor:
    """Computed values where they belong in a tensor of the mask's shape. Raises RefusedError where the places are no
    box, in order."""
    found = [
        np.flatnonzero(mask.any(axis=tuple(b for b in range(mask.ndim) if b != a))) for a in range(mask.ndim)
    ]
    if not places.size:
        raise RefusedError("puts nothing")
    box = [(int(at[0]), int(at[-1]) + 1) for at in found]
    inside = every[tuple(slice(*each) for each in box)]
    if inside.size != places.size or not np.array_equal(inside.reshape(-1), places.reshape(-1)):
        raise RefusedError(
            "puts computed values at scattered indices", "assign to slices of step 1, or concatenate"
        )
    around = tuple((start, size - stop) for (start, stop), size in zip(box, mask.shape, strict=True))
    return ctx.emit(Pad(around), [ctx.reshape(updates, [stop - start for start, stop in box])])
