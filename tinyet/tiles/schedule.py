# SPDX-License-Identifier: Apache-2.0
"""The order of a straight piece of code: loads stand side by side, as far as there are registers, or between what is
computed where a core issues both in a cycle (interleaved.py).

A load right behind another one takes a cycle less on cores whose loads overlap (`Core.pairs`), and a load is only as
early as registers allow: so each stands right before its first use at first, and is then moved up behind the load
before it wherever no more values live at a time than there is room for.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from tinyet.tiles.core import CorePage
from tinyet.tiles.interleaved import cycles, interleaved
from tinyet.tiles.operation import Operation, load, load_and_step, load_two
from tinyet.timing.pipelines import PIPELINES

_LARGEST_DOUBLE = 1020
"""Offset of LDRD, in bytes."""
_LARGEST_STEP = 255
"""Of a base that moves behind a load of one register, in bytes; so far are its other loads before it, at most."""


def ordered(
    operations: Sequence[Operation], room: int, page: CorePage, kept: Container[str] = ()
) -> list[Operation]:
    """operations: in any order that computes the right values. room: registers for the values that are loaded or made
    and used up in this piece; those that come in, or that something behind it needs (kept), are not counted."""
    late = _late_loads(operations, page)
    paired = _side_by_side(late, room, page)
    if not page.pipeline:
        return paired
    core = PIPELINES[page.pipeline]
    return min(paired, interleaved(late, room, page, core, kept), key=lambda order: cycles(order, page, core))


def _side_by_side(operations: Sequence[Operation], room: int, page: CorePage) -> list[Operation]:
    """operations: each load right before its first use."""
    found = list(operations)
    local = local_values(found)
    alive = alive_at(found, local)
    at = 0
    while at < len(found):
        if page.kinds[found[at].mnemonic] == "load":
            _raise(found, alive, at, room, local, page)
        at += 1
    return found


def alive_at(operations: Sequence[Operation], local: frozenset[str]) -> list[int]:
    """Of the local values, how many live behind each operation, whose result may take the place of what it uses up."""
    last = {name: i for i, operation in enumerate(operations) for name in operation.reads}
    alive: set[str] = set()
    counts = []
    for i, operation in enumerate(operations):
        alive -= {name for name in operation.reads if last[name] == i}
        alive |= {name for name in operation.writes if name in local and last.get(name, i) > i}
        counts.append(len(alive))
    return counts


def local_values(operations: Sequence[Operation]) -> frozenset[str]:
    """Written before they are read, and by one operation."""
    written: dict[str, int] = {}
    seen: set[str] = set()
    incoming: set[str] = set()
    for operation in operations:
        incoming |= {name for name in operation.reads if name not in seen}
        for name in operation.writes:
            written[name] = written.get(name, 0) + 1
            seen.add(name)
    return frozenset(name for name, times in written.items() if times == 1 and name not in incoming)


def _late_loads(operations: Sequence[Operation], page: CorePage) -> list[Operation]:
    """Each load right before the first that reads what it loads."""
    found: list[Operation] = []
    # In their order, by their numbers; and those numbers by the names of what a load writes, and of its base.
    waiting: dict[int, Operation] = {}
    of: dict[str, list[int]] = {}
    on: dict[str, list[int]] = {}
    for i, operation in enumerate(operations):
        reads, writes = operation.reads, operation.writes
        if operation.is_load(page) and operation.base not in writes and not operation.ascending:
            waiting[i] = operation
            for name in writes:
                of.setdefault(name, []).append(i)
            on.setdefault(operation.base, []).append(i)
            continue
        # A load that is moved on must not see its base changed, nor what it has loaded stay away.
        now = [each for name in (*reads, *writes) if name in of for each in of.pop(name)]
        now += [each for name in writes if name in on for each in on.pop(name)]
        found += [waiting.pop(each) for each in sorted(set(now)) if each in waiting]
        found.append(operation)
    return [*found, *waiting.values()]


def _raise(
    found: list[Operation], alive: list[int], at: int, room: int, local: frozenset[str], page: CorePage
) -> None:
    """Move the load at a place up behind the load before it, if that is possible and there is room."""
    load = found[at]
    before = next((i for i in range(at - 1, -1, -1) if page.kinds[found[i].mnemonic] == "load"), None)
    if before is None or before == at - 1:
        return
    between = found[before + 1 : at]
    touched = {name for operation in between for name in (*operation.reads, *operation.writes)}
    written = {name for operation in found[before:at] for name in operation.writes}
    if touched & set(load.writes) or set(load.reads) & written:
        return
    # What it loads lives behind all that it passes, too.
    more = sum(name in local for name in load.writes)
    behind = [alive[before] + more, *(count + more for count in alive[before + 1 : at])]
    if max(behind) <= room:
        found[before + 1 : at + 1] = [load, *between]
        alive[before + 1 : at + 1] = behind


def stepped(operations: Sequence[Operation], base: str, by: int) -> list[Operation] | None:
    """With the base so many bytes further on at the end, by its first load, which the others' offsets make up for; None
    where that is not at the base, or where such a step or offset has no instruction. All loads from it are of one
    register."""
    places = [i for i, operation in enumerate(operations) if operation.base == base]
    if not places or not 0 < by <= _LARGEST_STEP or operations[places[0]].offset != 0:
        return None
    found = list(operations)
    for i in places:
        o = operations[i]
        name, back = o.writes[0], o.offset - by
        found[i] = load_and_step(name, base, by, o.step) if i == places[0] else load(name, base, back, o.step)
    return found


def joined(operations: Sequence[Operation], page: CorePage) -> list[Operation]:
    """Two neighbouring words loaded side by side, and no third load beside them, are one load of two: it takes as long,
    and is an instruction less. Not where each has another instruction beside it."""
    if page.pipeline:
        return list(operations)
    runs = _runs(operations, page)
    found: list[Operation] = []
    for run in runs:
        if len(run) == 2 and (both := _both(*run)) is not None:
            found.append(both)
        else:
            found += run
    return found


def _runs(operations: Sequence[Operation], page: CorePage) -> list[list[Operation]]:
    """Loads side by side, and all others alone."""
    runs: list[list[Operation]] = []
    for operation in operations:
        single = page.kinds[operation.mnemonic] == "load"
        if single and runs and page.kinds[runs[-1][-1].mnemonic] == "load":
            runs[-1].append(operation)
        else:
            runs.append([operation])
    return runs


def _both(first: Operation, second: Operation) -> Operation | None:
    """Of two loads; None where they are of no neighbours, or too far away."""
    if first.base != second.base or first.moves or second.moves or first.base in first.writes:
        return None
    if second.offset != first.offset + 4 or abs(first.offset) > _LARGEST_DOUBLE:
        return None
    return load_two(first.writes[0], second.writes[0], first.base, first.offset, first.step)
