# SPDX-License-Identifier: Apache-2.0
"""Integers of another scale, zero point or size (int8, int16, int32), as LiteRT's QUANTIZE between integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyet.boards.cpus import Target
from tinyet.ir import Array, Node
from tinyet.ops.shared import rescale, table
from tinyet.ops.shared.shapes import same_shape
from tinyet.opset import Call, Op, elementwise


@dataclass(frozen=True)
class Requantize(rescale.Rescaling):
    """inputs: x, int8 or int16 of any shape; the output is either, too. Each has one scale for the whole tensor. One of
    both may be int32."""

    name: ClassVar[str] = "requantize"


def reference(node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    assert inputs[0] is not None
    return (rescale.rescale(node, inputs[0], rescale.exact_factor(node), node.output.dtype.range),)


def lower(node: Node, target: Target) -> Call:
    return rescale.rescale_call(node, rescale.exact_factor(node), node.output.dtype.range)


OP = Op(
    attrs=Requantize,
    summary="int8, int16 or int32 of another scale, zero point or size",
    infer=same_shape,
    reference=reference,
    iteration=elementwise,
    check=rescale.check,
    inplace=(0,),
    kernels=(
        table.table_kernel(reference, rescale.refuse_table),
        *rescale.kernels_of(lower),
        *rescale.wide_kernels_of(lower),
    ),
)
