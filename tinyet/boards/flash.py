# SPDX-License-Identifier: Apache-2.0
"""How a flash that is slower than the core lets it wait."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Flash:
    """Wait states of the flash at the board's clock, for cycle estimates.

    wait_states: cycles that a read takes longer than one of RAM. line_bytes: what one read brings. code_lines,
    data_lines: how many such lines are kept, for instructions and for data. prefetch: the line behind the one that is
    being executed is read meanwhile. shared: code and data are kept in one buffer, of code_lines. family: whose figures
    these are, where they were not confirmed for the board's own chip; "" where they were.
    """

    wait_states: int
    line_bytes: int
    code_lines: int
    data_lines: int
    prefetch: bool
    shared: bool = False
    family: str = ""

    def waits(self, lines: float, next_lines: float, cycles_per_byte: float) -> float:
        """Cycles for so many lines that are read. next_lines: others, right behind the executed one; a flash that reads
        ahead has begun with them, and has as long as that one takes. cycles_per_byte: of executed code, no waits."""
        ahead = cycles_per_byte * self.line_bytes - 1 if self.prefetch else 0.0
        late = self.wait_states - ahead
        return self.wait_states * lines + min(max(late, 0.0), self.wait_states) * next_lines
