# SPDX-License-Identifier: Apache-2.0
"""The choices and plans that no other beats, as reports have them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tinyet.boards.cpus import Target
from tinyet.deployment import Deployment
from tinyet.opset.cost import counts_cycles
from tinyet.planning.decision import Decision
from tinyet.planning.objective import OPTIMIZE
from tinyet.planning.pareto import Figures

MOST_POINTS = 16
"""Of a front of kernels, in a report."""
MOST_PLANS = 8
"""Of a front of plans."""


@dataclass(frozen=True)
class KernelFrontPoint:
    """A choice that no other beats: instructions and estimated cycles of an inference, and bytes of flash, as far as
    layers state them. cycles: None where instructions stand for time. chosen: this is what was taken."""

    instructions: int
    cycles: int | None
    flash_bytes: int
    chosen: bool


@dataclass(frozen=True)
class PlanAnalysis:
    """Kernels and memory as they would be together, which no other plan that was made beats in everything: instructions
    and estimated cycles of an inference and bytes of flash, as far as they are stated, bytes of the arena and of state.
    cycles: None where instructions stand for time. chosen: this is what was taken. optimize: the aims that take it,
    under the same limits."""

    instructions: int
    cycles: int | None
    flash_bytes: int
    ram_bytes: int
    chosen: bool
    optimize: tuple[str, ...] = ()


def plans_of(deployment: Deployment, others: Iterable[Deployment] = ()) -> tuple[PlanAnalysis, ...]:
    """The front of the plans that were made for a deployment, and for others of the same program with other aims: at
    even steps of time, those that were taken among them; the smallest in RAM first."""
    made = [deployment, *others]
    best = list(dict.fromkeys(plan for one in made for plan in one.decision.plans))
    best = [p for p in best if not any(other.dominates(p) and not p.dominates(other) for other in best)]
    best.sort(key=lambda plan: (plan.time, plan.ram, plan.flash))
    taken = {one.decision.objective.optimize: one.decision.figures for one in made}
    shown = {i for i, plan in enumerate(best) if plan in taken.values()}
    logs = [math.log(max(plan.time, 1)) for plan in best]
    while len(shown) < min(MOST_PLANS, len(best)):
        left = [i for i in range(len(best)) if i not in shown]
        shown.add(max(left, key=lambda i: (min((abs(logs[i] - logs[j]) for j in shown), default=0), -i)))
    return tuple(
        PlanAnalysis(
            plan.instructions,
            cycles_said(plan, deployment.target),
            plan.flash,
            plan.ram,
            plan == deployment.decision.figures,
            tuple(aim for aim in OPTIMIZE if taken.get(aim) == plan),
        )
        for plan in sorted((best[i] for i in shown), key=lambda plan: (plan.ram, plan.flash))
    )


def kernel_front_of(decision: Decision, target: Target) -> tuple[KernelFrontPoint, ...]:
    """Points at even steps of time, the ends and the chosen one among them."""
    points = decision.kernel_front.points
    shown = {0, len(points) - 1, points.index(decision.kernels)}
    if len(points) > MOST_POINTS:
        most, least = (math.log(max(points[i].figures.time, 1)) for i in (0, -1))
        steps = [most + (least - most) * step / (MOST_POINTS - 2) for step in range(1, MOST_POINTS - 2)]
        logs = [math.log(max(p.figures.time, 1)) for p in points]
        shown |= {min(range(len(points)), key=lambda i: (abs(logs[i] - step), i)) for step in steps}
    else:
        shown |= set(range(len(points)))
    return tuple(
        KernelFrontPoint(
            points[i].figures.instructions,
            cycles_said(points[i].figures, target),
            points[i].figures.flash,
            points[i] == decision.kernels,
        )
        for i in sorted(shown)
    )


def cycles_said(figures: Figures, target: Target) -> int | None:
    """Estimated cycles of a plan; None on a core without a model of them."""
    return figures.time if counts_cycles(target) else None
