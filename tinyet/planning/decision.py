# SPDX-License-Identifier: Apache-2.0
"""What was decided for a graph, and what there was to choose from."""

from __future__ import annotations

from dataclasses import dataclass

from tinyet.planning.candidates import Candidates, Chosen
from tinyet.planning.kernel_front import KernelSet
from tinyet.planning.objective import Objective
from tinyet.planning.pareto import Figures, Front
from tinyet.planning.price import PlanPrice


@dataclass(frozen=True, eq=False)
class Untiled:
    """What would be chosen if each layer were computed as a whole and RAM had no limit, and the arena of that."""

    chosen: Chosen
    arena_bytes: int


@dataclass(frozen=True, eq=False)
class Decision:
    """What was chosen, and what there was to choose from.

    candidates: of every node, in the order of asking; chosen: the one that computes it. kernel_front: of the kernels
    that memory allowed at each layer, within what the user has pinned; kernels: the point of it that was taken. plans:
    those that were made and that no other of them dominates, the smallest in RAM first; figures: of the one that was
    taken; price: by which it is compared with others for the same `optimize` and pins, whatever the limits. untiled:
    where layers are computed by rows, what they would be otherwise.
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
