# SPDX-License-Identifier: Apache-2.0
"""Convolutions and fully connected layers of int8 activations and int4 weights, two to a byte, the lower first."""

from __future__ import annotations

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn import buffer_sizes
from tinyet.delegates.cmsis_nn.buffer_sizes import code_of
from tinyet.delegates.cmsis_nn.linear import structs, text
from tinyet.delegates.cmsis_nn.weighted import (
    CONVOLUTION_ARGUMENTS,
    first_factor,
    image_locals,
    refuse_several_scales,
    refuse_weighted,
    summary,
    weighted_call,
    weighted_constants,
)
from tinyet.delegates.cmsis_nn.wrapper import kernel
from tinyet.ir import Array, Node
from tinyet.ops.shared.convolution import attrs_of
from tinyet.ops.shared.nibbles import pack_nibbles
from tinyet.opset import Call


def packed(node: Node) -> Array:
    return pack_nibbles(node.input(1).array.reshape(-1), 0)


def refuse_conv2d(node: Node, _target: Target) -> str | None:
    return "only one group" if attrs_of(node).groups != 1 else refuse_weighted(node)


def lower_conv2d(node: Node, target: Target) -> Call:
    scratch = buffer_sizes.convolve_s8(code_of(target), node.input(1).array[0].size)
    constants = weighted_constants(node, packed(node), code_of(target))
    line = f"int4 {summary(node, attrs_of(node))}"
    return weighted_call(
        "arm_convolve_s4", line, image_locals(node), CONVOLUTION_ARGUMENTS, constants, scratch
    )


def lower_linear(node: Node, target: Target) -> Call:
    weights_and_bias = weighted_constants(node, packed(node), code_of(target))[:2]
    locals_ = [first_factor(node), *structs(node)]
    line = f"int4 {text(node)}"
    return weighted_call("arm_fully_connected_s4", line, locals_, CONVOLUTION_ARGUMENTS, weights_and_bias)


CONV2D_KERNELS = (kernel("arm_convolve_s4", "s8_w4", lower_conv2d, refuse_conv2d),)
LINEAR_KERNELS = (kernel("arm_fully_connected_s4", "s8_w4", lower_linear, refuse_several_scales),)
