# SPDX-License-Identifier: Apache-2.0
"""An arena in two pieces: which buffers lie in the first, which is small and fast, and which in the second.

In a plan the second piece's offsets follow those of the first: they tell one piece's bytes from the other's. What is
kept apart, and by how much, is what `memory/buffers.py` says of any two buffers that have one piece in common; buffers
of two pieces are apart anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tinyet.errors import InternalError
from tinyet.memory.buffers import Buffer, Gaps, align_up, interference
from tinyet.memory.first_fit import lowest_offset
from tinyet.memory.live_ranges import LiveRange, gaps
from tinyet.memory.offsets import Placement, place

SPLIT_ALIGN = 16
"""Of the second piece's first offset, in bytes: that of its array."""


@dataclass(frozen=True)
class Split:
    """capacity: bytes of the first piece at most. worth: of each buffer, by its name, what an inference gains if it is
    there; of those without a name here, nothing."""

    capacity: int
    worth: Mapping[str, float]


def place_split(
    buffers: Sequence[Buffer], live_ranges: Sequence[LiveRange], split: Split, budget: int
) -> tuple[Placement, int] | None:
    """Offsets of all buffers, and the second piece's first offset; None where one of the pieces has no buffer.

    Buffers are put into the first piece by several orders, each where it is as low as possible, as long as it ends
    within the capacity; the order that gains most is taken, and then what still fits when all is placed anew. That is
    no proof of the optimum.
    """
    if any(b.align > SPLIT_ALIGN for b in buffers):
        raise InternalError("a buffer has a stricter alignment than an arena's array", "memory planner")
    apart = gaps(live_ranges)
    chosen, first = _first_piece(buffers, apart, split)
    for extra in sorted((b for b in buffers if b not in chosen), key=lambda b: (-_density(split, b), b.name)):
        if split.worth.get(extra.name, 0.0) <= 0 or extra.bytes > split.capacity:
            continue
        tried = [b for b in buffers if b in chosen or b is extra]
        found = _placed(tried, apart, 0)
        if found.peak <= split.capacity:
            chosen, first = set(tried), found.offsets
    rest = [b for b in buffers if b not in chosen]
    if not chosen or not rest:
        return None
    better = _placed([b for b in buffers if b in chosen], apart, budget // 2)
    if better.peak <= split.capacity:
        first = better.offsets
    start = align_up(max(first[b.name] + b.bytes for b in chosen), SPLIT_ALIGN)
    second = _placed(rest, apart, budget // 2)
    behind = {name: start + at for name, at in second.offsets.items()}
    whole = replace(second, offsets=first | behind, peak=start + second.peak, optimal=False)
    return whole, start


def _first_piece(buffers: Sequence[Buffer], apart: Gaps, split: Split) -> tuple[set[Buffer], dict[str, int]]:
    """The buffers of the first piece and their offsets, by the order that gains most."""
    near = interference(buffers, apart)

    def worth(b: Buffer) -> float:
        return split.worth.get(b.name, 0.0)

    keys: tuple[Callable[[Buffer], float], ...] = (
        lambda b: _density(split, b),
        lambda b: _density(split, b) / (b.last - b.first + 1),
        worth,
        lambda b: -b.bytes,
    )
    best: tuple[float, dict[int, int]] | None = None
    for key in keys:
        offsets: dict[int, int] = {}
        for i in sorted(range(len(buffers)), key=lambda i: (-key(buffers[i]), i)):
            at = lowest_offset(near[i], offsets, buffers[i].align)
            if worth(buffers[i]) > 0 and at + buffers[i].bytes <= split.capacity:
                offsets[i] = at
        gained = sum(worth(buffers[i]) for i in offsets)
        if best is None or gained > best[0]:
            best = gained, offsets
    found = {} if best is None else best[1]
    return {buffers[i] for i in found}, {buffers[i].name: at for i, at in found.items()}


def _density(split: Split, b: Buffer) -> float:
    return split.worth.get(b.name, 0.0) / max(b.bytes, 1)


def _placed(buffers: Sequence[Buffer], apart: Gaps, budget: int) -> Placement:
    names = {b.name for b in buffers}
    own = {pair: gap for pair, gap in apart.items() if names.issuperset(pair)}
    return place(buffers, gaps=own, budget=budget)
