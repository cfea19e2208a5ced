# SPDX-License-Identifier: Apache-2.0
"""Handlers of operators of two operands, and along axes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.exporters.tflite.clip import emit_clamped
from tinyet.exporters.tflite.context import Context, Handler, RefusedError
from tinyet.exporters.tflite.moves import reshaped
from tinyet.ir import Attrs, DType
from tinyet.numerics import clamp_range, quantize_multiplier, requantize
from tinyet.ops import mul as mul_op
from tinyet.ops.add import Add
from tinyet.ops.amax import Amax
from tinyet.ops.amin import Amin
from tinyet.ops.argmax import ArgMax
from tinyet.ops.div import Div
from tinyet.ops.log_softmax import LITERT as LOG_SOFTMAX_OUT
from tinyet.ops.log_softmax import LogSoftmax
from tinyet.ops.maximum import Maximum
from tinyet.ops.mean import Mean
from tinyet.ops.minimum import Minimum
from tinyet.ops.mul import Mul
from tinyet.ops.prelu import PRelu
from tinyet.ops.shared import softmax as softmax_rule
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.reduction import Reduce
from tinyet.ops.softmax import LITERT_S8, LITERT_S16, Softmax
from tinyet.ops.sub import Sub
from tinyet.ops.sum import Sum
from tinyet.tflite.enumerations import TYPES
from tinyet.tflite.options import (
    AddOptions,
    ArgMaxOptions,
    DivOptions,
    MulOptions,
    Options,
    ReducerOptions,
    SoftmaxOptions,
    SubOptions,
)


def add(ctx: Context) -> None:
    emit_clamped(ctx, "ADD", [ctx.x(0), ctx.x(1)], lambda number: AddOptions(number, pot_scale_int16=False))


def sub(ctx: Context) -> None:
    emit_clamped(ctx, "SUB", [ctx.x(0), ctx.x(1)], lambda number: SubOptions(number, pot_scale_int16=False))


def mul(ctx: Context) -> None:
    """TFLM takes the factor in float64, LiteRT in float32. Where they differ, all products of int8 are tried."""
    if ctx.node.output.dtype is not DType.FLOAT32 and not _same_in_float64(ctx):
        ctx.unlike("tflm", "rounds the factor of this MUL otherwise: products can differ by 1")
    emit_clamped(ctx, "MUL", [ctx.x(0), ctx.x(1)], MulOptions)


def _same_in_float64(ctx: Context) -> bool:
    node = ctx.node
    a, b, out = node.input(0).type, node.input(1).type, node.output.type
    wide = quantize_multiplier(a.scale * b.scale / out.scale)
    own = mul_op.factor(node)
    if wide == own or out.dtype is DType.INT16:
        return wide == own
    every = np.arange(-128, 128, dtype=np.int64)
    products = (every - a.zero_point)[:, None] * (every - b.zero_point)
    limits = clamp_range(clamp_of(node), out)
    theirs, ours = (
        np.clip(requantize(products, f.multiplier, f.shift) + out.zero_point, *limits) for f in (wide, own)
    )
    return np.array_equal(theirs, ours)


def div(ctx: Context) -> None:
    if ctx.node.output.dtype is not DType.FLOAT32:
        raise RefusedError("there is no DIV of int8 or int16", "multiply by the reciprocal of a constant")
    emit_clamped(ctx, "DIV", [ctx.x(0), ctx.x(1)], DivOptions)


def maximum(ctx: Context) -> None:
    ctx.call("MAXIMUM", [ctx.x(0), ctx.x(1)], ctx.out)


def minimum(ctx: Context) -> None:
    ctx.call("MINIMUM", [ctx.x(0), ctx.x(1)], ctx.out)


def prelu(ctx: Context) -> None:
    if ctx.node.output.dtype is DType.INT16:
        raise RefusedError("there is no PRELU of int16", "int8, or a leaky ReLU")
    ctx.call("PRELU", [ctx.x(0), ctx.x(1)], ctx.out)


# ---------------------------------------------------------------- along axes


def _reduce(ctx: Context, code: str) -> None:
    attrs = ctx.node.attrs
    assert isinstance(attrs, Reduce)
    axes = ctx.numbers(sorted(attrs.axes), "axes")
    ctx.call(code, [ctx.x(), axes], ctx.out, ReducerOptions(attrs.keepdims))


def mean(ctx: Context) -> None:
    if ctx.node.output.dtype is DType.FLOAT32:
        ctx.in_float()
    _reduce(ctx, "MEAN")


def sum_(ctx: Context) -> None:
    if ctx.node.output.dtype is not DType.FLOAT32:
        ctx.unlike("litert", f"has no right SUM of {ctx.node.output.dtype.value}: it reads other integers")
    if ctx.node.output.dtype is DType.FLOAT32:
        ctx.in_float()
    _reduce(ctx, "SUM")


def amax(ctx: Context) -> None:
    _reduce(ctx, "REDUCE_MAX")


def amin(ctx: Context) -> None:
    _reduce(ctx, "REDUCE_MIN")


def argmax(ctx: Context) -> None:
    node, attrs = ctx.node, ctx.node.attrs
    assert isinstance(attrs, ArgMax)
    x = node.input(0)
    if x.dtype not in (DType.FLOAT32, DType.INT8):  # TFLM has no other
        raise RefusedError(f"there is no ARG_MAX of {x.dtype.value}", "take the index outside of the model")
    shape = tuple(n for axis, n in enumerate(x.shape) if axis != attrs.axis)
    index = ctx.like(ctx.out, shape) if attrs.keepdims else ctx.out
    ctx.call(
        "ARG_MAX", [ctx.x(), ctx.numbers([attrs.axis], "axis")], index, ArgMaxOptions(TYPES.index("int32"))
    )
    if attrs.keepdims:
        reshaped(ctx, index, node.output.shape, ctx.out)


def softmax(ctx: Context) -> None:
    _along(ctx, "SOFTMAX", SoftmaxOptions(1.0), {DType.INT8: LITERT_S8, DType.INT16: LITERT_S16})


def log_softmax(ctx: Context) -> None:
    _along(ctx, "LOG_SOFTMAX", None, {DType.INT8: LOG_SOFTMAX_OUT})


def _along(
    ctx: Context, code: str, options: Options | None, fixed: Mapping[DType, tuple[float, int]]
) -> None:
    """Both are along the last axis, with an output of one quantization."""
    node, out = ctx.node, ctx.node.output.type
    if out.dtype is DType.FLOAT32:
        ctx.in_float()
    elif out.dtype not in fixed:
        raise RefusedError(f"there is no {code} of {out.dtype.value}")
    elif fixed[out.dtype] != (out.scale, out.zero_point):
        wanted = f"a scale of {fixed[out.dtype][0]:.6g} and a zero point of {fixed[out.dtype][1]}"
        raise RefusedError(
            f"{code} gives {out.dtype.value} of {wanted}, not of {out.scale:.6g} and {out.zero_point}",
            "let it be the output of the model, or followed by another layer",
        )
    axis, last = softmax_rule.attrs_of(node).axis, len(out.shape) - 1
    if axis == last:
        ctx.call(code, [ctx.x()], ctx.out, options)
        return
    order = list(range(len(out.shape)))
    order[axis], order[last] = last, axis
    shape = tuple(out.shape[i] for i in order)
    held = ctx.numbers(order, "order")
    turned = ctx.call("TRANSPOSE", [ctx.x(), held], ctx.like(ctx.x(), shape))
    made = ctx.call(code, [turned], ctx.like(ctx.out, shape), options)
    ctx.call("TRANSPOSE", [made, held], ctx.out)


HANDLERS: Mapping[type[Attrs], Handler] = {
    Add: add,
    Amax: amax,
    Amin: amin,
    ArgMax: argmax,
    Div: div,
    LogSoftmax: log_softmax,
    Maximum: maximum,
    Mean: mean,
    Minimum: minimum,
    Mul: mul,
    PRelu: prelu,
    Softmax: softmax,
    Sub: sub,
    Sum: sum_,
}
