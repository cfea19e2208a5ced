# SPDX-License-Identifier: Apache-2.0
"""The smaller of a and b with numpy's broadcasting; NaN wherever an operand is NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Attrs, DType, Node
from tinyet.ops.shared import broadcast
from tinyet.opset import Call, Op


@dataclass(frozen=True)
class Minimum(Attrs):
    """inputs: a, b, which broadcast; either may be a constant. As integers they share the output's
    quantization."""

    name: ClassVar[str] = "minimum"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    if node.output.dtype is DType.FLOAT32:
        x, y = broadcast.float_operands(inputs)
        return (np.where((x < y) | (x != x), x, y),)
    a, b = broadcast.operands(inputs)
    return (np.minimum(a, b),)


def lower_clip(node: Node, target: Target) -> Call:
    return broadcast.clip_call(node, lambda c: (node.output.dtype.range[0], c))


def lower_s8(node: Node, target: Target) -> Call:
    return broadcast.plain_call("tinyet_minimum_s8", node)


def lower_s16(node: Node, target: Target) -> Call:
    return broadcast.plain_call("tinyet_minimum_s16", node)


def lower_f32(node: Node, target: Target) -> Call:
    return broadcast.plain_call("tinyet_minimum_f32", node)


OP = Op(
    attrs=Minimum,
    summary="the smaller of a and b, broadcasting",
    infer=broadcast.infer,
    reference=reference,
    check=broadcast.check_same_scale,
    inplace=(0, 1),
    same_scale=True,
    kernels=(
        *broadcast.clip_kernels(lower_clip),
        broadcast.kernel("tinyet_minimum_s8", lower_s8, "tinyet_extremum.c"),
        broadcast.kernel("tinyet_minimum_s16", lower_s16, "tinyet_extremum.c"),
        broadcast.kernel("tinyet_minimum_f32", lower_f32, "tinyet_extremum.c"),
    ),
)
