# SPDX-License-Identifier: Apache-2.0
"""What a model of a core's cycles is, whatever it knows: a table of instructions, or a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tinyet.timing.instruction import Instruction


class Model(Protocol):
    """The cycles of a core's code.

    title, source: for people; source is the document with the numbers. assumed: what it leaves open, and how that is
    filled, a sentence each.
    """

    @property
    def title(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def assumed(self) -> tuple[str, ...]: ...

    def straight(self, block: Sequence[Instruction], before: Sequence[Instruction] = ()) -> int:
        """Cycles that a block adds, its branch not taken. before: what ran right before it; nothing is in its way
        where that is empty. For a loop's steady state it is the block itself, several times."""
        ...

    def refill(self, last: Instruction) -> int:
        """Cycles more when control goes elsewhere than behind a block's last instruction; 0 for one that is no
        branch."""
        ...

    def mispredicted(self, last: Instruction) -> int:
        """Cycles more when a conditional branch goes where it seldom goes; 0 where nothing is predicted."""
        ...
