# SPDX-License-Identifier: Apache-2.0
"""Convolutions and fully connected layers of int8 activations and int4 weights, two to a byte, the lower first."""

from __future__ import annotations

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn import buffer_sizes
from tinyet.delegates.cmsis_nn.buffer_sizes import code_of
from tinyet.delegates.cmsis_nn.linear import structs, text
from tinyet.delegates.cmsis_nn.weighted import (
    CONVOLUTION_ARGUMENTS,
    convolution_locals,
    refuse_weighted,
    summary,
    weighted_constants,
)
from tinyet.delegates.cmsis_nn.wrapper import Local, checked, context, delegated_call, kernel
from tinyet.ir import Array, Node
from tinyet.ops import conv2d
from tinyet.ops.conv2d import output_factors
from tinyet.ops.shared.nibbles import pack_nibbles
from tinyet.opset import Call


def packed(node: Node) -> Array:
    return pack_nibbles(node.input(1).array.reshape(-1), 0)


def refuse_conv2d(node: Node, _target: Target) -> str | None:
    return "only one group" if conv2d.attrs_of(node).groups != 1 else refuse_weighted(node)


def lower_conv2d(node: Node, target: Target) -> Call:
    a, (_, in_h, in_w, _) = conv2d.attrs_of(node), node.input(0).shape
    scratch = buffer_sizes.convolve_s8(code_of(target), node.input(1).array[0].size)
    pads, strides = (a.pad_top, a.pad_left), (a.stride_h, a.stride_w)
    ending = checked("arm_convolve_s4", CONVOLUTION_ARGUMENTS)
    return delegated_call(
        "arm_convolve_s4",
        f"int4 {summary(node, a)}",
        [context(scratch), *convolution_locals(node, a, a.clamp, (in_h, in_w), pads, strides), ending],
        constants=weighted_constants(node, packed(node), code_of(target)),
        scratch_bytes=scratch,
    )


def refuse_linear(node: Node, _target: Target) -> str | None:
    quant = node.input(1).type.quant
    assert quant is not None
    return "only one scale for all weights" if len(set(quant.scale)) > 1 else refuse_weighted(node)


def lower_linear(node: Node, target: Target) -> Call:
    weights, bias, *_ = weighted_constants(node, packed(node), code_of(target))
    multiplier, shift = (int(v[0]) for v in output_factors(node, node.input(1).shape[0]))
    fields = (("multiplier", str(multiplier)), ("shift", str(shift)))
    quant = Local("cmsis_nn_per_tensor_quant_params", "quant", fields)
    ending = checked("arm_fully_connected_s4", CONVOLUTION_ARGUMENTS)
    return delegated_call(
        "arm_fully_connected_s4",
        f"int4 {text(node)}",
        [context(0), quant, *structs(node), ending],
        constants=[weights, bias],
    )


CONV2D_KERNELS = (kernel("arm_convolve_s4", "s8w4", lower_conv2d, refuse_conv2d),)
LINEAR_KERNELS = (kernel("arm_fully_connected_s4", "s8w4", lower_linear, refuse_linear),)
