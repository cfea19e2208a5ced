# SPDX-License-Identifier: Apache-2.0
"""Handlers of functions of one value. A kernel's own arithmetic on an int8 becomes a table of 256 bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite import fixed_point
from tinyet.importers.tflite.building import EVERY, finish, tabulated, tflm
from tinyet.importers.tflite.context import Context, Handler
from tinyet.ir import DType, Tensor, TensorType
from tinyet.numerics import Int64, round_half_away
from tinyet.ops.clamp import Clamp
from tinyet.ops.compare import Compare
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.mul import Mul
from tinyet.ops.prelu import PRelu
from tinyet.ops.shared.unary_functions import FunctionName
from tinyet.ops.softmax import Softmax
from tinyet.ops.unary import Unary
from tinyet.tflite.options import GeluOptions, LeakyReluOptions, SoftmaxOptions

FLOAT, INT8, INT16 = DType.FLOAT32, DType.INT8, DType.INT16
_FIXED_OUT = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}


def _types(ctx: Context, *kinds: DType) -> Tensor:
    """The only input, of one of some types, which the output has, too."""
    ctx.expect_inputs(1)
    x, out = ctx.x(0), ctx.out_type()
    if x.dtype not in kinds or out.dtype is not x.dtype:
        raise RefusedError(f"makes {out.dtype.value} of {x.dtype.value}")
    return x


def _plain(function: FunctionName, *kinds: DType) -> Handler:
    def handler(ctx: Context) -> None:
        ctx.emit(Unary(function), [_types(ctx, *kinds)])

    return handler


def absolute(ctx: Context) -> None:
    ctx.emit(Unary("abs", tflm=tflm(ctx)), [_types(ctx, INT8, INT16, FLOAT)])


def _squashed(
    function: FunctionName, fixed: Callable[[Int64, float], Int64], out: tuple[float, int]
) -> Handler:
    """LOGISTIC and TANH: in int8, TFLM has fixed-point arithmetic, LiteRT a table made in float."""

    def handler(ctx: Context) -> None:
        x, type_ = _types(ctx, DType.INT8, DType.INT16, DType.FLOAT32), ctx.out_type()
        if x.dtype is DType.INT8 and ctx.runtime == "tflm":
            if type_.zero_point != out[1] or type_.scale != out[0]:
                raise RefusedError(f"gives a scale of {type_.scale} and a zero point of {type_.zero_point}")
            finish(ctx, tabulated(ctx, x, fixed(EVERY - x.type.zero_point, x.type.scale), type_))
        else:
            ctx.emit(Unary(function), [x])

    return handler


def _of_float32(ctx: Context, x: Tensor, out: TensorType, values: np.ndarray) -> None:
    """A table of a function's results, computed in float32: times 1 / scale, halves away from zero, zero point."""
    with np.errstate(all="ignore"):
        scaled = values.astype(np.float32) * (np.float32(1) / np.float32(out.scale))
    rounded = round_half_away(np.clip(np.nan_to_num(scaled), -1e6, 1e6)).astype(np.int64) + out.zero_point
    finish(ctx, tabulated(ctx, x, rounded, out))


def _reals(x: Tensor) -> np.ndarray:
    """The numbers that EVERY stands for, in float32."""
    steps = (EVERY - x.type.zero_point).astype(np.float32)
    return np.asarray(np.float32(x.type.scale) * steps, np.float32)


def elu(ctx: Context) -> None:
    """TFLM takes 1 from an exponential in float32."""
    x, out = _types(ctx, DType.INT8, DType.FLOAT32), ctx.out_type()
    if x.dtype is DType.INT8 and ctx.runtime == "tflm":
        reals = _reals(x)
        exponentials = np.exp(np.minimum(reals, 0).astype(np.float64)).astype(np.float32)
        _of_float32(ctx, x, out, np.where(reals < 0, exponentials - np.float32(1), reals))
    else:
        ctx.emit(Unary("elu", 1.0), [x])


def leaky_relu(ctx: Context) -> None:
    x = _types(ctx, DType.INT8, DType.INT16, DType.FLOAT32)
    ctx.emit(Unary("leaky_relu", ctx.options(LeakyReluOptions).alpha, tflm=tflm(ctx)), [x])


def gelu(ctx: Context) -> None:
    x = _types(ctx, DType.INT8, DType.FLOAT32)
    ctx.emit(Unary("gelu_tanh" if ctx.options(GeluOptions).approximate else "gelu"), [x])


def rsqrt(ctx: Context) -> None:
    x, out = _types(ctx, DType.INT8, DType.FLOAT32), ctx.out_type()
    if x.dtype is DType.FLOAT32:
        ctx.emit(Unary("rsqrt"), [x])
        return
    # A number below zero stops the original kernel; here it counts as 0.
    steps = np.maximum(EVERY - x.type.zero_point, 0)
    found = fixed_point.reciprocal_root(steps, x.type.scale, out.scale)
    finish(ctx, tabulated(ctx, x, np.where(steps == 0, 127, found + out.zero_point), out))


def square_root(ctx: Context) -> None:
    """TFLM has it in float32 only. LiteRT's int8 cuts off fractions of a step."""
    x, out = _types(ctx, DType.INT8, DType.FLOAT32), ctx.out_type()
    if x.dtype is DType.FLOAT32:
        ctx.emit(Unary("sqrt"), [x])
        return
    # A number below zero stops the original kernel; here it counts as 0.
    steps = np.floor(np.sqrt(np.maximum(_reals(x), 0)) / np.float32(out.scale))
    finish(ctx, tabulated(ctx, x, np.minimum(steps, 1e6).astype(np.int64) + out.zero_point, out))


def _clamp(low: float, high: float) -> Handler:
    def handler(ctx: Context) -> None:
        ctx.emit(Clamp(low, high, tflm(ctx)), [_types(ctx, DType.INT8, DType.INT16, DType.FLOAT32)])

    return handler


def relu6(ctx: Context) -> None:
    """TFLM clamps integers as they are, in the input's scale; LiteRT takes them to the output's."""
    x = _types(ctx, DType.INT8, DType.INT16, DType.FLOAT32)
    type_ = x.type if ctx.runtime == "tflm" else ctx.out_type()
    finish(ctx, ctx.emit_as(Clamp(0.0, 6.0), [x], type_))


def prelu(ctx: Context) -> None:
    ctx.expect_inputs(2)
    x, slope = ctx.x(0), ctx.x(1)
    if x.dtype is not slope.dtype:
        raise RefusedError(f"has {slope.dtype.value} slopes for {x.dtype.value} values")
    ctx.emit(PRelu(tflm(ctx)), [x, slope])


def logical_not(ctx: Context) -> None:
    x = ctx.x(0)
    zero = ctx.new_constant("zero", np.zeros((), np.int32))
    ctx.emit(Compare("equal"), [x, zero])


def softmax(ctx: Context) -> None:
    x, beta = ctx.x(0), ctx.options(SoftmaxOptions).beta
    if not x.shape:
        raise RefusedError("has no axis")
    if x.dtype is DType.FLOAT32 and beta != 1.0:
        x = ctx.emit_as(Mul(), [x, ctx.new_constant("beta", np.array([beta], np.float32))], x.type)
        beta = 1.0
    ctx.emit(Softmax(len(x.shape) - 1, beta, tflm(ctx)), [x])


def log_softmax(ctx: Context) -> None:
    x = ctx.x(0)
    ctx.emit(LogSoftmax(len(x.shape) - 1), [x])


HANDLERS: Mapping[str, Handler] = {
    "ABS": absolute,
    "CEIL": _plain("ceil", FLOAT),
    "COS": _plain("cos", FLOAT),
    "EXP": _plain("exp", INT8, INT16, FLOAT),
    "FLOOR": _plain("floor", FLOAT),
    "GELU": gelu,
    "HARD_SWISH": _plain("hardswish", INT8, FLOAT),
    "LEAKY_RELU": leaky_relu,
    "LOG": _plain("log", INT8, INT16, FLOAT),
    "LOGISTIC": _squashed("sigmoid", fixed_point.logistic, _FIXED_OUT["LOGISTIC"]),
    "TANH": _squashed("tanh", fixed_point.tanh, _FIXED_OUT["TANH"]),
    "NEG": _plain("neg", FLOAT),
    "RELU": _clamp(0.0, math.inf),
    "RELU6": relu6,
    "RELU_N1_TO_1": _clamp(-1.0, 1.0),
    "RELU_0_TO_1": _clamp(0.0, 1.0),
    "ROUND": _plain("round", FLOAT),
    "RSQRT": rsqrt,
    "SIGN": _plain("sign", FLOAT),
    "SIN": _plain("sin", FLOAT),
    "SQRT": square_root,
    "SQUARE": _plain("square", FLOAT),
    "ELU": elu,
    "PRELU": prelu,
    "LOGICAL_NOT": logical_not,
    "SOFTMAX": softmax,
    "LOG_SOFTMAX": log_softmax,
}
