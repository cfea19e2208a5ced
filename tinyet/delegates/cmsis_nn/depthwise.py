# SPDX-License-Identifier: Apache-2.0
"""Convolutions of one input channel a group, with any number of output channels each."""

from __future__ import annotations

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn import buffer_sizes
from tinyet.delegates.cmsis_nn.buffer_sizes import Code, code_of
from tinyet.delegates.cmsis_nn.weighted import (
    CONVOLUTION_ARGUMENTS,
    image_locals,
    refuse_groups,
    refuse_weighted,
    summary,
    weighted_call,
    weighted_constants,
)
from tinyet.delegates.cmsis_nn.wrapper import kernel
from tinyet.ir import Node
from tinyet.ops.shared.convolution import attrs_of, tap_weights
from tinyet.opset import Call


def refuse_any(node: Node, _target: Target) -> str | None:
    return refuse_groups(attrs_of(node).groups, node.input(0).shape[3]) or refuse_weighted(node)


def refuse_single(node: Node, target: Target) -> str | None:
    """Requirements of both faster functions."""
    a = attrs_of(node)
    reason = refuse_any(node, target)
    if reason is not None:
        return reason
    if node.output.shape[3] != a.groups or node.input(0).shape[0] != 1:
        return "only one output channel a group, one image"
    _, kernel_h, kernel_w, _ = node.input(1).shape
    dilated = (kernel_h > 1 and a.dilation_h > 1) or (kernel_w > 1 and a.dilation_w > 1)
    return "only undilated" if dilated else None


def refuse_3x3(node: Node, target: Target) -> str | None:
    a = attrs_of(node)
    if code_of(target) is Code.MVE:
        return "the general code for MVE is faster"
    if node.input(1).shape[1:3] != (3, 3):
        return "only 3x3 kernels"
    # The middle column of the kernel is read without a look at the image's edges.
    last = (node.output.shape[2] - 1) * a.stride_w - a.pad_left
    if a.pad_left > 1 or a.pad_top > 1 or last + 1 >= node.input(0).shape[2]:
        return "only kernels whose middle lies in the image"
    return refuse_single(node, target)


def refuse_opt(node: Node, target: Target) -> str | None:
    a, code = attrs_of(node), code_of(target)
    if code is Code.SCALAR:
        return "a core without DSP has the general code only"
    last = (node.output.shape[1] - 1) * a.stride_h - a.pad_top
    if code is Code.DSP and (a.pad_top >= node.input(1).shape[1] or last >= node.input(0).shape[1]):
        return "a kernel wholly above or below the image would clear more scratch memory than there is"
    return refuse_single(node, target)


def depthwise(function: str, node: Node, target: Target, scratch: int) -> Call:
    a = attrs_of(node)
    constants = weighted_constants(node, tap_weights(node), code_of(target))
    structs = image_locals(node, multiplier=node.output.shape[3] // a.groups)
    text = f"depthwise {summary(node, a)}"
    return weighted_call(function, text, structs, CONVOLUTION_ARGUMENTS, constants, scratch)


def lower_3x3(node: Node, target: Target) -> Call:
    return depthwise("arm_depthwise_conv_3x3_s8", node, target, 0)


def lower_opt(node: Node, target: Target) -> Call:
    _, kernel_h, kernel_w, _ = node.input(1).shape
    scratch = buffer_sizes.depthwise_s8_opt(code_of(target), node.input(0).shape[3], kernel_h * kernel_w)
    return depthwise("arm_depthwise_conv_s8_opt", node, target, scratch)


def lower_any(node: Node, target: Target) -> Call:
    return depthwise("arm_depthwise_conv_s8", node, target, 0)


KERNELS = (
    kernel("arm_depthwise_conv_3x3_s8", "s8", lower_3x3, refuse_3x3),
    kernel("arm_depthwise_conv_s8_opt", "s8", lower_opt, refuse_opt),
    kernel("arm_depthwise_conv_s8", "s8", lower_any, refuse_any),
)
