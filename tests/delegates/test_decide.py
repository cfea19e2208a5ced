# SPDX-License-Identifier: Apache-2.0
"""The choice of kernels over a graph: the solver against all choices there are, limits, pins, what is not stated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.kernels import MODELS, side_by_side
from tests.golden.programs import RELU, Builder, bias_s32, input_s8, weights_s8
from tinyet.accounts.fronts import MOST_PLANS
from tinyet.analysis import analyze
from tinyet.boards import load_board
from tinyet.boards.cpus import Target
from tinyet.budget.fit import Limits, objective_of
from tinyet.delegates import CMSIS_NN, CORTEX_M, DEFAULT, DELEGATES, PORTABLE
from tinyet.deployment import Deployment, deploy
from tinyet.errors import UsageError
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.linear import Linear
from tinyet.ops.reshape import Reshape
from tinyet.opset.cost import MEASURED, core_of, counts_cycles, measured
from tinyet.planning import kernel_front as solver
from tinyet.planning.kernel_front import KernelSet, Option, kernel_front
from tinyet.planning.objective import OPTIMIZE, Capacity, Objective, Optimize
from tinyet.planning.pareto import Figures, Front, select
from tinyet.planning.price import price
from tinyet.program import Program
from tinyet.projects import open_project
from tinyet.projects.one import generate

M4 = load_board("mps2_an386")
WIDENS = "tinyet_linear_s8_1x4_dsp"


def drawn(rng: np.random.Generator, nodes: int, shared: int = 4) -> list[list[Option]]:
    """Nodes of up to three options, whose parts are their own, or some of so many that others need, too."""
    sizes = rng.integers(1, 200, shared)
    found = []
    for n in range(nodes):
        options = []
        for o in range(rng.integers(1, 4)):
            needed = [p for p in range(shared) if rng.random() < 0.25]
            parts: dict[Hashable, int] = {p: int(sizes[p]) for p in needed}
            parts["own", n, o] = int(rng.integers(0, 300))
            options.append(Option(int(rng.integers(1, 100)), parts))
        found.append(options)
    return found


def every_choice(nodes: Sequence[Sequence[Option]]) -> list[tuple[int, int]]:
    """(flash, time) of all of them."""
    found = []
    for options in itertools.product(*nodes):
        parts = {part: size for option in options for part, size in option.parts.items()}
        found.append((sum(parts.values()), sum(option.time for option in options)))
    return found


def unbeaten(choices: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    least, found = math.inf, []
    for flash, time in sorted(choices):
        if time < least:
            least = time
            found.append((flash, time))
    return found


def cost_of(nodes: Sequence[Sequence[Option]], picks: Sequence[int]) -> tuple[int, int]:
    return every_choice([[options[i]] for options, i in zip(nodes, picks, strict=True)])[0]


@pytest.mark.parametrize(("shared", "cases"), [(0, 20), (4, 150), (24, 60)])
@pytest.mark.parametrize("few", [0, solver.FEW_PARTIAL])
def test_the_front_is_that_of_all_choices(
    monkeypatch: pytest.MonkeyPatch, shared: int, cases: int, few: int
) -> None:
    """few: states are compared with each other from the first partial solution on."""
    monkeypatch.setattr(solver, "FEW_PARTIAL", few)
    rng = np.random.default_rng(5)
    for _ in range(cases):
        nodes = drawn(rng, int(rng.integers(1, 8)), shared)
        found = kernel_front(nodes)
        assert found.gap == 0
        assert [(p.figures.flash, p.figures.time) for p in found.points] == unbeaten(every_choice(nodes))
        assert all(cost_of(nodes, p.picks) == (p.figures.flash, p.figures.time) for p in found.points)
        assert found == kernel_front(nodes), "the same question, another answer"


def test_many_shared_parts() -> None:
    """Groups of layers that share a wrapper each, and all of them four functions of a library: as in a network, and
    exact. No choice of any single group, the others as they are, is better than a point."""
    rng = np.random.default_rng(11)
    library = {name: int(rng.integers(200, 2000)) for name in "abcd"}
    nodes = []
    for group in range(12):
        wrapper = int(rng.integers(300, 1500))
        for n in range(3):
            one = "abcd"[int(rng.integers(4))]
            options = [
                Option(
                    int(rng.integers(5000, 90000)), {one: library[one], (group, n): int(rng.integers(9, 99))}
                ),
                Option(int(rng.integers(2000, 40000)), {("w", group): wrapper, (group, n, 1): 40}),
                Option(int(rng.integers(1000, 20000)), {(group, n, 2): int(rng.integers(500, 2500))}),
            ]
            nodes.append(options)
    found = kernel_front(nodes)
    assert found.gap == 0
    assert len(found.points) > 50
    for point in found.points[:: len(found.points) // 20]:
        for first in range(0, len(nodes), 3):
            fixed = [[options[i]] for options, i in zip(nodes, point.picks, strict=True)]
            fixed[first : first + 3] = nodes[first : first + 3]
            for flash, time in every_choice(fixed):
                assert flash > point.figures.flash or time >= point.figures.time


@pytest.mark.parametrize(("name", "limit"), [("MOST_PARTIAL", 8), ("MOST_STATES", 2)])
def test_a_gap_is_what_it_says(monkeypatch: pytest.MonkeyPatch, name: str, limit: int) -> None:
    """No choice that takes `gap` bytes less than a point takes less time."""
    monkeypatch.setattr(solver, name, limit)
    rng = np.random.default_rng(6)
    gaps = 0
    for _ in range(30):
        nodes = drawn(rng, 8)
        found = kernel_front(nodes)
        choices = every_choice(nodes)
        gaps += found.gap > 0
        for flash, time in choices:
            reached = Figures(time, flash + found.gap, 0)
            assert any(p.figures.dominates(reached) for p in found.points)
        for point in found.points:
            assert cost_of(nodes, point.picks) == (point.figures.flash, point.figures.time)
    assert gaps > 3


def selected(front: Front[KernelSet], optimize: Optimize, flash: int | None, most: int) -> int:
    """Time of the point that is taken."""
    excess = Objective(flash=flash).excess
    return select(front, excess, lambda point: price(point.figures, optimize, most)).figures.time


def test_which_point_is_selected() -> None:
    nodes = [
        [Option(100, {"a": 1000}), Option(90, {"b": 1025}), Option(40, {"c": 20000}), Option(80, {"d": 1060})]
    ]
    found = kernel_front(nodes)
    assert [p.figures.time for p in found.points] == [100, 90, 80, 40]
    assert selected(found, "speed", None, 100) == 40
    assert selected(found, "size", None, 50) == 100
    assert selected(found, "balanced", None, 100) == 80
    assert selected(found, "balanced", None, 79) == 40, "no saved flash is worth more instructions"
    assert selected(found, "speed", 1025, 100) == 90
    assert selected(found, "balanced", 1025, 100) == 90
    assert selected(found, "balanced", 1025, 50) == 90, "nothing that fits takes so few"
    assert selected(found, "speed", 10, 100) == 100, "nothing fits: the smallest"


def test_what_a_byte_is_worth_depends_on_the_board() -> None:
    """Half of the flash is worth half of the speed on a board that it would nearly fill, and not on a large one; the
    same of RAM. Whatever the board, nothing that takes less of all is dearer."""
    fast, small, frugal = Figures(100, 28_000, 9_000), Figures(200, 14_000, 9_000), Figures(200, 28_000, 900)

    def taken(flash: int, ram: int, *plans: Figures) -> Figures:
        return min(plans, key=lambda plan: price(plan, "balanced", 1000, Capacity(flash, ram)))

    assert taken(32_000, 1_000_000, fast, small) == small
    assert taken(1_000_000, 1_000_000, fast, small) == fast
    assert taken(1_000_000, 10_000, fast, frugal) == frugal
    assert taken(1_000_000, 1_000_000, fast, frugal) == fast
    rng = np.random.default_rng(9)
    for _ in range(200):
        more = [int(n) for n in rng.integers(1, 2000, 3)]
        less = Figures(*(int(rng.integers(0, n)) for n in more))
        for optimize in OPTIMIZE:
            board = Capacity(*(int(n) for n in rng.integers(0, 3000, 2)))
            assert price(less, optimize, 5000, board) <= price(Figures(*more), optimize, 5000, board)


def test_a_front_has_no_point_that_another_dominates() -> None:
    rng = np.random.default_rng(3)
    drawn_ones = [KernelSet(Figures(*(int(n) for n in rng.integers(0, 40, 3))), (i,)) for i in range(200)]
    front = Front[KernelSet]()
    for point in drawn_ones:
        front = front.with_point(point)
    left = [point.figures for point in front]
    assert len(left) > 3
    assert not any(a.dominates(b) for a, b in itertools.permutations(left, 2))
    assert all(any(kept.dominates(point.figures) for kept in left) for point in drawn_ones)


def test_the_ends_of_a_large_problem() -> None:
    """Fifty layers of four kernels; the fastest and the smallest are known without a solver."""
    rng = np.random.default_rng(8)
    nodes = [
        [Option(int(rng.integers(1000, 90000)), {(n, o): int(rng.integers(100, 3000))}) for o in range(4)]
        for n in range(50)
    ]
    found = kernel_front(nodes)
    assert found.points[-1].figures.time == sum(min(o.time for o in options) for options in nodes)
    least = sum(min(sum(o.parts.values()) for o in options) for options in nodes)
    assert least <= found.points[0].figures.flash <= least + found.gap


# ---------------------------------------------------------------- networks


@pytest.fixture(scope="module")
def network() -> Program:
    """A first layer, then depthwise and pointwise ones of different sizes: kernels of both delegates have their place,
    and much of the arena is scratch."""
    b = Builder("tower")
    x = y = input_s8("x", (1, 12, 12, 3), 0.05, -7)
    channels = 3
    for i, (kernel, wanted) in enumerate([(3, 8), (3, 0), (1, 12), (5, 12), (3, 0), (1, 20), (3, 6)]):
        pad = kernel // 2
        # 0: as many as there are, each on its own.
        group_c, count = (channels, wanted) if wanted else (1, channels)
        pads: dict[str, Any] = {f"pad_{side}": pad for side in ("top", "bottom", "left", "right")}
        y = b.add(
            Conv2d(**pads, groups=channels // group_c, clamp=RELU),
            y,
            weights_s8(f"w{i}", (count, kernel, kernel, group_c), 37),
            bias_s32(f"b{i}", count, 411),
            out=f"y{i}",
            source=f"x = self.conv{i}(x)",
            quant=(0.031, -128),
            module=f"conv{i}",
        )
        channels = count
    return b.finish((x,), y)


def kernels(deployment: Deployment) -> list[str]:
    return [step.choice.kernel.symbol for step in deployment.steps]


def deployed(program: Program, objective: Objective) -> Deployment:
    return deploy(program.graph, M4.target, DEFAULT, objective=objective)


@pytest.mark.parametrize("board", ["mps2_an386", "nucleo_f446re", "mps2_an505", "pico", "mps3_an547"])
def test_speed_is_never_slower(network: Program, board: str) -> None:
    """In what its board takes, waits of its flash included, which may make others the fastest."""
    target = load_board(board).target
    found = [
        deploy(network.graph, target, DEFAULT, objective=Objective(o)).decision.figures for o in OPTIMIZE
    ]
    assert found[0].time <= found[1].time <= found[2].time
    assert (found[0].time != found[0].instructions) == counts_cycles(target)


def test_speed_and_size(network: Program) -> None:
    speed, balanced, size = (deployed(network, Objective(o)) for o in OPTIMIZE)
    points = [d.decision.kernels.figures for d in (speed, balanced, size)]
    assert points[0].time <= points[1].time <= points[2].time
    assert points[0].flash >= points[1].flash >= points[2].flash
    assert points[0].flash > points[2].flash
    assert any(s.endswith("_dsp") for s in kernels(speed))
    # What was asked for alone is what there is: the portable kernels take the rest only.
    alone = deploy(network.graph, M4.target, [CORTEX_M], objective=Objective("size"))
    convolutions = [s.choice.delegate for s in alone.steps if s.node.op == "conv2d"]
    assert convolutions
    assert PORTABLE not in convolutions


@pytest.mark.parametrize(
    "board",
    ["microbit", "pico", "mps2_an385", "riscv32_virt", "esp32c3", "mps2_an386", "mps3_an547", "esp32"],
)
def test_balanced_is_never_dearer_than_one_delegate(network: Program, board: str) -> None:
    """The kernels of one delegate, in its own order: what there would be if nothing were weighed."""
    target = load_board(board).target
    here = [d for d in (CMSIS_NN, CORTEX_M, PORTABLE) if d.supports(target) is None]
    decision = deploy(network.graph, target, here, objective=Objective()).decision
    for home in here:
        alone = 0
        for found in decision.candidates.values():
            stated = [v for v in found if v.cost is not None]
            cost = next((v for v in stated if v.choice.delegate is home), found[0]).cost
            assert cost is not None, "nothing to weigh"
            alone += cost.time
        assert decision.kernels.figures.time <= alone, home.name


def test_limits_choose_smaller_kernels(network: Program) -> None:
    speed, size = (deployed(network, Objective(o)) for o in ("speed", "size"))
    limit = size.decision.kernels.figures.flash
    assert deployed(network, Objective("speed", flash=limit)).decision.kernels.figures.flash <= limit
    arena = size.plan.arena_bytes
    assert arena < speed.plan.arena_bytes, "the example shows nothing"
    small = deployed(network, Objective("speed", ram=arena))
    assert small.plan.arena_bytes <= arena
    assert small.decision.kernels.figures.time <= size.decision.kernels.figures.time


def many_inputs(channels: int) -> Program:
    """A convolution, and a layer of four outputs over all of its pixels. What widens these pixels first is a little
    smaller than what does not, and takes two more bytes of RAM for each of them."""
    b = Builder("wide")
    x = input_s8("x", (1, 20, 20, 1), 0.05, -7)
    w, bias = weights_s8("w0", (channels, 3, 3, 1), 37), bias_s32("b0", channels, 411)
    pads: dict[str, Any] = {f"pad_{side}": 1 for side in ("top", "bottom", "left", "right")}
    y = b.add(Conv2d(**pads), x, w, bias, out="y0", source="", quant=(0.03, -128), module="conv")
    y = b.add(Reshape((1, 400 * channels)), y, out="y1", source="", quant=(0.03, -128))
    w, bias = weights_s8("w1", (4, 400 * channels), 29), bias_s32("b1", 4, 97)
    y = b.add(Linear(), y, w, bias, out="y2", source="", quant=(0.2, 3), module="fc")
    return b.finish((x,), y)


@pytest.mark.parametrize(("channels", "optimize"), [(4, "balanced"), (12, "size"), (4, "size")])
def test_flash_that_is_not_worth_its_ram(channels: int, optimize: Optimize) -> None:
    """Where a choice with a much smaller arena takes no longer, a few bytes of flash do not speak against it. The
    convolution, whose kernels trade time for scratch, is the same."""
    program = many_inputs(channels)
    same = {"conv": "tinyet_conv2d_s8_packed_2x4_dsp"}
    found = deployed(program, Objective(optimize, pins=same))
    assert kernels(found)[-1] != WIDENS
    chosen = found.decision.kernels
    points = found.decision.kernel_front.points
    assert chosen in points
    assert [p.figures.flash for p in points] == sorted(p.figures.flash for p in points)
    wide = deployed(program, Objective(optimize, pins={"fc": WIDENS, **same}))
    assert found.plan.arena_bytes + 400 * channels < wide.plan.arena_bytes
    widest = wide.decision.kernels.figures
    assert chosen.figures.time <= widest.time
    assert 0 < chosen.figures.flash - widest.flash < 400 * channels // 4, "the example shows nothing"
    # What flash there is not is not spent.
    full = deployed(program, Objective(optimize, flash=widest.flash, pins=same))
    assert full.decision.kernels.figures.flash <= widest.flash


def test_pins(network: Program) -> None:
    free = deployed(network, Objective("speed"))
    step = next(s for s in free.steps if s.choice.delegate is CORTEX_M)
    portable = next(
        v.choice.kernel.symbol for v in free.decision.candidates[step.node] if v.choice.delegate is PORTABLE
    )
    pinned = deployed(network, Objective("speed", pins={step.name: portable}))
    other = next(s for s in pinned.steps if s.node is step.node)
    assert other.choice.kernel.symbol == portable
    with pytest.raises(UsageError) as error:
        deployed(network, Objective(pins={"nobody": portable, step.name: "tinyet_nothing"}))
    assert "no layer is called nobody" in str(error.value)
    assert f"{step.name}: tinyet_nothing does not compute it" in str(error.value)


def test_where_nothing_is_stated_the_order_decides(network: Program) -> None:
    target = Target("cortex-m33", frozenset())
    assert measured(core_of(target)) is None
    for delegates in itertools.permutations((CMSIS_NN, PORTABLE)):
        for optimize in OPTIMIZE:
            found = deploy(network.graph, target, delegates, objective=Objective(optimize))
            assert {s.choice.delegate for s in found.steps} == {delegates[0]}


def test_a_project_knows_its_choice(network: Program, tmp_path: Path) -> None:
    """The kernels of a project on disk are those that it was generated with."""
    step = next(s for s in deployed(network, Objective("size")).steps if s.node.op == "conv2d")
    pin = step.choice.kernel.symbol
    asked = {"optimize": "speed", "pins": {step.name: pin}, "max_flash": 200_000}
    project = generate(network, "mps2_an386", tmp_path / "p", kind="cmake", **asked)  # type: ignore[arg-type]
    again = open_project(tmp_path / "p")
    assert again.objective == objective_of(M4, "speed", Limits(max_flash=200_000), pins={step.name: pin})
    assert kernels(again.deployment) == kernels(project.deployment)
    assert kernels(again.deployment)[step.index] == pin
    report = analyze(again.program, again.board, optimize="speed", pins=again.pins)
    assert [layer.kernel for layer in report.layers] == kernels(again.deployment)
    with pytest.raises(UsageError, match="one of speed, balanced, size"):
        generate(network, "mps2_an386", tmp_path / "q", optimize="small")


def test_the_report_of_a_choice(network: Program) -> None:
    report = analyze(network, "mps2_an386")
    assert sum(point.chosen for point in report.kernel_front) == 1
    flash = [point.flash_bytes for point in report.kernel_front]
    assert flash == sorted(flash)
    layer = next(one for one in report.layers if len(one.candidates) > 1)
    assert layer.kernel in [candidate.kernel for candidate in layer.candidates]
    assert report.to_json()["kernel_front"]
    assert sorted(aim for plan in report.plans for aim in plan.optimize) == sorted(OPTIMIZE)
    assert [plan.optimize for plan in report.plans if plan.chosen] == [
        plan.optimize for plan in report.plans if "balanced" in plan.optimize
    ]
    figures = [(plan.cycles or 0, plan.flash_bytes, plan.ram_bytes) for plan in report.plans]
    assert 2 < len(figures) <= MOST_PLANS
    assert not any(
        all(a <= b for a, b in zip(*two, strict=True)) for two in itertools.permutations(figures, 2)
    )


def test_every_kernel_states_a_cost_or_says_why_not() -> None:
    for delegate in DELEGATES:
        for own in delegate.kernels.values():
            for kernel in own:
                assert (kernel.cost_model is None) == bool(kernel.no_cost_model), kernel.symbol


def test_coefficients_are_of_kernels_with_a_cost_model() -> None:
    """A kernel without a cost model is never weighed, and a coefficient of nobody's would be forgotten."""
    modelled = {
        kernel.symbol
        for delegate in DELEGATES
        for own in delegate.kernels.values()
        for kernel in own
        if kernel.cost_model is not None
    }
    for path in MEASURED.glob("*.json"):
        table = measured(path.stem)
        assert table is not None
        assert set(table.kernels) <= modelled


def test_a_layer_has_one_name_whatever_computes_it() -> None:
    """Layers without modules are numbered; calls that do not depend on each other are made in an order that depends on
    their scratch. So a name that one report has pins the same layer in another."""
    graph = side_by_side(MODELS["resnet8"])
    found = [deploy(graph, M4.target, DEFAULT, objective=Objective(optimize)) for optimize in OPTIMIZE]
    names = [{step.node: step.name for step in deployment.steps} for deployment in found]
    assert names[0] == names[1] == names[2]
    assert len({tuple(step.node.output.name for step in d.steps) for d in found}) > 1, "always the same order"
    pins = {step.name: "tinyet_conv2d_s8" for step in found[0].steps if step.node.op == "conv2d"}
    pinned = deploy(graph, M4.target, DEFAULT, objective=Objective("speed", pins=pins))
    assert {s.name for s in pinned.steps if s.choice.kernel.symbol == "tinyet_conv2d_s8"} == set(pins)
