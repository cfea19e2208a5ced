# SPDX-License-Identifier: Apache-2.0
"""The decision trees of a layer, counted."""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.ir import Node
from tinyet.ops.tree_ensemble import TreeEnsemble, forest_in


@dataclass(frozen=True)
class TreesAnalysis:
    """trees, nodes: that ask. leaves: different ones. depth: comparisons of a tree at most. Comparisons of a row:
    worst_path at most; mean_path where either answer is as likely as the other, by which instructions are stated;
    sampled_path of the samples of the training, on average, or None where the model does not say."""

    trees: int
    nodes: int
    leaves: int
    depth: int
    worst_path: int
    mean_path: float
    sampled_path: float | None


def trees_of(node: Node) -> TreesAnalysis | None:
    """None where there are none."""
    if not isinstance(node.attrs, TreeEnsemble):
        return None
    forest = forest_in(node)
    return TreesAnalysis(
        trees=len(forest.roots),
        nodes=len(forest.features),
        leaves=len(forest.values),
        depth=forest.depth,
        worst_path=forest.worst_path,
        mean_path=forest.mean_path,
        sampled_path=node.attrs.sampled_path,
    )
