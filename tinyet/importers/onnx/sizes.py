# SPDX-License-Identifier: Apache-2.0
"""Number of elements that a node computes from constants, known beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.read import OnnxNode
from tinyet.ir import Array

Given = Sequence[Array]
"""The inputs that have to be there."""

_MULTIPLICATIONS = 64
"""Multiply-accumulates of numpy's that take as long as one element takes elsewhere."""


def _sizes(x: Array) -> list[int]:
    """A constant of a few whole numbers. Raises RefusedError for another."""
    if x.dtype.kind not in "iu" or x.size > 64:
        raise RefusedError("has sizes that are no few whole numbers")
    return [int(n) for n in x.reshape(-1)]


def _axis(node: OnnxNode, rank: int) -> int:
    axis = node.attributes.get("axis") or 0
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise RefusedError(f"has the axis {str(axis)[:40]} of {rank} dimensions")
    return axis % rank


def _range(_node: OnnxNode, given: Given) -> int:
    if any(x.size != 1 or not np.isfinite(x).all() for x in given):
        raise RefusedError("has bounds that are no finite numbers")
    start, limit, step = (float(x.reshape(-1)[0]) for x in given)
    if step == 0:
        raise RefusedError("has a step of 0")
    count = (limit - start) / step
    return max(0, math.ceil(count)) if math.isfinite(count) else 1 << 62


def _expand(_node: OnnxNode, given: Given) -> int:
    return _broadcast([given[0].shape, tuple(_sizes(given[1]))])


def _tile(_node: OnnxNode, given: Given) -> int:
    return given[0].size * math.prod(max(n, 0) for n in _sizes(given[1]))


def _gather(node: OnnxNode, given: Given) -> int:
    x, indices = given
    size = x.shape[_axis(node, x.ndim)]
    return int(int(x.size) // max(size, 1) * int(indices.size))


def _gather_nd(_node: OnnxNode, given: Given) -> int:
    """At most: of batches there is less."""
    x, indices = given
    depth = indices.shape[-1] if indices.ndim else 0
    return math.prod(indices.shape[:-1]) * math.prod(x.shape[depth:])


def _gather_elements(_node: OnnxNode, given: Given) -> int:
    return int(given[1].size)


def _one_hot(_node: OnnxNode, given: Given) -> int:
    (depth, *_) = (*_sizes(given[1]), 0)
    return given[0].size * max(depth, 0)


def _pad(_node: OnnxNode, given: Given) -> int:
    """At most: of whichever axes."""
    x, pads = given[0], [abs(n) for n in _sizes(given[1])]
    half = len(pads) // 2
    added = [a + b for a, b in zip(pads[:half], pads[half:], strict=False)]
    if len(added) == x.ndim:
        return math.prod(n + more for n, more in zip(x.shape, added, strict=True))
    least = sorted(x.shape)
    return math.prod(
        n + more for n, more in zip(least, [0] * (x.ndim - len(added)) + sorted(added), strict=False)
    )


def _matmul(_node: OnnxNode, given: Given) -> int:
    """Multiplications as far as they take time."""
    a, b = given
    if not a.ndim or not b.ndim:
        raise RefusedError("multiplies numbers", "give them dimensions")
    rows, columns = (a.shape[-2] if a.ndim > 1 else 1), (b.shape[-1] if b.ndim > 1 else 1)
    count = _broadcast([a.shape[:-2], b.shape[:-2]]) * rows * columns
    return int(count + count * a.shape[-1] // _MULTIPLICATIONS)


def _nonzero(_node: OnnxNode, given: Given) -> int:
    return int(given[0].size) * max(given[0].ndim, 1)


def _top_k(_node: OnnxNode, given: Given) -> int:
    """Numbers, and where they were."""
    return 2 * int(given[0].size)


def _broadcast(shapes: Sequence[Sequence[int]]) -> int:
    """No array is made: numpy's own function has limits of its own."""
    rank = max(map(len, shapes), default=0)
    wide = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return math.prod(0 if 0 in sizes else max(sizes) for sizes in zip(*wide, strict=True))


GROWING: Mapping[str, tuple[int, Callable[[OnnxNode, Given], int]]] = {
    "Range": (3, _range),
    "Expand": (2, _expand),
    "Tile": (2, _tile),
    "Gather": (2, _gather),
    "GatherND": (2, _gather_nd),
    "GatherElements": (2, _gather_elements),
    "OneHot": (3, _one_hot),
    "Pad": (2, _pad),
    "MatMul": (2, _matmul),
    "NonZero": (1, _nonzero),
    "TopK": (2, _top_k),
}
"""Operators whose result can be larger than their inputs, and larger than these broadcast: how many inputs they need,
and how many elements the result has at most."""


def result_elements(node: OnnxNode, inputs: Sequence[Array | None]) -> int:
    """At most so many elements are in a node's results together. Raises RefusedError for inputs that cannot be."""
    if node.op in GROWING:
        count, rule = GROWING[node.op]
        given = [x for x in inputs[:count] if x is not None]
        if len(given) != count:
            raise RefusedError(f"has {len(given)} of {count} inputs", shape=False)
        return rule(node, given)
    arrays = [x for x in inputs if x is not None]
    return max(sum(x.size for x in arrays), _broadcast([x.shape for x in arrays]))
