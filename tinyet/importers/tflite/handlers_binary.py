# SPDX-License-Identifier: Apache-2.0
"""Handlers of functions of two values, comparisons and choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.activation import bounds_of
from tinyet.importers.tflite.building import (
    EVERY,
    broadcast,
    common_shape,
    finish,
    operand,
    real,
    relabelled,
    spread,
    tabulated,
    tflm,
    whole,
)
from tinyet.importers.tflite.context import Context, Handler
from tinyet.ir import Array, DType, QuantParams, Shape, Tensor, TensorType
from tinyet.numerics import NO_CLAMP, Int64, quantize_multiplier, requantize
from tinyet.ops.add import Add
from tinyet.ops.compare import Compare, Relation
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.div import Div
from tinyet.ops.maximum import Maximum
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.pairwise import PairFunction, Pairwise
from tinyet.ops.requantize import Requantize
from tinyet.ops.squared_difference import SquaredDifference
from tinyet.ops.sub import Sub
from tinyet.ops.unary import Unary
from tinyet.ops.where import Where
from tinyet.tflite.options import AddOptions, DivOptions, MulOptions, SubOptions

Exact = Callable[[Array, Array], Any]

_NEARLY_A_POWER = 1e-3
"""Of two, by its logarithm."""


def _both(ctx: Context) -> tuple[Tensor, Tensor]:
    """Both inputs, of the output's shape when they are broadcast. Raises RefusedError."""
    ctx.expect_inputs(2)
    a, b = ctx.x(0), ctx.x(1)
    if a.dtype is not b.dtype:
        raise RefusedError(f"takes {a.dtype.value} with {b.dtype.value}")
    return a, b


def _whole(ctx: Context, function: PairFunction, bounds: tuple[float, float] = NO_CLAMP) -> bool:
    """Whether both inputs are int32, and the output is now the function's result, within bounds."""
    a, b = _both(ctx)
    if a.dtype is not DType.INT32:
        return False
    shape = common_shape(a, b)
    y = ctx.emit_as(Pairwise(function), [operand(ctx, a, shape), operand(ctx, b, shape)], whole(shape))
    sides: tuple[PairFunction, PairFunction] = ("maximum", "minimum")
    for side, bound in zip(sides, bounds, strict=True):
        if np.isfinite(bound):
            limit = ctx.new_constant("bound", np.array(int(bound), np.int32))
            y = ctx.emit_as(Pairwise(side), [y, limit], whole(shape))
    finish(ctx, y)
    return True


def _activation(
    ctx: Context, kind: type[AddOptions | SubOptions | MulOptions | DivOptions]
) -> tuple[float, float]:
    return bounds_of(ctx.options(kind).fused_activation_function)


def _refuse_powers_of_two(ctx: Context, kind: type[AddOptions | SubOptions]) -> None:
    """LiteRT rounds the finer of two int16 operands to the output's scale before it adds, where a file allows that and
    all scales are powers of two; with one for all there is nothing to round. Raises RefusedError."""
    if ctx.runtime == "tflm" or not ctx.options(kind).pot_scale_int16:
        return
    types = [ctx.x(0).type, ctx.x(1).type, ctx.out_type()]
    if any(type_.dtype is not DType.INT16 for type_ in types) or len({type_.scale for type_ in types}) == 1:
        return
    if all(abs(math.log2(type_.scale) - round(math.log2(type_.scale))) < _NEARLY_A_POWER for type_ in types):
        raise RefusedError(
            "adds int16 values whose scales are powers of two, which LiteRT rounds before it adds",
            'take the bits of TFLM: runtime="tflm"',
        )


def add(ctx: Context) -> None:
    """TFLM leaves the activation of int32 away."""
    _refuse_powers_of_two(ctx, AddOptions)
    bounds = _activation(ctx, AddOptions)
    if not _whole(ctx, "add", NO_CLAMP if ctx.runtime == "tflm" else bounds):
        ctx.emit(Add(bounds), _both(ctx))


def sub(ctx: Context) -> None:
    _refuse_powers_of_two(ctx, SubOptions)
    bounds = _activation(ctx, SubOptions)
    if not _whole(ctx, "sub", bounds):
        ctx.emit(Sub(bounds), _both(ctx))


def mul(ctx: Context) -> None:
    bounds = _activation(ctx, MulOptions)
    if not _whole(ctx, "mul", bounds):
        ctx.emit(Mul(bounds, tflm(ctx)), _both(ctx))


def div(ctx: Context) -> None:
    bounds = _activation(ctx, DivOptions)
    if not _whole(ctx, "div", bounds):
        ctx.emit(Div(bounds), _both(ctx))


def _extremum(kind: type[Maximum | Minimum], function: PairFunction) -> Handler:
    """The integers are compared as they are."""

    def row(ctx: Context) -> None:
        if _whole(ctx, function):
            return
        a, b = _both(ctx)
        other = b if a.is_constant else a
        x, y = relabelled(ctx, a, other.type.quant), relabelled(ctx, b, other.type.quant)
        shape = common_shape(x, y)
        finish(ctx, ctx.emit_as(kind(), [x, y], TensorType(shape, x.dtype, x.type.quant)))

    return row


def squared_difference(ctx: Context) -> None:
    if _whole(ctx, "squared_difference"):
        return
    a, b = _both(ctx)
    if a.dtype is not DType.FLOAT32:
        ctx.emit(SquaredDifference(), [a, b])
        return
    difference = ctx.emit_as(Sub(), [a, b], real(ctx.out_type().shape))
    ctx.emit(Mul(), [difference, difference])


def add_n(ctx: Context) -> None:
    """In float32 one after another. In int8 all of them, less their zero point, are summed before one rescaling; TFLM's
    sum begins with -zero point instead of 0, and so does this one."""
    ctx.expect_inputs(2, 1 << 10)
    parts, out = [ctx.x(position) for position in range(len(ctx.op.inputs))], ctx.out_type()
    first = parts[0]
    if first.dtype is DType.FLOAT32:
        total = first
        for part in parts[1:]:
            total = ctx.emit_as(Add(), [total, part], out)
        finish(ctx, total)
        return
    if first.dtype is not DType.INT8 or any(part.type.quant != first.type.quant for part in parts):
        raise RefusedError(f"adds {len(parts)} values of {first.dtype.value} or of different scales")
    finish(ctx, _sum_of_bytes(ctx, parts, out))


def _sum_of_bytes(ctx: Context, parts: list[Tensor], out: TensorType) -> Tensor:
    """The sum in int16, whose additions are exact where all scales agree; the last one rescales. Raises RefusedError
    where that gives other bits than the original, whose sums are shifted left by five bits more."""
    scale = parts[0].type.scale
    factor = quantize_multiplier(2 * scale / (2.0**20 * out.scale))
    own = quantize_multiplier(2 * scale / (2.0**15 * out.scale))
    most = 255 * len(parts) + 128
    sums = np.arange(-most, most + 1)
    if (
        not -(2**15) <= 256 * (len(parts) + 1) < 2**15
        or (
            requantize(sums << 19, factor.multiplier, factor.shift)
            != requantize(sums << 14, own.multiplier, own.shift)
        ).any()
    ):
        raise RefusedError(
            f"adds {len(parts)} values, which the original rounds otherwise", "add them in pairs"
        )
    wide = TensorType(out.shape, DType.INT16, QuantParams.per_tensor(scale, 0))
    values = [ctx.emit_as(Requantize(), [part], wide) for part in parts]
    start = np.full((1,) * len(out.shape), -parts[0].type.zero_point, np.int16)
    values.append(ctx.new_constant("start", start, wide.quant))
    total = values[0]
    for value in values[1:-1]:
        total = ctx.emit_as(Add(), [total, value], wide)
    last = TensorType(out.shape, DType.INT16, QuantParams.per_tensor(out.scale, 0))
    return ctx.emit_as(Requantize(), [ctx.emit_as(Add(), [total, values[-1]], last)], out)


def _divided(function: PairFunction) -> Handler:
    def row(ctx: Context) -> None:
        if not _whole(ctx, function):
            raise RefusedError(
                f"divides {ctx.x(0).dtype.value} values", "divide int32, or round a quotient down"
            )

    return row


def power(ctx: Context) -> None:
    """float32, the exponent a constant."""
    a, _ = _both(ctx)
    exponent = ctx.find_constant(1)
    if a.dtype is not DType.FLOAT32 or exponent is None or len(set(exponent.data.reshape(-1).tolist())) != 1:
        raise RefusedError("takes powers that are not one constant for all", "make the exponent a constant")
    a = spread(ctx, a, ctx.out_type().shape)
    ctx.emit(Unary("pow", float(exponent.data.reshape(-1)[0])), [a])


# ---------------------------------------------------------------- comparisons


def _ranked(ctx: Context, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """int8 of two scales as float32 that compare as the original's do: it rescales each, shifted left by eight bits, by
    its own scale. Their ranks among all results are whole numbers that float32 holds."""

    def rescaled(x: Tensor) -> Int64:
        factor = quantize_multiplier(x.type.scale)
        if factor.shift > 0:
            raise RefusedError(f"compares values of a scale of {x.type.scale}, 1 and more")
        return requantize((EVERY - x.type.zero_point) << 8, factor.multiplier, factor.shift)

    every = np.unique(np.concatenate([rescaled(a), rescaled(b)]))
    quant = QuantParams.per_tensor(1.0, 0)

    def rank(x: Tensor) -> Tensor:
        type_ = TensorType(x.shape, DType.INT16, quant)
        ranks = tabulated(ctx, x, np.searchsorted(every, rescaled(x)).astype(np.int64), type_)
        return ctx.emit_as(Dequantize(), [ranks], real(x.shape))

    return rank(a), rank(b)


def _compared(relation: Relation, exact: Exact, swapped: bool = False) -> Handler:
    def row(ctx: Context) -> None:
        if _folded_truth(ctx, exact):
            return
        a, b = _both(ctx)
        if a.dtype is DType.INT8:
            a, b = _ranked(ctx, a, b)
        if a.dtype not in (DType.FLOAT32, DType.INT32):
            raise RefusedError(f"compares {a.dtype.value} values")
        shape = common_shape(a, b)
        a, b = operand(ctx, a, shape), operand(ctx, b, shape)
        finish(
            ctx, ctx.emit_as(Compare(relation), [b, a] if swapped else [a, b], TensorType(shape, DType.INT32))
        )

    return row


def _folded_truth(ctx: Context, exact: Exact) -> bool:
    a, b = (ctx.find_constant(position) for position in range(2))
    if a is None or b is None or a.data.dtype.kind not in "iub" or b.data.dtype.kind not in "iub":
        return False
    if a.quant is not None or b.quant is not None:
        return False
    shape = broadcast(a.shape, b.shape)
    if ctx.out_info().shape != shape:
        raise RefusedError(f"gives {list(shape)}, the file says {list(ctx.out_info().shape)}")
    ctx.all.budget.fold(math.prod(shape))
    ctx.fold(np.asarray(exact(a.data, b.data)).astype(np.int32).reshape(shape))
    return True


def _chosen(ctx: Context, condition: Tensor, a: Tensor, b: Tensor, shape: Shape) -> None:
    inputs = [operand(ctx, x, shape) for x in (condition, a, b)]
    finish(ctx, ctx.emit_as(Where(), inputs, TensorType(shape, a.dtype, a.type.quant)))


def logical_and(ctx: Context) -> None:
    a, b = _both(ctx)
    zero = ctx.new_constant("zero", np.zeros((), np.int32))
    _chosen(ctx, a, b, zero, common_shape(a, b))


def logical_or(ctx: Context) -> None:
    a, b = _both(ctx)
    one = ctx.new_constant("one", np.ones((), np.int32))
    _chosen(ctx, a, one, b, common_shape(a, b))


def select(ctx: Context) -> None:
    """inputs: condition, a, b. Integers are taken as they are. A condition of one dimension for more chooses among the
    first (SELECT)."""
    ctx.expect_inputs(3)
    condition, a, b = (ctx.x(position) for position in range(3))
    if ctx.op.code == "SELECT" and len(condition.shape) == 1 and len(a.shape) > 1:
        condition = ctx.reshape(condition, (*condition.shape, *(1,) * (len(a.shape) - 1)))
    if condition.dtype is not DType.INT32 or a.dtype is not b.dtype:
        raise RefusedError(f"chooses between {a.dtype.value} and {b.dtype.value} by {condition.dtype.value}")
    quant = ctx.out_type().quant
    a, b = relabelled(ctx, a, quant), relabelled(ctx, b, quant)
    _chosen(ctx, condition, a, b, common_shape(condition, a, b))


HANDLERS: Mapping[str, Handler] = {
    "ADD": add,
    "SUB": sub,
    "MUL": mul,
    "DIV": div,
    "MAXIMUM": _extremum(Maximum, "maximum"),
    "MINIMUM": _extremum(Minimum, "minimum"),
    "SQUARED_DIFFERENCE": squared_difference,
    "ADD_N": add_n,
    "FLOOR_DIV": _divided("floor_div"),
    "FLOOR_MOD": _divided("floor_mod"),
    "POW": power,
    "EQUAL": _compared("equal", np.equal),
    "NOT_EQUAL": _compared("not_equal", np.not_equal),
    "GREATER": _compared("greater", np.greater),
    "GREATER_EQUAL": _compared("greater_equal", np.greater_equal),
    "LESS": _compared("greater", np.less, swapped=True),
    "LESS_EQUAL": _compared("greater_equal", np.less_equal, swapped=True),
    "LOGICAL_AND": logical_and,
    "LOGICAL_OR": logical_or,
    "SELECT": select,
    "SELECT_V2": select,
}
