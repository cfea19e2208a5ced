# SPDX-License-Identifier: Apache-2.0
"""One number for time, flash and RAM, by which points of a Pareto front are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from tinyet.planning.objective import Optimize
from tinyet.planning.pareto import Figures

WORTH: dict[Optimize, tuple[float, float]] = {"speed": (0, 0), "balanced": (2, 0.125), "size": (10, 5)}
"""Percents of time that a percent of flash is worth, and that a percent of RAM is."""

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


def price(figures: Figures, optimize: Optimize, most: int) -> Price:
    """It is larger for all that another point dominates.

    It is the product of time, of flash and of RAM, each to the power that it is worth. most: the time that
    for "balanced" no saved flash is worth, where anything takes less.
    """
    logs = [math.log(max(n, 1)) for n in (figures.time, figures.flash, figures.ram)]
    own, tie = (
        logs[0] + flash * logs[1] + ram * logs[2] for flash, ram in (WORTH[optimize], WORTH["balanced"])
    )
    return Price(optimize == "balanced" and figures.time > most, own, tie)


@dataclass(frozen=True)
class Pricing:
    """The prices of all plans of a graph, under any limits.

    most: as for `price`. unstated: time that stands for layers whose kernels state none: otherwise no cost
    would be too high beside them. free: the figures of untiled layers without limits.
    """

    optimize: Optimize
    most: int
    unstated: int
    free: Figures

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
        return price(all_, self.optimize, self.most + self.unstated)
