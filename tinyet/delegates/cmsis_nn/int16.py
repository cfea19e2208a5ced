# SPDX-License-Identifier: Apache-2.0
"""Convolutions and fully connected layers of int16 activations and int8 weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn import buffer_sizes
from tinyet.delegates.cmsis_nn.buffer_sizes import Code, code_of
from tinyet.delegates.cmsis_nn.linear import rows_of, structs, text
from tinyet.delegates.cmsis_nn.weighted import (
    CONVOLUTION_ARGUMENTS,
    MVE_WEIGHTS_BYTES,
    factor_constants,
    first_factor,
    image_locals,
    quant_local,
    refuse_groups,
    refuse_sizes,
    summary,
    weighted_call,
)
from tinyet.delegates.cmsis_nn.wrapper import Local, dims, kernel, pair
from tinyet.ir import Array, Node
from tinyet.numerics import clamp_range
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.convolution import attrs_of, tap_weights
from tinyet.ops.shared.factors import channel_factors, output_factors
from tinyet.ops.shared.weighted import int_bias
from tinyet.ops.shared.weighted_s16 import fits_32
from tinyet.opset import Call, Constant


def constants(node: Node, weights: Array, code: Code) -> tuple[Constant, ...]:
    """weights, bias (int64), multiplier and shift."""
    flat = np.pad(weights.reshape(-1), (0, MVE_WEIGHTS_BYTES if code is Code.MVE else 0))
    return (
        Constant("weights", flat, "x".join(map(str, weights.shape))),
        Constant("bias", int_bias(node), align=8),
        *factor_constants(*output_factors(node), code),
    )


def refuse_sums(node: Node) -> str | None:
    """The library adds up in 32 bits, some of it for all of a kernel."""
    return refuse_sizes(node) or (None if fits_32(node.input(1).array) else "sums could leave 32 bits")


BIAS = Local("cmsis_nn_bias_data", "bias_data", (("", "bias"), ("of 32 bits", "false")))


def convolution_arguments() -> list[str]:
    return ["&bias_data" if a == "bias" else a for a in CONVOLUTION_ARGUMENTS]


# ---------------------------------------------------------------- convolution


def refuse_conv2d(node: Node, _target: Target) -> str | None:
    return "only one group" if attrs_of(node).groups != 1 else refuse_sums(node)


def lower_conv2d(node: Node, target: Target) -> Call:
    scratch = buffer_sizes.convolve_s16(code_of(target), node.input(1).array[0].size)
    return weighted_call(
        "arm_convolve_s16",
        summary(node, attrs_of(node)),
        [*image_locals(node), BIAS],
        convolution_arguments(),
        constants(node, node.input(1).array, code_of(target)),
        scratch,
        "int16_t",
    )


def refuse_depthwise(node: Node, _target: Target) -> str | None:
    return refuse_groups(attrs_of(node).groups, node.input(0).shape[3]) or refuse_sizes(node)


def lower_depthwise(node: Node, target: Target) -> Call:
    a = attrs_of(node)
    return weighted_call(
        "arm_depthwise_conv_s16",
        f"depthwise {summary(node, a)}",
        image_locals(node, node.output.shape[3] // a.groups),
        CONVOLUTION_ARGUMENTS,
        constants(node, tap_weights(node), code_of(target)),
        ctype="int16_t",
    )


# ---------------------------------------------------------------- fully connected


def refuse_per_tensor(node: Node, _target: Target) -> str | None:
    return (
        "only one scale for all weights"
        if len(set(channel_factors(node).tolist())) > 1
        else refuse_sums(node)
    )


def refuse_per_channel(node: Node, _target: Target) -> str | None:
    return refuse_sums(node)


def lower_per_tensor(node: Node, target: Target) -> Call:
    return weighted_call(
        "arm_fully_connected_s16",
        text(node),
        [first_factor(node), *structs(node)],
        CONVOLUTION_ARGUMENTS,
        constants(node, node.input(1).array, code_of(target))[:2],
        ctype="int16_t",
    )


def lower_per_channel(node: Node, target: Target) -> Call:
    """A 1x1 convolution of one row of pixels."""
    out_count, depth = node.input(1).shape
    low, high = clamp_range(clamp_of(node), node.output.type)
    scratch = buffer_sizes.convolve_s16(code_of(target), depth)
    fields = (
        ("offsets", "0, 0"),
        ("stride w, h", pair(1, 1)),
        ("padding", pair(0, 0)),
        ("dilation", pair(1, 1)),
        ("clamp", pair(low, high)),
    )
    locals_ = [
        Local("cmsis_nn_conv_params", "params", fields),
        quant_local(),
        dims("input_dims", 1, 1, rows_of(node), depth),
        dims("filter_dims", out_count, 1, 1, depth),
        dims("bias_dims", 1, 1, 1, out_count),
        dims("output_dims", 1, 1, rows_of(node), out_count),
        BIAS,
    ]
    return weighted_call(
        "arm_convolve_s16",
        text(node),
        locals_,
        convolution_arguments(),
        constants(node, node.input(1).array, code_of(target)),
        scratch,
        "int16_t",
    )


CONV2D_KERNELS = (
    kernel("arm_depthwise_conv_s16", "s16", lower_depthwise, refuse_depthwise),
    kernel("arm_convolve_s16", "s16", lower_conv2d, refuse_conv2d),
)
LINEAR_KERNELS = (
    kernel("arm_fully_connected_s16", "s16", lower_per_tensor, refuse_per_tensor),
    replace(
        kernel("arm_convolve_s16", "s16", lower_per_channel, refuse_per_channel),
        no_cost_model="the rates of arm_convolve_s16 are those of convolutions",
    ),
)
