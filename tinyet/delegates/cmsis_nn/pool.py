# SPDX-License-Identifier: Apache-2.0
"""Averages and maxima of windows."""

from __future__ import annotations

from collections.abc import Callable

from tinyet.boards.cpus import Target
from tinyet.delegates.cmsis_nn import buffer_sizes
from tinyet.delegates.cmsis_nn.buffer_sizes import code_of
from tinyet.delegates.cmsis_nn.wrapper import Local, checked, context, delegated_call, dims, kernel, pair
from tinyet.ir import DType, Node
from tinyet.ops import avg_pool2d
from tinyet.ops.shared.pooling import Pool, attrs_of
from tinyet.opset import Call, Kernel, Refuse

ARGUMENTS = ("&context", "&params", "&input_dims", "input", "&filter_dims", "&output_dims", "output")


def refuse_dilated(a: Pool) -> str | None:
    dilated = (a.dilation_h > 1 and a.kernel_h > 1) or (a.dilation_w > 1 and a.kernel_w > 1)
    return "only undilated" if dilated else None


def refuse_average(node: Node, _target: Target) -> str | None:
    a = avg_pool2d.attrs_of(node)
    if a.fixed_divisor is not None and avg_pool2d.distinct_counts(node) != [a.fixed_divisor]:
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


def refuse_maximum(node: Node, _target: Target) -> str | None:
    a = attrs_of(node)
    _, in_h, in_w, _ = node.input(0).shape
    _, out_h, out_w, _ = node.output.shape
    rows = avg_pool2d.tap_counts(out_h, in_h, a.kernel_h, a.stride_h, 1, a.pad_top)
    columns = avg_pool2d.tap_counts(out_w, in_w, a.kernel_w, a.stride_w, 1, a.pad_left)
    empty = not (rows.all() and columns.all())
    return refuse_dilated(a) or ("a window lies wholly in the padding" if empty else None)


def pooling(function: str, dtype: DType, refuse: Refuse, scratch_of: Callable[[Node, Target], int]) -> Kernel:
    """`scratch_of` a node: its bytes of scratch memory."""

    def lower(node: Node, target: Target) -> Call:
        a, scratch = attrs_of(node), scratch_of(node, target)
        return delegated_call(
            function,
            text(node, a),
            [context(scratch), *structs(node, a), checked(function, ARGUMENTS)],
            scratch_bytes=scratch,
            ctype=f"{dtype.value}_t",
        )

    return kernel(function, dtype.suffix, lower, refuse)


def average_scratch(node: Node, target: Target) -> int:
    return buffer_sizes.avgpool(code_of(target), node.input(0).shape[3])


def no_scratch(_node: Node, _target: Target) -> int:
    return 0


AVERAGE_KERNELS = (
    pooling("arm_avgpool_s8", DType.INT8, refuse_average, average_scratch),
    pooling("arm_avgpool_s16", DType.INT16, refuse_average, average_scratch),
)
MAXIMUM_KERNELS = (
    pooling("arm_max_pool_s8", DType.INT8, refuse_maximum, no_scratch),
    pooling("arm_max_pool_s16", DType.INT16, refuse_maximum, no_scratch),
)
