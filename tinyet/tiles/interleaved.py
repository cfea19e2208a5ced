# SPDX-License-Identifier: Apache-2.0
"""The order of a straight piece of code on a core that issues several instructions in a cycle: loads stand beside
computations, instruction by instruction where the core's pipeline has a place for it first (list scheduling).

Loads stay in their order, and none is brought forward beyond the registers that are free for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import takewhile

from tinyet.tiles.core import CorePage
from tinyet.tiles.operation import Operation
from tinyet.timing.instruction import LOADS, MULTIPLIES, STORES, Instruction
from tinyet.timing.pipeline import USUAL, Pipeline, Scoreboard

_AHEAD = 24
"""Instructions among which the next one is looked for: those of two pairs and more of a tile of eight sums."""
_FIRST_NUMBER = 64
"""Of values that have no registers yet: behind those of registers and flags."""


def interleaved(
    operations: Sequence[Operation],
    room: int,
    page: CorePage,
    core: Pipeline,
    kept: Container[str] = (),
    outside: Mapping[str, tuple[int, int]] | None = None,
) -> list[Operation]:
    """operations: in any order that computes the right values; it stays where it needs more than `room` registers for
    those that are made in this piece and not kept. kept: what something behind it needs. outside: how often values are
    mentioned before it and behind it that are counted, too."""
    lives = _Lives(operations, room, kept, outside or {})
    if not lives.fit:
        return list(operations)
    before = _predecessors(operations, page)
    timed = _timed(operations, page)
    board = Scoreboard(core)
    waiting = list(range(len(operations)))
    done: set[int] = set()

    # The scarcest unit's; where nothing goes beside a load, loads, for what they bring is late.
    preferred = MULTIPLIES if page.beside else LOADS

    # What nothing is issued before is asked first, for then there is room beside it.
    ranks = [
        0 if core.timings.get(what.kind, USUAL).first else 1 if what.kind in preferred else 2
        for what in timed
    ]

    def rank(place: int) -> tuple[int, int, int]:
        i = waiting[place]
        return board.earliest(timed[i]), ranks[i], place

    found: list[Operation] = []
    while waiting:
        places = sorted((p for p, i in enumerate(waiting[:_AHEAD]) if before[i] <= done), key=rank)
        # The first one always has room: then all the others go on in their order.
        place = next(p for p in places if p == 0 or lives.fits(waiting[p], waiting))
        chosen = waiting.pop(place)
        lives.issue(chosen)
        board.issue(timed[chosen])
        done.add(chosen)
        found.append(operations[chosen])
    return found


class _Lives:
    """Which values live, of those that are made in a piece and not kept and of those outside of it, while its
    operations are issued in another order. fit: whether there is room for them in the order in which they are given."""

    def __init__(
        self,
        operations: Sequence[Operation],
        room: int,
        kept: Container[str],
        outside: Mapping[str, tuple[int, int]],
    ) -> None:
        counted = _made(operations, kept) | set(outside)
        self._mentioned = [counted & {*operation.reads, *operation.writes} for operation in operations]
        self._left = Counter(name for names in self._mentioned for name in names)
        self._left.update({name: behind for name, (_, behind) in outside.items()})
        self._times = self._left + Counter({name: before for name, (before, _) in outside.items()})
        self._alive = sum(0 < self._left[name] < self._times[name] for name in outside)
        self._farthest = -1
        self._room = room
        self.fit = self._most(range(len(operations))) <= room

    def issue(self, chosen: int) -> None:
        self._alive += self._more(chosen, self._left)
        self._farthest = max(self._farthest, chosen)

    def fits(self, chosen: int, waiting: Sequence[int]) -> bool:
        """Whether there is room for an operation now, and behind it for those that it overtakes; behind these all is as
        it was."""
        farthest = max(self._farthest, chosen)
        overtaken = takewhile(lambda i: i < farthest, waiting)
        return self._most([chosen, *(i for i in overtaken if i != chosen)]) <= self._room

    def _most(self, order: Iterable[int]) -> int:
        """Of values that live at a time, while these are issued."""
        left: dict[str, int] = {}
        alive, most = self._alive, 0
        for i in order:
            alive += self._more(i, left)
            most = max(most, alive)
        return most

    def _more(self, which: int, left: dict[str, int]) -> int:
        """Values that live behind an operation and did not before; `left` says how often each is mentioned yet, where
        that is not what it was before all."""
        more = 0
        for name in self._mentioned[which]:
            yet = left[name] if name in left else self._left[name]
            more += (yet == self._times[name]) - (yet == 1)
            left[name] = yet - 1
        return more


def cycles(operations: Sequence[Operation], page: CorePage, core: Pipeline) -> int:
    """Of the operations in their order, whatever registers they get."""
    return core.straight(_timed(operations, page))


def _timed(operations: Sequence[Operation], page: CorePage) -> list[Instruction]:
    """As if there were a register for each value."""
    numbers: dict[str, int] = {}
    return [
        operation.instruction(page, lambda value: numbers.setdefault(value, _FIRST_NUMBER + len(numbers)))
        for operation in operations
    ]


def _made(operations: Sequence[Operation], kept: Container[str]) -> set[str]:
    """What is written before it is read, and not kept."""
    incoming: set[str] = set()
    made: set[str] = set()
    for operation in operations:
        incoming |= set(operation.reads) - made
        made |= set(operation.writes) - incoming
    return {name for name in made if name not in kept}


def _predecessors(operations: Sequence[Operation], page: CorePage) -> list[set[int]]:
    """Of each operation those that must come before it: what writes its operands, what reads and writes its results
    before, loads before a load, and stores before what goes to memory from the same base. What is stored from one base
    is not loaded from another in one piece: inputs, outputs and the stack are of different memory."""
    found: list[set[int]] = []
    written: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    load = -1
    stores: dict[str, int] = {}
    loads: dict[str, list[int]] = {}
    for i, operation in enumerate(operations):
        changed = (*operation.writes, *((operation.base,) if operation.moves else ()))
        needed = {written[name] for name in (*operation.reads, *changed) if name in written}
        needed |= {reader for name in changed for reader in readers.get(name, ())}
        for name in operation.reads:
            readers.setdefault(name, []).append(i)
        for name in changed:
            written[name] = i
            readers[name] = []
        kind, base = page.kinds[operation.mnemonic], operation.base
        if kind in LOADS:
            needed |= {load, stores.get(base, -1)}
            load = i
            loads.setdefault(base, []).append(i)
        elif not operation.writes and kind == "data":
            needed |= set(range(i))  # a comparison, whose flags are a branch's
        elif kind in STORES:
            needed |= {stores.get(base, -1), *loads.pop(base, ())}
            stores[base] = i
        found.append(needed - {-1, i})
    return found
