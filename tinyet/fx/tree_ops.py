# SPDX-License-Identifier: Apache-2.0
"""Sums over decision trees as one operator of torch, so that a module with a forest in it is captured whole.

`torch.ops.tinyet.tree_ensemble` takes the rows of features and the constants of `tinyet.ops.tree_ensemble`, in that
order, and gives its sums: the same comparisons, and float32 additions in the order of the trees, or int32 ones of int16
leaves. It has no gradient.
"""

from __future__ import annotations

import torch


@torch.library.custom_op("tinyet::tree_ensemble", mutates_args=())
def tree_ensemble(
    x: torch.Tensor, features: torch.Tensor, thresholds: torch.Tensor, children: torch.Tensor,
    roots: torch.Tensor, values: torch.Tensor, targets: torch.Tensor, base: torch.Tensor,
    missing: torch.Tensor | None,
) -> torch.Tensor:  # fmt: skip
    at = roots.long().expand(x.shape[0], -1)
    while bool((at >= 0).any()):
        node = at.clamp(min=0)
        asked = torch.gather(x, 1, features[node].long())
        left = asked <= thresholds[node]
        if missing is not None:
            left = left | (asked.isnan() & (missing[node] != 0))
        chosen = torch.where(left, children[node, 0], children[node, 1]).long()
        at = torch.where(at >= 0, chosen, at)
    sums = base.repeat(x.shape[0], 1)
    width = values.shape[1]
    for tree, target in enumerate(targets.tolist()):
        sums[:, target : target + width] += values[~at[:, tree]]
    return sums


@tree_ensemble.register_fake
def _(x: torch.Tensor, *constants: torch.Tensor | None) -> torch.Tensor:
    base = constants[6]
    assert base is not None
    return x.new_empty((x.shape[0], base.shape[0]), dtype=base.dtype)


TREE_ENSEMBLE = torch.ops.tinyet.tree_ensemble.default
