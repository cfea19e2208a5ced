# SPDX-License-Identifier: Apache-2.0
"""Constant folding: nodes that depend on constants alone are computed now, by the operators' own references.

An output of the graph is computed all the same: a Copy of the constant stays, since only a computed value has a place
in the arena.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyet.errors import RefusedError
from tinyet.ir import Graph, Node, Tensor, substitute
from tinyet.ir.budget import Budget
from tinyet.ops import charge, evaluate
from tinyet.ops.copy import Copy
from tinyet.ops.dequantize import Dequantize
from tinyet.passes.rewrite import Names

MAX_GROWTH = 4
"""A result may be this many times larger than its inputs: int8 to float32 is 4."""
SMALL_BYTES = 256
"""A result of at most this size is always worth its flash."""


@dataclass(frozen=True)
class FoldConstants:
    """dequantize: fold Dequantize, too. Not before integer operators are formed, which want the integers."""

    dequantize: bool

    def __call__(self, graph: Graph) -> Graph:
        known: dict[Tensor, Tensor] = {}
        nodes: list[Node] = []
        names = Names(graph)
        budget = Budget(sum(t.array.nbytes for t in graph.constants))
        for old in graph.nodes:
            node = old.replace(inputs=[t if t is None else known.get(t, t) for t in old.inputs])
            copies = isinstance(node.attrs, Copy) and node.output in graph.outputs
            if self._folds(node) and not copies and _affordable(node, budget):
                results = evaluate(node, [None if t is None else t.array for t in node.inputs])
                for tensor, data in zip(node.outputs, results, strict=True):
                    values = np.ascontiguousarray(data).reshape(tensor.shape)
                    if tensor in graph.outputs:
                        held = Tensor(names.fresh(f"{tensor.name}_constant"), tensor.type, values)
                        nodes.append(Node(Copy(), (held,), (tensor,), node.origins))
                        known[tensor] = held
                    else:
                        known[tensor] = Tensor(tensor.name, tensor.type, values)
            else:
                nodes.append(old)
        return substitute(graph.replace(nodes=nodes), known).replace(outputs=graph.outputs)

    def _folds(self, node: Node) -> bool:
        inputs = [t for t in node.inputs if t is not None]
        if not inputs or not all(t.is_constant for t in inputs):
            return False
        if isinstance(node.attrs, Dequantize) and not self.dequantize:
            return False
        size = sum(t.type.bytes for t in node.outputs)
        # An int4 counts as the byte that holds it: weights that stay float are folded from any type.
        held = sum(t.type.count * t.dtype.bytes for t in inputs)
        return size <= SMALL_BYTES or size <= MAX_GROWTH * held


def _affordable(node: Node, budget: Budget) -> bool:
    """Whether folding fits the import budget; a node that does not fit is computed on the device, as any other."""
    try:
        charge(node, budget)
    except RefusedError:
        return False
    return True


before_lowering = FoldConstants(dequantize=False)
after_lowering = FoldConstants(dequantize=True)
