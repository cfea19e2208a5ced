# SPDX-License-Identifier: Apache-2.0
"""Two streams of words that are used in their order: how to load them by the fewest instructions.

A load of n registers takes n + 1 cycles, so that of all that could be said of loads only their number matters. A load
is never earlier than it has to be, so what is left to choose is how many words it brings: a program over the states
between two steps, which are how much of each stream is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyet.errors import InternalError

Counts = tuple[int, int]
"""Words, from the beginning of each stream."""
Load = tuple[int, int]
"""Which stream, and how many words."""


@dataclass(frozen=True)
class Step:
    """needs: words that it reads, and all before them. done: words that nothing behind it reads."""

    needs: Counts
    done: Counts


@dataclass(frozen=True)
class _Way:
    """The fewest loads to a state, and the last of them: those before a step, and what led there."""

    count: int
    loads: tuple[Load, ...]
    before: _Way | None


def planned(steps: Sequence[Step], room: int, *, begun: bool = False) -> list[tuple[Load, ...]]:
    """The loads before each step, and first those before all of them. room: registers for words. All that is needed at
    last is the length of a stream. begun: there is a load already that words of the second stream may stand in: the one
    before all steps, which is no more load then.

    Raises InternalError where a step needs more words at a time than there is room for.
    """
    total = steps[-1].needs if steps else (0, 0)
    ways: dict[Counts, _Way] = {(0, 0): _Way(0, (), None)}
    if begun:
        ways |= {(0, n): _Way(0, ((1, n),), None) for n in range(1, min(room, total[1]) + 1)}
    done = (0, 0)
    for step in steps:
        found: dict[Counts, _Way] = {}
        for loaded, way in ways.items():
            for loads, reached in _choices(loaded, step.needs, done, total, room):
                other = found.get(reached)
                if other is None or way.count + len(loads) < other.count:
                    found[reached] = _Way(way.count + len(loads), loads, way)
        if not found:
            raise InternalError(f"{step} needs more than {room} registers")
        ways, done = found, step.done
    last: _Way | None = min(ways.values(), key=lambda way: way.count)
    plan: list[tuple[Load, ...]] = []
    while last is not None:
        plan.append(last.loads)
        last = last.before
    return plan[::-1]


def _choices(
    loaded: Counts, needs: Counts, done: Counts, total: Counts, room: int
) -> list[tuple[tuple[Load, ...], Counts]]:
    """All loads that bring what a step needs, and what is loaded behind them."""
    found: list[tuple[tuple[Load, ...], Counts]] = []
    free = room - sum(loaded) + sum(done)
    firsts = _amounts(loaded[0], needs[0], total[0], free)
    for first in firsts:
        for second in _amounts(loaded[1], needs[1], total[1], free - first):
            loads = tuple((i, words) for i, words in enumerate((first, second)) if words)
            found.append((loads, (loaded[0] + first, loaded[1] + second)))
    return found


def _amounts(loaded: int, needed: int, total: int, free: int) -> range:
    """How many words a load of a stream may bring; 0 alone where nothing is missing."""
    return range(needed - loaded, min(free, total - loaded) + 1) if needed > loaded else range(1)
