# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional convolution, NHWC, with groups, dilation, a padding for each side and a fused clamp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, DType, Node, Shape
from tinyet.numerics import NO_CLAMP, Int64, clamp_range, quantize_multipliers, requantize
from tinyet.ops.shared import nibbles, weighted_s16
from tinyet.ops.shared.packing import interleave_pairs, interleave_quads, requantize_form
from tinyet.ops.shared.window import Window, expect_rank, pad_image, taps, window_shape
from tinyet.opset import Call, Constant, Kernel, Op, Pointer, Struct, library_call


@dataclass(frozen=True)
class Conv2d(Window):
    """inputs: x (N, H, W, C); weights (out_c, kernel_h, kernel_w, C / groups); bias (out_c,) or None.

    Weights and bias are constants.

    clamp: real bounds of the fused activation: (0, inf) is ReLU.
    """

    name: ClassVar[str] = "conv2d"
    groups: int = 1
    clamp: tuple[float, float] = NO_CLAMP


def attrs_of(node: Node) -> Conv2d:
    assert isinstance(node.attrs, Conv2d)
    return node.attrs


def infer(node: Node) -> tuple[Shape, ...]:
    attrs = attrs_of(node)
    batch, _, _, channels = expect_rank(node, 0, 4)
    out_c, kernel_h, kernel_w, group_c = expect_rank(node, 1, 4)
    if channels != group_c * attrs.groups or out_c % attrs.groups:
        what = f"{channels} channels in and {out_c} out do not divide into {attrs.groups} groups of {group_c}"
        raise UnsupportedShape(f"{node.op}: {what}", node.where)
    bias = node.optional_input(2)
    if bias is not None and bias.shape != (out_c,):
        raise UnsupportedShape(f"conv2d: bias of shape {bias.shape} for {out_c} channels", node.where)
    return ((batch, *window_shape(node, attrs, kernel_h, kernel_w), out_c),)


def macs(node: Node) -> int:
    _, kernel_h, kernel_w, group_c = node.input(1).shape
    return node.output.type.count * kernel_h * kernel_w * group_c


def check(node: Node) -> str | None:
    return check_weighted(node)


WEIGHTED_FORMS = tuple((x, w, x) for x in (DType.INT8, DType.INT16) for w in (DType.INT8, DType.INT4))
"""Integer types of x, weights and output. int4 weights are int8 ones of a smaller range."""


def check_weighted(node: Node) -> str | None:
    """The type rule of every operator with constant weights (input 1) and bias (input 2)."""
    x, weights, bias, out = node.input(0), node.input(1), node.optional_input(2), node.output
    if not weights.is_constant or (bias is not None and not bias.is_constant):
        return "weights and bias must be constants"
    if x.dtype is DType.FLOAT32:
        if weights.dtype is not DType.FLOAT32 or out.dtype is not DType.FLOAT32:
            return "a float input needs float weights and a float output"
        return None if bias is None or bias.dtype is DType.FLOAT32 else "a float input needs a float bias"
    dtypes = x.dtype, weights.dtype, out.dtype
    if dtypes not in WEIGHTED_FORMS:
        return f"no {x.dtype.value} by {weights.dtype.value} to {out.dtype.value} form"
    quant = weights.type.quant
    if quant is None or any(quant.zero_point):
        return "weights must be quantized symmetrically (zero point 0)"
    if quant.axis not in (None, 0):
        return f"weights are quantized along axis {quant.axis}, not along the output channels"
    if x.dtype is DType.INT16:
        return weighted_s16.check(node)
    if bias is not None and bias.dtype is not DType.INT32:
        return "the bias must be int32"
    # |x - zero_point| <= 255 and |weight| <= 128: the sum must not leave int32.
    magnitude = 255 * np.abs(weights.array.astype(np.int64)).reshape(weights.shape[0], -1).sum(axis=1)
    if bias is not None:
        magnitude = magnitude + np.abs(bias.array.astype(np.int64))
    return "sums could overflow 32 bits" if int(magnitude.max(initial=0)) >= 2**31 else None


def output_factors(node: Node, channels: int) -> tuple[Int64, Int64]:
    """(multiplier, shift), each int64 (channels,): input scale * weight scale / output scale, in float64."""
    quant = node.input(1).type.quant
    assert quant is not None
    scales = np.broadcast_to(np.array(quant.scale, np.float64), (channels,))
    return quantize_multipliers(node.input(0).type.scale * scales / node.output.type.scale)


def rescaled(node: Node, sums: Int64, clamp: tuple[float, float]) -> Array:
    """The integer output of exact sums (…, channels), bias and all."""
    if node.output.dtype is DType.INT16:
        return weighted_s16.rescaled(node, sums, clamp)
    out = requantize(sums, *output_factors(node, sums.shape[-1])) + node.output.type.zero_point
    return np.clip(out, *clamp_range(clamp, node.output.type)).astype(np.int8)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    attrs = attrs_of(node)
    x, weights, bias = inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None
    assert x is not None
    assert weights is not None
    out_c, kernel_h, kernel_w, group_c = weights.shape
    out_h, out_w = node.output.shape[1:3]
    group_out = out_c // attrs.groups
    integer = node.input(0).dtype is not DType.FLOAT32
    if integer:
        padded = pad_image(x.astype(np.float64) - node.input(0).type.zero_point, attrs, 0)
    else:
        padded = pad_image(x, attrs, 0)
    # Taps outside the image are left out, not added as zeros: weights may be infinite, sums may be -0.
    in_image = pad_image(np.ones((1, *x.shape[1:3], 1), np.bool_), attrs, 0)
    views = taps(padded, attrs, kernel_h, kernel_w, out_h, out_w)
    parts = []
    for g in range(attrs.groups):
        ins, outs = slice(g * group_c, (g + 1) * group_c), slice(g * group_out, (g + 1) * group_out)
        w = weights[outs].reshape(group_out, kernel_h * kernel_w, group_c)
        if integer:
            # float64 holds every integer below 2**53, so the matrix product is exact and fast.
            acc = np.zeros((*views[0].shape[:3], group_out), np.float64)
            for t, view in enumerate(views):
                acc += view[..., ins] @ w[:, t].T.astype(np.float64)
        else:
            acc = np.zeros((*views[0].shape[:3], group_out), np.float32)
            if bias is not None:
                acc += bias[outs].astype(np.float32)
            inside = taps(in_image, attrs, kernel_h, kernel_w, out_h, out_w)
            with np.errstate(over="ignore", invalid="ignore"):
                for t, view in enumerate(views):
                    for k in range(group_c):
                        value = view[..., ins][..., k : k + 1].astype(np.float32)
                        acc = np.where(inside[t], acc + value * w[:, t, k].astype(np.float32), acc)
        parts.append(acc)
    total = np.concatenate(parts, axis=-1)
    if not integer:
        return (clamp_float(total, attrs.clamp),)
    sums = total.astype(np.int64) + (bias.astype(np.int64) if bias is not None else 0)
    return (rescaled(node, sums, attrs.clamp),)


def clamp_float(values: Array, clamp: tuple[float, float]) -> Array:
    """tinyet_clamp_f32 in numpy: a NaN stays, and a bound replaces only what is beyond it."""
    low, high = np.float32(clamp[0]), np.float32(clamp[1])
    x = values.astype(np.float32)
    return np.where(x < low, low, np.where(x > high, high, x))


# ---------------------------------------------------------------- portable kernels


def shape_struct(node: Node) -> Struct:
    attrs = attrs_of(node)
    batch, in_h, in_w, in_c = node.input(0).shape
    _, out_h, out_w, out_c = node.output.shape
    _, kernel_h, kernel_w, _ = node.input(1).shape
    return Struct(
        "tinyet_conv2d_shape",
        {
            "batch": batch,
            "in_h": in_h,
            "in_w": in_w,
            "in_c": in_c,
            "out_h": out_h,
            "out_w": out_w,
            "out_c": out_c,
            "kernel_h": kernel_h,
            "kernel_w": kernel_w,
            "stride_h": attrs.stride_h,
            "stride_w": attrs.stride_w,
            "dilation_h": attrs.dilation_h,
            "dilation_w": attrs.dilation_w,
            "pad_top": attrs.pad_top,
            "pad_left": attrs.pad_left,
            "groups": attrs.groups,
        },
    )


def int_bias(node: Node) -> Int64:
    """The int32 bias (out_c,), zeros where the node has none; int64 here."""
    bias = node.optional_input(2)
    count = node.input(1).shape[0]
    return np.zeros(count, np.int64) if bias is None else bias.array.astype(np.int64)


def folded_bias(node: Node) -> Int64:
    """bias - zero_point * sum(weights): with it, padding that reads as the zero point contributes nothing."""
    weights = node.input(1).array.astype(np.int64)
    sums = weights.reshape(weights.shape[0], -1).sum(axis=1)
    return np.asarray(int_bias(node) - node.input(0).type.zero_point * sums, np.int64)


def quant_constants(node: Node, weights: Array, bias: Array) -> tuple[Constant, ...]:
    """The four arrays of a per-channel requantizing kernel."""
    multiplier, shift = output_factors(node, node.input(1).shape[0])
    return (
        Constant("weights", weights),
        Constant("bias", bias.astype(np.int32)),
        Constant("multiplier", multiplier.astype(np.int32)),
        Constant("shift", shift.astype(np.int8)),
    )


def quant_struct(node: Node, clamp: tuple[float, float], ctype: str) -> Struct:
    low, high = clamp_range(clamp, node.output.type)
    return Struct(
        ctype,
        {
            "weights": Pointer("weights"),
            "bias": Pointer("bias"),
            "multiplier": Pointer("multiplier"),
            "shift": Pointer("shift"),
            "in_zero_point": node.input(0).type.zero_point,
            "out_zero_point": node.output.type.zero_point,
            "clamp_low": low,
            "clamp_high": high,
        },
    )


def params_s8(node: Node) -> Struct:
    quant = quant_struct(node, attrs_of(node).clamp, "tinyet_conv2d_s8_quant")
    return Struct("tinyet_conv2d_s8_params", {"shape": shape_struct(node), "quant": quant})


def form_constants(node: Node, weights: Constant) -> tuple[Constant, ...]:
    """The four arrays of a kernel that folds the zero point into the bias and has forms instead of shifts."""
    bias = folded_bias(node)
    multiplier, shift = output_factors(node, len(bias))
    form = requantize_form(node.input(1).array, bias, shift)
    return (
        weights,
        Constant("bias", bias.astype(np.int32)),
        Constant("multiplier", multiplier.astype(np.int32)),
        Constant("shift", form.astype(np.int8), "as tinyet_requantize_form"),
    )


def pair_weights(node: Node) -> Constant:
    """Of the kernels that multiply pairs: a group's channels two by two."""
    weights, groups = node.input(1).array, attrs_of(node).groups
    rows = weights.reshape(groups, weights.shape[0] // groups, -1)
    packed = np.stack([interleave_pairs(group) for group in rows])
    return Constant("weights", packed, "a0 b0 a1 b1 of two channels")


def pair_call(symbol: str, node: Node) -> Call:
    """Scratch: two pixels' patches as int16, their depth rounded up to a pair."""
    depth, constants = node.input(1).array[0].size, form_constants(node, pair_weights(node))
    return library_call(symbol, node, [0], params_s8(node), constants, 8 * ((depth + 1) // 2))


def lower_s8(node: Node, _target: Target) -> Call:
    return pair_call("tinyet_conv2d_s8", node)


def refuse_1x1(node: Node, _target: Target) -> str | None:
    attrs = attrs_of(node)
    if node.input(1).shape[1:3] != (1, 1) or attrs.groups != 1:
        return "only 1x1 kernels of one group"
    if (attrs.stride_h, attrs.stride_w) != (1, 1) or node.input(0).shape[1:3] != node.output.shape[1:3]:
        return "only stride 1 without padding"
    return None


def lower_1x1_s8(node: Node, _target: Target) -> Call:
    return pair_call("tinyet_conv2d_1x1_s8", node)


def refuse_depthwise(node: Node, _target: Target) -> str | None:
    channels = node.input(0).shape[3]
    if attrs_of(node).groups != channels or node.output.shape[3] != channels:
        return "only one input channel and one output channel a group"
    return None


def quad_weights(node: Node) -> Constant:
    """Of the depthwise kernels: four channels at a time."""
    weights = node.input(1).array
    quads = interleave_quads(weights.reshape(weights.shape[0], -1).T)
    return Constant("weights", quads, "four channels a tap")


def depthwise_call(symbol: str, node: Node, weights: Constant) -> Call:
    """Scratch: two lists of the taps' offsets."""
    _, kernel_h, kernel_w, _ = node.input(1).shape
    constants = form_constants(node, weights)
    return library_call(symbol, node, [0], params_s8(node), constants, 8 * kernel_h * kernel_w)


def lower_depthwise_s8(node: Node, _target: Target) -> Call:
    return depthwise_call("tinyet_depthwise_s8", node, quad_weights(node))


def refuse_depthwise_multiplier(node: Node, _target: Target) -> str | None:
    groups = attrs_of(node).groups
    if groups == 1 and node.output.shape[3] > 1:
        return "one group of several channels: an ordinary convolution, which shares its patches among them"
    return None if groups == node.input(0).shape[3] else "only one input channel a group"


def lower_depthwise_multiplier_s8(node: Node, _target: Target) -> Call:
    weights = np.ascontiguousarray(node.input(1).array[..., 0].transpose(1, 2, 0))
    constants = quant_constants(node, weights, int_bias(node))
    scratch = 4 * node.output.shape[3]
    return library_call("tinyet_depthwise_multiplier_s8", node, [0], params_s8(node), constants, scratch)


def pair_call_w4(symbol: str, node: Node) -> Call:
    """Scratch: two pixels' patches as int16, their depth rounded up to a block of four."""
    weights = nibbles.narrowed(pair_weights(node), 2)
    scratch = 16 * weights.data.shape[2]
    return library_call(symbol, node, [0], params_s8(node), form_constants(node, weights), scratch)


def lower_s8_w4(node: Node, _target: Target) -> Call:
    return pair_call_w4("tinyet_conv2d_s8_w4", node)


def lower_1x1_s8_w4(node: Node, _target: Target) -> Call:
    return pair_call_w4("tinyet_conv2d_1x1_s8_w4", node)


def lower_depthwise_s8_w4(node: Node, _target: Target) -> Call:
    return depthwise_call("tinyet_depthwise_s8_w4", node, nibbles.narrowed(quad_weights(node), 1))


def refuse_1x1_w4(node: Node, target: Target) -> str | None:
    return nibbles.refuse_long_sums(node, target) or refuse_1x1(node, target)


def refuse_depthwise_w4(node: Node, target: Target) -> str | None:
    return nibbles.refuse_long_sums(node, target) or refuse_depthwise(node, target)


def params_s16(node: Node) -> Struct:
    quant = Struct("tinyet_conv2d_s16_quant", weighted_s16.fields(node, attrs_of(node).clamp))
    return Struct("tinyet_conv2d_s16_params", {"shape": shape_struct(node), "quant": quant})


def lower_s16(node: Node, _target: Target) -> Call:
    """Weights and scratch as in int8."""
    constants = weighted_s16.constants(node, pair_weights(node))
    depth = node.input(1).array[0].size
    return library_call("tinyet_conv2d_s16", node, [0], params_s16(node), constants, 8 * ((depth + 1) // 2))


def refuse_long_sums_s16(node: Node) -> str | None:
    return None if weighted_s16.fits_32(node.input(1).array) else "only sums of 32 bits"


def refuse_depthwise_s16(node: Node, target: Target) -> str | None:
    return refuse_depthwise(node, target) or refuse_long_sums_s16(node)


def lower_depthwise_s16(node: Node, _target: Target) -> Call:
    """Weights four channels at a time; scratch: two lists of taps."""
    weights = node.input(1).array
    taps = weights.shape[1] * weights.shape[2]
    quads = Constant("weights", interleave_quads(weights.reshape(-1, taps).T), "four channels a tap")
    constants = weighted_s16.constants(node, quads)
    return library_call("tinyet_depthwise_s16", node, [0], params_s16(node), constants, 16 * taps)


def refuse_depthwise_multiplier_s16(node: Node, target: Target) -> str | None:
    return refuse_depthwise_multiplier(node, target) or refuse_long_sums_s16(node)


def lower_depthwise_multiplier_s16(node: Node, _target: Target) -> Call:
    weights = np.ascontiguousarray(node.input(1).array[..., 0].transpose(1, 2, 0))
    constants = weighted_s16.constants(node, Constant("weights", weights))
    scratch = 4 * node.output.shape[3]
    return library_call("tinyet_depthwise_multiplier_s16", node, [0], params_s16(node), constants, scratch)


def lower_f32(node: Node, _target: Target) -> Call:
    bias = node.optional_input(2)
    weights = node.input(1).array
    values = Struct(
        "tinyet_conv2d_f32_values",
        {
            "weights": Pointer("weights"),
            "bias": Pointer("bias"),
            "clamp_low": attrs_of(node).clamp[0],
            "clamp_high": attrs_of(node).clamp[1],
        },
    )
    constants = (
        Constant("weights", weights),
        Constant("bias", np.zeros(weights.shape[0], np.float32) if bias is None else bias.array),
    )
    params = Struct("tinyet_conv2d_f32_params", {"shape": shape_struct(node), "values": values})
    return library_call("tinyet_conv2d_f32", node, [0], params, constants)


HEADERS = ("tinyet_conv2d.h",)
PAIRS = (*HEADERS, "tinyet_pairs.h")
DOT = (*PAIRS, "tinyet_dot.h")
PATCHES = (*DOT, "tinyet_patches.h")
DEPTHWISE = (*PAIRS, "tinyet_depthwise.h", "tinyet_window.h")
NIBBLES = ("tinyet_nibbles.h",)
CONV_W4 = ("tinyet_conv2d_s8_w4.c",)

OP = Op(
    attrs=Conv2d,
    summary="convolution: stride, dilation, groups, a padding for each side, fused clamp",
    infer=infer,
    reference=reference,
    check=check,
    macs=macs,
    bias=(2, 1),
    kernels=(
        Kernel("tinyet_conv2d_1x1_s8", "s8", lower_1x1_s8, PATCHES, ("tinyet_conv2d_s8.c",), refuse_1x1),
        Kernel(
            "tinyet_depthwise_s8",
            "s8",
            lower_depthwise_s8,
            DEPTHWISE,
            ("tinyet_depthwise_s8.c",),
            refuse_depthwise,
        ),
        Kernel(
            "tinyet_depthwise_multiplier_s8",
            "s8",
            lower_depthwise_multiplier_s8,
            HEADERS,
            ("tinyet_depthwise_multiplier_s8.c",),
            refuse_depthwise_multiplier,
        ),
        Kernel("tinyet_conv2d_s8", "s8", lower_s8, PATCHES, ("tinyet_conv2d_s8.c",)),
        Kernel(
            "tinyet_conv2d_1x1_s8_w4",
            "s8w4",
            lower_1x1_s8_w4,
            (*PATCHES, *NIBBLES),
            CONV_W4,
            refuse_1x1_w4,
        ),
        Kernel(
            "tinyet_depthwise_s8_w4",
            "s8w4",
            lower_depthwise_s8_w4,
            (*DEPTHWISE, *NIBBLES),
            ("tinyet_depthwise_s8_w4.c",),
            refuse_depthwise_w4,
        ),
        Kernel(
            "tinyet_conv2d_s8_w4",
            "s8w4",
            lower_s8_w4,
            (*PATCHES, *NIBBLES),
            CONV_W4,
            nibbles.refuse_long_sums,
        ),
        Kernel(
            "tinyet_depthwise_s16",
            "s16",
            lower_depthwise_s16,
            (*PAIRS, "tinyet_window.h"),
            ("tinyet_depthwise_s16.c",),
            refuse_depthwise_s16,
        ),
        Kernel(
            "tinyet_depthwise_multiplier_s16",
            "s16",
            lower_depthwise_multiplier_s16,
            HEADERS,
            ("tinyet_depthwise_multiplier_s16.c",),
            refuse_depthwise_multiplier_s16,
        ),
        Kernel("tinyet_conv2d_s16", "s16", lower_s16, DOT, ("tinyet_conv2d_s16.c",)),
        Kernel("tinyet_conv2d_f32", "f32", lower_f32, HEADERS, ("tinyet_conv2d_f32.c",)),
    ),
)
