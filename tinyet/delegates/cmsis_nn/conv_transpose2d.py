# SPDX-License-Identifier: Apache-2.0
"""Transposed convolutions: up to stride 2 as convolutions of an image with zeros between its pixels, else on their own.

For the first the library turns the weights around in scratch memory at every run; here they are stored that way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn import buffer_sizes
from tinyet.delegates.cmsis_nn.buffer_sizes import code_of
from tinyet.delegates.cmsis_nn.weighted import (
    CONVOLUTION_ARGUMENTS,
    convolution_locals,
    quant_local,
    refuse_weighted,
    summary,
    upscaled_arguments,
    weighted_call,
    weighted_constants,
)
from tinyet.delegates.cmsis_nn.wrapper import Local, dims, kernel, pair
from tinyet.ir import Node
from tinyet.numerics import clamp_range
from tinyet.ops.conv_transpose2d import ConvTranspose2d, attrs_of
from tinyet.opset import Call


def turned_pads(node: Node) -> tuple[int, int]:
    """Padding above and on the left of the convolution with the weights turned around."""
    a, (_, kernel_h, kernel_w, _) = attrs_of(node), node.input(1).shape
    return (kernel_h - 1) * a.dilation_h - a.pad_top, (kernel_w - 1) * a.dilation_w - a.pad_left


def refuse_turned(node: Node, _target: Target) -> str | None:
    a = attrs_of(node)
    if max(a.stride_h, a.stride_w) > 2:
        return "only strides of 1 and 2"
    if a.groups > 1 and max(a.stride_h, a.stride_w) > 1:
        return "only one group where there is a stride"
    if min(turned_pads(node)) < 0:
        return "crops more than the kernel reaches over the edge"
    return refuse_weighted(node)


def lower_turned(node: Node, target: Target) -> Call:
    a, (_, in_h, in_w, _) = attrs_of(node), node.input(0).shape
    _, kernel_h, kernel_w, group_c = node.input(1).shape
    scratch = buffer_sizes.convolve_s8(code_of(target), kernel_h * kernel_w * group_c)
    strides = (a.stride_h, a.stride_w)
    size = (in_h * a.stride_h, in_w * a.stride_w)
    structs = convolution_locals(node, a, size, turned_pads(node), (1, 1))
    arguments = upscaled_arguments()
    if strides != (1, 1):
        structs.append(dims("upscale_dims", 0, *strides, 0))
        arguments = upscaled_arguments("&upscale_dims")
    weights = np.ascontiguousarray(node.input(1).array[:, ::-1, ::-1])
    constants = weighted_constants(node, weights, code_of(target))
    return weighted_call("arm_convolve_s8", summary(node, a), structs, arguments, constants, scratch)


def refuse_rows(node: Node, _target: Target) -> str | None:
    """The library writes `stride` rows for each row of the input, and then what of the kernel is left."""
    a = attrs_of(node)
    _, in_h, in_w, _ = node.input(0).shape
    _, kernel_h, kernel_w, _ = node.input(1).shape
    _, out_h, out_w, _ = node.output.shape
    if a.groups > 1 or (kernel_h > 1 and a.dilation_h > 1) or (kernel_w > 1 and a.dilation_w > 1):
        return "only one group, undilated"
    if a.pad_top:
        return "nothing may be cropped at the top"
    most_h = (in_h - 1) * a.stride_h + max(kernel_h, a.stride_h)
    most_w = (in_w - 1) * a.stride_w + max(kernel_w, a.stride_w)
    if not in_h * a.stride_h <= out_h <= most_h or a.pad_left + out_w > most_w:
        return "only outputs as large as the strides make them, or a kernel's rest larger"
    return refuse_weighted(node)


def row_params(node: Node, a: ConvTranspose2d) -> Local:
    low, high = clamp_range(a.clamp, node.output.type)
    fields = (
        ("input offset", str(-node.input(0).type.zero_point)),
        ("output offset", str(node.output.type.zero_point)),
        ("stride w, h", pair(a.stride_w, a.stride_h)),
        ("padding", pair(a.pad_left, a.pad_top)),
        ("its offsets", pair(0, 0)),
        ("dilation", pair(1, 1)),
        ("clamp", pair(low, high)),
    )
    return Local("cmsis_nn_transpose_conv_params", "params", fields)


def lower_rows(node: Node, target: Target) -> Call:
    a, (batch, in_h, in_w, in_c) = attrs_of(node), node.input(0).shape
    out_c, kernel_h, kernel_w, _ = node.input(1).shape
    scratch = buffer_sizes.transpose_conv_s8(out_c, in_w, kernel_h, kernel_w, a.stride_h, a.stride_w)
    arguments = ["&context", "NULL", *CONVOLUTION_ARGUMENTS[1:]]
    structs = [
        row_params(node, a),
        quant_local(),
        dims("input_dims", batch, in_h, in_w, in_c),
        dims("filter_dims", out_c, kernel_h, kernel_w, in_c),
        dims("bias_dims", 1, 1, 1, out_c),
        dims("output_dims", *node.output.shape),
    ]
    constants = weighted_constants(node, node.input(1).array, code_of(target))
    return weighted_call("arm_transpose_conv_s8", summary(node, a), structs, arguments, constants, scratch)


KERNELS = (
    replace(
        kernel("arm_convolve_s8", "s8", lower_turned, refuse_turned),
        no_cost_model="the rates of arm_convolve_s8 are those of images without gaps between their pixels",
    ),
    kernel("arm_transpose_conv_s8", "s8", lower_rows, refuse_rows),
)
