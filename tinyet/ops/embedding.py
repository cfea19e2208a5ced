# SPDX-License-Identifier: Apache-2.0
"""Rows of a constant table, chosen by indices.

An index outside the table takes the nearest row, so that nothing is read past its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tinyet.boards.cpus import Target
from tinyet.errors import UnsupportedShape
from tinyet.ir import Array, Attrs, DType, Node, Shape
from tinyet.ops.shared import counting
from tinyet.ops.shared.counting import Parts
from tinyet.opset import Call, CostModel, Iteration, Kernel, Nest, Op, Struct, library_call, operand


@dataclass(frozen=True)
class Embedding(Attrs):
    """inputs: indices int32 of any shape; table (rows, width) constant. output: (*indices.shape, width)."""

    name: ClassVar[str] = "embedding"


def infer(node: Node) -> tuple[Shape, ...]:
    table = node.input(1).shape
    if len(table) != 2:
        raise UnsupportedShape(f"embedding: the table must have 2 dimensions, has {len(table)}", node.where)
    return ((*node.input(0).shape, table[1]),)


def iterate(node: Node) -> Iteration:
    nest = Nest()
    out = nest.all_parallel(node.output.shape)
    row = nest.reduced(node.input(1).shape[0])
    return nest.iteration([operand(*out[:-1]), operand(row, out[-1])], [operand(*out)])


def check(node: Node) -> str | None:
    indices, table, out = node.input(0), node.input(1), node.output
    if indices.dtype is not DType.INT32:
        return f"indices must be int32, not {indices.dtype.value}"
    if not table.is_constant:
        return "the table must be a constant"
    if table.type.quant is not None and table.type.quant.axis is not None:
        return "the table must be quantized per tensor"
    if (table.dtype, table.type.quant) != (out.dtype, out.type.quant):
        return "embedding moves rows, so table and output must have one type and quantization"
    return None


def reference(_node: Node, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    indices, table = inputs[0], inputs[1]
    assert indices is not None
    assert table is not None
    return (table[np.clip(indices.astype(np.int64), 0, table.shape[0] - 1)],)


def lower(node: Node, _target: Target) -> Call:
    table = node.input(1)
    row_bytes = table.shape[1] * table.dtype.bytes
    fields = {"count": node.input(0).type.count, "rows": table.shape[0], "row_bytes": row_bytes}
    return library_call("tinyet_embedding", node, [0, 1], Struct("tinyet_embedding_params", fields))


def copied(node: Node) -> Parts:
    """A row of the table an index."""
    parts: Parts = {"call": 1, "index": node.input(0).type.count}
    counting.copied(parts, "row", parts["index"], node.output.type.bytes // max(parts["index"], 1))
    return parts


OP = Op(
    attrs=Embedding,
    summary="rows of a constant table chosen by int32 indices",
    infer=infer,
    inputs=(2, 2),
    reference=reference,
    iteration=iterate,
    check=check,
    same_scale=True,
    kernels=tuple(
        Kernel(
            "tinyet_embedding",
            dtypes,
            lower,
            ("tinyet_embedding.h",),
            ("tinyet_embedding.c",),
            cost_model=CostModel(copied),
        )
        for dtypes in ("s32_s8", "s32_s16", "s32_f32")
    ),
)
