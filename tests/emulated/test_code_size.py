# SPDX-License-Identifier: Apache-2.0
"""Code by kernel and by layer: each function once, with all that need it, as stated and as the linker has it."""

from __future__ import annotations

import dataclasses
import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cost_code
from tests.golden.programs import RELU, Builder, bias_s32, input_s8, weights_s8
from tests.planned import check_planned
from tinyet.analysis import analyze
from tinyet.boards import load_board
from tinyet.budget.code import functions_of
from tinyet.deployment import Deployment, Step, deploy
from tinyet.emit.model import model_files
from tinyet.emit.symbols import symbols_of
from tinyet.ops.conv2d import Conv2d
from tinyet.opset import Definition
from tinyet.opset.cost import field_bytes
from tinyet.planning.objective import OPTIMIZE, Objective
from tinyet.program import Program
from tinyet.projects import open_project
from tinyet.projects.one import generate

M4 = load_board("mps2_an386")


def pairs() -> Program:
    """Pairs of a depthwise and a pointwise layer, of one size and the same scales, with weights of their own."""
    b = Builder("pairs")
    x = y = input_s8("x", (1, 10, 10, 8), 0.031, -128)
    for i, kernel in enumerate((3, 1, 3, 1, 3, 1)):
        groups = 8 if kernel == 3 else 1
        pads: dict[str, Any] = {f"pad_{side}": kernel // 2 for side in ("top", "bottom", "left", "right")}
        y = b.add(
            Conv2d(**pads, groups=groups, clamp=RELU),
            y,
            weights_s8(f"w{i}", (8, kernel, kernel, 8 // groups), 37 + 2 * i),
            bias_s32(f"b{i}", 8, 411 + i),
            out=f"y{i}",
            source=f"x = self.conv{i}(x)",
            quant=(0.031, -128),
            module=f"conv{i}",
        )
    return b.finish((x,), y)


@pytest.fixture(scope="module")
def program() -> Program:
    return pairs()


def bodies(deployment: Deployment) -> list[str]:
    """Of the functions that are made for calls, as they are printed, without their names."""
    text = model_files(deployment, "pairs", ["pairs"])["pairs.c"]
    starts = [match.start() for match in cost_code.DEFINED.finditer(text)]
    functions = [text[start : text.index("\n}\n", start)] for start in starts]
    return [re.sub(cost_code.DEFINED, "f(", function) for function in functions]


def test_no_wrapper_is_printed_twice_for_equal_constants(program: Program) -> None:
    """Whatever kernel computes the layers; those of one size have one wrapper then."""
    free = deploy(program.graph, M4.target)
    kernels = {
        step: [v.choice.kernel.symbol for v in free.decision.candidates[step.node]] for step in free.steps
    }
    shared = 0
    for number in range(max(map(len, kernels.values()))):
        pins = {step.name: symbols[min(number, len(symbols) - 1)] for step, symbols in kernels.items()}
        pinned = deploy(program.graph, M4.target, objective=Objective(pins=pins))
        printed = bodies(pinned)
        assert len(set(printed)) == len(printed)
        made = [f for f in functions_of(pinned, symbols_of(pinned, "pairs").functions) if f.made]
        assert len(made) == len(printed)
        shared += sum(len(f.steps) == 3 for f in made)
    assert shared > 4, "the layers of a kind share nothing"


def test_a_comment_makes_no_other_function() -> None:
    one = Definition("k", "static void", ("int a",), ("  (void)a;",), "for one layer")
    assert one == dataclasses.replace(one, kernel="other", comment="for another")
    assert hash(one) == hash(dataclasses.replace(one, comment=""))
    assert one != dataclasses.replace(one, body=("  (void)(a + 1);",))


def code_of(deployment: Deployment) -> int:
    """Stated: shared functions once, wrappers once, every other call."""
    shared: dict[str, int] = {}
    own: dict[Definition | Step, int] = {}
    for step in deployment.steps:
        cost = deployment.decision.chosen[step.node].cost
        assert cost is not None
        shared |= cost.shared
        own[step.call.symbol if isinstance(step.call.symbol, Definition) else step] = cost.code
    return sum(shared.values()) + sum(own.values())


@pytest.mark.parametrize("board", ["mps2_an386", "mps2_an385"])
def test_code_is_counted_once(program: Program, board: str) -> None:
    for optimize in OPTIMIZE:
        report = analyze(program, board, optimize=optimize)
        code = code_of(
            deploy(program.graph, load_board(board).target, objective=Objective(report.optimize))  # type: ignore[arg-type]
        )
        assert report.code_bytes == code
        assert sum(kernel.code_bytes or 0 for kernel in report.kernels) == code
        assert sum(kernel.constant_bytes for kernel in report.kernels) == report.constant_bytes
        of_library = sum(f.bytes or 0 for f in report.functions if not f.wrapper)
        assert sum(layer.code_bytes or 0 for layer in report.layers) + of_library == code
        assert sorted(itertools.chain(*(kernel.layers for kernel in report.kernels))) == list(range(6))
        assert report.linked_bytes is None


def require_tools() -> None:
    for tool in ("cmake", M4.toolchain.compiler):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


@pytest.mark.emulated
def test_what_is_generated_for_a_limit_is_built_within_it(program: Program, tmp_path: Path) -> None:
    """A byte less than the fastest choice may take: the next one is built, and `build` does not refuse it."""
    require_tools()
    fastest = generate(program, M4, tmp_path / "p", kind="cmake", optimize="speed")
    limit = fastest.room.flash.at_most - 1
    project = generate(program, M4, tmp_path / "p", kind="cmake", optimize="speed", max_flash=limit)
    small, fast = (each.deployment.decision.kernels.figures for each in (project, fastest))
    assert small.time > fast.time
    size = project.build()
    assert size.flash - size.sample <= limit
    check_planned(project, size)


@pytest.mark.emulated
def test_the_linker_has_what_is_reported(program: Program, tmp_path: Path) -> None:
    require_tools()
    project = generate(program, M4, tmp_path / "p", kind="cmake")
    check_planned(project, project.build())
    report = analyze(open_project(tmp_path / "p"))
    assert report.linked_bytes is not None
    assert report.linked_bytes > report.code_bytes + report.constant_bytes
    linked = {f.layers[0]: f.linked_bytes or 0 for f in report.functions if f.wrapper}
    assert linked, "no wrapper to look at"
    for layer, step in zip(report.layers, project.deployment.steps, strict=True):
        constants = (layer.linked_bytes or 0) - linked.get(layer.index, 0)
        parameters = 0 if step.call.params is None else field_bytes(step.call.params, M4.target)
        assert constants == layer.constant_bytes + parameters
    for f in report.functions:
        # Another release of the compiler makes other code; a tenth of it or so.
        assert f.linked_bytes is None or abs((f.bytes or 0) - f.linked_bytes) <= 0.1 * f.linked_bytes + 24, f
    assert sum(f.linked_bytes is not None for f in report.functions) > 1
