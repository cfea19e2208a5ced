# SPDX-License-Identifier: Apache-2.0
"""Constant folding at import: operators on constants alone, such as shapes and positions computed in the file."""

from __future__ import annotations

import numpy as np

from tinyet.importers.tflite.context import Context
from tinyet.importers.tflite.values import Constant
from tinyet.ir import Array, Tensor
from tinyet.ops import fold


def fold_operator(ctx: Context, first: int) -> None:
    """If the current operator, whose nodes begin at `first`, has only constant inputs, compute its outputs by the
    operators' own references, and drop the nodes."""
    positions = [position for position in range(len(ctx.op.inputs)) if ctx.has(position)]
    if not positions or any(ctx.find_constant(position) is None for position in positions):
        return
    values: dict[Tensor, Array] = {}

    def array(tensor: Tensor | None) -> Array | None:
        if tensor is None or tensor.data is not None:
            return None if tensor is None else tensor.data
        return values[tensor]

    for node in ctx.all.nodes[first:]:
        results = fold(node, [array(tensor) for tensor in node.inputs], ctx.all.budget)
        values.update(zip(node.outputs, results, strict=True))
    del ctx.all.nodes[first:]
    for index in ctx.op.outputs:
        tensor = ctx.values.pop(index, None)
        if tensor is not None:
            data = array(tensor)
            assert data is not None
            name = ctx.subgraph.tensors[index].name
            made = Constant(name, np.ascontiguousarray(data).reshape(tensor.shape), tensor.type.quant)
            ctx.keep_constant(index, made)
