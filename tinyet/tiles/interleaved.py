# SPDX-License-Identifier: Apache-2.0
"""The order of a straight piece of code on a core that issues several instructions in a cycle: loads stand beside
computations, instruction by instruction where the core's pipeline has a place for it first (list scheduling).

Loads stay in their order, and none is brought forward beyond the registers that are free for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tinyet.tiles.core import CorePage
from tinyet.tiles.live import local_values
from tinyet.tiles.operation import Operation
from tinyet.timing.instruction import LOADS, MULTIPLIES, STORES
from tinyet.timing.pipeline import Pipeline, Scoreboard, Timing

_AHEAD = 24
"""Instructions among which the next one is looked for: those of two pairs and more of a tile of eight sums."""
_FIRST_NUMBER = 64
"""Of values that have no registers yet: behind those of registers and flags."""


def interleaved(
    operations: Sequence[Operation], room: int, page: CorePage, core: Pipeline
) -> list[Operation]:
    """operations: in any order that computes the right values and needs no more than `room` registers for those that
    are made and used up in this piece (see `tinyet.tiles.schedule.ordered`)."""
    local = local_values(operations)
    readers = Counter(name for operation in operations for name in set(operation.reads))
    before = _predecessors(operations, page)
    numbers: dict[str, int] = {}
    timed = [
        operation.instruction(page, lambda value: numbers.setdefault(value, _FIRST_NUMBER + len(numbers)))
        for operation in operations
    ]
    board = Scoreboard(core)
    waiting = list(range(len(operations)))
    done: set[int] = set()
    alive = 0

    def more(operation: Operation) -> int:
        """Values that live behind it, beside those that do so far."""
        made = sum(name in local and readers[name] > 0 for name in operation.writes)
        return made - sum(name in local and readers[name] == 1 for name in set(operation.reads))

    def rank(place: int) -> tuple[int, int, int]:
        what = timed[waiting[place]]
        # What nothing is issued before is asked first, for then there is room beside it; then the scarcest unit.
        first = core.timings.get(what.kind, Timing()).first
        return board.earliest(what), 0 if first else 1 if what.kind in MULTIPLIES else 2, place

    found: list[Operation] = []
    while waiting:
        places = [
            place
            for place, i in enumerate(waiting[:_AHEAD])
            if before[i] <= done and ((grown := more(operations[i])) <= 0 or alive + grown <= room)
        ]
        if not places:
            return list(operations)  # Values that were computed early leave no room for the next load.
        chosen = waiting.pop(min(places, key=rank))
        operation = operations[chosen]
        alive += more(operation)
        readers.subtract(set(operation.reads))
        board.issue(timed[chosen])
        done.add(chosen)
        found.append(operation)
    return found


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
