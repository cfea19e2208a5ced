# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional convolution, NHWC, with groups, dilation, a padding for each side and a fused clamp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node
from tinyet.numerics import LayerRounding, float32
from tinyet.ops.shared import (
    convolution,
    nibbles,
    weighted,
    weighted_s16,
)
from tinyet.ops.shared.access_orders import (
    by_window_pixels,
    of_input,
    pixel_walk,
    window_walk,
)
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.conv2d_words import KERNELS as WORDS_KERNELS
from tinyet.ops.shared.conv2d_words import by_summed_pixels, refuse_1x1, refuse_groups
from tinyet.ops.shared.convolution import (
    DEPTHWISE,
    DOT,
    HEADERS,
    PAIRS,
    PATCHES,
    Convolution,
    attrs_of,
    pair_weights,
    patch_bytes,
    quad_weights,
    refuse_depthwise,
    shape_struct,
    tap_bytes,
    tap_weights,
)
from tinyet.ops.shared.cost_models import COST_MODELS
from tinyet.ops.shared.cost_models_float import COST_MODELS as FLOAT_COST_MODELS
from tinyet.ops.shared.factors import rounds_half_even
from tinyet.opset import (
    ALONE,
    AccessOrder,
    Call,
    Constant,
    Kernel,
    Op,
    Struct,
    library_call,
    with_cost_models,
)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Conv2d(Convolution):
    """A Convolution whose inputs and output have one type, int8, int16 or float32; weights may be int4 in int8.

    rounding: of the sums; of int8 values "half_even" is ONNX Runtime's QLinearConv, of int16 values "int32_accumulator"
    is LiteRT's where the bias is int32.
    """

    name: ClassVar[str] = "conv2d"
    rounding: LayerRounding = "double"


def float_sums(node: Node, x: Array, weights: Array, bias: Array | None) -> float32.Float32:
    """float32 (N, out_h, out_w, out_c): bias, then one product after another, by taps, then channels."""
    groups, shape = attrs_of(node).groups, node.output.shape
    # Channels by groups: (N, out_h, out_w, groups, channels of a group)
    acc = np.zeros((*shape[:3], groups, shape[3] // groups), np.float32)
    if bias is not None:
        acc += bias.astype(np.float32).reshape(groups, -1)
    w = convolution.weights_of_taps(weights).astype(np.float32).reshape(*acc.shape[3:], -1, weights.shape[3])
    # Taps outside the image are left out, not added as zeros: weights may be infinite, sums may be -0.
    inside = convolution.tap_views(node, np.ones((1, *x.shape[1:3], 1), np.bool_))
    product = np.empty_like(acc)
    with np.errstate(over="ignore", invalid="ignore"):
        for t, view in enumerate(convolution.tap_views(node, x)):
            values = view.reshape(*shape[:3], groups, -1).astype(np.float32)
            taken: Mask | bool = bool(inside[t].all()) or inside[t][..., None].astype(np.bool_)
            for k in range(weights.shape[3]):
                np.multiply(values[..., k : k + 1], w[:, :, t, k], out=product)
                np.add(acc, product, out=acc, where=taken)
    return acc.reshape(shape)


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x, weights, bias = weighted.operands(inputs)
    if node.input(0).dtype is DType.FLOAT32:
        return (float32.clamp(float_sums(node, x, weights, bias), *clamp_of(node)),)
    numbers = x.astype(np.float64) - node.input(0).type.zero_point
    sums = convolution.exact_sums(node, numbers, weights).astype(np.int64)
    return (weighted.rescaled(node, sums + (bias.astype(np.int64) if bias is not None else 0)),)


# ---------------------------------------------------------------- portable kernels


def params(node: Node) -> Struct:
    return weighted.layer_params(node, "tinyet_conv2d", shape_struct(node))


def layer_call(name: str, node: Node, constants: Sequence[Constant], scratch: int = 0) -> Call:
    """`tinyet_<name>_<dtype>`, with _w4 behind it for int4 weights, _rne for sums that are rounded to even."""
    narrow = "_w4" if node.input(1).dtype is DType.INT4 else "_rne" if rounds_half_even(node) else ""
    symbol = f"tinyet_{name}_{node.input(0).dtype.suffix}{narrow}"
    return library_call(symbol, node, [0], params(node), constants, scratch)


def pair_call(name: str, node: Node) -> Call:
    constants = weighted.folded_constants(node, pair_weights(node))
    return layer_call(name, node, constants, patch_bytes(node))


def lower_pairs(node: Node, _target: Target) -> Call:
    return pair_call("conv2d", node)


def lower_pairs_acc32(node: Node, _target: Target) -> Call:
    quant = Struct("tinyet_conv2d_s16_acc32_quant", weighted.number_fields(node))
    params = Struct("tinyet_conv2d_s16_acc32_params", {"shape": shape_struct(node), "quant": quant})
    constants = weighted.folded_constants(node, pair_weights(node))
    return library_call("tinyet_conv2d_s16_acc32", node, [0], params, constants, patch_bytes(node))


def lower_1x1(node: Node, _target: Target) -> Call:
    return pair_call("conv2d_1x1", node)


def pair_call_w4(name: str, node: Node) -> Call:
    """Scratch: two pixels' patches as int16, their depth rounded up to a block of four."""
    weights = nibbles.narrowed(pair_weights(node), 2)
    return layer_call(name, node, weighted.folded_constants(node, weights), 16 * weights.data.shape[2])


def lower_pairs_w4(node: Node, _target: Target) -> Call:
    return pair_call_w4("conv2d", node)


def lower_1x1_w4(node: Node, _target: Target) -> Call:
    return pair_call_w4("conv2d_1x1", node)


def lower_depthwise_s8(node: Node, _target: Target) -> Call:
    constants = weighted.folded_constants(node, quad_weights(node))
    return layer_call("depthwise", node, constants, tap_bytes(node))


def lower_depthwise_w4(node: Node, _target: Target) -> Call:
    constants = weighted.folded_constants(node, nibbles.narrowed(quad_weights(node), 1))
    return layer_call("depthwise", node, constants, tap_bytes(node))


def lower_depthwise_s16(node: Node, _target: Target) -> Call:
    """Scratch: two lists of taps, with where each reads the image and the weights."""
    constants = weighted.folded_constants(node, quad_weights(node))
    return layer_call("depthwise", node, constants, 2 * tap_bytes(node))


def lower_depthwise_multiplier(node: Node, _target: Target) -> Call:
    constants = weighted.constants(node, Constant("weights", tap_weights(node)))
    return layer_call("depthwise_multiplier", node, constants, 4 * node.output.shape[3])


def lower_f32(node: Node, _target: Target) -> Call:
    return layer_call("conv2d", node, weighted.constants(node, Constant("weights", node.input(1).array)))


def four_by_four(weights: Array) -> Array:
    """(channels, …) → as many, flat: of each four channels together one element after another, then the channels that
    are left."""
    flat = weights.reshape(len(weights), -1)
    whole = len(flat) // 4 * 4
    quads = flat[:whole].reshape(-1, 4, flat.shape[1]).transpose(0, 2, 1)
    return np.concatenate([quads.ravel(), flat[whole:].ravel()])


def quads_call(symbol: str, node: Node) -> Call:
    weights = Constant("weights", four_by_four(node.input(1).array), "four channels in turn")
    return library_call(symbol, node, [0], params(node), weighted.constants(node, weights))


def lower_blocked_f32(node: Node, _target: Target) -> Call:
    return quads_call("tinyet_conv2d_f32_2x4", node)


def lower_depthwise_f32(node: Node, _target: Target) -> Call:
    return quads_call("tinyet_depthwise_f32", node)


# ---------------------------------------------------------------- refusals


def refuse_depthwise_multiplier(node: Node, _target: Target) -> str | None:
    groups = attrs_of(node).groups
    if groups == 1 and node.output.shape[3] > 1:
        return "one group of several channels: an ordinary convolution, which shares its patches among them"
    return None if groups == node.input(0).shape[3] else "only one input channel a group"


def refuse_1x1_w4(node: Node, target: Target) -> str | None:
    return nibbles.refuse_long_sums(node, target) or refuse_1x1(node, target)


def refuse_depthwise_w4(node: Node, target: Target) -> str | None:
    return nibbles.refuse_long_sums(node, target) or refuse_depthwise(node, target)


def refuse_long_sums_s16(node: Node) -> str | None:
    return None if weighted_s16.fits_32(node.input(1).array) else "only sums of 32 bits"


def refuse_depthwise_s16(node: Node, target: Target) -> str | None:
    return refuse_depthwise(node, target) or refuse_long_sums_s16(node)


def refuse_depthwise_multiplier_s16(node: Node, target: Target) -> str | None:
    return refuse_depthwise_multiplier(node, target) or refuse_long_sums_s16(node)


# ---------------------------------------------------------------- what is read after it is written


@of_input
def by_patches(node: Node) -> AccessOrder | None:
    """Two pixels' patches are copied before these are written; groups come one after another."""
    return window_walk(node).by_pixels(2, gathered=True) if attrs_of(node).groups == 1 else None


@of_input
def by_copied_pixels(node: Node) -> AccessOrder:
    return pixel_walk(node).by_pixels(2, gathered=True)


@of_input
def by_blocks(node: Node) -> AccessOrder:
    """One pixel, or two."""
    return window_walk(node).by_pixels(ahead=1)


NIBBLES = ("tinyet_int4.h",)
EVEN = ("tinyet_rne.h",)
CONV_W4 = ("tinyet_conv2d_s8_w4.c",)

EVEN_KERNELS = (
    Kernel(
        "tinyet_conv2d_1x1_s8_rne",
        "s8_rne",
        lower_1x1,
        (*PATCHES, *EVEN),
        ("tinyet_conv2d_s8_rne.c",),
        refuse_1x1,
        access_order=by_copied_pixels,
    ),
    Kernel(
        "tinyet_depthwise_s8_rne",
        "s8_rne",
        lower_depthwise_s8,
        (*DEPTHWISE, *EVEN),
        ("tinyet_depthwise_s8_rne.c",),
        refuse_depthwise,
        access_order=by_window_pixels,
    ),
    Kernel(
        "tinyet_depthwise_multiplier_s8_rne",
        "s8_rne",
        lower_depthwise_multiplier,
        (*HEADERS, *EVEN),
        ("tinyet_depthwise_multiplier_s8_rne.c",),
        refuse_depthwise_multiplier,
        access_order=by_summed_pixels,
    ),
    Kernel(
        "tinyet_conv2d_s8_rne",
        "s8_rne",
        lower_pairs,
        (*PATCHES, *EVEN),
        ("tinyet_conv2d_s8_rne.c",),
        access_order=by_patches,
    ),
)

OP = Op(
    attrs=Conv2d,
    summary="convolution: stride, dilation, groups, a padding for each side, fused clamp",
    infer=convolution.infer,
    inputs=(2, 3),
    reference=reference,
    iteration=convolution.iterate,
    part=convolution.part,
    check=weighted.check_weighted,
    bias=(2, 1),
    kernels=with_cost_models(
        (
            Kernel(
                "tinyet_conv2d_1x1_s8",
                "s8",
                lower_1x1,
                PATCHES,
                ("tinyet_conv2d_s8.c",),
                refuse_1x1,
                access_order=by_copied_pixels,
            ),
            Kernel(
                "tinyet_depthwise_s8",
                "s8",
                lower_depthwise_s8,
                DEPTHWISE,
                ("tinyet_depthwise_s8.c",),
                refuse_depthwise,
                access_order=by_window_pixels,
            ),
            Kernel(
                "tinyet_depthwise_multiplier_s8",
                "s8",
                lower_depthwise_multiplier,
                HEADERS,
                ("tinyet_depthwise_multiplier_s8.c",),
                refuse_depthwise_multiplier,
                access_order=by_summed_pixels,
            ),
            Kernel(
                "tinyet_conv2d_s8",
                "s8",
                lower_pairs,
                PATCHES,
                ("tinyet_conv2d_s8.c",),
                access_order=by_patches,
            ),
            *WORDS_KERNELS,
            *EVEN_KERNELS,
            Kernel(
                "tinyet_conv2d_1x1_s8_w4",
                "s8_w4",
                lower_1x1_w4,
                (*PATCHES, *NIBBLES),
                CONV_W4,
                refuse_1x1_w4,
                access_order=by_copied_pixels,
            ),
            Kernel(
                "tinyet_depthwise_s8_w4",
                "s8_w4",
                lower_depthwise_w4,
                (*DEPTHWISE, *NIBBLES),
                ("tinyet_depthwise_s8_w4.c",),
                refuse_depthwise_w4,
                access_order=by_window_pixels,
            ),
            Kernel(
                "tinyet_conv2d_s8_w4",
                "s8_w4",
                lower_pairs_w4,
                (*PATCHES, *NIBBLES),
                CONV_W4,
                nibbles.refuse_long_sums,
                access_order=by_patches,
            ),
            Kernel(
                "tinyet_depthwise_s16",
                "s16",
                lower_depthwise_s16,
                (*PAIRS, "tinyet_window.h"),
                ("tinyet_depthwise_s16.c",),
                refuse_depthwise_s16,
                access_order=by_window_pixels,
            ),
            Kernel(
                "tinyet_depthwise_multiplier_s16",
                "s16",
                lower_depthwise_multiplier,
                HEADERS,
                ("tinyet_depthwise_multiplier_s16.c",),
                refuse_depthwise_multiplier_s16,
                access_order=by_summed_pixels,
            ),
            Kernel(
                "tinyet_conv2d_s16",
                "s16",
                lower_pairs,
                DOT,
                ("tinyet_conv2d_s16.c",),
                access_order=by_patches,
            ),
            Kernel(
                "tinyet_conv2d_s16_acc32",
                "s16_acc32",
                lower_pairs_acc32,
                DOT,
                ("tinyet_conv2d_s16_acc32.c",),
                access_order=by_patches,
                no_cost_model=ALONE,
            ),
            Kernel(
                "tinyet_depthwise_f32",
                "f32",
                lower_depthwise_f32,
                (*HEADERS, "tinyet_window.h"),
                ("tinyet_depthwise_f32.c",),
                refuse_depthwise,
                access_order=by_window_pixels,
            ),
            Kernel(
                "tinyet_conv2d_f32_2x4",
                "f32",
                lower_blocked_f32,
                (*HEADERS, "tinyet_window.h"),
                ("tinyet_conv2d_f32_2x4.c",),
                refuse_groups,
                access_order=by_blocks,
            ),
            Kernel(
                "tinyet_conv2d_f32",
                "f32",
                lower_f32,
                HEADERS,
                ("tinyet_conv2d_f32.c",),
                access_order=by_window_pixels,
            ),
        ),
        {**COST_MODELS, **FLOAT_COST_MODELS},
    ),
)
