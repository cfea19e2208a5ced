# SPDX-License-Identifier: Apache-2.0
"""Which values live where in a straight piece of code."""

from __future__ import annotations

from collections.abc import Sequence

from tinyet.tiles.operation import Operation


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
