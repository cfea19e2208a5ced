# SPDX-License-Identifier: Apache-2.0
"""Handlers that reduce values along axes, or make running sums."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.activation import bounds_of
from tinyet.importers.tflite.building import (
    EVERY,
    axis_of,
    finish,
    flipped,
    moved,
    permuted,
    piece,
    real,
    tabulated,
)
from tinyet.importers.tflite.context import Context, Handler
from tinyet.ir import DType, Tensor, TensorType
from tinyet.numerics import NO_CLAMP, quantize_multiplier, requantize
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.cast import Cast
from tinyet.ops.compare import Compare
from tinyet.ops.cumsum import CumSum
from tinyet.ops.div import Div
from tinyet.ops.l2_normalize import L2Normalize
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.mul import Mul
from tinyet.ops.pad import Pad
from tinyet.ops.shared.integers import INTEGERS
from tinyet.ops.shared.reduction import Reduce
from tinyet.ops.sum import Sum
from tinyet.ops.unary import Unary
from tinyet.tflite.options import CumsumOptions, L2NormOptions, ReducerOptions

_LEAST_NORM = 1e-6
_MOST_FACTORS = 64


def _axes(ctx: Context, x: Tensor) -> tuple[int, ...]:
    """The axes, each once; none of a value without dimensions."""
    ctx.expect_inputs(2)
    return tuple(sorted({axis_of(axis, len(x.shape)) for axis in ctx.numbers(1, "axes") if x.shape}))


def _reduce(kind: type[Reduce]) -> Handler:
    def row(ctx: Context) -> None:
        x = ctx.x(0)
        axes, keep = _axes(ctx, x), ctx.options(ReducerOptions).keep_dims
        if kind is Sum and x.dtype in INTEGERS and ctx.runtime == "litert":
            raise RefusedError(
                f"sums {x.dtype.value}, which LiteRT's reference kernel reads as unsigned bytes",
                'take the bits of TFLM: runtime="tflm"',
            )
        if not axes:
            finish(ctx, x)
        else:
            ctx.emit(kind(axes, keep), [x])

    return row


def _of_truth(kind: type[Reduce]) -> Handler:
    """REDUCE_ALL and REDUCE_ANY: the least, the greatest of zeros and ones."""

    def row(ctx: Context) -> None:
        x = ctx.x(0)
        axes, keep, out = _axes(ctx, x), ctx.options(ReducerOptions).keep_dims, ctx.out_type()
        if x.dtype is not DType.INT32 or not axes:
            raise RefusedError(f"reduces {x.dtype.value} values along {len(axes)} axes")
        numbers = ctx.emit_as(Cast(), [x], real(x.shape))
        best = ctx.emit_as(kind(axes, keep), [numbers], real(out.shape))
        ctx.emit(Compare("not_equal"), [best, ctx.new_constant("zero", np.zeros((), np.float32))])

    return row


def reduce_prod(ctx: Context) -> None:
    """float32: one factor after another in row-major order."""
    x = ctx.x(0)
    axes, out = _axes(ctx, x), ctx.out_type()
    count = math.prod(x.shape[axis] for axis in axes)
    if x.dtype is not DType.FLOAT32 or not axes:
        raise RefusedError(f"multiplies {x.dtype.value} values along {len(axes)} axes")
    if count > _MOST_FACTORS:
        raise RefusedError(f"multiplies {count} values, at most {_MOST_FACTORS}")
    kept = [axis for axis in range(len(x.shape)) if axis not in axes]
    flat = ctx.reshape(permuted(ctx, x, (*axes, *kept)), (count, out.count))
    product = piece(ctx, flat, 0, 0, 1)
    for index in range(1, count):
        product = ctx.emit_as(Mul(), [product, piece(ctx, flat, 0, index, index + 1)], real((1, out.count)))
    finish(ctx, product)


def _arg(greatest: bool) -> Handler:
    """The first of ties; the least is the greatest of the opposite order."""

    def row(ctx: Context) -> None:
        ctx.expect_inputs(2)
        x, axis = ctx.x(0), ctx.number(1, "axis")
        if not greatest and x.dtype is DType.FLOAT32:
            x = ctx.emit_as(Unary("neg"), [x], x.type)
        elif not greatest and x.dtype is DType.INT8:
            x = tabulated(ctx, x, -1 - EVERY, x.type)
        elif not greatest:
            raise RefusedError(f"finds the least of {x.dtype.value}")
        ctx.emit(ArgMax(axis_of(axis, len(x.shape))), [x])

    return row


def cumsum(ctx: Context) -> None:
    ctx.expect_inputs(2)
    options, x, out = ctx.options(CumsumOptions), ctx.x(0), ctx.out_type()
    axis = axis_of(ctx.number(1, "axis"), len(x.shape))
    if x.dtype is not out.dtype:
        raise RefusedError(f"sums {x.dtype.value} as {out.dtype.value}")
    if x.dtype is DType.INT8:
        _check_cumsum(x.type, out, x.shape[axis])
    if options.reverse:
        x = flipped(ctx, x, [axis])
    if options.exclusive:
        pads = tuple((1, -1) if a == axis else (0, 0) for a in range(len(x.shape)))
        x = moved(ctx, Pad(pads), x, x.shape) if x.shape[axis] > 1 else _zeros(ctx, x)
    y = ctx.emit_as(CumSum(axis), [x], TensorType(x.shape, out.dtype, out.quant))
    finish(ctx, flipped(ctx, y, [axis]) if options.reverse else y)


def _zeros(ctx: Context, x: Tensor) -> Tensor:
    zero = x.type.zero_point if x.type.quant is not None else 0
    return ctx.new_constant("zeros", ctx.filled(x.shape, zero, x.dtype), x.type.quant)


def _check_cumsum(x: TensorType, out: TensorType, depth: int) -> None:
    """TFLM sums values that are shifted left by 19 bits. Raises RefusedError where that gives other bits than sums
    that are rescaled as they are."""
    plain = quantize_multiplier(x.scale / out.scale)
    shifted = quantize_multiplier(2 * x.scale / (2.0**20 * out.scale))
    # Of more than 16 the shifted sums leave 32 bits.
    sums = np.arange(-255 * min(depth, 16), 255 * min(depth, 16) + 1)
    same = depth <= 16 and bool(
        (
            requantize(sums, plain.multiplier, plain.shift)
            == requantize(sums << 19, shifted.multiplier, shifted.shift)
        ).all()
    )
    if not same:
        raise RefusedError(
            f"sums {depth} int8 values, which the original rounds otherwise", "keep running sums in float32"
        )


def l2_normalization(ctx: Context) -> None:
    """x / max(root of the sum of squares along the last axis, 1e-6); of int8, in the arithmetic of both runtimes."""
    x = ctx.x(0)
    if bounds_of(ctx.options(L2NormOptions).fused_activation_function) != NO_CLAMP:
        raise RefusedError("has a fused activation", "let the converter keep it as an operator of its own")
    if not x.shape:
        raise RefusedError("has no axis")
    if x.dtype is DType.INT8:
        ctx.emit(L2Normalize(), [x])
        return
    if x.dtype is not DType.FLOAT32:
        raise RefusedError(f"normalizes {x.dtype.value} values", "keep the normalization in int8 or float32")
    last, norm = len(x.shape) - 1, real((*x.shape[:-1], 1))
    squares = ctx.emit_as(Mul(), [x, x], x.type)
    total = ctx.emit_as(Sum((last,), True), [squares], norm)
    root = ctx.emit_as(Unary("sqrt"), [total], norm)
    least = ctx.new_constant("least", np.array([_LEAST_NORM], np.float32))
    ctx.emit(Div(), [x, ctx.emit_as(Maximum(), [root, least], norm)])


HANDLERS: Mapping[str, Handler] = {
    "MEAN": _reduce(Mean),
    "SUM": _reduce(Sum),
    "REDUCE_MAX": _reduce(Amax),
    "REDUCE_MIN": _reduce(Amin),
    "REDUCE_ALL": _of_truth(Amin),
    "REDUCE_ANY": _of_truth(Amax),
    "REDUCE_PROD": reduce_prod,
    "ARG_MAX": _arg(True),
    "ARG_MIN": _arg(False),
    "CUMSUM": cumsum,
    "L2_NORMALIZATION": l2_normalization,
}
