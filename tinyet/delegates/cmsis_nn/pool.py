# SPDX-License-Identifier: Apache-2.0
"""Averages and maxima of windows."""

from __future__ import annotations

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn import buffer_sizes
from tinyet.delegates.cmsis_nn.buffer_sizes import code_of
from tinyet.delegates.cmsis_nn.wrapper import Local, checked, context, delegated_call, dims, kernel, pair
from tinyet.ir import Node
from tinyet.ops import avg_pool2d, max_pool2d
from tinyet.opset import Call

ARGUMENTS = ("&context", "&params", "&input_dims", "input", "&filter_dims", "&output_dims", "output")

Pool = avg_pool2d.AvgPool2d | max_pool2d.MaxPool2d


def refuse_dilated(a: Pool) -> str | None:
    dilated = (a.dilation_h > 1 and a.kernel_h > 1) or (a.dilation_w > 1 and a.kernel_w > 1)
    return "only undilated" if dilated else None


def refuse_average(node: Node, _target: Target) -> str | None:
    a = avg_pool2d.attrs_of(node)
    if a.fixed_divisor is not None and np.any(avg_pool2d.window_counts(node) != a.fixed_divisor):
        return "only averages over the values of a window that are in the image"
    return refuse_dilated(a)


def structs(node: Node, a: Pool) -> list[Local]:
    batch, in_h, in_w, channels = node.input(0).shape
    _, out_h, out_w, _ = node.output.shape
    low, high = node.output.dtype.range
    fields = (
        ("stride w, h", pair(a.stride_w, a.stride_h)),
        ("padding", pair(a.pad_left, a.pad_top)),
        ("clamp", pair(low, high)),
    )
    return [
        Local("cmsis_nn_pool_params", "params", fields),
        dims("input_dims", batch, in_h, in_w, channels),
        dims("filter_dims", 1, a.kernel_h, a.kernel_w, 1),
        dims("output_dims", batch, out_h, out_w, channels),
    ]


def text(node: Node, a: Pool) -> str:
    sizes = ["x".join(map(str, s[1:])) for s in (node.input(0).shape, node.output.shape)]
    return f"{node.op} {sizes[0]} -> {sizes[1]}, window {a.kernel_h}x{a.kernel_w}"


def pooling(function: str, ctype: str, node: Node, a: Pool, scratch: int) -> Call:
    return delegated_call(
        function,
        text(node, a),
        [context(scratch), *structs(node, a), checked(function, ARGUMENTS)],
        scratch_bytes=scratch,
        ctype=ctype,
    )


def averaging(function: str, ctype: str, node: Node, target: Target) -> Call:
    scratch = buffer_sizes.avgpool(code_of(target), node.input(0).shape[3])
    return pooling(function, ctype, node, avg_pool2d.attrs_of(node), scratch)


def lower_average_s8(node: Node, target: Target) -> Call:
    return averaging("arm_avgpool_s8", "int8_t", node, target)


def lower_average_s16(node: Node, target: Target) -> Call:
    return averaging("arm_avgpool_s16", "int16_t", node, target)


def refuse_maximum(node: Node, _target: Target) -> str | None:
    a = max_pool2d.attrs_of(node)
    _, in_h, in_w, _ = node.input(0).shape
    _, out_h, out_w, _ = node.output.shape
    rows = avg_pool2d.tap_counts(out_h, in_h, a.kernel_h, a.stride_h, 1, a.pad_top)
    columns = avg_pool2d.tap_counts(out_w, in_w, a.kernel_w, a.stride_w, 1, a.pad_left)
    empty = not (rows.all() and columns.all())
    return refuse_dilated(a) or ("a window lies wholly in the padding" if empty else None)


def lower_maximum_s8(node: Node, _target: Target) -> Call:
    return pooling("arm_max_pool_s8", "int8_t", node, max_pool2d.attrs_of(node), 0)


def lower_maximum_s16(node: Node, _target: Target) -> Call:
    return pooling("arm_max_pool_s16", "int16_t", node, max_pool2d.attrs_of(node), 0)


AVERAGE_KERNELS = (
    kernel("arm_avgpool_s8", "s8", lower_average_s8, refuse_average),
    kernel("arm_avgpool_s16", "s16", lower_average_s16, refuse_average),
)
MAXIMUM_KERNELS = (
    kernel("arm_max_pool_s8", "s8", lower_maximum_s8, refuse_maximum),
    kernel("arm_max_pool_s16", "s16", lower_maximum_s16, refuse_maximum),
)
