# SPDX-License-Identifier: Apache-2.0
"""Registers for the values of straight code, in the order in which it runs."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence

from tinyet.errors import InternalError
from tinyet.tiles.core import CorePage
from tinyet.tiles.operation import Operation

Placed = list[tuple[Operation, Mapping[str, str]]]
"""Operations with the registers of what they read and write."""


def allocated(operations: Sequence[Operation], fixed: Mapping[str, str], page: CorePage, what: str) -> Placed:
    """A value has one register from where it is written, by an operation that does not read it, to where it is last
    mentioned; a result may have that of an operand that is not needed any more. fixed: values that come in and stay,
    with their registers. Raises InternalError where there are not enough; `what` is the tile's name.

    A loop that is a stretch of the code needs nothing special as long as what its next turn reads is read or written at
    its end, too.
    """
    last = _last_mentions(operations, fixed)
    home = dict(fixed)
    taken = set(fixed.values())
    free = sorted((register for register in page.registers if register not in taken), key=page.number)
    placed: Placed = []
    for i, (operation, ends) in enumerate(zip(operations, last, strict=True)):
        own: dict[str, str] = {}
        for name in operation.reads:
            if name in own:
                continue
            if name not in home:
                raise InternalError(
                    f"tile {what}: {operation.mnemonic} reads {name}, which nothing has written"
                )
            own[name] = home[name]
            stays = name in operation.writes or (operation.moves and name == operation.base)
            if name in ends and not stays:
                _give_back(free, home.pop(name), page)
        new = [name for name in operation.writes if name not in home]
        if len(new) > len(free):
            raise InternalError(
                f"tile {what} does not fit {page.title}: instruction {i}, {operation.mnemonic}, makes "
                f"{', '.join(new)}, and {len(free)} registers are free",
                f"in registers: {', '.join(sorted(home))}",
                "describe a tile of fewer pixels or channels",
            )
        for name in new:
            home[name] = free.pop(0)
        if operation.ascending:
            numbers = [page.number(home[name]) for name in operation.moved]
            if numbers != sorted(numbers):
                raise InternalError(
                    f"tile {what}: {operation.mnemonic} of registers {numbers}, not ascending"
                )
        for name in operation.writes:
            own[name] = home[name]
        placed.append((operation, own))
        for name in ends & home.keys():
            _give_back(free, home.pop(name), page)
    return placed


def _last_mentions(operations: Sequence[Operation], fixed: Mapping[str, str]) -> list[set[str]]:
    """Of each operation the values that are not needed any more behind it."""
    found: list[set[str]] = [set() for _ in operations]
    at: dict[str, int] = {}
    for i, operation in enumerate(operations):
        for name in operation.writes:
            if name not in operation.reads and name in at:
                found[at[name]].add(name)
        for name in (*operation.reads, *operation.writes):
            if name not in fixed:
                at[name] = i
    for name, i in at.items():
        found[i].add(name)
    return found


def _give_back(free: list[str], register: str, page: CorePage) -> None:
    insort(free, register, key=page.number)
