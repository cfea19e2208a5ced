# SPDX-License-Identifier: Apache-2.0
"""The command line from a PyTorch model on. Each test writes a model file as a user would."""

from __future__ import annotations

import importlib.util
import json
import shutil
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.command import listing, part, refused, tinyet
from tests.golden_files import Golden
from tinyet.data import read_data
from tinyet.program import load
from tinyet.projects import open_project

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

_BOARD = ("--board", "mps2_an386")

# A network that every test changes a little; the line numbers are asserted.
_MODEL = """\
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = x.mean((2, 3))
        return self.head(x)


def images(count, seed=0):
    return torch.rand(count, 2, 6, 6, generator=torch.Generator().manual_seed(seed))


def model():
    torch.manual_seed(0)
    return Net().eval()


def example_inputs():
    return (images(1),)


def calibration():
    return list(images(8, 1).split(4))


def evaluation():
    x = images(5, 2)
    return x, model()(x).argmax(-1)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(here: Path, *changes: tuple[str, str], more: str = "") -> None:
    text = _MODEL
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (here / "net.py").write_text(text + textwrap.dedent(more))


# ---- what works ----


def test_from_a_model_to_a_project_with_its_evaluation_data(here: Path) -> None:
    _write(here)
    ended = tinyet("generate", "net.py", *_BOARD, "-o", "p", "--save", "net.tet", "--dump", "ir", "--strict")
    assert ended.status == 0, ended.err
    assert ended.err == ""
    project = open_project("p")
    assert project.name == "net"
    assert load("net.tet").hash == project.program.hash
    data = read_data(here / "p" / "evaluation.npz", ["x"])
    assert data.arrays[0].shape == (5, 2, 6, 6)
    assert data.labels is not None
    assert data.labels.shape == (5,)
    dumps = sorted((here / "ir").iterdir())
    assert len(dumps) > 5
    assert all(dump.read_text().startswith("graph net") for dump in dumps)
    again = tinyet("generate", "net.py", *_BOARD, "-o", "q", "--strict")
    assert again.status == 0
    for path in listing(here / "p"):
        if (here / "p" / path).is_file():
            assert (here / "p" / path).read_bytes() == (here / "q" / path).read_bytes(), path
    if shutil.which("cc"):
        assert tinyet("validate", "p", "--on", "host", "--json", "v.json").status == 0
        record = json.loads((here / "v.json").read_text())
        assert (record["samples"], record["bit_exact"]) == (5, True)
        assert record["float_accuracy"] == 1.0  # the labels are the float model's own answers
        assert record["accuracy"] == record["host_accuracy"]


def test_check_needs_no_data_and_names_every_operator(here: Path) -> None:
    """Neither calibration() nor evaluation() is called; sizes are those of the calibrated model."""
    asked = "    raise RuntimeError('asked for data')\n"
    data = ("def calibration():\n", "def evaluation():\n")
    _write(here, *((line, line + asked) for line in data))
    checked = tinyet("check", "net.py", *_BOARD, "--json", "c.json")
    assert checked.status == 0, checked
    (found,) = json.loads((here / "c.json").read_text())["models"]
    assert (found["verdict"], found["integers"], found["floats"]) == ("ok", "by noise", [])
    _write(here)
    assert tinyet("analyze", "net.py", *_BOARD, "--json", "a.json").status == 0
    analyzed = json.loads((here / "a.json").read_text())
    for figure in ("macs", "constant_bytes", "arena_bytes"):
        assert found[figure] == analyzed[figure], figure
    _write(
        here,
        ("x = F.relu(self.conv(x))", "x = torch.cummax(self.conv(x), dim=1).values"),
        ("x = x.mean((2, 3))", "x = torch.cumprod(x, 1).mean((2, 3))"),
    )
    ended = tinyet("check", "net.py", *_BOARD)
    assert ended.status == 1
    assert "net.py:13" in ended.err
    assert "net.py:14" in ended.err
    assert "unsupported operator" in ended.err


def test_compile_then_go_on_with_the_file(here: Path) -> None:
    _write(here)
    ended = tinyet(
        "compile", "net.py:model", "-o", "kws.tet", "--name", "kws", "--board", "microbit", "--float-io"
    )
    assert ended.status == 0, ended.err
    program = load("kws.tet")
    assert program.name == "kws"
    assert program.inputs[0].type.quant is None
    assert tinyet("generate", "kws.tet", *_BOARD, "-o", "p", "--strict").status == 0


def test_evaluation_data_goes_beside_a_tet_file(here: Path) -> None:
    """What `compile` saves is what a project of the model would keep; without it, a line says that it is lost."""
    _write(here)
    told = tinyet("compile", "net.py", "-o", "a.tet").err
    assert "the 5 samples of evaluation() are not in the .tet" in told
    ended = tinyet("compile", "net.py", "-o", "b.tet", "--save-evaluation", "b.npz")
    assert "are not in the .tet" not in ended.err
    assert "b.npz: 5 samples with labels" in ended.err
    assert tinyet("generate", "b.tet", *_BOARD, "-o", "q", "--evaluation", "b.npz").status == 0
    assert tinyet("generate", "net.py", *_BOARD, "-o", "p").status == 0
    assert (here / "q" / "evaluation.npz").read_bytes() == (here / "p" / "evaluation.npz").read_bytes()
    _write(here, ("def evaluation", "def another"))
    error = refused(
        here, "usage error", "compile", "net.py", "-o", "c.tet", "--save-evaluation", "c.npz", status=2
    )
    assert "there is no evaluation()" in error


def test_channels_last_turns_the_evaluation_data_too(here: Path) -> None:
    _write(here)
    assert tinyet("generate", "net.py", *_BOARD, "-o", "p", "--channels-last").status == 0
    project = open_project("p")
    assert project.program.inputs[0].shape == (1, 6, 6, 2)
    assert project.evaluation is not None
    assert project.evaluation.arrays[0].shape == (5, 6, 6, 2)


def test_calibration_from_a_file_and_a_saved_program(here: Path) -> None:
    import torch

    _write(here, ("def calibration", "def other"), ("def evaluation", "def another"))
    namespace: dict[str, object] = {}
    exec((here / "net.py").read_text(), namespace)
    module, inputs = namespace["model"], namespace["example_inputs"]
    assert callable(module)
    assert callable(inputs)
    torch.export.save(torch.export.export(module(), inputs()), "net.pt2")
    np.savez("c.npz", inputs=np.random.default_rng(0).random((8, 2, 6, 6)))
    for model in ("net.py", "net.pt2"):
        ended = tinyet("compile", model, "-o", "a.tet", "--calibration", "c.npz", "--strict")
        assert ended.status == 0, ended.err
        floats = tinyet("compile", model, "-o", "b.tet")
        assert floats.status == 0, floats.err
        assert "nothing is quantized" in floats.err
        assert load("a.tet").inputs[0].type.quant is not None
        assert load("b.tet").inputs[0].type.quant is None


_QUANTIZER = """

def quantizer():
    from tinyet import TinyetQuantizer

    return TinyetQuantizer().set_module_name("conv", None)
"""


def test_a_layer_left_in_float_on_purpose_is_told_and_passes_strict(here: Path) -> None:
    _write(
        here,
        ("F.relu(self.conv(x))", "self.conv(x)"),
        ("x = x.mean((2, 3))", "x = x[:, :, 0, 0]"),
        more=_QUANTIZER,
    )
    ended = tinyet("compile", "net.py", "-o", "net.tet", "--strict")
    assert ended.status == 0, ended.err
    assert "conv (net.py:13): x = self.conv(x)" in ended.err


def test_everything_left_in_float_on_purpose_passes_strict(here: Path) -> None:
    _write(here, more=_QUANTIZER.replace('set_module_name("conv", None)', "set_global(None)"))
    assert tinyet("compile", "net.py", "-o", "net.tet", "--strict").status == 0


def test_layers_in_float_unasked_fail_strict(here: Path, golden: Golden) -> None:
    _write(here, ("def calibration", "def other"), ("def evaluation", "def another"))
    golden(refused(here, "model error", "compile", "net.py", "-o", "net.tet", "--strict"), "strict.txt")


# ---- models that cannot be compiled ----


def _generate(here: Path, title: str, *more: str) -> str:
    return refused(here, title, "generate", "net.py", *_BOARD, "-o", "p", *more)


def test_all_unsupported_operators_with_their_lines(here: Path, golden: Golden) -> None:
    _write(
        here,
        ("x = F.relu(self.conv(x))", "x = torch.cummax(self.conv(x), dim=1).values"),
        ("x = x.mean((2, 3))", "x = torch.cumprod(x, 1).mean((2, 3))"),
    )
    golden(_generate(here, "unsupported operator"), "unsupported.txt")


def test_a_shape_that_depends_on_values(here: Path) -> None:
    _write(here, ("x = x.mean((2, 3))", "x = torch.nonzero(x)[:1].float().repeat(1, 1)"))
    ended = tinyet("generate", "net.py", *_BOARD, "-o", "p")
    assert ended.status == 1
    assert ended.err.startswith(("dynamic shape: ", "model error: "))
    assert "net.py:14" in ended.err
    assert "Traceback" not in ended.err
    assert not (here / "p").exists()


def test_a_saved_program_with_a_dynamic_dimension(here: Path) -> None:
    import torch

    program = torch.export.export(
        torch.nn.Linear(4, 2), (torch.zeros(3, 4),), dynamic_shapes=({0: torch.export.Dim("batch")},)
    )
    torch.export.save(program, "net.pt2")
    error = refused(here, "dynamic shape", "generate", "net.pt2", *_BOARD, "-o", "p")
    assert "dynamic_shapes" in part(error, "do")


def test_a_model_that_decides_by_values(here: Path) -> None:
    _write(here, ("x = x.mean((2, 3))", "x = x.mean((2, 3)) if x.sum() > 0 else x.amax((2, 3))"))
    error = _generate(here, "model error")
    assert part(error, "at").startswith("net.py:14: ")
    assert "torch.where" in part(error, "do")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("x = x.mean((2, 3))", 'raise ValueError("no way")', 14),
        ("return Net().eval()", 'raise ValueError("no way")', 24),
        ("return (images(1),)", 'raise ValueError("no way")', 28),
        ("return list(images(8, 1).split(4))", 'raise ValueError("no way")', 32),
        ("x = images(5, 2)", 'raise ValueError("no way")', 36),
        ("class Net(nn.Module):", 'raise ValueError("no way")\nclass Net(nn.Module):', 6),
    ],
    ids=["forward", "model", "example_inputs", "calibration", "evaluation", "import"],
)
def test_a_model_that_raises(here: Path, old: str, new: str, line: int) -> None:
    _write(here, (old, new))
    error = _generate(here, "model error")
    assert "ValueError: no way" in error
    assert part(error, "at").startswith(f"net.py:{line}: raise ValueError")


def test_a_quantizer_that_raises(here: Path) -> None:
    _write(here, more='\ndef quantizer():\n    raise ValueError("no way")\n')
    assert "quantizer() raises ValueError: no way" in _generate(here, "model error")


def test_a_generator_that_raises_while_calibrating(here: Path) -> None:
    _write(here, ("return list(images(8, 1).split(4))", 'yield images(4)\n    raise ValueError("no way")'))
    error = _generate(here, "quantization error")
    assert "calibration batch 1 raises ValueError: no way" in error
    assert part(error, "at").startswith("net.py:33: ")


def test_a_file_that_is_no_model(here: Path) -> None:
    (here / "net.py").write_text("def model(:\n")
    assert "SyntaxError" in _generate(here, "model error")
    (here / "net.py").write_text("x = 1\n")
    assert "no function model()" in _generate(here, "model error")
    (here / "net.pt2").write_bytes(b"nonsense")
    refused(here, "model error", "generate", "net.pt2", *_BOARD, "-o", "p")


# ---- calibration and evaluation ----


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ("return []", "no calibration batches"),
        ("return [images(4) * float('nan')]", "NaN or infinite"),
        ("return [images(4) / 0]", "NaN or infinite"),
        ("return [images(4)[:, :1]]", "shape (4, 1, 6, 6), the model takes (1, 2, 6, 6)"),
        ("return [images(4).int()]", "torch.int32"),
        ("return [(images(4), images(4))]", "has 2 tensors, the model takes 1"),
    ],
)
def test_calibration_that_cannot_be_used(here: Path, batches: str, message: str) -> None:
    _write(here, ("return list(images(8, 1).split(4))", batches))
    assert message in _generate(here, "quantization error")


@pytest.mark.parametrize(
    ("arrays", "title", "message"),
    [
        ({"inputs": np.full((4, 2, 6, 6), np.nan)}, "quantization error", "NaN or infinite"),
        ({"inputs": np.zeros((0, 2, 6, 6))}, "quantization error", "no calibration batches"),
        ({"inputs": np.zeros((4, 6, 6, 2))}, "quantization error", "the model takes (1, 2, 6, 6)"),
        ({"inputs": np.zeros((4, 2, 6, 6), np.uint8)}, "quantization error", "torch.uint8"),
        ({"a": np.zeros(2), "b": np.zeros(2)}, "data error", "the model's inputs are x"),
    ],
)
def test_a_calibration_file_that_cannot_be_used(
    here: Path, arrays: dict[str, Any], title: str, message: str
) -> None:
    _write(here)
    with (here / "c.npz").open("wb") as file:
        np.savez(file, **arrays)
    assert message in _generate(here, title, "--calibration", "c.npz")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("return x[:, :1], torch.zeros(5)", "(samples, 2, 6, 6)"),
        ("return x, torch.zeros(4, dtype=torch.long)", "different numbers of samples"),
        ("return x", "inputs and what is expected"),
        ("return [(x, x, x)]", "inputs and what is expected"),
        ("return (x, x), torch.zeros(5)", "gives 2 inputs, the model takes 1"),
    ],
)
def test_evaluation_that_cannot_be_used(here: Path, answer: str, message: str) -> None:
    _write(here, ("return x, model()(x).argmax(-1)", answer))
    error = _generate(here, "data error")
    assert message in error
    assert "evaluation()" in error


@pytest.mark.parametrize(
    ("answer", "labelled"),
    [
        ("return [(x[:3], torch.zeros(3).long()), (x[3:], torch.ones(2).long())]", True),
        ("return ((image, 1) for image in x)", True),
        ("return x.numpy(), [0, 1, 2, 0, 1]", True),
        ("return x, torch.rand(5)", False),
        ("return x, torch.rand(5, 3)", False),
    ],
)
def test_forms_of_evaluation(here: Path, answer: str, labelled: bool) -> None:
    _write(here, ("return x, model()(x).argmax(-1)", answer))
    ended = tinyet("generate", "net.py", *_BOARD, "-o", "p")
    assert ended.status == 0, ended.err
    data = open_project("p").evaluation
    assert data is not None
    assert data.arrays[0].shape == (5, 2, 6, 6)
    assert (data.labels is not None) == labelled
    assert ("no accuracy" in ended.err) != labelled
