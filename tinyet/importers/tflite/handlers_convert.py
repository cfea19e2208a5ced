# SPDX-License-Identifier: Apache-2.0
"""Handlers of conversions between types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.tflite.building import EVERY, finish, real, relabelled, tabulated
from tinyet.importers.tflite.context import Context, Handler
from tinyet.ir import DType, QuantParams
from tinyet.numerics import dequantize as dequantized
from tinyet.ops.cast import Cast
from tinyet.ops.compare import Compare
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.mul import Mul
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.ops.shared.integers import INTEGERS
from tinyet.tflite import TensorInfo

_NUMPY = {
    "float32": np.float32,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
    "bool": np.bool_,
}
_PLAIN = QuantParams.per_tensor(1.0, 0)
"""Integers that are the numbers they stand for."""


def quantize(ctx: Context) -> None:
    x, out = ctx.x(0), ctx.out_type()
    if x.dtype is DType.FLOAT32:
        ctx.emit(Quantize(), [x])
    elif x.type == out:
        ctx.alias(x)
    elif DType.INT32 in (x.dtype, out.dtype):
        wide = ctx.info(0) if x.dtype is DType.INT32 else ctx.out_info()
        ctx.emit(Requantize(_scale_of(wide)), [x])
    else:
        ctx.emit(Requantize(), [x])


def dequantize(ctx: Context) -> None:
    """Constants with a scale for each channel, and halves, are computed here."""
    found = ctx.find_constant(0)
    if found is not None and found.data.dtype == np.float32:
        ctx.fold(found.data)
    elif found is not None and found.quant is not None:
        ctx.fold(dequantized(found.data, found.quant))
    else:
        x = ctx.x(0)
        if x.dtype is DType.INT32:
            scale = ctx.new_constant("scale", np.array(_scale_of(ctx.info(0)), np.float32))
            ctx.emit(Mul(), [ctx.emit_as(Cast(), [x], real(x.shape)), scale])
            return
        if x.dtype not in INTEGERS:
            raise RefusedError(f"dequantizes {x.dtype.value}", "int8, int16 and int32 can be")
        ctx.emit(Dequantize(), [x])


def _scale_of(info: TensorInfo) -> float:
    """Of an int32 whose zero point is 0. Raises RefusedError for another."""
    found = info.quantization
    if found is None or len(found.scale) != 1 or any(found.zero_point):
        raise RefusedError(f"has {info.name!r} as int32 without one scale and a zero point of 0")
    return found.scale[0]


def cast(ctx: Context) -> None:
    """Numbers as they are in memory, for any scale in the file."""
    info = ctx.out_info()
    found = ctx.find_constant(0)
    if found is not None and info.type in _NUMPY:
        with np.errstate(all="ignore"):
            ctx.fold(found.data.astype(_NUMPY[info.type]))
        return
    x, out = ctx.x(0), ctx.out_type()
    if DType.INT8 in (x.dtype, out.dtype) and "uint8" in (ctx.info(0).type, info.type):
        raise RefusedError("casts uint8 that is quantized", "cast int8 values")
    if info.type == "bool" and x.dtype in (DType.FLOAT32, DType.INT32):
        zero = ctx.new_constant("zero", np.zeros((), x.dtype.numpy))
        ctx.emit(Compare("not_equal"), [x, zero])
    elif x.dtype is out.dtype:
        finish(ctx, x)
    elif out.dtype is DType.FLOAT32 and x.dtype in (DType.INT32, DType.UINT8):
        ctx.emit(Cast(), [x])
    elif out.dtype is DType.FLOAT32 and x.dtype in INTEGERS:
        ctx.emit(Dequantize(), [relabelled(ctx, x, _PLAIN)])
    elif out.dtype is DType.INT32 and x.dtype in INTEGERS:
        ctx.emit(Cast(), [relabelled(ctx, x, _PLAIN)])
    elif x.dtype is DType.INT32 and out.dtype in INTEGERS:
        finish(ctx, ctx.emit_as(Cast(), [x], replace(out, quant=_PLAIN)))
    elif (x.dtype, out.dtype) in ((DType.UINT32, DType.INT32), (DType.INT32, DType.UINT32)):
        ctx.emit(Cast(), [x])
    elif x.dtype is DType.INT8 and out.dtype is DType.INT16:
        finish(ctx, tabulated(ctx, x, EVERY, out))
    else:
        raise RefusedError(f"makes {out.dtype.value} of {x.dtype.value}", "float32 can be made of integers")


HANDLERS: Mapping[str, Handler] = {"QUANTIZE": quantize, "DEQUANTIZE": dequantize, "CAST": cast}
