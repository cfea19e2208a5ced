# SPDX-License-Identifier: Apache-2.0
"""A layer computed in parts, one after another: each by the layer's own kernel, for some of the output's indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tinyet.ir import Node
from tinyet.opset.call import Call
from tinyet.opset.cost import Cost


@dataclass(frozen=True, eq=False)
class Part:
    """node: like any other, of smaller tensors. Parts whose calls are one object are computed by the same C.

    first, end: the indices of the output's axis that it makes, `end` not included. reads: of each input in the arena,
    by its number, the first byte that it takes, from the tensor's first on; writes: the same of the output. cost:
    stated."""

    node: Node
    call: Call
    cost: Cost
    first: int
    end: int
    reads: Mapping[int, int]
    writes: int
