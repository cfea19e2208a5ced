# SPDX-License-Identifier: Apache-2.0
"""Handlers of pools, and of other operators that make one value of many: sums, extremes, lengths."""

from __future__ import annotations

from collections.abc import Sequence

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context
from tinyet.importers.onnx.handlers_layers import in_float, integer_target, window
from tinyet.importers.onnx.values import (
    Bytes,
    Integers,
    Scale,
    Value,
    axes_of,
    axis_of,
    plain_reals,
    shape_of,
)
from tinyet.ir import DType
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.avg_pool2d import AvgPool2d
from tinyet.ops.cumsum import CumSum
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.ops.mean import Mean
from tinyet.ops.sum import Sum
from tinyet.ops.unary import Unary


def max_pool(ctx: Context) -> Value:
    x = ctx.value(0)
    if len(ctx.node.outputs) > 1 and ctx.node.outputs[1]:
        raise RefusedError("gives indices", "leave its second output away")
    attributes = pool_attributes(ctx, shape_of(x))
    rank = len(shape_of(x))
    if isinstance(x, Integers) or (isinstance(x, Bytes) and x.is_plain):
        tensor = ctx.from_image(ctx.emit(MaxPool2d(**attributes), [ctx.image(x.tensor)]), rank)
        return x.of(tensor) if isinstance(x, Bytes) else Integers(tensor, x.unsigned)
    return ctx.from_image(ctx.emit(MaxPool2d(**attributes), [ctx.image(ctx.real(x))]), rank)


def pool_attributes(ctx: Context, shape: Sequence[int]) -> dict[str, int]:
    kernel = ctx.attribute("kernel_shape", [])
    rank = len(shape)
    if len(kernel) != rank - 2 or rank not in (3, 4) or any(k < 1 for k in kernel):
        raise RefusedError(f"has a kernel {kernel} over {rank} dimensions")
    if ctx.attribute("storage_order", 0):
        raise RefusedError("stores columns first", "leave storage_order away")
    found = window(ctx, kernel, rank, shape[2:])
    if ctx.attribute("ceil_mode", 0):
        found = ceiled(found, kernel, shape[2:])
    sizes = (1, kernel[0]) if rank == 3 else kernel
    return {**found, "kernel_h": int(sizes[0]), "kernel_w": int(sizes[1])}


def ceiled(found: dict[str, int], kernel: Sequence[int], size: Sequence[int]) -> dict[str, int]:
    """Padding at the end that gives the last window a place, as far as it begins in the image."""
    sides = (("h", "pad_top", "pad_bottom"), ("w", "pad_left", "pad_right"))[-len(kernel) :]
    for (side, first, last), k, length in zip(sides, kernel, size, strict=True):
        stride, dilation = max(found[f"stride_{side}"], 1), found[f"dilation_{side}"]
        room = length + found[first] + found[last] - dilation * (k - 1) - 1
        steps = -(-room // stride)
        if steps * stride >= length + found[first]:
            steps -= 1
        found = {**found, last: max(found[last], found[last] + steps * stride - room)}
    return found


def average_pool(ctx: Context) -> Value:
    """ONNX Runtime's QLinearAveragePool adds in float32, tap by tap, and so does the graph."""
    x, target = ctx.value(0), ctx.target()
    attributes = pool_attributes(ctx, shape_of(x))
    if (attributes["dilation_h"], attributes["dilation_w"]) != (1, 1):
        raise RefusedError("has dilations")
    counted = bool(ctx.attribute("count_include_pad", 0))
    if counted and ctx.attribute("ceil_mode", 0):
        raise RefusedError(
            "rounds its size up (ceil_mode) and counts padding", "leave count_include_pad or ceil_mode away"
        )
    integers = integer_target(x, target)
    if integers is None:
        in_float(ctx)
    y = ctx.emit(AvgPool2d(**attributes, count_include_pad=counted), [ctx.image(ctx.real(x))])
    if integers is None:
        return ctx.from_image(y, len(shape_of(x)))
    unsigned = integers.dtype == "uint8"
    found = ctx.to_scale(y, integers, rounding="half_even_sum_u8" if unsigned else "half_even_sum")
    moved = ctx.from_image(found.tensor, len(shape_of(x)))
    return Bytes(moved, unsigned, plain_reals(integers.per_tensor()))


def global_max_pool(ctx: Context) -> Value:
    x = ctx.value(0)
    rank = len(shape_of(x))
    if rank < 3:
        raise RefusedError(f"works on {rank} dimensions")
    attrs = Amax(tuple(range(2, rank)), True)
    if isinstance(x, Bytes) and x.is_plain:
        return x.of(ctx.emit(attrs, [x.tensor]))
    return ctx.emit(attrs, [ctx.real(x)])


def global_average_pool(ctx: Context) -> Value:
    x = ctx.value(0)
    rank, target = len(shape_of(x)), ctx.target()
    if rank < 3:
        raise RefusedError(f"works on {rank} dimensions")
    axes = tuple(range(2, rank))
    if isinstance(x, Bytes) and x.is_plain and target is not None:
        return mean(ctx, x, axes, True, target)
    in_float(ctx)
    return ctx.emit(Mean(axes, True), [ctx.real(x)])


def axes_and_keep(ctx: Context) -> tuple[tuple[int, ...], bool] | None:
    """Of a reduction; None for one that reduces nothing."""
    rank = len(shape_of(ctx.value(0)))
    given = ctx.integers(1, "axes") if ctx.has(1) else ctx.attribute("axes", [])
    if not given and ctx.attribute("noop_with_empty_axes", 0):
        return None
    return axes_of(given or range(rank), rank), bool(ctx.attribute("keepdims", 1))


def reduce_mean(ctx: Context) -> Value:
    x, target, asked = ctx.value(0), ctx.target(), axes_and_keep(ctx)
    if asked is None:
        return x
    axes, keep = asked
    if isinstance(x, Bytes) and x.is_plain and target is not None:
        ctx.inexact(
            "its mean is computed in integers; ONNX Runtime averages in float32, and can differ by 1 where a mean is "
            "next to a half",
            "use GlobalAveragePool",
        )
        return mean(ctx, x, axes, keep, target)
    in_float(ctx)
    return ctx.emit(Mean(axes, keep), [ctx.real(x)])


def mean(ctx: Context, x: Bytes, axes: tuple[int, ...], keep: bool, target: Scale) -> Value:
    quant = target.per_tensor()
    rank = len(x.tensor.shape)
    if rank == 4 and axes == (2, 3):
        y = ctx.emit(Mean((1, 2), True, "half_even"), [ctx.image(x.tensor)], quant)
        y = ctx.from_image(y, 4)
        y = y if keep else ctx.reshape(y, y.shape[:2])
    else:
        y = ctx.emit(Mean(axes, keep, "half_even"), [x.tensor], quant)
    return Bytes(y, target.dtype == "uint8", plain_reals(quant))


EXTREMES: dict[str, type[Amax] | type[Amin]] = {"ReduceMax": Amax, "ReduceMin": Amin}


def extreme(ctx: Context) -> Value:
    """ReduceMax and ReduceMin, of integers, too."""
    x, asked = ctx.value(0), axes_and_keep(ctx)
    if asked is None:
        return x
    kind = EXTREMES[ctx.node.op]
    if isinstance(x, Bytes) and x.is_plain:
        return x.of(ctx.emit(kind(*asked), [x.tensor]))
    return ctx.emit(kind(*asked), [ctx.real(x)])


SUMS = ("ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare")


def summed(ctx: Context) -> Value:
    """Sums in float32: of the values, their sizes, or their squares, or the root of the latter."""
    op, asked, x = ctx.node.op, axes_and_keep(ctx), ctx.value(0)
    in_float(ctx)
    if asked is None and op == "ReduceSum":
        return x
    y = ctx.real(x)
    if op != "ReduceSum":
        y = ctx.emit(Unary("abs" if op == "ReduceL1" else "square"), [y])
    y = y if asked is None else ctx.emit(Sum(*asked), [y])
    return ctx.emit(Unary("sqrt"), [y]) if op == "ReduceL2" else y


def running_sum(ctx: Context) -> Value:
    x = ctx.real(ctx.value(0))
    (axis,) = (*ctx.integers(1, "axis"), 0)[:1]
    if ctx.attribute("exclusive", 0) or ctx.attribute("reverse", 0):
        raise RefusedError(
            "sums backwards, or without the element itself", "leave exclusive and reverse away"
        )
    in_float(ctx)
    return ctx.emit(CumSum(axis_of(axis, len(x.shape))), [x])


def argmax(ctx: Context) -> Value:
    """ArgMax; ArgMin of what is negated."""
    x = ctx.value(0)
    axis = axis_of(ctx.attribute("axis", 0), len(shape_of(x)))
    if ctx.attribute("select_last_index", 0):
        raise RefusedError("takes the last of several", "leave select_last_index away")
    keep = bool(ctx.attribute("keepdims", 1))
    if ctx.node.op == "ArgMin":
        source = ctx.emit(Unary("neg"), [ctx.real(x)])
    else:
        source = x.tensor if isinstance(x, Bytes) and x.is_plain else ctx.real(x)
    return ctx.emit(ArgMax(axis, keep), [source], dtype=DType.INT32)
