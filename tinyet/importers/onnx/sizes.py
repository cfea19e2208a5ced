# SPDX-License-Identifier: Apache-2.0
"""How many elements a node makes of constants, known before it is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tinyet.errors import RefusedError
from tinyet.ir import Array

Given = Sequence[Array | None]


def _sizes(x: Array | None) -> list[int]:
    """A constant of a few whole numbers. Raises RefusedError for another."""
    if x is None or x.dtype.kind not in "iu" or x.size > 64:
        raise RefusedError("has sizes that are no few whole numbers")
    return [int(n) for n in x.reshape(-1)]


def _range(given: Given) -> int:
    if len(given) != 3 or any(x is None or x.size != 1 or not np.isfinite(x).all() for x in given):
        raise RefusedError("has bounds that are no finite numbers")
    start, limit, step = (float(x.reshape(-1)[0]) for x in given if x is not None)
    if step == 0:
        raise RefusedError("has a step of 0")
    count = (limit - start) / step
    return max(0, math.ceil(count)) if math.isfinite(count) else 2**62


def _expand(given: Given) -> int:
    x, sizes = given[0], _sizes(given[1])
    return 0 if x is None else _broadcast([x.shape, tuple(sizes)])


def _tile(given: Given) -> int:
    x, times = given[0], _sizes(given[1])
    return 0 if x is None else x.size * math.prod(max(n, 0) for n in times)


def _gather(given: Given) -> int:
    """Of whichever axis."""
    x, indices = given[0], given[1]
    return 0 if x is None or indices is None else x.size * indices.size


def _pad(given: Given) -> int:
    """Of whichever axes."""
    x, pads = given[0], _sizes(given[1])
    if x is None:
        return 0
    sizes = x.shape if len(pads) == 2 * x.ndim else (max(x.shape, default=1),) * x.ndim
    most = pads if len(pads) == 2 * x.ndim else [max(pads, default=0)] * (2 * x.ndim)
    return math.prod(
        max(n + before + after, 0)
        for n, before, after in zip(sizes, most[: x.ndim], most[x.ndim :], strict=True)
    )


def _one_hot(given: Given) -> int:
    indices, depth = given[0], _sizes(given[1])
    return 0 if indices is None else indices.size * max(math.prod(depth), 0)


def _non_zero(given: Given) -> int:
    return 0 if given[0] is None else given[0].size * max(given[0].ndim, 1)


def _matmul(given: Given) -> int:
    """Of as many products: what they are summed up to is less."""
    a, b = given[0], given[1]
    if a is None or b is None:
        return 0
    return a.size * (b.shape[-1] if b.ndim else 1) if max(a.ndim, b.ndim) <= 2 else a.size * b.size


def _twice(given: Given) -> int:
    return 0 if given[0] is None else 2 * given[0].size


def _broadcast(shapes: Sequence[Sequence[int]]) -> int:
    """No array is made: numpy's own function has limits of its own."""
    rank = max(map(len, shapes), default=0)
    wide = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return math.prod(0 if 0 in sizes else max(sizes) for sizes in zip(*wide, strict=True))


GROWING: Mapping[str, tuple[Sequence[int], Callable[[Given], int]]] = {
    "Expand": ((2,), _expand),
    "Gather": ((2,), _gather),
    "GatherND": ((2,), _gather),
    "MatMul": ((2,), _matmul),
    "NonZero": ((1,), _non_zero),
    "OneHot": ((3,), _one_hot),
    "Pad": ((2, 3, 4), _pad),
    "Range": ((3,), _range),
    "Tile": ((2,), _tile),
    "TopK": ((2,), _twice),
}
"""Operators whose result can be larger than their inputs, and larger than these broadcast: how many inputs they can
have, and how many elements the result has at most."""


def result_elements(op: str, given: Given) -> int:
    """At most so many elements are in a node's results together. Raises RefusedError for inputs that cannot be."""
    if op in GROWING:
        counts, rule = GROWING[op]
        if len(given) not in counts:
            raise RefusedError(f"has {len(given)} inputs", shape=False)
        return rule(given)
    arrays = [x for x in given if x is not None]
    return max(sum(x.size for x in arrays), _broadcast([x.shape for x in arrays]))
