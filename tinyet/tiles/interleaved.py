# SPDX-License-Identifier: Apache-2.0
"""The order of a straight piece of code on a core that issues several instructions in a cycle: loads stand beside
computations, instruction by instruction where the core's pipeline has a place for it first (list scheduling).

Loads stay in their order, and none is brought forward beyond the registers that are free for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

from tinyet.tiles.core import CorePage
from tinyet.tiles.operation import Operation
from tinyet.timing.instruction import LOADS, MULTIPLIES, STORES, Instruction
from tinyet.timing.pipeline import Pipeline, Scoreboard, Timing

_AHEAD = 24
"""Instructions among which the next one is looked for: those of two pairs and more of a tile of eight sums."""
_FIRST_NUMBER = 64
"""Of values that have no registers yet: behind those of registers and flags."""


def interleaved(
    operations: Sequence[Operation], room: int, page: CorePage, core: Pipeline, kept: Container[str] = ()
) -> list[Operation]:
    """operations: in any order that computes the right values and needs no more than `room` registers for those that
    are made and used up in this piece. kept: what something behind it needs."""
    local = _made(operations, kept)
    left = Counter(name for operation in operations for name in _mentioned(operation))
    alive: set[str] = set()
    before = _predecessors(operations, page)
    timed = _timed(operations, page)
    board = Scoreboard(core)
    waiting = list(range(len(operations)))
    done: set[int] = set()

    def behind(operation: Operation) -> set[str]:
        """The values that live behind it."""
        mentioned = _mentioned(operation)
        ended = {name for name in mentioned if left[name] == 1}
        return (alive | (local & mentioned)) - ended

    # The scarcest unit's; where nothing goes beside a load, loads, for what they bring is late.
    preferred = MULTIPLIES if page.beside else LOADS

    def rank(place: int) -> tuple[int, int, int]:
        what = timed[waiting[place]]
        # What nothing is issued before is asked first, for then there is room beside it.
        first = core.timings.get(what.kind, Timing()).first
        return board.earliest(what), 0 if first else 1 if what.kind in preferred else 2, place

    found: list[Operation] = []
    while waiting:
        places = [
            place
            for place, i in enumerate(waiting[:_AHEAD])
            if before[i] <= done and len(behind(operations[i])) <= max(room, len(alive))
        ]
        if not places:
            return list(operations)  # Values that were computed early leave no room for the next load.
        chosen = waiting.pop(min(places, key=rank))
        operation = operations[chosen]
        alive = behind(operation)
        left.subtract(_mentioned(operation))
        board.issue(timed[chosen])
        done.add(chosen)
        found.append(operation)
    return found


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


def _mentioned(operation: Operation) -> set[str]:
    return {*operation.reads, *operation.writes}


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
    before, loads before a load, and stores before what goes to memory."""
    found: list[set[int]] = []
    written: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    load = store = -1
    loads: list[int] = []
    for i, operation in enumerate(operations):
        changed = (*operation.writes, *((operation.base,) if operation.moves else ()))
        needed = {written[name] for name in (*operation.reads, *changed) if name in written}
        needed |= {reader for name in changed for reader in readers.get(name, ())}
        for name in operation.reads:
            readers.setdefault(name, []).append(i)
        for name in changed:
            written[name] = i
            readers[name] = []
        kind = page.kinds[operation.mnemonic]
        if kind in LOADS:
            needed |= {load, store}
            load = i
            loads.append(i)
        elif kind in STORES:
            needed |= {store, *loads}
            store = i
            loads = []
        found.append(needed - {-1, i})
    return found
