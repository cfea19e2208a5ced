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


@dataclass(frozen=True)
class Capacity:
    """Bytes of a board's flash and RAM that a model could have, whatever the user allows it."""

    flash: int
    ram: int


@dataclass(frozen=True)
class Objective:
    """The objective of a choice.

    flash: the most bytes of constants and code of the model; ram: of its arena and state. None: no limit.
    pins: kernels that the user has named for layers, by the layers' names. untiled: no layer is computed by rows.
    place: memories that the user has named for the arena, the state and weights. input_rows: the input comes row by
    row. board: what there is, by which its price is measured; None where nobody knows it.
    """

    optimize: Optimize = "balanced"
    flash: int | None = None
    ram: int | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    place: Mapping[str, str] = field(default_factory=dict)
    untiled: bool = False
    input_rows: bool = False
    board: Capacity | None = None

    def excess(self, figures: Figures) -> int:
        """Bytes of flash and RAM above the limits, added up; 0 within them."""
        flash = 0 if self.flash is None else max(figures.flash - self.flash, 0)
        ram = 0 if self.ram is None else max(figures.ram - self.ram, 0)
        return flash + ram
