# SPDX-License-Identifier: Apache-2.0
"""The largest number of bytes alive at once, kept up to date while buffers come and go.

It is the figure of `offsets.lower_bound` without visiting every buffer: trees over the moments add to a range of
them, and know the largest sum, in a number of steps that grows with the logarithm of their count.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from tinyet.memory.buffers import align_up
from tinyet.memory.offsets import Buffer

_FAR = 1 << 60
"""More bytes than any arena has."""


@dataclass(frozen=True, slots=True)
class Saving:
    """At one moment `bytes` fewer bytes are in use than buffers have that are alive, all of them aligned to `align` or
    more: they lie partly over each other."""

    moment: int
    bytes: int
    align: int


class LiveBytes:
    """Buffers, each alive from its first moment to its last."""

    def __init__(self, buffers: Iterable[Buffer], moments: range) -> None:
        """moments: they contain every lifetime, also of buffers that come later."""
        self._moments = moments
        self._buffers: dict[Buffer, None] = {}
        self._savings: dict[int, Saving] = {}
        # (align, spare) → at each moment, the bytes alive with this alignment or a stricter one, padded to it, less
        # `spare`. Only the topmost buffer need not fill up its padding; `spare` is the most that this may save, so a
        # tree says nothing about moments at which a buffer with more is alive: another tree does.
        self._trees: dict[tuple[int, int], _MaxTree] = {}
        for buffer in buffers:
            self.add(buffer)

    @property
    def bound(self) -> int:
        """Bytes without which no placement can be."""
        return max((tree.largest for tree in self._trees.values()), default=0)

    @property
    def fullest(self) -> tuple[int, int]:
        """The first and the last of the moments at which most bytes are alive."""
        start = self._moments.start
        change = [0] * (len(self._moments) + 1)
        for b in self._buffers:
            size = align_up(b.bytes, b.align)
            change[b.first - start] += size
            change[b.last - start + 1] -= size
        alive = list(itertools.accumulate(change))[:-1]
        for saving in self._savings.values():
            alive[saving.moment - start] -= saving.bytes
        most = max(alive)
        return alive.index(most) + start, len(alive) - 1 - alive[::-1].index(most) + start

    def add(self, buffer: Buffer) -> None:
        for align in {buffer.align, *(align for align, _ in self._trees)}:
            spare = align_up(buffer.bytes, align) - buffer.bytes
            if align <= buffer.align and (align, spare) not in self._trees:
                tree = self._trees[align, spare] = _MaxTree(len(self._moments), -spare)
                for known in self._buffers:
                    self._change(tree, align, spare, known, 1)
                for saving in self._savings.values():
                    self._save(tree, align, saving, -1)
        self._buffers[buffer] = None
        self._change_all(buffer, 1)

    def replace(self, gone: Iterable[Buffer], *new: Buffer) -> None:
        """Take away buffers that were added, and add others."""
        for buffer in gone:
            if buffer in self._buffers:
                del self._buffers[buffer]
                self._change_all(buffer, -1)
        for buffer in new:
            self.add(buffer)

    def save(self, moment: int, saving: Saving | None) -> Saving | None:
        """Replace a moment's saved bytes; returns the old ones."""
        before = self._savings.pop(moment, None)
        for (align, _), tree in self._trees.items():
            self._save(tree, align, before, 1)
            self._save(tree, align, saving, -1)
        if saving is not None:
            self._savings[moment] = saving
        return before

    def _save(self, tree: _MaxTree, align: int, saving: Saving | None, sign: int) -> None:
        # A tree of stricter alignment does not count all of the buffers; what it says is true as it is.
        if saving is not None and saving.align >= align:
            at = saving.moment - self._moments.start
            tree.add(at, at + 1, sign * saving.bytes)

    def _change_all(self, buffer: Buffer, sign: int) -> None:
        for (align, spare), tree in self._trees.items():
            self._change(tree, align, spare, buffer, sign)

    def _change(self, tree: _MaxTree, align: int, spare: int, buffer: Buffer, sign: int) -> None:
        if buffer.align < align or not buffer.bytes:
            return
        padded = align_up(buffer.bytes, align)
        more = padded - _FAR if padded - buffer.bytes > spare else padded
        start = self._moments.start
        tree.add(buffer.first - start, buffer.last - start + 1, sign * more)


class _MaxTree:
    """Numbers to whose ranges something is added, and the largest of them."""

    def __init__(self, count: int, value: int) -> None:
        self._count = count
        # Node i has the children 2i and 2i + 1; number k is node count + k. What is added to all numbers below a node
        # is kept there once.
        self._added = [0] * (2 * count)
        self._largest = [value] * (2 * count)

    @property
    def largest(self) -> int:
        return self._largest[1]

    def add(self, start: int, stop: int, value: int) -> None:
        """Add to the numbers from `start` up to, not including, `stop`."""
        added, largest = self._added, self._largest
        left, right = first, last = start + self._count, stop + self._count
        while left < right:
            if left & 1:
                added[left] += value
                largest[left] += value
                left += 1
            if right & 1:
                right -= 1
                added[right] += value
                largest[right] += value
            left >>= 1
            right >>= 1
        for leaf in (first, last - 1):
            node = leaf >> 1
            while node:
                largest[node] = max(largest[2 * node], largest[2 * node + 1]) + added[node]
                node >>= 1
