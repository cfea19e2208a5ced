# SPDX-License-Identifier: Apache-2.0
"""Which axis of each value is its rows: its first of more indices than one, or the one to which a permutation has
moved them.

In an attention of several heads, (1, positions, heads, channels) becomes (1, heads, positions, channels): rows of
queries, scores and results are along axis 2 there, and each row is that of all heads.
"""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.ir import Graph, Node, Tensor
from tinyet.ops import tile_map
from tinyet.opset import TileMap, has_rows, in_pieces, row_axis


def unmoved(graph: Graph, most: int | None = None, times: int = 1) -> dict[Node, TileMap]:
    """The tiles of each node whose rows are `row_axis`, of what it reads and of what it makes. most, times: as for
    `tile_map`."""
    found = {node: tile_map(node, None, most, times) for node in graph.nodes}
    return {node: rule for node, rule in found.items() if isinstance(rule, TileMap)}


def followed(graph: Graph, usual: Mapping[Node, TileMap], most: int | None = None) -> dict[Node, TileMap]:
    """The same, but that rows are followed to where permutations and reshapes move them. usual: the tiles of unmoved
    rows, which all other nodes keep."""
    axes: dict[Tensor, int] = {}
    rules: dict[Node, TileMap] = {}
    for node in graph.nodes:
        rule = _along(node, axes, most) or usual.get(node)
        if rule is not None:
            rules[node] = rule
            axes[node.outputs[0]] = rule.axis
    for node in reversed(graph.nodes):
        # A value whose rows are in pieces is never whole: somebody has to read it by rows.
        rule, made = rules.get(node), node.outputs[0]
        if rule is None or not in_pieces(made, rule.axis):
            continue
        if not any(_reads(reader, rules.get(reader), made, rule.axis) for reader in graph.consumers(made)):
            del rules[node]
            if node in usual:
                rules[node] = usual[node]
    return rules


def _along(node: Node, axes: Mapping[Tensor, int], most: int | None) -> TileMap | None:
    """A node's tiles along the axis that is rows in an input, the first of them by which there are tiles; its other
    inputs are whole, or have their rows along the same axis."""
    variable = [t for t in node.inputs if t is not None and not t.is_constant]
    known = [axes[t] if t in axes else row_axis(t) for t in variable if t in axes or has_rows(t)]
    for read in dict.fromkeys(known):
        for axis in range(len(node.outputs[0].shape)):
            rule = tile_map(node, (axis, read), most)
            if isinstance(rule, TileMap) and all(
                axes.get(node.input(i), row_axis(node.input(i))) == read for i in rule.inputs
            ):
                return rule
    return None


def _reads(node: Node, rule: TileMap | None, tensor: Tensor, axis: int) -> bool:
    """Whether a node reads a tensor by rows along an axis."""
    return (
        rule is not None and rule.read == axis and any(node.input(index) is tensor for index in rule.inputs)
    )
