# SPDX-License-Identifier: Apache-2.0
"""Mean over axes; over height and width it is global average pooling.

int8, int16: LiteRT's MEAN, a sum requantized by a multiplier with 1 / count in it (reduction.mean_multiplier), also
where the scales agree. float32: the sum of Sum, divided by the count. The C functions are those of Sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.boards.cpus import Target
from tinyet.ir import Array, DType, Node
from tinyet.ops.shared import reduction
from tinyet.ops.sum import HEADERS, add_up, call_f32, call_s8, call_s16
from tinyet.opset import Call, Kernel, Op


@dataclass(frozen=True)
class Mean(reduction.Reduce):
    """inputs: x; output: means over `axes`."""

    name: ClassVar[str] = "mean"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    x = inputs[0]
    assert x is not None
    multiplier = None if node.input(0).dtype is DType.FLOAT32 else reduction.mean_multiplier(node)
    return (add_up(node, x, multiplier, float(reduction.count(node))),)


def lower_s8(node: Node, _target: Target) -> Call:
    return call_s8(node, reduction.mean_multiplier(node))


def lower_s16(node: Node, _target: Target) -> Call:
    return call_s16(node, reduction.mean_multiplier(node))


def lower_f32(node: Node, _target: Target) -> Call:
    return call_f32(node, float(reduction.count(node)))


OP = Op(
    attrs=Mean,
    summary="mean over axes (global average pooling)",
    infer=reduction.infer,
    reference=reference,
    check=reduction.sums_fit,
    kernels=(
        Kernel("tinyet_sum_s8", "s8", lower_s8, HEADERS, ("tinyet_sum_s8.c",), reduction.refuse),
        Kernel("tinyet_sum_s16", "s16", lower_s16, HEADERS, ("tinyet_sum_s16.c",), reduction.refuse),
        Kernel("tinyet_sum_f32", "f32", lower_f32, HEADERS, ("tinyet_sum_f32.c",), reduction.refuse),
    ),
)
