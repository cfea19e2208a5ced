# SPDX-License-Identifier: Apache-2.0
"""Handlers of quantize and dequantize operators, of any quantizer that works with torch's PT2E flow.

For activations they become Quantize and Dequantize nodes of int8 or int16; for constants, int8 data with their real
values; for int32 and int16 constants (biases of some quantizers), float32 values. uint8 becomes int8 by subtracting
128 from numbers and zero point alike. A range narrower than the dtype's (uint8 in 0..127, say) clamps the real value
first, so that the saturation is the quantizer's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import fx

from tinyet.errors import RefusedError
from tinyet.fx.edit import bind
from tinyet.fx.log_filter import quiet
from tinyet.importers.torch import aten_dynamic
from tinyet.importers.torch.context import Args, Constant, Context, Handler, Value
from tinyet.ir import DType, QuantParams
from tinyet.ops.clamp import Clamp
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.quantize import Quantize

with quiet():
    # registers the operators under torch.ops
    from torch.ao.quantization.fx._decomposed import quantized_decomposed_lib

_decomposed = getattr(torch.ops, quantized_decomposed_lib.ns)
_SHIFTS = {torch.int8: 0, torch.uint8: 128, torch.int16: 0}


def _numbers(ctx: Context, argument: object, what: str) -> npt.NDArray[np.float64]:
    """A scale or zero point, given as a number or as a constant tensor, as a float64 vector."""
    if isinstance(argument, (int, float)):
        return np.array([argument], np.float64)
    constant = ctx.constant(argument)
    if constant is None:
        raise RefusedError(f"the {what} is computed while running", "quantize statically, with calibration")
    return constant.data.astype(np.float64).reshape(-1)


def _params(
    ctx: Context, scale: object, zero_point: object, axis: int | None, dtype: torch.dtype
) -> QuantParams:
    scales = _numbers(ctx, scale, "scale")
    zeros = np.zeros_like(scales) if zero_point is None else _numbers(ctx, zero_point, "zero point")
    shift = _SHIFTS[dtype]
    return QuantParams(tuple(scales.tolist()), tuple(int(z) - shift for z in zeros.tolist()), axis)


def _check_dtype(dtype: object) -> torch.dtype:
    if dtype not in _SHIFTS:
        raise RefusedError(f"quantizes to {dtype}", "use int8, uint8 or int16 activations and int8 weights")
    assert isinstance(dtype, torch.dtype)
    return dtype


def _quantized_constant(
    constant: Constant, quant: QuantParams, low: int, high: int, dtype: torch.dtype
) -> Constant:
    """The nearest numbers, ties to even, as torch's quantize computes them."""
    shape, shift = [1] * constant.data.ndim, _SHIFTS[dtype]
    if quant.axis is not None:
        shape[quant.axis] = -1
    scale = np.asarray(quant.scale, np.float32).reshape(shape)
    zero = np.asarray(quant.zero_point, np.float32).reshape(shape)
    numbers = np.round(constant.real().astype(np.float32) * (np.float32(1) / scale)) + zero
    numbers = np.clip(numbers, low - shift, high - shift)
    return Constant(constant.name, numbers.astype(np.int16 if dtype is torch.int16 else np.int8))


def _quantize(
    ctx: Context, source: object, quant: QuantParams, low: int, high: int, dtype: torch.dtype
) -> Value:
    constant, shift = ctx.constant(source), _SHIFTS[dtype]
    if constant is not None:
        return _quantized_constant(constant, quant, low, high, dtype)
    if quant.axis is not None:
        raise RefusedError("quantizes an activation per channel", "quantize activations per tensor")
    x = ctx.real(source)
    integer = DType.INT16 if dtype is torch.int16 else DType.INT8
    bounds = (low - shift, high - shift)
    if bounds != integer.range:
        real = [
            limit if number == edge else (number - quant.one_zero_point) * quant.one_scale
            for number, edge, limit in zip(bounds, integer.range, (-math.inf, math.inf), strict=True)
        ]
        x = ctx.emit(Clamp(real[0], real[1]), [x], x.shape)
    return ctx.emit(Quantize(), [x], x.shape, integer, quant)


def _fits_int4(constant: Constant, dtype: torch.dtype, low: int, high: int) -> bool:
    """Whether int8 numbers were quantized to four bits, so that they can be held in as many."""
    data = constant.data
    return (
        dtype is torch.int8
        and low >= -8
        and high <= 7
        and data.min(initial=0) >= -8
        and data.max(initial=0) <= 7
    )


def _dequantize(
    ctx: Context, source: object, quant: QuantParams, low: int, high: int, dtype: torch.dtype
) -> Value:
    """low, high: the range to which the numbers were quantized."""
    constant = ctx.constant(source)
    if constant is not None:
        data = constant.data
        if data.dtype == np.uint8:
            data = (data.astype(np.int16) - 128).astype(np.int8)
        if data.dtype != np.int8:
            raise RefusedError(f"holds {data.dtype.name} numbers as {dtype}", "quantize constants to int8")
        return Constant(
            constant.name, data, quant, DType.INT4 if _fits_int4(constant, dtype, low, high) else None
        )
    x = ctx.tensor(source)
    if x.dtype not in (DType.INT8, DType.INT16):
        raise RefusedError(f"dequantizes {x.dtype.value} values", "use int8 or int16 activations")
    if x.type.quant != quant:
        raise RefusedError(
            "dequantizes with other parameters than the value was quantized with", "keep the pairs together"
        )
    return ctx.emit(Dequantize(), [x], x.shape)


def _given(ctx: Context, a: Args) -> tuple[QuantParams, int, int, torch.dtype]:
    """The parameters, the range and the type that torch's own operators are given, per channel where there is an
    axis."""
    dtype = _check_dtype(a["dtype"])
    if "axis" in a:
        quant = _params(ctx, a["scales"], a["zero_points"], int(a["axis"]), dtype)
    else:
        quant = _params(ctx, a["scale"], a["zero_point"], None, dtype)
    return quant, int(a["quant_min"]), int(a["quant_max"]), dtype


def quantize_per_tensor(ctx: Context, a: Args) -> Value:
    dynamic = aten_dynamic.quantize(ctx, a)
    if dynamic is not None:
        return dynamic
    return _quantize(ctx, a["input"], *_given(ctx, a))


def quantize_per_channel(ctx: Context, a: Args) -> Value:
    return _quantize(ctx, a["input"], *_given(ctx, a))


def _real_bias(
    ctx: Context, source: object, scale: object, zero_point: object, axis: int | None
) -> Constant | None:
    """An int32 (or int16) constant as the float32 values that it stands for; None for other arguments."""
    constant = ctx.constant(source)
    if constant is None or constant.data.dtype not in (np.dtype(np.int32), np.dtype(np.int16)):
        return None
    shape = [1] * constant.data.ndim
    if axis is not None:
        shape[axis] = -1
    scales = _numbers(ctx, scale, "scale")
    zeros = np.zeros_like(scales) if zero_point is None else _numbers(ctx, zero_point, "zero point")
    data = (constant.data.astype(np.float64) - zeros.reshape(shape)) * scales.reshape(shape)
    return Constant(constant.name, data.reshape(constant.shape).astype(np.float32))


def dequantize_per_tensor(ctx: Context, a: Args) -> Value:
    dynamic = aten_dynamic.dequantize(ctx, a)
    if dynamic is not None:
        return dynamic
    bias = _real_bias(ctx, a["input"], a["scale"], a["zero_point"], None)
    return _dequantize(ctx, a["input"], *_given(ctx, a)) if bias is None else bias


def dequantize_per_channel(ctx: Context, a: Args) -> Value:
    bias = _real_bias(ctx, a["input"], a["scales"], a["zero_points"], int(a["axis"]))
    return _dequantize(ctx, a["input"], *_given(ctx, a)) if bias is None else bias


def _block_axis(block: Sequence[int], shape: Sequence[int]) -> int | None:
    """The axis of torchao's affine quantization: blocks that are whole, but of size 1 along one axis. None
    per tensor."""
    single = [i for i, (b, s) in enumerate(zip(block, shape, strict=True)) if b not in (s, -1)]
    if not single:
        return None
    if len(single) > 1 or block[single[0]] != 1:
        raise RefusedError(f"quantizes in blocks of {tuple(block)}", "quantize per tensor or per channel")
    return single[0]


def _affine_range(a: Args, dtype: torch.dtype) -> tuple[int, int]:
    """quant_min and quant_max, which may be left away there: the dtype's own then."""
    info = torch.iinfo(dtype)
    low = info.min if a["quant_min"] is None else int(a["quant_min"])
    high = info.max if a["quant_max"] is None else int(a["quant_max"])
    return low, high


def static_params(node: fx.Node) -> tuple[DType, QuantParams] | None:
    """The parameters of a node that quantizes per tensor, over its whole type, and with known numbers."""
    return _params_in(node) if node.target is _decomposed.quantize_per_tensor.default else None


def dequantized_from(node: fx.Node) -> tuple[DType, QuantParams] | None:
    """Likewise, the value that a node dequantizes."""
    return _params_in(node) if node.target is _decomposed.dequantize_per_tensor.default else None


def _params_in(node: fx.Node) -> tuple[DType, QuantParams] | None:
    a = bind(node)
    dtype = a["dtype"]
    shift = _SHIFTS.get(dtype)
    if shift is None:
        return None
    integer = DType.INT16 if dtype is torch.int16 else DType.INT8
    if (int(a["quant_min"]) - shift, int(a["quant_max"]) - shift) != integer.range:
        return None
    return integer, QuantParams.per_tensor(float(a["scale"]), int(a["zero_point"]) - shift)


def quantize_affine(ctx: Context, a: Args) -> Value:
    dtype = _check_dtype(a["output_dtype"])
    quant = _params(ctx, a["scale"], a["zero_point"], _block_axis(a["block_size"], ctx.shape), dtype)
    low, high = _affine_range(a, dtype)
    return _quantize(ctx, a["input"], quant, low, high, dtype)


def dequantize_affine(ctx: Context, a: Args) -> Value:
    axis = _block_axis(a["block_size"], ctx.shape)
    bias = _real_bias(ctx, a["input"], a["scale"], a["zero_point"], axis)
    if bias is not None:
        return bias
    dtype = _check_dtype(a["input_dtype"])
    quant = _params(ctx, a["scale"], a["zero_point"], axis, dtype)
    low, high = _affine_range(a, dtype)
    return _dequantize(ctx, a["input"], quant, low, high, dtype)


def quant_rows() -> dict[object, Handler]:
    """The rows. torchao registers its operators when it is imported, so that is done first."""
    with quiet():
        import torchao.quantization.pt2e.quantize_pt2e  # noqa: F401
    rows: dict[object, Handler] = {
        _decomposed.choose_qparams.tensor: aten_dynamic.choose_qparams,
        _decomposed.quantize_per_tensor.default: quantize_per_tensor,
        _decomposed.quantize_per_tensor.tensor: quantize_per_tensor,
        _decomposed.quantize_per_tensor.tensor2: quantize_per_tensor,
        _decomposed.quantize_per_channel.default: quantize_per_channel,
        _decomposed.dequantize_per_tensor.default: dequantize_per_tensor,
        _decomposed.dequantize_per_tensor.tensor: dequantize_per_tensor,
        _decomposed.dequantize_per_tensor.tensor2: dequantize_per_tensor,
        _decomposed.dequantize_per_channel.default: dequantize_per_channel,
    }
    affine = torch.ops.torchao
    if hasattr(affine, "quantize_affine"):
        rows[affine.quantize_affine.default] = quantize_affine
        rows[affine.dequantize_affine.default] = dequantize_affine
    return rows
