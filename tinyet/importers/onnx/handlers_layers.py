# SPDX-License-Identifier: Apache-2.0
"""Handlers of layers with weights.

Between a DequantizeLinear for each input and a QuantizeLinear, ONNX Runtime computes these in integers (QLinearConv,
QGemm, QLinearMatMul, QLinearGlobalAveragePool): an exact sum, times a factor in float32, to nearest, halves to even.
Conv2d, Linear and Mean have this rounding as "half_even", so the integers are the same. Elsewhere ONNX Runtime and the
graph compute in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context
from tinyet.importers.onnx.values import (
    Bytes,
    Numbers,
    Scale,
    Value,
    plain_reals,
    shape_of,
)
from tinyet.ir import Array, Note, QuantParams, Tensor
from tinyet.numerics import Int64, bias_type
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul


def target_of(ctx: Context) -> Scale | None:
    """The scale of the only quantizer of the layer's result: directly, or behind a Relu or Clip, which ONNX Runtime
    drops if the scale's range implies it."""
    found = ctx.target()
    readers = ctx.readers.get(ctx.node.outputs[0], [])
    if found is not None or len(readers) != 1 or readers[0].op not in ("Relu", "Clip"):
        return found
    behind = None if ctx.node.outputs[0] in ctx.model.outputs else ctx.quantizers(readers[0].outputs[0])
    if behind is None:
        return None
    scale = ctx.scale_of(behind[0])
    if scale.is_wide:
        return None
    quant = scale.per_tensor()
    low, high = activation_bounds(ctx, readers[0].op, readers[0].inputs)
    reals = plain_reals(quant)
    if low > reals[0] or high < reals[-1]:
        ctx.inexact(
            f"its {readers[0].op} cuts off what the scale behind it could hold, so ONNX Runtime computes the layer in "
            "float32; here it is computed in integers, and can differ by 1 where a sum is next to a half",
        )
    return scale


def activation_bounds(ctx: Context, op: str, inputs: Sequence[str]) -> tuple[float, float]:
    """Of a Relu or Clip (opset 11 and newer: the bounds are inputs)."""
    if op == "Relu":
        return 0.0, np.inf
    bounds = [-np.inf, np.inf]
    for position in (1, 2):
        if position < len(inputs) and inputs[position]:
            value = ctx.values.get(inputs[position])
            if not isinstance(value, Numbers) or value.data.size != 1:
                raise RefusedError("computes the bounds of its Clip", "make them constants")
            bounds[position - 1] = float(np.asarray(value.real).reshape(-1)[0])
    return bounds[0], bounds[1]


@dataclass(frozen=True)
class Weights:
    """Integers of a layer, the outputs first, then the inputs: int8 (outputs, inputs, …), symmetric.

    parts: whose sum is the integers of the file less their zero point; several where these need 9 bits.
    """

    parts: tuple[Array, ...]
    quant: QuantParams

    @property
    def joined(self) -> Array:
        """For a layer that reads the inputs of each group once for each part."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts, axis=1)


def integer_weights(value: Value, axis: int) -> Weights | None:
    """Constant weights whose outputs lie along `axis`; None where they are no integers of 8 bits."""
    if (
        not isinstance(value, Numbers)
        or value.scale is None
        or value.data.dtype.name not in ("int8", "uint8")
    ):
        return None
    scale, zero = value.scale.broadcast(value.data.ndim)
    numbers = value.data.astype(np.int64) - zero
    if numbers.size == 0:
        return None
    if value.scale.axis is not None and value.scale.axis % value.data.ndim != axis:
        return None
    scales = tuple(float(s) for s in scale.reshape(-1))
    by_channel = len(scales) > 1
    quant = QuantParams(scales, (0,) * len(scales), 0 if by_channel else None)
    numbers = np.moveaxis(numbers, axis, 0)
    parts = [np.clip(numbers, -128, 127)]
    while (rest := numbers - sum(parts)).any():
        parts.append(np.clip(rest, -128, 127))
    return Weights(tuple(part.astype(np.int8) for part in parts), quant)


def weights_of(ctx: Context, x: Value, target: Scale | None) -> Value:
    """Input 1 of a layer between bytes and a quantizer: ONNX Runtime converts float32 weights there to int8."""
    value = ctx.value(1)
    between = isinstance(x, Bytes) and x.is_plain and target is not None
    if not between or not isinstance(value, Numbers) or value.scale or value.data.dtype != np.float32:
        return value
    if ctx.has(2) and not is_float_bias(ctx.value(2)):
        return value
    if not np.isfinite(value.data).all():
        raise RefusedError("has weights that are no finite numbers")
    low, high = (np.float32(f(value.data, initial=0)) for f in (np.min, np.max))
    scale = np.float32((high - low) / np.float32(255)) if high > low else np.float32(1)
    zero = np.array([np.rint(np.clip(np.float32(-128) - low / scale, -128, 127))]).astype(np.int64)
    ctx.notes.append(
        Note(
            "its weights are in float32, its input and output are not: they are quantized to int8, with one scale, as "
            "by ONNX Runtime; quantize_static has a scale for each channel (per_channel=True)",
            ctx.origin,
        )
    )
    made = Scale(scale.reshape(1), zero, None, "int8")
    return Numbers(made.quantized(value.data), made, value.name)


def is_float_bias(value: Value) -> bool:
    """Whether ONNX Runtime makes int32 of it."""
    return isinstance(value, Numbers) and value.scale is None and value.data.ndim == 1


def bias_steps(bias: Array, x: Bytes, weights: Sequence[float]) -> Int64:
    """A bias in float32 as ONNX Runtime makes int32 of it: int64, in units of the sums."""
    scale = np.float32(x.tensor.type.scale) * np.asarray(weights, np.float32)
    with np.errstate(all="ignore"):
        steps = np.rint(np.asarray(bias, np.float32).reshape(-1) / scale)
    return np.asarray(np.clip(np.nan_to_num(steps), -(2.0**31), 2.0**31), np.int64)


def read_for(ctx: Context, x: Tensor, groups: int, weights: Weights) -> Tensor:
    """(…, C) as (…, parts * C): the channels of each group, once for each part of the weights."""
    times, (*lead, channels) = len(weights.parts), x.shape
    if times == 1 or channels % groups:
        return x
    often = "twice" if times == 2 else f"{times} times"
    ctx.notes.append(
        Note(
            f"its weights less their zero point need 9 bits, so it reads its input {often}, with {often} the "
            "multiplications; symmetric weights (int8, or WeightSymmetric) do not need that",
            ctx.origin,
        )
    )
    split = ctx.reshape(x, (*lead, groups, channels // groups))
    return ctx.reshape(ctx.emit(Concat(len(lead) + 1), [split] * times), (*lead, times * channels))


def integer_bias(ctx: Context, position: int, x: Bytes, weights: Weights, count: int) -> Tensor | None:
    """The bias in units of the sums, whose scale ONNX Runtime takes for granted. Raises RefusedError for another."""
    if not ctx.has(position):
        return None
    value = ctx.constant(position, "bias")
    kind = bias_type(count, x.tensor.type, weights.quant)
    assert kind.quant is not None
    expected = np.broadcast_to(np.array(kind.quant.scale), (count,))
    if value.scale is not None and value.data.dtype == np.int32:
        given = np.broadcast_to(value.scale.scale, (count,)) if value.scale.scale.size in (1, count) else None
        if given is None or not np.allclose(given, expected, rtol=1e-3) or value.scale.zero_point.any():
            raise RefusedError(
                "has a bias of another scale than its sums", "quantize it by input times weight scale"
            )
        numbers = value.data.astype(np.int64).reshape(-1)
    else:
        if not is_float_bias(value):
            ctx.inexact(
                "its bias is no row, so ONNX Runtime computes the layer in float32; here it is rounded"
            )
        numbers = bias_steps(value.real, x, weights.quant.scale)
    if numbers.size == 1 and count > 1:
        numbers = np.broadcast_to(numbers, (count,))
    if numbers.shape != (count,) or np.abs(numbers).max(initial=0) >= 2**31:
        raise RefusedError(f"has a bias of shape {shape_of(value)} for {count} outputs")
    return ctx.held(value.name or "bias", numbers.astype(np.int32), kind.quant)


# ---------------------------------------------------------------- convolutions


def window(ctx: Context, kernel: Sequence[int], rank: int, size: Sequence[int]) -> dict[str, int]:
    """The attributes of a Window of an operator on images, or on rows (rank 3)."""
    dims = rank - 2
    strides = ctx.attribute("strides", [1] * dims)
    dilations = ctx.attribute("dilations", [1] * dims)
    pads = ctx.attribute("pads", [0] * (2 * dims))
    if dims not in (1, 2) or len(strides) != dims or len(dilations) != dims or len(pads) != 2 * dims:
        raise RefusedError(f"has a window of {len(kernel)} dimensions over {rank}", "images have 4, rows 3")
    auto = ctx.attribute("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        before, after = [], []
        for length, k, stride, dilation in zip(size, kernel, strides, dilations, strict=True):
            step = max(int(stride), 1)
            total = max((-(-length // step) - 1) * step + dilation * (k - 1) + 1 - length, 0)
            first = total // 2 if auto == "SAME_UPPER" else -(-total // 2)
            before.append(first)
            after.append(total - first)
        pads = [*before, *after]
    elif auto == "VALID":
        pads = [0] * (2 * dims)
    elif auto != "NOTSET":
        raise RefusedError(f"has auto_pad {auto[:40]!r}")
    if dims == 1:
        strides, dilations, pads = [1, *strides], [1, *dilations], [0, pads[0], 0, pads[1]]
    names = (
        "stride_h",
        "stride_w",
        "dilation_h",
        "dilation_w",
        "pad_top",
        "pad_left",
        "pad_bottom",
        "pad_right",
    )
    return {name: int(n) for name, n in zip(names, (*strides, *dilations, *pads), strict=True)}


def nhwc(data: Array) -> Array:
    """Weights in the graph's order, those of rows as of images of height 1."""
    data = data.reshape(*data.shape[:2], 1, data.shape[2]) if data.ndim == 3 else data
    return np.ascontiguousarray(data.transpose(0, 2, 3, 1))


def conv(ctx: Context) -> Value:
    x, target = ctx.value(0), target_of(ctx)
    w = weights_of(ctx, x, target)
    rank, shape = len(shape_of(x)), shape_of(w)
    if len(shape) != rank or rank not in (3, 4):
        raise RefusedError(
            f"has weights of {len(shape)} dimensions for {rank}", "images have 4 dimensions, rows 3"
        )
    attributes = {
        **window(ctx, shape[2:], rank, shape_of(x)[2:]),
        "groups": ctx.attribute("group", 1),
    }
    if attributes["groups"] < 1:
        raise RefusedError(f"has {attributes['groups']} groups")

    weights = integer_weights(w, 0)
    if isinstance(x, Bytes) and x.is_plain and weights is not None and target is not None:
        bias = integer_bias(ctx, 2, x, weights, shape[0])
        held = ctx.held(name_of(ctx, 1, "weight"), nhwc(weights.joined), weights.quant)
        quant, image = target.per_tensor(), ctx.image(x.tensor)
        image = read_for(ctx, image, attributes["groups"], weights)
        y = ctx.emit(Conv2d(**attributes, rounding="half_even"), [image, held, bias], quant)
        return Bytes(ctx.from_image(y, rank), target.dtype == "uint8", plain_reals(quant))
    bias = ctx.real(ctx.constant(2, "bias")) if ctx.has(2) else None
    held = wide_weights(ctx, weights, nhwc) or ctx.held(
        name_of(ctx, 1, "weight"), nhwc(ctx.weights(1, "weight"))
    )
    in_float(ctx)
    y = ctx.emit(Conv2d(**attributes), [ctx.image(ctx.real(x)), held, bias])
    return ctx.from_image(y, rank)


def conv_transpose(ctx: Context) -> Value:
    """ONNX Runtime has no integer form of it, but rounds weights and bias as for one."""
    x, target = ctx.value(0), target_of(ctx)
    w = weights_of(ctx, x, target)
    if not isinstance(w, Numbers):
        raise RefusedError("computes its weight", "make the weight a constant of the model")
    weight = ctx.weights(1, "weight") if w.scale is None else np.asarray(w.real, np.float32)
    rank = len(shape_of(x))
    if weight.ndim != rank or rank not in (3, 4):
        raise RefusedError(f"has weights of {weight.ndim} dimensions for {rank}")
    groups = ctx.attribute("group", 1)
    added = ctx.attribute("output_padding", [0] * (rank - 2))
    if ctx.node.attributes.get("output_shape") or ctx.attribute("auto_pad", "NOTSET") not in (
        "NOTSET",
        "VALID",
    ):
        raise RefusedError("has output_shape or auto_pad", "give it pads")
    if groups < 1 or weight.shape[0] % groups or len(added) != rank - 2:
        raise RefusedError(f"has {groups} groups of {weight.shape[0]} channels")
    attributes = window(ctx, weight.shape[2:], rank, shape_of(x)[2:])
    weight = weight.reshape(*weight.shape[:2], 1, weight.shape[2]) if rank == 3 else weight
    per_group = weight.shape[0] // groups
    # (in, out / groups, h, w) → (out, h, w, in / groups)
    split = weight.reshape(groups, per_group, *weight.shape[1:]).transpose(0, 2, 3, 4, 1)
    data = np.ascontiguousarray(split.reshape(-1, *split.shape[2:]))
    out_pad = (
        {"out_pad_h": 0, "out_pad_w": int(added[0])}
        if rank == 3
        else dict(zip(("out_pad_h", "out_pad_w"), map(int, added), strict=True))
    )
    bias = ctx.real(ctx.constant(2, "bias")) if ctx.has(2) else None
    if (
        bias is not None
        and isinstance(x, Bytes)
        and x.is_plain
        and target is not None
        and w.scale is not None
        and w.scale.axis is None
        and is_float_bias(ctx.value(2))
    ):
        steps = np.float32(x.tensor.type.scale) * w.scale.scale
        rounded = bias_steps(bias.array, x, w.scale.scale.tolist()).astype(np.float32) * steps
        bias = ctx.held(name_of(ctx, 2, "bias"), rounded)
    in_float(ctx)
    held = ctx.held(name_of(ctx, 1, "weight"), data)
    attrs = replace(ConvTranspose2d(groups=groups), **attributes, **out_pad)  # type: ignore[arg-type]
    return ctx.from_image(ctx.emit(attrs, [ctx.image(ctx.real(x)), held, bias]), rank)


def name_of(ctx: Context, position: int, role: str) -> str:
    """The name of a constant: the file's, or one after its layer."""
    value = ctx.value(position)
    given = value.name if isinstance(value, Numbers) else ""
    return given or f"{ctx.node.name or ctx.node.outputs[0]}_{role}"


def in_float(ctx: Context) -> None:
    """Said of a layer that computes in float32 because its neighbours are not all quantized."""
    values = [ctx.values.get(name) for name in ctx.node.inputs]
    if any(isinstance(v, Bytes) for v in values):
        ctx.inexact(
            f"{ctx.node.op} is computed in float32, as by ONNX Runtime: sums are in another order",
            "quantize all of its inputs, and its output",
        )


# ---------------------------------------------------------------- fully connected layers


def gemm(ctx: Context) -> Value:
    x = ctx.value(0)
    target = target_of(ctx)
    w = weights_of(ctx, x, target)
    alpha, beta = ctx.attribute("alpha", 1.0), ctx.attribute("beta", 1.0)
    if ctx.attribute("transA", 0) or len(shape_of(x)) != 2 or len(shape_of(w)) != 2:
        raise RefusedError("transposes its first input, or has no matrices")
    return linear(ctx, x, w, 0 if ctx.attribute("transB", 0) else 1, target, (alpha, beta))


def matmul(ctx: Context) -> Value:
    x, w = ctx.value(0), ctx.value(1)
    if isinstance(w, Numbers) and len(w.shape) == 2:
        return linear(ctx, x, w, 1, target_of(ctx))
    if min(len(shape_of(x)), len(shape_of(w))) < 2:
        raise RefusedError("multiplies vectors", "give them two dimensions")
    if isinstance(x, Bytes) and isinstance(w, Bytes) and w.is_plain:
        target = integer_target(x, target_of(ctx))
        # ONNX Runtime multiplies signed bytes by signed ones only.
        if target is not None and (x.unsigned or not w.unsigned):
            quant = target.per_tensor()
            y = ctx.emit(MatMul(rounding="half_even"), [x.tensor, w.tensor], quant)
            return Bytes(y, x.unsigned, plain_reals(quant))
    a, b = ctx.real(x), ctx.real(w)
    in_float(ctx)
    return ctx.emit(MatMul(), [a, b])


def linear(
    ctx: Context,
    x: Value,
    w: Value,
    axis: int,
    target: Scale | None,
    factors: tuple[float, float] = (1.0, 1.0),
) -> Value:
    """x times weights whose outputs lie along `axis`, plus a bias; factors: of the products, and of the bias."""
    alpha, beta = factors
    count = shape_of(w)[axis]
    weights = integer_weights(w, axis)
    plain = isinstance(x, Bytes) and x.is_plain and alpha == beta == 1.0
    if plain and weights is not None and target is not None:
        assert isinstance(x, Bytes)
        bias = integer_bias(ctx, 2, x, weights, count)
        held = ctx.held(name_of(ctx, 1, "weight"), weights.joined, weights.quant)
        quant = target.per_tensor()
        rows = read_for(ctx, x.tensor, 1, weights)
        y = ctx.emit(Linear(rounding="half_even"), [rows, held, bias], quant)
        return Bytes(y, target.dtype == "uint8", plain_reals(quant))
    if not isinstance(w, Numbers):
        raise RefusedError("computes its weight", "make the weight a constant of the model")
    data = np.asarray(w.real, np.float32) * np.float32(alpha)
    bias = None
    if ctx.has(2):
        numbers = np.asarray(ctx.constant(2, "bias").real, np.float32).reshape(-1) * np.float32(beta)
        if numbers.size not in (1, count):
            raise RefusedError(f"has a bias of {numbers.size} numbers for {count} outputs")
        bias = ctx.held(name_of(ctx, 2, "bias"), np.broadcast_to(numbers, (count,)).copy())
    in_float(ctx)
    held = wide_weights(ctx, weights if alpha == 1 else None) or ctx.held(
        name_of(ctx, 1, "weight"), np.moveaxis(data, axis, 0)
    )
    return ctx.emit(Linear(), [ctx.real(x), held, bias])


def wide_weights(
    ctx: Context, weights: Weights | None, order: Callable[[Array], Array] = np.ascontiguousarray
) -> Tensor | None:
    """Weights of 8 bits behind a Dequantize, for a model of 16 bits, whose operators of integers are formed later; None
    for others."""
    if not ctx.model.has_int16 or weights is None or len(weights.parts) > 1:
        return None
    return ctx.dequantized(ctx.held(name_of(ctx, 1, "weight"), order(weights.joined), weights.quant))


def integer_target(x: Value, target: Scale | None) -> Scale | None:
    """The scale of the result, where ONNX Runtime has an operator of integers for one input and its result: both are
    bytes, signed or unsigned."""
    if not isinstance(x, Bytes) or not x.is_plain or target is None:
        return None
    return target if x.unsigned == (target.dtype == "uint8") else None
