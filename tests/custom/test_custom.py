# SPDX-License-Identifier: Apache-2.0
"""Operators that a user registers go through everything, in float32 and in int8."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tests.cli.command import tinyet as command
from tests.custom.operators import halve, windowed_peak
from tinyet import ops
from tinyet.analysis import analyze
from tinyet.boards import load_board
from tinyet.custom import CallSite, Form, custom_op, load_plugin, registered
from tinyet.data import prepare_inputs
from tinyet.errors import ModelError, ProgramError, ToolchainError, UnsupportedOp, UsageError
from tinyet.native import Runs
from tinyet.program import Program
from tinyet.tet.format import decode

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "custom_op"
ARM = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed"
)
QEMU = pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
HOST = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

numbers = itertools.count()


class Peaks(nn.Module):
    """Features from a linear layer, their peaks by the custom operator, and halves of these."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(4)
            self.layer = nn.Linear(6, 20)
            self.window = nn.Parameter(torch.rand(5) * 2)
            self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = windowed_peak(torch.tanh(self.layer(x)), self.window, [5])
        out: torch.Tensor = self.head(halve(y))
        return out


def batches(count: int, seed: int) -> list[torch.Tensor]:
    return list(torch.randn(count, 6, generator=torch.Generator().manual_seed(seed)).split(1))


def compiled(integer: bool) -> Program:
    data = batches(32, 1)
    return tinyet.compile(Peaks().eval(), (data[0],), calibration=data if integer else None, name="peaks")


@pytest.fixture(scope="module")
def programs() -> dict[bool, Program]:
    return {integer: compiled(integer) for integer in (True, False)}


def test_it_is_quantized_where_it_has_an_int8_form(programs: dict[bool, Program]) -> None:
    nodes = {n.op: n for n in programs[True].graph.nodes}
    assert {nodes["peak"].input(0).dtype.value, nodes["peak"].output.dtype.value} == {"int8"}
    assert nodes["peak"].input(1).dtype.value == "float32"
    assert nodes["halve"].output.dtype.value == "float32"
    assert [n.op for n in programs[False].graph.nodes] == ["linear", "unary", "peak", "halve", "linear"]


@pytest.mark.parametrize("integer", [True, False])
def test_it_computes_what_torch_computes(integer: bool, programs: dict[bool, Program]) -> None:
    """Float: two layers that sum six and four products below 2 each, in another order: within 24 * 2**-23."""
    model = Peaks().eval()
    for x in batches(4, 2):
        got = np.asarray(programs[integer].run(x.numpy()), np.float32)
        np.testing.assert_allclose(got, model(x).detach().numpy(), atol=0.05 if integer else 3e-6)


@HOST
@pytest.mark.parametrize("integer", [True, False])
def test_on_the_host(integer: bool, programs: dict[bool, Program], tmp_path: Path) -> None:
    project = tinyet.generate(programs[integer], "mps2_an386", tmp_path / "p", kind="cmake")
    result = project.validate(torch.cat(batches(5, 3)).numpy(), on="host")
    assert result.bit_exact
    kernels = [layer.kernel for layer in result.layers]
    assert ("peak_s8" if integer else "peak_f32") in kernels
    assert "halve_f32" in kernels


@HOST
def test_in_this_process_when_asked_for(
    programs: dict[bool, Program], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in one's own C would end it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program, data = programs[True], torch.cat(batches(5, 3)).numpy()
    assert program.evaluate(data, by="native").judged == 1
    runs = Runs(program.graph, 10**9)
    for sample in data:
        runs.outputs(prepare_inputs(program.inputs, [sample]))
    assert runs.how == "numpy"
    assert runs.why == 'C of your own runs in this process only where by="native" asks for it'


@pytest.mark.emulated
@ARM
@QEMU
def test_on_a_board(programs: dict[bool, Program], tmp_path: Path) -> None:
    project = tinyet.generate(programs[True], "mps2_an386", tmp_path / "p")
    project.build()
    result = project.validate(torch.cat(batches(5, 3)).numpy(), on="qemu")
    assert result.bit_exact
    assert all(layer.count for layer in result.layers if layer.kernel == "peak_s8")


def test_analysis_and_files(programs: dict[bool, Program], tmp_path: Path) -> None:
    path = tmp_path / "peaks.tet"
    programs[True].save(path)
    again = tinyet.load(path)
    assert again.hash == programs[True].hash
    analysis = analyze(again, load_board("mps2_an386"))
    layer = next(layer for layer in analysis.layers if layer.op == "peak")
    assert (layer.kernel, layer.macs, layer.dtype) == ("peak_s8", 20, "s8")
    # The window in 16 bits, and the zero points.
    assert layer.constant_bytes == 5 * 2 + 2 * 4


def test_the_generated_files(programs: dict[bool, Program], tmp_path: Path) -> None:
    tinyet.generate(programs[True], "mps2_an386", tmp_path / "p")
    source = tmp_path / "p" / "lib" / "peaks" / "src"
    assert "tinyet_status peak_s8(const int8_t *x, int8_t *out" in (source / "custom_peak_s8.h").read_text()
    text = (source / "peaks.c").read_text()
    assert '#include "custom_peak_s8.h"' in text
    assert re.search(r"peak_s8\(.*, 4, 5, peak_\d+_zero_points, \d+, -?\d+, peak_\d+_window\)", text)


def test_without_the_file_that_registers_them(programs: dict[bool, Program], tmp_path: Path) -> None:
    """In another process, which knows nothing of the operators."""
    programs[True].save(tmp_path / "peaks.tet")
    tinyet.generate(programs[True], "mps2_an386", tmp_path / "p")
    script = (
        "import tinyet, sys\n"
        "from tinyet.errors import TinyetError\n"
        "for attempt in (lambda: tinyet.load(sys.argv[1]), lambda: tinyet.open_project(sys.argv[2])):\n"
        "    try:\n        attempt()\n"
        "    except TinyetError as error:\n        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "peaks.tet", tmp_path / "p"],
        capture_output=True,
        text=True,
        check=True,
        cwd=EXAMPLE.parents[1],
    )
    assert "the operator peak, which tinyet does not know" in done.stdout or "operator halve" in done.stdout
    assert "this program uses the operator halve, peak, which tinyet does not know" in done.stdout
    assert done.stdout.count("tinyet --plugin FILE.py") == 2


# ---------------------------------------------------------------- the example, by the command line


def test_the_command_line_loads_plugins(tmp_path: Path) -> None:
    out = tmp_path / "snake.tet"
    ended = command("compile", EXAMPLE / "model.py", "-o", out)
    assert ended.status == 0, ended.err
    ended = command("--plugin", EXAMPLE / "snake.py", "analyze", out)
    assert ended.status == 0, ended.err
    assert "snake_s8" in ended.out
    program = tinyet.load(out)
    # Pointwise: it stands between the convolutions without a transpose.
    names = [n.op for n in program.graph.nodes]
    assert names.index("snake") == names.index("conv2d") + 1
    assert names.count("permute") == 0


def test_a_plugin_is_run_once(tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text("import itertools\ncount = itertools.count()\nnext(count)\n")
    module = load_plugin(tmp_path / "once.py")
    assert load_plugin(tmp_path / "once.py") is module
    assert sys.modules["once"] is module
    # A file whose name is that of a module does not replace it.
    (tmp_path / "itertools.py").write_text("value = 1\n")
    assert load_plugin(tmp_path / "itertools.py").value == 1
    assert load_plugin(tmp_path / "itertools.py") is not sys.modules["itertools"]


def test_a_plugin_that_fails(tmp_path: Path) -> None:
    (tmp_path / "broken_plugin.py").write_text("raise ValueError('no such thing')\n")
    with pytest.raises(UsageError, match="ValueError: no such thing"):
        load_plugin(tmp_path / "broken_plugin.py")
    with pytest.raises(UsageError, match="is no Python file"):
        load_plugin(tmp_path / "absent.py")
    assert command("--plugin", tmp_path / "absent.py", "boards").status == 2


# ---------------------------------------------------------------- mistakes


def made(name: str, *, shape: Any = None, **changes: Any) -> Any:
    """A torch operator that returns its input, and its registration with some mistakes."""
    title = f"{name}_{next(numbers)}"

    def same(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    torch_op = torch.library.custom_op(f"tests::{title}", same, mutates_args=())
    torch_op.register_fake(torch.empty_like)
    form = {
        "reference": lambda _site, inputs: inputs[0].copy(),
        "function": f"{title}_f32",
        "source": f"void {title}_f32(const float *x, float *out, int32_t count) {{\n"
        "  for (int32_t i = 0; i < count; i++) {\n    out[i] = x[i];\n  }\n}\n",
        "arguments": lambda site: {"count": site.x.count},
        **changes,
    }
    custom_op(torch_op, infer=shape or (lambda site: site.x.shape), float32=Form(**form))
    return torch_op


def identity() -> Form:
    return Form(lambda _site, inputs: np.asarray(inputs[0]), "identity", "void identity(void) {}")


class Applied(nn.Module):
    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.operator(x)
        return out


def program_of(operator: Any) -> Program:
    return tinyet.compile(Applied(operator), (torch.randn(1, 7),), name="applied")


def test_infer_and_torch_disagree() -> None:
    operator = made("shape", shape=lambda _site: (1, 8))
    with pytest.raises(ModelError, match=r"gives \(1, 8\), torch's own rule gives \(1, 7\)") as caught:
        program_of(operator)
    assert "test_custom.py" in str(caught.value)


def test_reference_and_infer_disagree() -> None:
    operator = made("reference", reference=lambda _site, inputs: inputs[0].astype(np.float64))
    with pytest.raises(
        ModelError, match=r"gives float64\[1, 7\], but by its infer the result is float32\[1x7\]"
    ):
        program_of(operator)


@pytest.mark.parametrize("where", ["reference", "shape"])
def test_a_function_that_raises(where: str) -> None:
    def broken(*_: object) -> Any:
        raise KeyError("alpha")

    operator = made("raises", **{where: broken})
    what = "infer" if where == "shape" else "the reference"
    with pytest.raises(UnsupportedOp, match=f"{what} of operator raises_[0-9]+ raises KeyError"):
        program_of(operator)


def test_names_that_are_taken() -> None:
    operator = made("twice")
    with pytest.raises(UsageError, match="is registered already"):
        custom_op(
            operator,
            infer=lambda site: site.x.shape,
            float32=Form(lambda _site, inputs: np.asarray(inputs[0]), "f", "void f() {}"),
        )
    with pytest.raises(UsageError, match="there is an operator conv2d already"):
        custom_op(
            "tests::other",
            name="conv2d",
            infer=lambda site: site.x.shape,
            float32=identity(),
        )
    assert registered("tests.other.default") is None
    with pytest.raises(UsageError, match="cannot be the name of an operator"):
        custom_op("tests::other", name="My Op", infer=lambda site: site.x.shape, float32=identity())
    with pytest.raises(UsageError, match=r"is no operator of torch\.library"):
        custom_op(torch.sin, infer=lambda site: site.x.shape, float32=identity())


def test_c_text_without_the_function(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not define nowhere"):
        made("absent", function="nowhere")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        made("unread", source=tmp_path / "absent.c")


def test_c_text_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "kernel.c").write_text("void from_file(const float *x, float *out) {\n  out[0] = x[0];\n}\n")
    operator = made("file", function="from_file", source=tmp_path / "kernel.c", arguments=lambda _site: {})
    tinyet.generate(program_of(operator), "mps2_an386", tmp_path / "p")
    assert "out[0] = x[0];" in (tmp_path / "p/lib/applied/src/custom_from_file.c").read_text()


@HOST
def test_c_that_does_not_compile(tmp_path: Path) -> None:
    operator = made(
        "wrong",
        function="wrong_f32",
        source="void wrong_f32(const float *x, float *out, int32_t count) {\n  out[0] = y;\n}\n",
    )
    project = tinyet.generate(program_of(operator), "mps2_an386", tmp_path / "p", kind="cmake")
    with pytest.raises(ToolchainError, match=r"custom_wrong_f32\.c.*'y' undeclared|custom_wrong_f32\.c"):
        project.validate(np.zeros((1, 1, 7), np.float32), on="host")


@HOST
def test_a_kernel_that_computes_something_else_is_found(tmp_path: Path) -> None:
    operator = made("off", reference=lambda _site, inputs: inputs[0] + np.float32(1))
    project = tinyet.generate(program_of(operator), "mps2_an386", tmp_path / "p", kind="cmake")
    result = project.validate(np.zeros((1, 1, 7), np.float32), on="host")
    assert not result.bit_exact


@pytest.mark.parametrize("value", [2**31, float("inf"), "text"])
def test_arguments_that_c_cannot_take(value: object, tmp_path: Path) -> None:
    operator = made("argument", arguments=lambda _site: {"count": value})
    with pytest.raises(ModelError, match="passes count="):
        tinyet.generate(program_of(operator), "mps2_an386", tmp_path / "p")


def test_what_a_call_may_hold() -> None:
    @torch.library.custom_op("tests::listed", mutates_args=())
    def listed(xs: list[torch.Tensor]) -> torch.Tensor:
        return xs[0] + xs[1]

    listed.register_fake(lambda xs: torch.empty_like(xs[0]))
    custom_op(listed, infer=lambda site: site.x.shape, float32=identity())

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = listed([x, x])
            return out

    with pytest.raises(ModelError, match="xs is a list of tensors"):
        tinyet.compile(Model(), (torch.zeros(2),), name="model")


def test_an_unknown_operator_in_a_file(
    programs: dict[bool, Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = programs[False].data
    monkeypatch.setattr(ops, "by_name", lambda _name: None)

    with pytest.raises(ProgramError, match="which tinyet does not know"):
        decode(data, "x.tet")


def test_the_site_of_a_call() -> None:
    site = CallSite((None,), {})
    with pytest.raises(AssertionError):
        _ = site.out
