# SPDX-License-Identifier: Apache-2.0
"""The decision for a graph, and the choices that it was taken from."""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.planning.candidates import Candidates, Chosen
from tinyet.planning.kernel_front import KernelSet
from tinyet.planning.objective import Objective
from tinyet.planning.pareto import Figures, Front
from tinyet.planning.price import PlanPrice


@dataclass(frozen=True, eq=False)
class Untiled:
    """The choice if each layer were computed as a whole and RAM had no limit, and its arena."""

    chosen: Chosen
    arena_bytes: int


@dataclass(frozen=True, eq=False)
class Decision:
    """The chosen plan, and the choices that it was taken from.

    candidates: of every node, in the order of asking; chosen: the one that computes it. kernel_front: of the kernels
    that memory allowed at each layer, within what the user has pinned; kernels: the point of it that was
    taken. plans: those that no other made plan dominates, the smallest in RAM first; figures: of the one that
    was taken; price: by which it is compared with others for the same `optimize` and pins, under any limits.
    untiled: if layers are computed by rows, the same without.
    """

    objective: Objective
    candidates: Candidates
    chosen: Chosen
    kernel_front: Front[KernelSet]
    kernels: KernelSet
    plans: tuple[Figures, ...]
    figures: Figures
    price: PlanPrice
    untiled: Untiled | None = None
