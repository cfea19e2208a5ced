# SPDX-License-Identifier: Apache-2.0
"""The objective of a plan: its price, and the limits of flash and RAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from tinyet.errors import UsageError
from tinyet.planning.pareto import Figures

Optimize = Literal["speed", "balanced", "size"]
OPTIMIZE: tuple[Optimize, ...] = get_args(Optimize)


def check_optimize(wanted: str) -> Optimize:
    """The same as a literal; raises UsageError for anything else."""
    for known in OPTIMIZE:
        if wanted == known:
            return known
    raise UsageError(f"nothing to optimize for is called {wanted!r}", hint=f"one of {', '.join(OPTIMIZE)}")


Buffers = Literal["arena", "caller"]
BUFFERS: tuple[Buffers, ...] = get_args(Buffers)


def check_buffers(wanted: object, *, input_rows: bool) -> Buffers:
    """Where inputs and outputs lie, as a literal; raises UsageError for anything else."""
    found = next((known for known in BUFFERS if wanted == known), None)
    if found is None:
        raise UsageError(
            f"inputs and outputs cannot lie in {wanted!r}", "--buffers", f"one of {', '.join(BUFFERS)}"
        )
    if found == "caller" and input_rows:
        raise UsageError(
            "a model that takes its input row by row leaves it with its caller already",
            "--buffers",
            "leave --buffers away: the rows are handed on from your buffer, and the outputs lie in the arena",
        )
    return found


@dataclass(frozen=True)
class Capacity:
    """Bytes of a board's flash and RAM that a model could have, whatever the user allows it."""

    flash: int
    ram: int


@dataclass(frozen=True)
class Objective:
    """The objective of a choice.

    flash: the most bytes of constants and code of the model; ram: of its arena and state. None: no limit. pins:
    kernels that the user has named for layers, by the layers' names. untiled: no layer is computed by rows. place:
    memories that the user has named for the arena, the state and weights. input_rows: the input comes row by row.
    buffers: where inputs and outputs lie, "arena" or "caller". board: what there is, by which its price is measured;
    None where nobody knows it.
    """

    optimize: Optimize = "balanced"
    flash: int | None = None
    ram: int | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    place: Mapping[str, str] = field(default_factory=dict)
    untiled: bool = False
    input_rows: bool = False
    buffers: Buffers = "arena"
    board: Capacity | None = None

    @property
    def callers(self) -> bool:
        """Whether inputs and outputs lie in the caller's buffers."""
        return self.buffers == "caller"

    def excess(self, figures: Figures) -> int:
        """Bytes of flash and RAM above the limits, added up; 0 within them."""
        flash = 0 if self.flash is None else max(figures.flash - self.flash, 0)
        ram = 0 if self.ram is None else max(figures.ram - self.ram, 0)
        return flash + ram
