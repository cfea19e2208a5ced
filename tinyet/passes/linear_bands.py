# SPDX-License-Identifier: Apache-2.0
"""Float products with matrices that are mostly zeros outside of one run of each row, such as mel filters: the runs
alone."""

from __future__ import annotations

import numpy as np

from tinyet.ir import Graph, Node, Tensor, constant
from tinyet.numerics import NO_CLAMP
from tinyet.ops.clamp import Clamp
from tinyet.ops.linear import Linear
from tinyet.ops.linear_bands import LinearBands
from tinyet.passes.rewrite import Names

_WORTH = 2
"""How many times as many weights the whole matrix must have: a run costs its start, and four of them share no loads."""


def linear_bands(graph: Graph) -> Graph:
    """The same function of finite values. What is fused into a product, a clamp, stands behind the runs."""
    names = Names(graph)
    return graph.replace(nodes=[made for node in graph.nodes for made in _banded(node, names)])


def _banded(node: Node, names: Names) -> tuple[Node, ...]:
    if not isinstance(node.attrs, Linear) or node.attrs != Linear(node.attrs.clamp):
        return (node,)
    weights, bias = node.input(1), node.optional_input(2)
    if not weights.is_constant or weights.array.dtype != np.float32 or bias is not None:
        return (node,)
    matrix = weights.array
    used = matrix != 0
    firsts = used.argmax(1)
    counts = np.where(used.any(1), matrix.shape[1] - used[:, ::-1].argmax(1) - firsts, 0)
    if not np.isfinite(matrix).all() or not 0 < _WORTH * int(counts.sum()) <= matrix.size:
        return (node,)
    runs = [row[first : first + count] for row, first, count in zip(matrix, firsts, counts, strict=True)]
    tables = {
        "runs": np.concatenate(runs),
        "firsts": firsts.astype(np.int32),
        "counts": counts.astype(np.int32),
    }
    held = [constant(names.fresh(f"{weights.name}_{name}"), values) for name, values in tables.items()]
    inputs = (node.input(0), *held)
    if node.attrs.clamp == NO_CLAMP:
        return (Node(LinearBands(), inputs, node.outputs, node.origins),)
    sums = Tensor(names.fresh(f"{node.output.name}_sums"), node.output.type)
    return (
        Node(LinearBands(), inputs, (sums,), node.origins),
        Node(Clamp(*node.attrs.clamp), (sums,), node.outputs, node.origins),
    )
