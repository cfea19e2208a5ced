# SPDX-License-Identifier: Apache-2.0
"""Tensors that share memory: blocks of tensors at fixed distances from each other.

Blocks are joined one by one, and joins can be taken back. Either costs about the size of the smaller block, so that
joining a whole graph costs little more than the graph is long.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tinyet.ir import Tensor

NEVER = 1 << 62
"""A moment after all others: bytes that nothing in the block writes are written then."""
_ALWAYS = -1


class Piece(NamedTuple):
    """Bytes `start` to `end` of a block, all in one state.

    written: the earliest moment at which one of the tensors that own these bytes is written; NEVER without any.
    used: the latest moment at which one of the tensors that lie here is used.
    """

    start: int
    end: int
    written: int
    used: int

    def moved(self, shift: int) -> Piece:
        return Piece(self.start + shift, self.end + shift, self.written, self.used)


MayShare = Callable[[Piece, Piece], bool]


def nothing_owned_twice(a: Piece, b: Piece) -> bool:
    """Bytes may be those of two blocks when at most one of them has a tensor that writes there."""
    return a.written == NEVER or b.written == NEVER


@dataclass(slots=True, eq=False)
class _Block:
    """root: the tensor that stands for the block. tensors: all in it. low, high: its first byte and the one behind
    its last, in coordinates of its own that joins do not move. align: the strictest of its tensors. pieces: its bytes,
    in order."""

    root: Tensor
    tensors: list[Tensor]
    low: int
    high: int
    align: int
    pieces: list[Piece]

    @property
    def weight(self) -> int:
        return len(self.tensors) + len(self.pieces)

    def overlapping(self, start: int, end: int) -> Iterator[Piece]:
        """The pieces that have bytes between `start` and `end`."""
        for i in range(bisect_right(self.pieces, start, key=_end), len(self.pieces)):
            if self.pieces[i].start >= end:
                return
            yield self.pieces[i]

    def overlay(self, pieces: Sequence[Piece]) -> tuple[int, int, list[Piece]]:
        """Merge the writers of other blocks into the block's own pieces; returns the record for `restore`."""
        # Pieces that only touch are included: equal neighbours become one piece.
        first = bisect_left(self.pieces, pieces[0].start, key=_end)
        last = bisect_right(self.pieces, pieces[-1].end, key=_start)
        before = self.pieces[first:last]
        after = _overlaid(before, pieces)
        self.pieces[first:last] = after
        return first, len(after), before

    def restore(self, first: int, count: int, before: list[Piece]) -> None:
        self.pieces[first : first + count] = before


@dataclass(frozen=True, slots=True)
class _Join:
    """The changes that separate two blocks again."""

    kept: _Block
    root: Tensor
    low: int
    high: int
    align: int
    overlaid: tuple[int, int, list[Piece]]
    gone: _Block
    shift: int


class AliasSets:
    """Which tensors stand together, and how far apart. Every tensor begins alone in a block of its own."""

    def __init__(self, tensors: Sequence[Tensor], align: int, anywhere: Collection[Tensor] = ()) -> None:
        """align: of every tensor, except those that may begin `anywhere`."""
        self.align = align
        self.anywhere = frozenset(anywhere)
        self._number = {tensor: number for number, tensor in enumerate(tensors)}
        self._start = dict.fromkeys(tensors, 0)
        self._bytes = {tensor: tensor.type.bytes for tensor in tensors}
        self._block: dict[Tensor, _Block] = {}
        self._views: set[Tensor] = set()
        self._undo: list[_Join | Tensor] = []
        for tensor in tensors:
            size = self._bytes[tensor]
            pieces = [Piece(0, size, _ALWAYS, _ALWAYS)]
            self._block[tensor] = _Block(tensor, [tensor], 0, size, self.alignment(tensor), pieces)

    def alignment(self, tensor: Tensor) -> int:
        return tensor.dtype.bytes if tensor in self.anywhere else max(self.align, tensor.dtype.bytes)

    # ------------------------------------------------------------ queries

    def root(self, tensor: Tensor) -> Tensor:
        """The tensor that stands for the whole block."""
        return self._block[tensor].root

    def roots(self) -> list[Tensor]:
        return [tensor for tensor in self._number if self._block[tensor].root is tensor]

    def members(self, tensor: Tensor) -> Sequence[Tensor]:
        """All tensors of the block, in no order that means anything."""
        return self._block[tensor].tensors

    def owns(self, tensor: Tensor) -> bool:
        """False for a view, whose bytes others write."""
        return tensor not in self._views

    def start(self, tensor: Tensor) -> int:
        """The tensor's first byte within its block."""
        return self._start[tensor] - self._block[tensor].low

    def extent(self, tensor: Tensor) -> tuple[int, int]:
        """The tensor's first byte within its block and the one behind its last."""
        start = self.start(tensor)
        return start, start + self._bytes[tensor]

    def size(self, tensor: Tensor) -> int:
        """Bytes of the tensor's block."""
        block = self._block[tensor]
        return block.high - block.low

    def strictest(self, tensor: Tensor) -> int:
        """The alignment of the tensor's block in bytes."""
        return self._block[tensor].align

    def pieces(self, tensor: Tensor, start: int, end: int) -> Iterator[Piece]:
        """The state of the bytes from `start` to `end` of the tensor's block, which need not all be within it; in
        coordinates of no meaning."""
        block = self._block[tensor]
        return block.overlapping(start + block.low, end + block.low)

    def states(self, tensor: Tensor) -> list[Piece]:
        """The tensor's block piece by piece, without bytes that are never written."""
        block = self._block[tensor]
        return [piece.moved(-block.low) for piece in block.pieces if piece.written != NEVER]

    # ------------------------------------------------------------ changes

    def set_moments(self, written: Mapping[Tensor, int], used: Mapping[Tensor, int]) -> None:
        """Say when each tensor that owns its bytes is written, and when each is last used. Until then all are always
        in use."""
        for root in self.roots():
            block = self._block[root]
            block.pieces = []
            for tensor in block.tensors:
                start = self._start[tensor]
                when = written[tensor] if self.owns(tensor) else NEVER
                block.overlay([Piece(start, start + self._bytes[tensor], when, used[tensor])])

    def spread(self, tensor: Tensor, size: int, align: int = 1) -> None:
        """A tensor that is alone in its block takes up `size` bytes, aligned to `align` at least. Which of these are
        its own is not asked."""
        block = self._block[tensor]
        block.align = max(block.align, align)
        self._bytes[tensor] = block.high = size
        block.pieces = [Piece(0, size, piece.written, piece.used) for piece in block.pieces]

    def renounce(self, tensor: Tensor) -> None:
        """A tensor that is alone in its block becomes a view: others write its bytes."""
        self._views.add(tensor)
        self._block[tensor].pieces = [Piece(0, self._bytes[tensor], NEVER, _ALWAYS)]
        self._undo.append(tensor)

    def join(
        self, first: Tensor, first_start: int, second: Tensor, second_start: int, may_share: MayShare
    ) -> bool:
        """Put byte `second_start` of one tensor where byte `first_start` of the other is, or say False.

        `may_share(a, b)` is asked for pieces a of the first block and b of the second that would come to lie over
        each other. Alignment of every tensor must hold within the block.
        """
        a, b = self._block[first], self._block[second]
        shift = self._start[first] + first_start - self._start[second] - second_start
        if a is b:
            return shift == 0
        if a.weight >= b.weight:
            pieces = [piece.moved(shift) for piece in b.pieces]
            if any(not may_share(old, new) for new in pieces for old in a.overlapping(new.start, new.end)):
                return False
            return self._merge(a, b, shift, pieces, a.root)
        pieces = [piece.moved(-shift) for piece in a.pieces]
        if any(not may_share(old, new) for old in pieces for new in b.overlapping(old.start, old.end)):
            return False
        return self._merge(b, a, -shift, pieces, a.root)

    def _merge(self, kept: _Block, gone: _Block, shift: int, pieces: list[Piece], root: Tensor) -> bool:
        low, high = min(kept.low, gone.low + shift), max(kept.high, gone.high + shift)
        # The strictest tensor of a block decides for all of it, because alignments are powers of two.
        if (kept.low - low) % kept.align or (gone.low + shift - low) % gone.align:
            return False
        overlaid = kept.overlay(pieces)
        self._undo.append(_Join(kept, kept.root, kept.low, kept.high, kept.align, overlaid, gone, shift))
        kept.root, kept.low, kept.high, kept.align = root, low, high, max(kept.align, gone.align)
        kept.tensors += gone.tensors
        self._move(gone.tensors, kept, shift)
        return True

    def _move(self, tensors: Sequence[Tensor], block: _Block, shift: int) -> None:
        for tensor in tensors:
            self._block[tensor] = block
            self._start[tensor] += shift

    def keep(self) -> None:
        """Keep the changes."""
        self._undo.clear()

    def undo(self) -> None:
        """Take back everything since the last `keep` or `undo`."""
        while self._undo:
            change = self._undo.pop()
            if isinstance(change, Tensor):
                self._views.remove(change)
                self._block[change].pieces = [Piece(0, self._bytes[change], _ALWAYS, _ALWAYS)]
                continue
            kept, gone = change.kept, change.gone
            kept.restore(*change.overlaid)
            kept.root, kept.low, kept.high, kept.align = change.root, change.low, change.high, change.align
            del kept.tensors[len(kept.tensors) - len(gone.tensors) :]
            self._move(gone.tensors, gone, -change.shift)


def _start(piece: Piece) -> int:
    return piece.start


def _end(piece: Piece) -> int:
    return piece.end


def _overlaid(below: Sequence[Piece], above: Sequence[Piece]) -> list[Piece]:
    """Two lists of pieces, each in order and without overlaps, as one; neighbours in one state are one piece."""
    result: list[Piece] = []
    rest_below, rest_above = list(reversed(below)), list(reversed(above))
    while rest_below or rest_above:
        # The first piece, and the first of the other list: cut where the next one begins or one of them ends.
        first, other = rest_below, rest_above
        if not first or (other and other[-1].start < first[-1].start):
            first, other = other, first
        piece = first.pop()
        if other and other[-1].start < piece.end:
            over = other[-1]
            if piece.start < over.start:
                first.append(Piece(over.start, piece.end, piece.written, piece.used))
                piece = Piece(piece.start, over.start, piece.written, piece.used)
            else:
                other.pop()
                end = min(piece.end, over.end)
                for rest, whole in ((first, piece), (other, over)):
                    if end < whole.end:
                        rest.append(Piece(end, whole.end, whole.written, whole.used))
                piece = Piece(piece.start, end, min(piece.written, over.written), max(piece.used, over.used))
        last = result[-1] if result else None
        if last and (last.end, last.written, last.used) == (piece.start, piece.written, piece.used):
            result[-1] = Piece(last.start, piece.end, piece.written, piece.used)
        elif piece.start < piece.end:
            result.append(piece)
    return result
