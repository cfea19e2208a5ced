# SPDX-License-Identifier: Apache-2.0
"""Straight pieces of a function of loops, each in the order of a core that has one of its own (interleaved.py).

A piece ends where control comes or goes, where the stack pointer moves, and around a load of several registers, whose
numbers ascend. Of what is computed in a piece and used up there, each value has a name of its own first, so that the
next one of its kind need not wait for a register that others are free for.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from tinyet.tiles.core import CorePage
from tinyet.tiles.interleaved import cycles, interleaved
from tinyet.tiles.nest import Loop
from tinyet.tiles.operation import SP, Operation
from tinyet.tiles.registers import Placed, allocated
from tinyet.timing.pipelines import PIPELINES

_VALUE = re.compile(r"\{([^{}, ]+)\}")
"""In the text of an operation."""
_BORDERS = ("branch", "load_multiple", "load_multiple_pc", "store_multiple")


def placed_in_order(
    operations: Sequence[Operation],
    loops: Sequence[Loop],
    fixed: Mapping[str, str],
    page: CorePage,
    what: str,
) -> Placed:
    """In the core's order, with registers. loops: by places in `operations`; others do not matter. fixed, what: see
    `allocated`. A value that is not fixed is used up in the turn of a loop in which it is made, or was made before the
    loop and is mentioned behind it."""
    if not page.pipeline:
        return allocated(operations, fixed, page, what)
    single = _renamed(operations, fixed)
    pieces = _cut(single, loops, page)
    free = len(page.registers) - len(set(page.registers) & set(fixed.values()))
    core = PIPELINES[page.pipeline]
    before, behind = Counter[str](), _mentions(single, fixed)
    found: list[Operation] = []

    def taken(order: list[Operation]) -> int:
        return cycles(order, page, core)

    for first, end in pieces:
        piece = single[first:end]
        within = _mentions(piece, fixed)
        behind -= within
        outside = {name: (before[name], behind[name]) for name in {*before, *behind}}
        own = interleaved(piece, free, page, core, fixed, outside)
        quicker: list[Operation] = min(piece, own, key=taken)
        found += quicker
        before += within
    return allocated(found, fixed, page, what)


def _renamed(operations: Sequence[Operation], fixed: Container[str]) -> list[Operation]:
    """With a new name wherever a value is written that was not read."""
    names: dict[str, str] = {}
    times: dict[str, int] = {}
    found = []
    for operation in operations:
        read = {name: names.get(name, name) for name in operation.reads}
        for name in operation.writes:
            if name not in operation.reads and name not in fixed:
                times[name] = times.get(name, 0) + 1
                names[name] = f"{name}~{times[name]}"
        found.append(_with_names(operation, {**names, **read}))
    return found


def _with_names(operation: Operation, names: Mapping[str, str]) -> Operation:
    def named(name: str) -> str:
        return names.get(name, name)

    return replace(
        operation,
        text=_VALUE.sub(lambda found: f"{{{named(found[1])}}}", operation.text),
        writes=tuple(map(named, operation.writes)),
        reads=tuple(map(named, operation.reads)),
        base=named(operation.base),
    )


def _cut(operations: Sequence[Operation], loops: Sequence[Loop], page: CorePage) -> list[tuple[int, int]]:
    """(first, end) of each piece."""
    cuts = {0, len(operations), *(loop.first for loop in loops)}
    for i, operation in enumerate(operations):
        kind = page.kinds[operation.mnemonic]
        if kind in _BORDERS or SP in operation.writes:
            cuts |= {i, i + 1}
    places = sorted(cut for cut in cuts if 0 <= cut <= len(operations))
    return list(itertools.pairwise(places))


def _mentions(operations: Sequence[Operation], fixed: Container[str]) -> Counter[str]:
    """By how many operations each value is read or written that is not fixed."""
    return Counter(name for o in operations for name in {*o.reads, *o.writes} if name not in fixed)
