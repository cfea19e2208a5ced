# SPDX-License-Identifier: Apache-2.0
"""Softmax along the last axis, at LiteRT's output scale."""

from __future__ import annotations

import math

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn.wrapper import delegated_call, kernel
from tinyet.ir import Node
from tinyet.ops.shared.fixed_point import differences
from tinyet.ops.shared.softmax import attrs_of, has_scale, input_scale
from tinyet.ops.softmax import LITERT_S8
from tinyet.opset import Call

LARGEST_SCALE = 16.0
"""From here on a difference of one is more than the library's fixed-point numbers hold."""

MOST_VALUES = 511
"""From a sum of 512 on the library shifts by more bits than there are."""


def refuse(node: Node, _target: Target) -> str | None:
    axis, shape = attrs_of(node).axis, node.input(0).shape
    if math.prod(shape[axis + 1 :]) != 1:
        return "only the last axis"
    if shape[axis] > MOST_VALUES:
        return (
            f"{shape[axis]} values, more than {MOST_VALUES} could add up to more than the library's sum holds"
        )
    if not has_scale(node, LITERT_S8):
        return (
            f"an output scale of {node.output.type.scale}, only {LITERT_S8[0]} with zero point {LITERT_S8[1]}"
        )
    scale = input_scale(node)
    return f"an input scale of {scale}, only below {LARGEST_SCALE}" if scale >= LARGEST_SCALE else None


def lower(node: Node, _target: Target) -> Call:
    shape, table = node.input(0).shape, differences(input_scale(node))
    depth = shape[attrs_of(node).axis]
    rows = math.prod(shape) // depth
    factor = table.factor
    arguments = [
        "input",
        f"/* rows, of */ {rows}, {depth}",
        f"/* multiplier, shift */ {factor.multiplier}, {factor.shift}",
        f"/* smallest difference */ {table.smallest}",
        "output",
    ]
    call = f"arm_softmax_s8({', '.join(arguments)});"
    return delegated_call("arm_softmax_s8", f"{node.op} {rows}x{depth}", [call, "return TINYET_OK;"])


KERNELS = (kernel("arm_softmax_s8", "s8", lower, refuse),)
