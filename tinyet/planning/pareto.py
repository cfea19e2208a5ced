# SPDX-License-Identifier: Apache-2.0
"""The Pareto front over time, flash and RAM: the ways that no other beats, and the choice of one of
them.

Choices of kernels and whole plans are points of such fronts. A choice of kernels has no RAM of its own: 0, until its
memory is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar


@dataclass(frozen=True)
class Figures:
    """The figures of a plan: time and instructions of an inference and bytes of flash, as far as they are stated; bytes
    of the arena and of state. time: estimated cycles, on a core without a model of its cycles instructions; these are
    told, not compared."""

    time: int
    flash: int
    ram: int
    instructions: int = 0

    def dominates(self, other: Figures) -> bool:
        """Whether it takes no more time, flash and RAM than another, which may be equal."""
        return self.time <= other.time and self.flash <= other.flash and self.ram <= other.ram


class Point(Protocol):
    """A possible point of a front."""

    @property
    def figures(self) -> Figures: ...


P = TypeVar("P", bound=Point)


@dataclass(frozen=True)
class Front(Generic[P]):
    """points: none of them dominates another. gap: bytes of flash; nothing that was left out and takes so many bytes
    less than a point takes less time than that. 0: the points are exact."""

    points: tuple[P, ...] = ()
    gap: int = 0

    def __iter__(self) -> Iterator[P]:
        return iter(self.points)

    def with_point(self, new: P) -> Front[P]:
        """The front with a new last point; without points that it dominates. The same front if one of its
        points dominates the new one."""
        if any(point.figures.dominates(new.figures) for point in self.points):
            return self
        kept = tuple(point for point in self.points if not new.figures.dominates(point.figures))
        return Front((*kept, new), self.gap)


def select(points: Iterable[P], excess: Callable[[Figures], int], price: Callable[[P], Any]) -> P:
    """The point with the least price within the limits; if there is none, the one that exceeds them least.

    excess: bytes of flash and RAM above the limits, 0 within them. Of equal points the first. Raises
    ValueError without points.
    """
    return min(points, key=lambda point: (excess(point.figures), price(point)))
