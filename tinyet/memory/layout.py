# SPDX-License-Identifier: Apache-2.0
"""Tensors that share memory: blocks of tensors at fixed distances from each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tinyet.ir import Tensor


@dataclass(frozen=True)
class Member:
    """A tensor within a block. `owns` is false for a view, whose bytes other members write."""

    tensor: Tensor
    start: int
    owns: bool

    @property
    def end(self) -> int:
        return self.start + self.tensor.type.bytes


class Layout:
    """Which tensors stand together, and how far apart. Every tensor begins alone in a block of its own."""

    def __init__(self, tensors: Iterable[Tensor], align: int) -> None:
        self.align = align
        self._root: dict[Tensor, Tensor] = {}
        self._members: dict[Tensor, tuple[Member, ...]] = {}
        for tensor in tensors:
            self._root[tensor] = tensor
            self._members[tensor] = (Member(tensor, 0, True),)

    def copy(self) -> Layout:
        other = Layout((), self.align)
        other._root = dict(self._root)
        other._members = dict(self._members)
        return other

    def alignment(self, tensor: Tensor) -> int:
        return max(self.align, tensor.dtype.bytes)

    def root(self, tensor: Tensor) -> Tensor:
        """The tensor that stands for the whole block."""
        return self._root[tensor]

    def roots(self) -> list[Tensor]:
        return list(self._members)

    def members(self, tensor: Tensor) -> tuple[Member, ...]:
        """Everything in the tensor's block; the lowest start is 0."""
        return self._members[self._root[tensor]]

    def member(self, tensor: Tensor) -> Member:
        return next(m for m in self.members(tensor) if m.tensor is tensor)

    def size(self, tensor: Tensor) -> int:
        """Bytes of the tensor's block."""
        return max(m.end for m in self.members(tensor))

    def renounce(self, tensor: Tensor) -> None:
        """The tensor becomes a view: others write its bytes."""
        root = self._root[tensor]
        self._members[root] = tuple(
            Member(m.tensor, m.start, m.owns and m.tensor is not tensor) for m in self._members[root]
        )

    def join(
        self,
        first: Tensor,
        first_start: int,
        second: Tensor,
        second_start: int,
        may_share: Callable[[Member, Member], bool],
    ) -> bool:
        """Put byte `second_start` of one tensor where byte `first_start` of the other is, or say False.

        `may_share(a, b)` is asked for each member a of the first block and b of the second that would come
        to lie over each other. Alignment of every member must hold within the block.
        """
        a, b = self._root[first], self._root[second]
        shift = self.member(first).start + first_start - self.member(second).start - second_start
        if a is b:
            return shift == 0
        old, new = self._members[a], [Member(m.tensor, m.start + shift, m.owns) for m in self._members[b]]
        if any(x.start < y.end and y.start < x.end and not may_share(x, y) for x in old for y in new):
            return False
        lowest = min(m.start for m in (*old, *new))
        joined = tuple(Member(m.tensor, m.start - lowest, m.owns) for m in (*old, *new))
        if any(m.start % self.alignment(m.tensor) for m in joined):
            return False
        self._members[a] = joined
        del self._members[b]
        for m in new:
            self._root[m.tensor] = a
        return True


def both_own_nothing_common(a: Member, b: Member) -> bool:
    """Two members may lie over each other when at most one of them writes there."""
    return not (a.owns and b.owns)
