# SPDX-License-Identifier: Apache-2.0
"""The order of straight code for Helium (MVE): loads of vectors between products.

A vector goes through its unit in two halves, so that loads and products that alternate are issued without waiting, and
of two loads, one behind the other, the second one waits. Each load stands as late as its value allows where it has a
place of its own. All else stays in its order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_REGISTER = re.compile(r"\b(?:[qr]\d+|lr|sp)\b")
_MOVES_BASE = re.compile(r"\[(\w+)[^]]*\](?:!|, #)|(\w+)!")
_KEEPS = ("cmp", "stm")
"""What writes no register but a base that moves."""
_ADDRESSES = ("addw", "add.w", "subw", "movw", "movt")


@dataclass(frozen=True)
class _Line:
    text: str
    reads: frozenset[str]
    writes: frozenset[str]

    @property
    def movable(self) -> bool:
        """A load of a vector, or what makes its address."""
        return self.text.startswith(("vldr", *_ADDRESSES))

    def before(self, later: _Line) -> bool:
        """Whether it must stay before another one that is behind it."""
        return bool(
            self.writes & (later.reads | later.writes)
            or self.reads & later.writes
            or not (self.movable or later.movable)
        )


def _line(text: str) -> _Line:
    operation, _, operands = text.partition(" ")
    registers = _REGISTER.findall(operands)
    writes = {name for match in _MOVES_BASE.findall(operands) for name in match if name}
    if operation.startswith("ldm"):
        writes |= set(_REGISTER.findall(operands.partition("{")[2]))
    elif registers and not operation.startswith(_KEEPS):
        writes.add(registers[0])
    return _Line(text, frozenset(registers), frozenset(writes))


def loads_between(lines: Sequence[str]) -> list[str]:
    """lines: without labels, in an order that computes the right values; a branch is the last of them."""
    left = [_line(text) for text in lines]
    found: list[str] = []  # from the end
    alternate = False
    while left:
        free = [i for i, line in enumerate(left) if not any(line.before(later) for later in left[i + 1 :])]
        moved = [i for i in free if left[i].movable]
        others = [i for i in free if not left[i].movable]
        # Behind a load stands something else, wherever that is free.
        which = moved if moved and (not others or alternate) else others
        taken = left.pop(which[-1])
        alternate = not taken.movable
        found.append(taken.text)
    return found[::-1]
