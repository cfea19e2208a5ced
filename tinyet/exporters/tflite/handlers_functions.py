# SPDX-License-Identifier: Apache-2.0
"""Handlers of functions of one number: bounds, other scales, tables, conversions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyet.exporters.tflite.clip import FUSED, clip, same
from tinyet.exporters.tflite.context import Context, Handler, RefusedError
from tinyet.exporters.tflite.tables import bytes_quant, gather_table, results_of, tabulated
from tinyet.ir import Attrs, DType, QuantParams, TensorType
from tinyet.ops.cast import Cast
from tinyet.ops.clamp import Clamp
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.lookup import Lookup
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.ops.shared.unary_functions import FunctionName
from tinyet.ops.unary import Unary
from tinyet.tflite.enumerations import ACTIVATIONS, TYPES
from tinyet.tflite.options import CastOptions, GeluOptions, LeakyReluOptions, Options

_RELUS = {ACTIVATIONS.index("relu"): "RELU", ACTIVATIONS.index("relu6"): "RELU6"}

_FLOATS: dict[FunctionName, str] = {
    "abs": "ABS",
    "ceil": "CEIL",
    "cos": "COS",
    "elu": "ELU",
    "exp": "EXP",
    "floor": "FLOOR",
    "gelu": "GELU",
    "gelu_tanh": "GELU",
    "hardswish": "HARD_SWISH",
    "leaky_relu": "LEAKY_RELU",
    "log": "LOG",
    "neg": "NEG",
    "round": "ROUND",
    "rsqrt": "RSQRT",
    "sigmoid": "LOGISTIC",
    "sin": "SIN",
    "sqrt": "SQRT",
    "square": "SQUARE",
    "tanh": "TANH",
}
_INT16: dict[FunctionName, str] = {"leaky_relu": "LEAKY_RELU", "sigmoid": "LOGISTIC", "tanh": "TANH"}
_ONE_INT16 = 2.0**-15


def clamp(ctx: Context) -> None:
    node, attrs = ctx.node, ctx.node.attrs
    assert isinstance(attrs, Clamp)
    x, out, bounds = node.input(0).type, node.output.type, (attrs.low, attrs.high)
    if x.quant == out.quant:
        relu = next((code for n, code in _RELUS.items() if same(FUSED[n], bounds, out)), None)
        if relu is not None and out.dtype is not DType.INT16:
            ctx.call(relu, [ctx.x()], ctx.out)
        else:
            clip(ctx, ctx.x(), out, bounds, ctx.out)
    elif (x.dtype, out.dtype) == (DType.INT8, DType.INT8):
        table = results_of(attrs, x, out)
        assert table is not None
        tabulated(ctx, ctx.x(), x, table, attrs)
    else:
        raise RefusedError("RELU of int16 keeps its scale", "quantize input and output alike")


def requantize(ctx: Context) -> None:
    ctx.call("QUANTIZE", [ctx.x()], ctx.out)


def quantize(ctx: Context) -> None:
    ctx.call("QUANTIZE", [ctx.x()], ctx.out)


def dequantize(ctx: Context) -> None:
    ctx.call("DEQUANTIZE", [ctx.x()], ctx.out)


def cast(ctx: Context) -> None:
    kinds = [TYPES.index(t.dtype.value) for t in (ctx.node.input(0), ctx.node.output)]
    ctx.call("CAST", [ctx.x()], ctx.out, CastOptions(*kinds))


def unary(ctx: Context) -> None:
    node, attrs = ctx.node, ctx.node.attrs
    assert isinstance(attrs, Unary)
    x, out = node.input(0).type, node.output.type
    if out.dtype is DType.INT8:
        table = results_of(attrs, x, out)
        assert table is not None
        tabulated(ctx, ctx.x(), x, table, attrs)
        return
    known = _INT16 if out.dtype is DType.INT16 else _FLOATS
    code = known.get(attrs.function)
    if code is None or (code == "ELU" and attrs.alpha != 1.0):
        raise RefusedError(f"there is no operator for {attrs.function} of {out.dtype.value}")
    if out.dtype is DType.INT16 and code != "LEAKY_RELU" and out.scale != _ONE_INT16:
        raise RefusedError(f"int16 {code} has an output scale of 1/32768, not {out.scale:.6g}")
    if out.dtype is DType.FLOAT32:
        ctx.in_float()
    if code in ("CEIL", "ELU", "ROUND"):
        ctx.unlike("litert", f"has no reference kernel of {code}")
    if code == "GELU":
        ctx.unlike("tflm", "has no GELU")
    options: Options | None = {
        "LEAKY_RELU": LeakyReluOptions(attrs.alpha),
        "GELU": GeluOptions(attrs.function == "gelu_tanh"),
    }.get(code)
    ctx.call(code, [ctx.x()], ctx.out, options)


def lookup(ctx: Context) -> None:
    """Of bytes: QUANTIZE makes them int8 with the highest bit turned over, of which the table is."""
    node, attrs = ctx.node, ctx.node.attrs
    assert isinstance(attrs, Lookup)
    x, tables, out = node.input(0), node.input(1).array, node.output.type
    if out.dtype is DType.UINT8:
        _to_bytes(ctx, tables)
        return
    if x.dtype is DType.INT8:
        tabulated(ctx, ctx.x(), x.type, tables[0], None)
        return
    flip = np.arange(256) - 128
    turns = out.dtype is DType.INT8 and (tables == flip).all()
    if turns and out.quant is not None and ctx.quantized(ctx.x(), bytes_quant(out.quant)):
        ctx.call("QUANTIZE", [ctx.x()], ctx.out)
        return
    # Bytes stand for themselves where nobody has said what for.
    found = ctx.tensors[ctx.x()].quantization
    quant = (
        QuantParams.per_tensor(1.0, -128)
        if found is None
        else QuantParams(found.scale, (found.zero_point[0] - 128,))
    )
    ctx.quantized(ctx.x(), bytes_quant(quant))
    turned = ctx.call("QUANTIZE", [ctx.x()], ctx.value(TensorType(x.shape, DType.INT8, quant), "int8"))
    # Tables of bytes are in the order 0 … 255, which are -128 … 127 now.
    gather_table(ctx, turned, np.roll(tables, 128, axis=1), attrs.axis)


def _to_bytes(ctx: Context, tables: np.ndarray) -> None:
    x = ctx.node.input(0)
    quant = x.type.quant
    turned = (np.arange(256) ^ 128).astype(np.uint8)
    if quant is None or not (tables.view(np.uint8) == turned).all():
        raise RefusedError("there is no operator for a table of uint8 values", "let outputs be int8")
    if not ctx.quantized(ctx.out, bytes_quant(quant)):
        raise RefusedError("the uint8 values stand for other real numbers, too")
    ctx.call("QUANTIZE", [ctx.x()], ctx.out)


HANDLERS: Mapping[type[Attrs], Handler] = {
    Cast: cast,
    Clamp: clamp,
    Dequantize: dequantize,
    Lookup: lookup,
    Quantize: quantize,
    Requantize: requantize,
    Unary: unary,
}
