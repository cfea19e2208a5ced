# SPDX-License-Identifier: Apache-2.0
"""ATen handlers of values that are quantized at run time, by their own range.

torch computes a scale and a zero point while the model runs (`choose_qparams`), quantizes with them and dequantizes;
here the three are one value (`Dynamic`), and the linear layer or convolution that reads it becomes one operator with
all of that inside. Nothing else can read such a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import torch
from torch import fx

from tinyet.errors import RefusedError
from tinyet.importers.torch.context import Args, Constant, Context, Dynamic, Value
from tinyet.ir import Attrs, DType, Tensor, TensorType
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.ops.linear import Linear

_RANGES = {(torch.int8, -128, 127), (torch.uint8, 0, 255)}
"""Pairs of ranges for the same 256 numbers: uint8 has zero point and numbers 128 higher."""


def choose_qparams(ctx: Context, a: Args) -> Value:
    """(scale, zero point) of a value, affine."""
    kind = (a["dtype"], int(a["quant_min"]), int(a["quant_max"]))
    if kind not in _RANGES:
        raise RefusedError(
            f"quantizes to {kind[0]} in {kind[1]}..{kind[2]} at run time",
            "quantize to int8 in -128..127 there",
        )
    parameters = Dynamic(ctx.real(a["input"]), float(a["eps"]), "parameters")
    return (parameters, parameters)


def _of(ctx: Context, argument: object) -> Dynamic | None:
    value = ctx.values.get(argument) if isinstance(argument, fx.Node) else None
    return value if isinstance(value, Dynamic) else None


def quantize(ctx: Context, a: Args) -> Value | None:
    """quantize_per_tensor by parameters that are computed at run time; None when they are not."""
    scale, zero_point = _of(ctx, a["scale"]), _of(ctx, a["zero_point"])
    if scale is None or scale is not zero_point:
        return None
    if ctx.tensor(a["input"]) is not scale.x:
        raise RefusedError(
            "quantizes with the range of another value", "quantize each value by its own range"
        )
    return replace(scale, stage="integers")


def dequantize(ctx: Context, a: Args) -> Value | None:
    """dequantize_per_tensor of a value quantized at run time; None for anything else."""
    source = _of(ctx, a["input"])
    return None if source is None else replace(source, stage="real")


def source_of(ctx: Context, argument: object) -> tuple[Tensor, Dynamic | None]:
    """The float value that a layer reads, and how it quantizes it at run time (None: not at all)."""
    dynamic = _of(ctx, argument)
    if dynamic is not None and dynamic.stage == "real":
        return dynamic.x, dynamic
    return ctx.real(argument), None


def weighted(
    ctx: Context,
    attrs: Conv2d | Linear,
    source: tuple[Tensor, Dynamic | None],
    weight: Constant,
    bias: Tensor | None,
    shape: Sequence[int],
) -> Tensor:
    """A layer with constant weights; its dynamic form where it quantizes its input at run time."""
    x, dynamic = source
    if dynamic is None:
        return ctx.emit(attrs, [x, ctx.hold(weight), bias], shape)
    form: type[Attrs] = DynamicConv2d if isinstance(attrs, Conv2d) else DynamicLinear
    # Sums that become floats again do not depend on the rounding of integers.
    shared = {name: value for name, value in asdict(attrs).items() if name != "rounding"}
    made = form(**shared, eps=dynamic.eps)  # type: ignore[call-arg]
    return ctx.emit(made, [x, _numbers(ctx, weight), bias], shape)


def _numbers(ctx: Context, weight: Constant) -> Tensor:
    """int8 weights as they are, with no Dequantize behind them."""
    quant = weight.quant
    if quant is None:
        raise RefusedError(
            "quantizes its input at run time, but its weights are float", "quantize the weights to int8, too"
        )
    if any(quant.zero_point):
        raise RefusedError("has weights with a zero point", "quantize weights symmetrically")
    kind = TensorType(weight.shape, weight.dtype or DType.INT8, quant)
    return Tensor(ctx.name(weight.name), kind, weight.data)
