# SPDX-License-Identifier: Apache-2.0
"""Iteration counts of each part of a loop, by the part's name, for the kernels' costs."""

from __future__ import annotations

import numpy as np

from tinyet.ir import Node
from tinyet.numerics import Int64

Parts = dict[str, int]


def add(parts: Parts, name: str, count: int) -> None:
    """So many more of a part."""
    parts[name] = parts.get(name, 0) + count


def copied(parts: Parts, name: str, times: int, size: int) -> None:
    """memcpy or memset of `size` bytes to a multiple of four, so many times: by bytes or by words, as the C library has
    it."""
    copied_to(parts, name, np.zeros(times, np.int64), size)


def copied_to(parts: Parts, name: str, places: Int64, size: int) -> None:
    """memcpy or memset of `size` bytes to each of these places, which count from a multiple of four."""
    head = np.minimum(-places % 4, size)
    rest = size - head
    add(parts, name, len(places))
    add(parts, f"{name}: unaligned", int(np.count_nonzero(head)))
    add(parts, f"{name}: head", int(head.sum()))
    for piece, counts in (("sixteen", rest // 16), ("word", rest % 16 // 4), ("rest", rest % 4)):
        add(parts, f"{name}: with {piece}", int(np.count_nonzero(counts)))
        add(parts, f"{name}: {piece}", int(counts.sum()))


def values(node: Node) -> Parts:
    """One value of the output after another."""
    return {"call": 1, "value": node.output.type.count}


def looked_up(node: Node) -> Parts:
    """A table's entries, four at a time."""
    fours, rest = divmod(node.output.type.count, 4)
    return {"call": 1, "four values": fours, "last value": rest}
