# SPDX-License-Identifier: Apache-2.0
"""An output taken apart along an axis: blocks of so many indices, each from its own indices of the inputs.

It follows from an operator's iteration. What is computed by rows or step by step is computed block by block.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.ir import Node
from tinyet.opset.iteration import AxisMap, Index, Iteration, Kind, Outside, Spans

_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Blocks:
    """Block `i` is the indices `i * size` to `(i + 1) * size`, which is not included, of an axis of the first output.
    It is made of the indices from `i * stride + first` on, `extent` of them, of one axis of each input in `read`; of
    all others it is made of everything.

    read: axes by the number of the input. outside: what the indices outside of each of them are, by the same number.
    """

    size: int
    stride: int
    first: int
    extent: int
    read: dict[int, int]
    outside: dict[int, Outside]


@dataclass(frozen=True)
class _Footprints:
    """Of each index of an output's axis, the first and the last index of an input's axis."""

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]

    def period(self, size: int) -> int | None:
        """How much further each index reads than the one `size` before it; None where that differs."""
        low, high = (a[size:] - a[:-size] for a in (self.low, self.high))
        if not len(low):
            return 0
        return int(low[0]) if (low == low[0]).all() and (high == low[0]).all() else None


def blocks(
    node: Node, space: Iteration, axis: int, least: int = 1, but: Collection[int] = ()
) -> Blocks | str:
    """The smallest blocks along an axis of the first output, at least `least` of them; or why there are none.

    but: inputs that are left out.
    """
    count, written = node.outputs[0].shape[axis], space.outputs[0].axes[axis]
    found = _footprints(node, space, written, count, but)
    if isinstance(found, str):
        return found
    for size in (n for n in range(1, count // least + 1) if count % n == 0):
        strides = {key: footprints.period(size) for key, footprints in found.items()}
        if None not in strides.values():
            return _blocks(node, space, size, {k: s for k, s in strides.items() if s is not None}, found)
    backwards = any(each.period(1) is not None and each.low[0] > each.low[-1] for each in found.values())
    if backwards:
        return f"{node.op} goes from the last one to the first"
    return f"{node.op} reads other places for each index of its result, in no regular steps"


def _footprints(
    node: Node, space: Iteration, written: AxisMap, count: int, but: Collection[int]
) -> dict[tuple[int, int], _Footprints] | str:
    """By input and its axis, of those that the dimensions of the output's axis are in."""
    dims = shared_dims(space, written, count)
    if isinstance(written, Spans):
        return f"{node.op} does not make its result index by index"
    found = {}
    for index, operand in enumerate(space.inputs):
        if operand is None or index in but:
            continue
        if index in space.whole and any(set(read.dims) & dims for read in operand.axes):
            return f"{node.op} {space.whole[index]}"
        for axis, read in enumerate(operand.axes):
            mine = set(read.dims) & dims
            if not mine:
                continue
            if any(space.kind(dim) is Kind.SEQUENTIAL for dim in mine):
                return f"{node.op} goes on from what it has made before"
            each = footprints(space, read, written, count)
            if (each.low == _NONE).any():
                return f"{node.op} makes some of its result of nothing"
            found[index, axis] = each
    return found


def shared_dims(space: Iteration, written: AxisMap, count: int) -> set[int]:
    """The dimensions that say where along an axis of `count` indices something lies."""
    return {dim for dim in written.dims if count == 1 or space.dims[dim].size > 1}


def footprints(space: Iteration, read: AxisMap, written: Index, count: int) -> _Footprints:
    """For each index of an output's axis at once; those that nothing is read for have the greatest number."""
    sizes = [space.dims[dim].size for dim in written.dims]
    total = int(np.prod(sizes))
    grid = dict(zip(written.dims, np.indices(sizes).reshape(len(sizes), total), strict=True))

    def summed(terms: Sequence[tuple[int, int]], offset: int, end: int) -> npt.NDArray[np.int64]:
        """end: 0 for the least, 1 for the greatest."""
        result = np.full(total, offset, np.int64)
        for dim, factor in terms:
            last = factor * (space.dims[dim].size - 1)
            result += factor * grid[dim] if dim in grid else (min(0, last), max(0, last))[end]
        return result

    places = summed(written.terms, written.offset, 0)
    if isinstance(read, Spans):
        first, taken = np.array(read.spans, np.int64).reshape(-1, 2).T
        last = first + taken - 1
        if read.dim in grid:
            low, high = first[grid[read.dim]], last[grid[read.dim]]
        else:
            low, high = np.full(total, first.min()), np.full(total, last.max())
    else:
        low, high = (summed(read.terms, read.offset, end) for end in (0, 1))
    inside = (places >= 0) & (places < count)
    lows, highs = np.full(count, _NONE), np.full(count, -_NONE)
    np.minimum.at(lows, places[inside], low[inside])
    np.maximum.at(highs, places[inside], high[inside])
    return _Footprints(lows, highs)


def _blocks(
    node: Node,
    space: Iteration,
    size: int,
    strides: dict[tuple[int, int], int],
    found: dict[tuple[int, int], _Footprints],
) -> Blocks | str:
    """Axes of which every block reads the same are read as a whole."""
    read: dict[int, int] = {}
    windows = set()
    for (index, axis), each in found.items():
        first, last = int(each.low[:size].min()), int(each.high[:size].max())
        length = node.input(index).shape[axis]
        if first <= 0 and last >= length - 1 and strides[index, axis] == 0 and len(each.low) > size:
            continue
        if index in read:
            return f"{node.op} reads its input along several axes at once"
        read[index] = axis
        windows.add((strides[index, axis] if len(each.low) > size else 1, first, last - first + 1))
    if any(stride < 0 for stride, _, _ in windows):
        return f"{node.op} goes from the last one to the first"
    if any(stride == 0 for stride, _, _ in windows):
        return f"{node.op} reads the same places for each part of its result"
    if len(windows) > 1:
        return f"{node.op} reads other places of each of its inputs"
    stride, first, extent = next(iter(windows), (1, 0, 1))
    outside = {index: operand.outside for index in read if (operand := space.inputs[index]) is not None}
    return Blocks(size, stride, first, extent, read, outside)
