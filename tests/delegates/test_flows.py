# SPDX-License-Identifier: Apache-2.0
"""The three ways to a delegate: a whole module, a lowered module inside another, a part that a partitioner finds."""

from __future__ import annotations

import pickle
import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tests.delegates.toy import ADD_MUL, SINE
from tinyet import delegates
from tinyet.analysis import analyze
from tinyet.boards import load_board
from tinyet.delegates import CORTEX_M, PORTABLE, Delegate, register_delegate
from tinyet.device.device import DeviceFault, ModelFailed
from tinyet.errors import DataError, ModelError, UnsupportedOp
from tinyet.importers.torch import lowered as lowered_module
from tinyet.ops.region import Region
from tinyet.project import Project

BOARD = "mps2_an386"
EXAMPLE = Path(__file__).parents[2] / "examples" / "fused_elementwise"

needs_emulator = [
    pytest.mark.emulated,
    pytest.mark.skipif(
        shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed"
    ),
    pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed"),
]
PLACES = ["host", pytest.param("qemu", marks=needs_emulator)]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegates, "_REGISTERED", {})
    register_delegate(ADD_MUL)
    register_delegate(SINE)


@pytest.fixture(scope="module")
def fuser() -> Iterator[Delegate]:
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield runpy.run_path(str(EXAMPLE / "fuser.py"))["FUSER"]
    finally:
        sys.path.remove(str(EXAMPLE))


class Chain(nn.Module):
    """add, mul, sub, div, mul, add on two inputs, a line each."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x + y
        z = z * y
        z = z - x
        z = z / y
        z = z * x
        return z + y


class Sine(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


def pair(seed: int, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, *shape, generator=generator), torch.rand(1, *shape, generator=generator) + 0.5


def run(project: Project, on: str, *arrays: object, limit: int | None = None) -> tinyet.ValidationResult:
    if on != "host":
        project.build()
    return project.validate(*arrays, on=on, max_samples=limit)  # type: ignore[arg-type]


# ---------------------------------------------------------------- a part of the graph


@pytest.mark.parametrize("on", PLACES)
def test_a_partitioner_takes_a_part(on: str, tmp_path: Path) -> None:
    program = tinyet.compile(Chain(), pair(0, 6), name="chain")
    project = tinyet.generate(program, BOARD, tmp_path / "p", delegates=(ADD_MUL, PORTABLE))
    data = [torch.cat(t).numpy() for t in zip(*(pair(i, 6) for i in range(5)), strict=True)]
    result = run(project, on, *data)
    assert result.bit_exact
    assert [layer.op for layer in result.layers] == ["region", "sub", "div", "region"]
    first = result.layers[0]
    assert [part.name for part in first.parts] == ["add", "mul"]
    assert "z = x + y" in first.parts[0].source
    assert "z = z * y" in first.parts[1].source
    if on == "qemu":
        assert all(part.count and 0 < part.count < (first.count or 0) for part in first.parts)
    torch.testing.assert_close(
        torch.from_numpy(np.concatenate([o[0] for o in result.outputs])),
        Chain()(*map(torch.from_numpy, data)),
    )


def test_what_a_delegate_keeps_is_in_the_instance(tmp_path: Path) -> None:
    program = tinyet.compile(Chain(), pair(0, 6), name="chain")
    project = tinyet.generate(program, BOARD, tmp_path, delegates=(ADD_MUL, PORTABLE), context=True)
    assert run(project, "host", *(t.numpy() for t in pair(1, 6))).bit_exact
    text = (project.path / "lib/chain/src/chain.h").read_text()
    assert text.count("_state[4] TINYET_ALIGNED(8);") == 2


def test_the_project_remembers_who_was_asked(tmp_path: Path) -> None:
    program = tinyet.compile(Chain(), pair(0, 6), name="chain")
    made = tinyet.generate(
        program, BOARD, tmp_path / "p", delegates=(ADD_MUL, PORTABLE), require_delegate=True
    )
    again = tinyet.open_project(made.path)
    assert (again.delegates, again.require_delegate) == ((ADD_MUL, PORTABLE), True)
    assert [s.choice.delegate.name for s in again.deployment.steps] == [
        "add_mul",
        "portable",
        "portable",
        "add_mul",
    ]


def test_require_leaves_nothing_behind(tmp_path: Path) -> None:
    program = tinyet.compile(Chain(), pair(0, 6), name="chain")
    with pytest.raises(UnsupportedOp, match=r"sub_1 \(test_flows.py:\d+\)[\s\S]*div_2 \(test_flows"):
        tinyet.generate(program, BOARD, tmp_path / "p", delegates=(ADD_MUL,), require_delegate=True)
    assert not (tmp_path / "p").exists()


def test_analyze_shows_who_and_why_not() -> None:
    program = tinyet.compile(Chain(), pair(0, 6), name="chain")
    layers = analyze(program, load_board(BOARD), delegates=(ADD_MUL, PORTABLE)).layers
    assert [layer.delegate for layer in layers] == ["add_mul", "portable", "portable", "add_mul"]
    assert "add_mul: only add and mul" in layers[1].refusals


@pytest.mark.parametrize("on", PLACES)
def test_an_error_names_the_line_inside(on: str, tmp_path: Path) -> None:
    program = tinyet.compile(Chain(), pair(0, 6), name="chain")
    project = tinyet.generate(program, BOARD, tmp_path / "p", delegates=(ADD_MUL, PORTABLE))
    x, y = (t.numpy() for t in pair(1, 6))
    # x + y = 1000 arrives at the multiplication of the first region
    x[0, 3], y[0, 3] = 999.0, 1.0
    with pytest.raises(ModelFailed, match="status -21") as caught:
        run(project, on, x, y)
    assert caught.value.where is not None
    assert "in it mul" in caught.value.where
    assert "z = z * y" in caught.value.where


@needs_emulator[0]
@needs_emulator[1]
@needs_emulator[2]
def test_a_fault_names_the_line_inside(tmp_path: Path) -> None:
    program = tinyet.compile(Chain(), pair(0, 6), name="chain")
    project = tinyet.generate(program, BOARD, tmp_path / "p", delegates=(ADD_MUL, PORTABLE))
    x, y = (t.numpy() for t in pair(1, 6))
    x[0, 0], y[0, 0] = 1999.0, 1.0
    with pytest.raises(DeviceFault) as caught:
        run(project, "qemu", x, y)
    assert caught.value.where is not None
    assert "z = z * y" in caught.value.where, "the user's Python"
    assert "add_mul.c" in caught.value.where, "the delegate's C"


# ---------------------------------------------------------------- a whole module


@pytest.mark.parametrize("on", PLACES)
def test_a_whole_module(on: str, tmp_path: Path) -> None:
    x = torch.linspace(-3, 3, 7)[None]
    part = tinyet.lower(Sine(), (x,), SINE, board=BOARD)
    torch.testing.assert_close(part(x).double(), torch.sin(x.double()), atol=1.2e-7, rtol=0)
    program = tinyet.compile(part, (x,), name="sine")
    result = run(tinyet.generate(program, BOARD, tmp_path / "p"), on, x.numpy())
    assert result.bit_exact
    assert [(layer.op, layer.kernel) for layer in result.layers] == [("unary", "toy_sin")]
    np.testing.assert_array_equal(result.outputs[0][0], part(x).numpy())


def test_a_delegate_must_take_the_whole_module() -> None:
    with pytest.raises(UnsupportedOp, match="z = z - x") as caught:
        tinyet.lower(Chain(), pair(0, 6), ADD_MUL, board=BOARD)
    assert "z = z / y" in str(caught.value)
    with pytest.raises(UnsupportedOp, match=r"sine/toy_sin: only sin|sine has no kernel"):
        tinyet.lower(Chain(), pair(0, 6), SINE, board=BOARD)


def test_a_target_that_the_delegate_has_not() -> None:
    x = torch.randn(1, 4)
    with pytest.raises(UnsupportedOp, match="cortex-m3 has no DSP"):
        tinyet.lower(nn.Linear(4, 4).eval(), (x,), CORTEX_M, calibration=[x] * 4, board="mps2_an385")


# ---------------------------------------------------------------- a lowered module in another


class Elementwise(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.tanh((x + y) * x - y)


class Parent(nn.Module):
    """Its part is called twice."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.part = part
        self.last = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        z = self.part(x, y)
        z = self.part(z, x)
        scores: torch.Tensor = self.last(z)
        return scores


@pytest.mark.parametrize("on", PLACES)
def test_composed_inside_a_larger_module(on: str, tmp_path: Path, fuser: Delegate) -> None:
    register_delegate(fuser)
    torch.manual_seed(0)
    part = tinyet.lower(
        Elementwise(), pair(0, 8), fuser, calibration=[pair(i, 8) for i in range(64)], board=BOARD
    )
    eager = part(*pair(3, 8))
    torch.testing.assert_close(eager, Elementwise()(*pair(3, 8)), atol=0.05, rtol=0)
    parent = Parent(part).eval()
    exported = torch.export.export(parent, pair(0, 8))
    calls = [n for n in exported.graph.nodes if n.target is torch.ops.tinyet.lowered.default]
    assert len(calls) == 2, "a node each"
    program = tinyet.compile(parent, pair(0, 8), calibration=[pair(i, 8) for i in range(64)], name="parent")
    regions = [n for n in program.graph.nodes if isinstance(n.attrs, Region)]
    assert len({n.attrs for n in regions}) == 1, "one graph for both"
    path = tmp_path / "parent.tet"
    program.save(path)
    program = tinyet.load(path)
    project = tinyet.generate(program, BOARD, tmp_path / "p")
    text = (project.path / "lib" / "parent" / "src" / "parent.c").read_text()
    assert text.count("static tinyet_status part_fuser(") == 1, "the code once, called after the module"
    assert text.count("TINYET_TRY(part_fuser(") == 2
    assert text.count("_tables[256]") == 1, "the tables once"
    data = [torch.cat(t).numpy() for t in zip(*(pair(i, 8) for i in range(20, 30)), strict=True)]
    result = run(project, on, *data)
    assert result.bit_exact
    assert [layer.op for layer in result.layers].count("region") == 2
    with torch.no_grad():
        floats = [parent(*pair(i, 8)).numpy() for i in range(20, 30)]
    scale = program.outputs[0].type.scale
    zero_point = program.outputs[0].type.zero_point
    ints = [(o[0].astype(np.float32) - zero_point) * scale for o in result.outputs]
    assert np.abs(np.concatenate(floats) - np.concatenate(ints)).max() < 0.1, (
        "the parent's own quantization only"
    )


def test_a_kernel_library_composed(tmp_path: Path) -> None:
    """Weights once, though the module is called twice; nobody else computes what is in it."""
    torch.manual_seed(1)
    x = torch.randn(1, 16)
    part = tinyet.lower(nn.Linear(16, 16).eval(), (x,), PORTABLE, calibration=[torch.randn(1, 16)] * 8)
    twice = nn.Sequential(part, nn.ReLU(), part)
    program = tinyet.compile(twice, (x,), calibration=[torch.randn(1, 16) for _ in range(8)], name="twice")
    project = tinyet.generate(program, BOARD, tmp_path / "p")
    steps = [s for s in project.deployment.steps if s.node.op == "linear"]
    assert [s.choice.delegate.name for s in steps] == ["portable", "portable"], (
        "though cortex_m is asked first"
    )
    text = (project.path / "lib" / "twice" / "src" / "twice.c").read_text()
    assert text.count("_weights[") == 1
    assert run(project, "host", torch.randn(6, 16).numpy()).bit_exact


def test_pinned_layers_fall_back_to_nobody(tmp_path: Path) -> None:
    x = torch.randn(1, 16)
    part = tinyet.lower(nn.Softmax(dim=-1), (x,), CORTEX_M, calibration=[torch.randn(1, 16)] * 8)
    program = tinyet.compile(part, (x,), name="soft")
    with pytest.raises(
        UnsupportedOp, match=r"softmax[\s\S]*cortex_m/tinyet_softmax_s8_dsp: only an output scale"
    ):
        tinyet.generate(program, BOARD, tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_a_lowered_module_survives_pickling(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.linspace(-1, 1, 4)[None]
    data = pickle.dumps(tinyet.lower(Sine(), (x,), SINE))
    monkeypatch.setattr(lowered_module, "_GRAPHS", {})
    again = pickle.loads(data)
    torch.testing.assert_close(again(x).double(), torch.sin(x.double()), atol=1.2e-7, rtol=0)


def test_wrong_shapes_and_lost_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.zeros(1, 4)
    part = tinyet.lower(Sine(), (x,), SINE)
    with pytest.raises(DataError, match=r"takes tensors of shapes \[\(1, 4\)\], got \[\(2, 4\)\]"):
        part(torch.zeros(2, 4))
    exported = torch.export.export(part, (x,))
    monkeypatch.setattr(lowered_module, "_GRAPHS", {})
    with pytest.raises(ModelError, match="calls a lowered module"):
        tinyet.compile(exported, name="lost")


# ---------------------------------------------------------------- the example


@needs_emulator[0]
@needs_emulator[1]
@needs_emulator[2]
def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["demo.py", "--out", str(tmp_path)])
    monkeypatch.syspath_prepend(str(EXAMPLE))
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(EXAMPLE / "demo.py"), run_name="__main__")
    assert left.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all("bit exact: True" in line for line in lines)
