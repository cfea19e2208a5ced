# SPDX-License-Identifier: Apache-2.0
"""Handlers of operators that move, select and join values, and of those that change their type.

Moved values keep their meaning: the integers behind a DequantizeLinear are moved as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context
from tinyet.importers.onnx.handlers_whole import is_whole, whole
from tinyet.importers.onnx.values import Bytes, Integers, Numbers, Value, axes_of, axis_of, shape_of
from tinyet.ir import DType, Tensor
from tinyet.ops.concat import Concat
from tinyet.ops.expand import Expand
from tinyet.ops.pad import Pad
from tinyet.ops.slice import Slice


def moved(value: Value, tensor: Tensor) -> Value:
    """The value whose integers, or numbers, are now in `tensor`."""
    if isinstance(value, Bytes):
        return value.of(tensor)
    return Integers(tensor, value.unsigned) if isinstance(value, Integers) else tensor


def tensor_of(ctx: Context, value: Value) -> Tensor:
    """The tensor that is moved."""
    if isinstance(value, (Bytes, Integers)):
        return value.tensor
    return value if isinstance(value, Tensor) else ctx.real(value)


def identity(ctx: Context) -> Value:
    return ctx.value(0)


def dropout(ctx: Context) -> Value:
    if ctx.has(2) and np.any(ctx.constant(2, "training mode").data):
        raise RefusedError("is in training mode", "export in eval mode")
    if len(ctx.node.outputs) > 1 and ctx.readers.get(ctx.node.outputs[1]):
        raise RefusedError("gives its mask", "leave its second output away")
    return ctx.value(0)


def reshape_to(ctx: Context, shape: Sequence[int]) -> Value:
    x = ctx.value(0)
    if math.prod(shape) != math.prod(shape_of(x)) or any(n < 1 for n in shape):
        raise RefusedError(f"makes {tuple(shape)} of {shape_of(x)}")
    return moved(x, ctx.reshape(tensor_of(ctx, x), shape))


def reshape(ctx: Context) -> Value:
    old, wanted = shape_of(ctx.value(0)), ctx.integers(1, "shape")
    if ctx.attribute("allowzero", 0) == 0:
        wanted = [old[i] if n == 0 and i < len(old) else n for i, n in enumerate(wanted)]
    if wanted.count(-1) > 1 or any(n < -1 for n in wanted):
        raise RefusedError(f"makes the shape {wanted}")
    rest = math.prod(n for n in wanted if n != -1)
    size = math.prod(old) // rest if rest else 0
    return reshape_to(ctx, [size if n == -1 else n for n in wanted])


def flatten(ctx: Context) -> Value:
    shape = shape_of(ctx.value(0))
    axis = ctx.attribute("axis", 1)
    axis = axis if axis == len(shape) else axis_of(axis, len(shape))
    return reshape_to(ctx, [math.prod(shape[:axis]), math.prod(shape[axis:])])


def squeeze(ctx: Context) -> Value:
    shape = shape_of(ctx.value(0))
    axes = axes_of(ctx.integers(1, "axes", [a for a, n in enumerate(shape) if n == 1]), len(shape))
    if any(shape[a] != 1 for a in axes):
        raise RefusedError(f"takes axes {axes} off {shape}")
    return reshape_to(ctx, [n for a, n in enumerate(shape) if a not in axes])


def unsqueeze(ctx: Context) -> Value:
    shape = list(shape_of(ctx.value(0)))
    given = ctx.integers(1, "axes")
    for axis in axes_of(given, len(shape) + len(given)):
        shape.insert(axis, 1)
    return reshape_to(ctx, shape)


def transpose(ctx: Context) -> Value:
    x = ctx.value(0)
    rank = len(shape_of(x))
    order = ctx.attribute("perm", list(range(rank))[::-1])
    if sorted(order) != list(range(rank)):
        raise RefusedError(f"has perm {order} for {rank} dimensions")
    return moved(x, ctx.permute(tensor_of(ctx, x), order))


def slice_(ctx: Context) -> Value:
    x = ctx.value(0)
    shape = shape_of(x)
    starts, stops = ctx.integers(1, "starts"), ctx.integers(2, "ends")
    axes = ctx.integers(3, "axes", range(len(starts)))
    steps = ctx.integers(4, "steps", [1] * len(starts))
    if not len(starts) == len(stops) == len(axes) == len(steps):
        raise RefusedError("has starts, ends, axes and steps of different lengths")
    tensor = tensor_of(ctx, x)
    for start, stop, axis, step in zip(starts, stops, axes, steps, strict=True):
        if step < 1:
            raise RefusedError(f"goes backwards (step {step})")
        place = axis_of(axis, len(shape))
        low, high, _ = slice(start, stop, step).indices(shape[place])
        if low >= high:
            raise RefusedError("leaves nothing")
        if (low, high, step) != (0, tensor.shape[place], 1):
            tensor = ctx.emit(Slice(place, low, high, step), [tensor])
    return moved(x, tensor)


def split(ctx: Context) -> Sequence[Value]:
    x = ctx.value(0)
    shape, count = shape_of(x), len(ctx.node.outputs)
    axis = axis_of(ctx.attribute("axis", 0), len(shape))
    each = -(-shape[axis] // count)
    even = [min(each, shape[axis] - k * each) for k in range(count)]
    sizes = ctx.integers(1, "split", even)
    if len(sizes) != count or sum(sizes) != shape[axis] or min(sizes) < 1:
        raise RefusedError(f"splits {shape[axis]} into {sizes}")
    tensor, parts, at = tensor_of(ctx, x), [], 0
    for name, size in zip(ctx.node.outputs, sizes, strict=True):
        if name:
            parts.append(moved(x, ctx.emit(Slice(axis, at, at + size), [tensor], name=name)))
        at += size
    return parts


def concat(ctx: Context) -> Value:
    values = [ctx.value(i) for i in range(len(ctx.node.inputs))]
    if not values:
        raise RefusedError("joins nothing")
    ranks = {len(shape_of(value)) for value in values}
    if len(ranks) > 1:
        raise RefusedError(f"joins values of {' and '.join(map(str, sorted(ranks)))} dimensions")
    axis = axis_of(ctx.attribute("axis", 0), len(shape_of(values[0])))
    target = ctx.target()
    quantized = [isinstance(v, Bytes) or (isinstance(v, Numbers) and v.scale is not None) for v in values]
    if target is not None and all(quantized):
        parts = [ctx.to_scale(v, target).tensor for v in values]
        joined = ctx.emit(Concat(axis), parts) if len(parts) > 1 else parts[0]
        return ctx.meaning(Integers(joined, target.dtype == "uint8"), target)
    if any(isinstance(v, Tensor) and v.dtype is not DType.FLOAT32 for v in values):
        return ctx.emit(Concat(axis), [alike(ctx, v, values) for v in values])
    if all(isinstance(v, Integers) for v in values):
        tensors = [v.tensor for v in values if isinstance(v, Integers)]
        return moved(values[0], ctx.emit(Concat(axis), tensors))
    return ctx.emit(Concat(axis), [ctx.real(v) for v in values])


def alike(ctx: Context, value: Value, values: Sequence[Value]) -> Tensor:
    """A value of integers beside others, as a tensor; a constant takes their type."""
    if any(is_whole(v) for v in values):
        return whole(ctx, value)
    if not isinstance(value, Tensor):
        raise RefusedError("joins integers and others", "cast them to one type")
    return value


def pad(ctx: Context) -> Value:
    x = ctx.value(0)
    rank = len(shape_of(x))
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}.get(
        ctx.attribute("mode", "constant")
    )
    given = ctx.integers(1, "pads")
    axes = [axis_of(a, rank) for a in ctx.integers(3, "axes", range(rank))]
    fill = ctx.constant(2, "value") if ctx.has(2) else None
    if mode is None or len(given) != 2 * len(axes) or (fill is not None and fill.data.size != 1):
        raise RefusedError(f"pads by {given}, in the mode {ctx.attribute('mode', 'constant')[:40]!r}")
    value = 0.0 if fill is None else float(np.asarray(fill.real).reshape(-1)[0])
    pads = [(0, 0)] * rank
    for axis, before, after in zip(axes, given[: len(axes)], given[len(axes) :], strict=True):
        pads[axis] = before, after
    if isinstance(x, Bytes) and x.is_plain and (value == 0.0 or mode != "constant"):
        return x.of(ctx.emit(Pad(tuple(pads), mode, 0.0), [x.tensor]))  # type: ignore[arg-type]
    return ctx.emit(Pad(tuple(pads), mode, value), [ctx.real(x)])  # type: ignore[arg-type]


def expand(ctx: Context) -> Value:
    x = ctx.value(0)
    try:
        shape = np.broadcast_shapes(shape_of(x), tuple(ctx.integers(1, "shape")))
    except ValueError:
        raise RefusedError(f"makes {ctx.integers(1, 'shape')} of {shape_of(x)}") from None
    return x if shape == shape_of(x) else moved(x, ctx.emit(Expand(tuple(shape)), [tensor_of(ctx, x)]))


def depth_to_space(ctx: Context) -> Value:
    x, block = ctx.value(0), ctx.attribute("blocksize", 0)
    shape = shape_of(x)
    if len(shape) != 4 or block < 1 or shape[1] % (block * block):
        raise RefusedError(f"has blocks of {block} over {shape}")
    n, c, h, w = shape
    each = c // (block * block)
    tensor = tensor_of(ctx, x)
    if ctx.attribute("mode", "DCR") == "DCR":
        tensor = ctx.permute(ctx.reshape(tensor, (n, block, block, each, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        tensor = ctx.permute(ctx.reshape(tensor, (n, each, block, block, h, w)), (0, 1, 4, 2, 5, 3))
    return moved(x, ctx.reshape(tensor, (n, each, h * block, w * block)))


def space_to_depth(ctx: Context) -> Value:
    x, block = ctx.value(0), ctx.attribute("blocksize", 0)
    shape = shape_of(x)
    if len(shape) != 4 or block < 1 or shape[2] % block or shape[3] % block:
        raise RefusedError(f"has blocks of {block} over {shape}")
    n, c, h, w = shape
    tensor = ctx.reshape(tensor_of(ctx, x), (n, c, h // block, block, w // block, block))
    tensor = ctx.permute(tensor, (0, 3, 5, 1, 2, 4))
    return moved(x, ctx.reshape(tensor, (n, c * block * block, h // block, w // block)))
