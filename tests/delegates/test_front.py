# SPDX-License-Identifier: Apache-2.0
"""What is chosen under drawn limits: no plan that another one beats in everything, none worse because there is more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.golden.programs import RELU, Builder, bias_s32, input_s8, weights_s8
from tinyet.analysis import analyze
from tinyet.boards import load_board
from tinyet.budget.fit import objective_of
from tinyet.deployment import Deployment, deploy
from tinyet.ir import Graph, Node, Tensor
from tinyet.ops.add import Add
from tinyet.ops.concat import Concat
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.max_pool2d import MaxPool2d
from tinyet.planning.candidates import candidates_of
from tinyet.planning.decision import Decision
from tinyet.planning.kernel_selection import select_kernels
from tinyet.planning.objective import OPTIMIZE, Objective, Optimize
from tinyet.planning.pareto import Figures
from tinyet.planning.row_axes import unmoved
from tinyet.planning.tiling import CYCLES, TilingSearch, tile_candidates_of
from tinyet.program import Program

M4 = load_board("mps2_an386")
QUANT = (0.031, -128)


class Net:
    """A chain of layers drawn from a seed, with a branch now and then."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.b = Builder(f"drawn_{seed}")
        size = int(self.random.choice([12, 16, 20]))
        self.x = input_s8("x", (1, size, size, int(self.random.choice([1, 3]))), *QUANT)
        self.number = 0

    def add(self, attrs: Any, *inputs: Tensor) -> Tensor:
        self.number += 1
        return self.b.add(
            attrs, *inputs, out=f"y{self.number}", source="", quant=QUANT, module=f"layer{self.number}"
        )

    def conv(self, x: Tensor, out: int, kernel: int, *, depthwise: bool = False) -> Tensor:
        channels, name = x.shape[3], f"w{self.number}"
        pads: dict[str, Any] = {f"pad_{side}": kernel // 2 for side in ("top", "bottom", "left", "right")}
        out, group_c, groups = (channels, 1, channels) if depthwise else (out, channels, 1)
        weights = weights_s8(name, (out, kernel, kernel, group_c), 37)
        return self.add(Conv2d(**pads, groups=groups, clamp=RELU), x, weights, bias_s32(f"b{name}", out, 411))

    def program(self) -> Program:
        y = self.conv(self.x, 8, 3)
        for _ in range(int(self.random.integers(2, 4))):
            kind = self.random.choice(["separable", "residual", "joined", "pooled"])
            match kind:
                case "separable":
                    y = self.conv(self.conv(y, 0, 3, depthwise=True), int(self.random.choice([8, 16])), 1)
                case "residual":
                    y = self.add(Add(), self.conv(y, y.shape[3], 3), y)
                case "joined":
                    y = self.conv(self.add(Concat(3), self.conv(y, 8, 1), y), 8, 3)
                case _ if y.shape[1] >= 6:
                    y = self.add(MaxPool2d(2, 2, kernel_h=2, kernel_w=2), y)
        return self.b.finish((self.x,), self.conv(y, 4, 1))


def deployed(
    graph: Graph, optimize: Optimize, ram: int | None = None, flash: int | None = None
) -> Deployment:
    return deploy(graph, M4.target, objective=Objective(optimize, ram=ram, flash=flash))


def beats(one: Figures, other: Figures) -> bool:
    return one.dominates(other) and one != other


def limits(free: Figures, random: np.random.Generator) -> Iterator[tuple[int | None, int | None]]:
    """Of RAM and of flash."""
    yield None, None
    shares = np.sort(random.uniform(0.3, 1.05, 3))
    yield from ((int(free.ram * share), None) for share in shares)
    yield from ((None, int(free.flash * share)) for share in random.uniform(0.9, 1.6, 1))
    yield int(free.ram * shares[1]), int(free.flash * 1.2)


@pytest.mark.parametrize("seed", range(2))
def test_no_plan_is_beaten_and_no_wider_limit_makes_it_worse(seed: int) -> None:
    graph = Net(seed).program().graph
    random = np.random.default_rng(seed)
    free = deployed(graph, "balanced").decision.figures
    for optimize in OPTIMIZE:
        found: list[tuple[float, float, Decision]] = []
        for ram, flash in limits(free, random):
            deployment = deployed(graph, optimize, ram, flash)
            decision, figures = deployment.decision, deployment.decision.figures
            assert figures.ram == deployment.plan.arena_bytes + deployment.state_bytes
            assert not any(beats(plan, figures) for plan in deployment.decision.plans)
            assert figures in deployment.decision.plans
            found.append((ram or math.inf, flash or math.inf, decision))
        fits = [(r, f, d) for r, f, d in found if d.figures.ram <= r and d.figures.flash <= f]
        assert any(r < math.inf for r, _, _ in fits), "nothing fits a limit: the example shows nothing"
        for _, _, one in fits:
            assert not any(beats(other.figures, one.figures) for _, _, other in fits), optimize
        for given_ram, given_flash, tight in fits:
            for more_ram, more_flash, wide in fits:
                if more_ram >= given_ram and more_flash >= given_flash:
                    assert wide.price <= tight.price, (optimize, tight.figures, wide.figures)


def test_size_stops_where_flash_is_dear() -> None:
    """A percent of flash for more than ten percent of time is not bought, but there for who limits flash."""
    graph = Net(22).program().graph
    size = deployed(graph, "size")
    chosen = size.decision.kernels.figures
    points = [point.figures for point in size.decision.kernel_front]
    for point in points:
        saved, slower = chosen.flash / point.flash, point.time / chosen.time
        if point.flash < chosen.flash:
            assert slower > saved**10
    least = points[0].flash
    assert least < chosen.flash, "the example shows nothing"
    assert deployed(graph, "size", flash=least).decision.figures.flash <= least


def test_what_is_said_of_the_bound() -> None:
    """Optimal is what is no larger than what is alive at once; that others were tried is another word."""
    program = Net(0).program()
    report = analyze(program, M4)
    assert report.arena_optimal == (report.arena_bytes == report.arena_lower_bound)
    assert report.arena_searched >= report.arena_optimal
    assert report.arena_least <= report.arena_lower_bound <= report.arena_bytes
    taken = deploy(program.graph, M4.target, objective=objective_of(M4)).decision.figures
    (chosen,) = (plan for plan in report.plans if plan.chosen)
    assert chosen.cycles is not None
    assert Figures(chosen.cycles, chosen.flash_bytes, chosen.ram_bytes, chosen.instructions) == taken


def test_fused_layers_that_are_not_looked_at_would_not_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that cost too much before any row is moved."""
    looked = list[int]()

    def taken(graph: Graph) -> list[list[tuple[tuple[Node, ...], int, float]] | None]:
        free = deploy(graph, M4.target)
        tiles = tile_candidates_of(
            graph.nodes,
            unmoved(graph),
            lambda some: candidates_of(select_kernels(some, M4.target), M4.target),
        )
        search = TilingSearch(graph, free.plan, free.decision.chosen, tiles, CYCLES)
        found = [search.within(search.most_alive * k // 8) for k in range(8, 1, -1)]
        looked.append(len(search._known))
        return [
            None if some is None else [(each.fusion_group.nodes, each.bytes, each.cost) for each in some]
            for some in found
        ]

    graphs = [Net(seed).program().graph for seed in range(6)]
    found, fewer = [taken(graph) for graph in graphs], sum(looked)
    assert sum(bool(each) for some in found for each in some) > 6
    looked.clear()
    monkeypatch.setattr(TilingSearch, "_least_cost", lambda *_: -math.inf)
    assert [taken(graph) for graph in graphs] == found
    assert 0 < fewer < sum(looked)
