# SPDX-License-Identifier: Apache-2.0
"""One number for time, flash and RAM, by which points of a Pareto front are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tinyet.planning.objective import Capacity, Optimize
from tinyet.planning.pareto import Figures

WORTH: dict[Optimize, tuple[float, float]] = {"speed": (0, 0), "balanced": (0.25, 0.125), "size": (5, 5)}
"""Percents of time that a percent of flash is worth, and that a percent of RAM is, where there is plenty of both."""

SCARCITY = 0.5
"""Percents of time that a percent of the flash that a board has left is worth for "balanced", and of the RAM."""

MOST_SLOWDOWN = 1.15
"""For "balanced" no saved flash is worth more than that many times the time of untiled layers without a limit
of RAM."""


class Price(NamedTuple):
    """The least is the best. too_slow: for "balanced", more time than any saving is worth. own:
    logarithm of the product by the chosen aim; tie: by the aim "balanced", which decides between equal
    ones."""

    too_slow: bool
    own: float
    tie: float


class PlanPrice(NamedTuple):
    """The least is the best. shown: the price, of tiled layers no less than that of untiled ones without limits; tiled:
    untiled layers come first of equal ones, then the own price and the bytes of RAM decide."""

    shown: Price
    tiled: bool
    own: Price
    ram: int


def price(figures: Figures, optimize: Optimize, most: int, board: Capacity | None = None) -> Price:
    """It is larger for all that another point dominates.

    It is the product of time, of flash and of RAM, each to the power that it is worth; for "balanced" divided by what
    the board has left of both, to the power of `SCARCITY`. So a percent of the flash of a model that takes the share s
    of a board's is worth 0.25 + 0.5 s / (1 - s) percent of time: 0.25 where it is next to nothing, 0.75 where it is
    half, 2.25 at four fifths. most: the time that for "balanced" no saved flash is worth, where anything takes less.
    """
    logs = [math.log(max(n, 1)) for n in (figures.time, figures.flash, figures.ram)]
    balanced = _product(logs, "balanced")
    if board is not None:
        left = max(board.flash - figures.flash, 1), max(board.ram - figures.ram, 1)
        balanced -= SCARCITY * sum(map(math.log, left))
    own = balanced if optimize == "balanced" else _product(logs, optimize)
    return Price(optimize == "balanced" and figures.time > most, own, balanced)


def _product(logs: Sequence[float], optimize: Optimize) -> float:
    """The logarithm of the product of time, flash and RAM, from theirs."""
    return sum(worth * each for worth, each in zip((1, *WORTH[optimize]), logs, strict=True))


@dataclass(frozen=True)
class Pricing:
    """The prices of all plans of a graph, under any limits.

    most: as for `price`. unstated: time that stands for layers whose kernels state none: otherwise no cost
    would be too high beside them. free: the figures of untiled layers without limits. board: as for `price`.
    """

    optimize: Optimize
    most: int
    unstated: int
    free: Figures
    board: Capacity | None = None

    def of(self, figures: Figures, *, tiled: bool) -> PlanPrice:
        """Except for "size", tiled layers are only for a limit of RAM: otherwise RAM is worth none of their
        cost, and they are never better than untiled ones without a limit, so they need not be tried if these
        have room."""
        if not tiled or self.optimize == "size":
            own = self._price(figures)
            return PlanPrice(own, False, own, figures.ram)
        own = self._price(replace(figures, ram=max(figures.ram, self.free.ram)))
        return PlanPrice(max(own, self._price(self.free)), True, own, figures.ram)

    def _price(self, figures: Figures) -> Price:
        all_ = replace(figures, time=figures.time + self.unstated)
        return price(all_, self.optimize, self.most + self.unstated, self.board)
