# SPDX-License-Identifier: Apache-2.0
"""Channels that are constant or unread are removed, with everything that only fed or read them.

Lossless: the outputs of the graph keep every bit, for every input (for float see prune_analysis.py).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tinyet.ir import DType, Graph, Node, Note, Tensor
from tinyet.ops import op_of
from tinyet.ops.batch_norm import BatchNorm
from tinyet.ops.mul import Mul
from tinyet.passes.prune_analysis import Channels, known_channels, removable
from tinyet.passes.prune_rules import Cut, narrow, touches, weights_of
from tinyet.passes.rewrite import Names


def prune_channels(graph: Graph) -> tuple[Graph, tuple[Note, ...]]:
    """The graph without such channels, and the removed ones. A graph with nothing to prune is returned as it is.

    Inputs and outputs of the graph keep their shapes, and every value keeps one channel at least. A round can leave
    more unread channels, so rounds go on until nothing is found.
    """
    smaller, last = graph, None
    while smaller is not last and any(map(_begins, smaller.nodes)):
        last, smaller = smaller, _round(smaller)
    return (graph, ()) if smaller is graph else (smaller, _notes(graph, smaller))


def _begins(node: Node) -> bool:
    """Whether a removal may start here: a filter of zeros, an input that no filter reads, a factor of 0."""
    weights = weights_of(node)
    if weights is not None:
        used = weights.read(node)
        return not (used.any(axis=0).all() and used.any(axis=1).all())
    if isinstance(node.attrs, BatchNorm):
        return bool((node.input(1).array == 0).any())
    if isinstance(node.attrs, Mul) and node.output.dtype is not DType.FLOAT32:
        factors = (t for t in (node.input(0), node.input(1)) if t.is_constant and t.type.quant is not None)
        return any(bool((t.array == t.type.zero_point).any()) for t in factors)
    return False


def _round(graph: Graph) -> Graph:
    found = Channels(graph)
    kept, folds = removable(graph, found, known_channels(found))
    if not kept:
        return graph
    names = Names(graph)

    def name(tensor: Tensor) -> str:
        """Its own for a constant that only one node reads, so that no other needs it."""
        return tensor.name if len(graph.consumers(tensor)) == 1 else names.fresh(tensor.name)

    cut = Cut(found.axes, kept, folds, name)
    return graph.replace(nodes=[narrow(n, cut) if touches(n, cut) else n for n in graph.nodes])


# ---------------------------------------------------------------- report


def _notes(before: Graph, after: Graph) -> tuple[Note, ...]:
    """The whole in one line, then a line for each layer with weights whose filters or inputs went."""
    removed = []
    for old, new in zip(before.nodes, after.nodes, strict=True):
        weights = weights_of(old)
        if weights is not None and old.input(weights.index).shape != new.input(weights.index).shape:
            had, has = (n.input(0).shape[-1] for n in (old, new)), (n.output.shape[-1] for n in (old, new))
            (ins, ins_left), (outs, outs_left) = had, has
            parts = [f"{outs - outs_left} of {outs} filters"] if outs_left < outs else []
            parts += [f"{ins - ins_left} of {ins} inputs"] if ins_left < ins else []
            removed.append(
                Note(f"pruned: {' and '.join(parts)} removed", old.origins[-1] if old.origins else None)
            )
    macs, size = (macs_of(before.nodes), macs_of(after.nodes)), (weight_bytes(before), weight_bytes(after))
    text = (
        f"pruned channels are removed: {macs[0]:,} to {macs[1]:,} MACs, "
        f"{size[0]:,} to {size[1]:,} bytes of weights"
    )
    return (Note(text), *removed)


def macs_of(nodes: Iterable[Node]) -> int:
    """Multiply-accumulates of one inference."""
    return sum(op_of(node).macs(node) for node in nodes)


def weight_bytes(graph: Graph) -> int:
    """Bytes of all constants."""
    return int(np.sum([t.type.bytes for t in graph.constants], dtype=np.int64))
