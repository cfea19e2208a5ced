# SPDX-License-Identifier: Apache-2.0
"""Fully connected layers of int8."""

from __future__ import annotations

import math

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn.buffer_sizes import Code, code_of
from tinyet.delegates.cmsis_nn.weighted import (
    CONVOLUTION_ARGUMENTS,
    first_factor,
    quant_local,
    refuse_several_scales,
    refuse_weighted,
    weighted_constants,
)
from tinyet.delegates.cmsis_nn.wrapper import Local, checked, delegated_call, dims, kernel, pair
from tinyet.ir import Node
from tinyet.numerics import clamp_range
from tinyet.ops.shared.clamped import clamp_of
from tinyet.ops.shared.weighted import folded_bias
from tinyet.opset import Call, Constant


def rows_of(node: Node) -> int:
    return math.prod(node.input(0).shape[:-1])


def refuse_any(node: Node, _target: Target) -> str | None:
    return refuse_weighted(node)


def structs(node: Node) -> list[Local]:
    out_count, depth = node.input(1).shape
    low, high = clamp_range(clamp_of(node), node.output.type)
    fields = (
        ("input offset", str(-node.input(0).type.zero_point)),
        ("filter offset", "0"),
        ("output offset", str(node.output.type.zero_point)),
        ("clamp", pair(low, high)),
    )
    return [
        Local("cmsis_nn_fc_params", "params", fields),
        dims("input_dims", rows_of(node), 1, 1, depth),
        dims("filter_dims", depth, 1, 1, out_count),
        dims("bias_dims", 1, 1, 1, out_count),
        dims("output_dims", rows_of(node), 1, 1, out_count),
    ]


def text(node: Node) -> str:
    out_count, depth = node.input(1).shape
    return f"{node.op} {rows_of(node)}x{depth} -> {rows_of(node)}x{out_count}"


def fully_connected(function: str, node: Node, target: Target, *, per_channel: bool) -> Call:
    """The code for MVE takes from its context what the input's offset and the bias come to; the bias is there for the
    host, where the project is plain C."""
    constants = list(weighted_constants(node, node.input(1).array, code_of(target)))
    if not per_channel:
        del constants[2:]
    size = "NULL, 0"
    if code_of(target) is Code.MVE:
        sums = folded_bias(node)
        padded = np.pad(sums, (0, -len(sums) % 4)).astype(np.int32)
        constants.append(Constant("sums", padded, "bias + input offset * sum of the weights"))
        size = f"(void *)sums, {4 * len(sums)}"
    quant = quant_local() if per_channel else first_factor(node)
    context = Local("cmsis_nn_context", "context", (("", size),))
    return delegated_call(
        function,
        text(node),
        [context, quant, *structs(node), checked(function, CONVOLUTION_ARGUMENTS)],
        constants=constants,
    )


def lower_per_tensor(node: Node, target: Target) -> Call:
    return fully_connected("arm_fully_connected_s8", node, target, per_channel=False)


def lower_per_channel(node: Node, target: Target) -> Call:
    return fully_connected("arm_fully_connected_per_channel_s8", node, target, per_channel=True)


KERNELS = (
    kernel("arm_fully_connected_s8", "s8", lower_per_tensor, refuse_several_scales),
    kernel("arm_fully_connected_per_channel_s8", "s8", lower_per_channel, refuse_any),
)
