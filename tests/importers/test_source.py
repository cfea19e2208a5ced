# SPDX-License-Identifier: Apache-2.0
"""MODEL arguments: Python files, factories, saved programs, and what is said about those that do not load."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from tests.torch_helpers import ops, run
from tinyet.errors import ModelError
from tinyet.fx.origins import origin_of
from tinyet.importers.torch.source import identifier, load_source
from tinyet.opening import ModelOptions, read

GOOD = """\
import torch
from helper_layers import Scale
from torch import nn

def model():
    return nn.Sequential(nn.Linear(4, 3), Scale())

def small():
    return nn.Linear(2, 2), torch.zeros(1, 2)

def example_inputs():
    return torch.zeros(1, 4)

def calibration():
    return [torch.ones(5, 4)]
"""

LAYERS = """\
from torch import nn

class Scale(nn.Module):
    def forward(self, x):
        return x * 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my-net.py").write_text(GOOD)
    (tmp_path / "helper_layers.py").write_text(LAYERS)
    return tmp_path


def test_python_file(folder: Path) -> None:
    source = load_source(str(folder / "my-net.py"))
    assert (source.name, source.evaluation) == ("my_net", None)
    assert source.calibration is not None
    assert [batch.shape for batch in source.calibration()] == [(5, 4)]
    assert ops(source.program) == ["linear", "mul"]
    scaled = next(n for n in source.program.graph.nodes if n.name == "mul")
    origin = origin_of(scaled)
    assert (origin.file, origin.line, origin.text) == ("helper_layers.py", 5, "return x * 3")
    assert origin.module == "1"


def test_each_model_has_its_own_neighbours(folder: Path, tmp_path: Path) -> None:
    """Two files that import modules of one name, in one process: as when a folder of models is checked."""
    other = tmp_path / "other"
    (other / "blocks").mkdir(parents=True)
    (other / "my-net.py").write_text("from blocks.scale import FACTOR\n" + GOOD)
    (other / "blocks" / "scale.py").write_text("FACTOR = 5\n")
    (other / "helper_layers.py").write_text(LAYERS.replace("x * 3", "x + 3"))
    for _ in range(2):
        assert ops(load_source(str(folder / "my-net.py")).program) == ["linear", "mul"]
        assert ops(load_source(str(other / "my-net.py")).program) == ["linear", "add"]
    assert sys.modules["blocks.scale"].FACTOR == 5


def test_factory_with_its_own_inputs(folder: Path) -> None:
    source = load_source(f"{folder / 'my-net.py'}:small")
    assert source.name == "small"
    assert [x.shape for x in source.example_inputs] == [(1, 2)]


def test_saved_program(folder: Path) -> None:
    source = load_source(str(folder / "my-net.py"))
    path = folder / "saved.pt2"
    torch.export.save(source.program, path)
    loaded = load_source(str(path))
    assert (loaded.name, loaded.module, loaded.calibration) == ("saved", None, None)
    x = torch.randn(1, 4)
    assert torch.equal(run(loaded.program, x), run(source.program, x))
    before = [origin_of(n) for n in source.program.graph.nodes if n.op == "call_function"]
    after = [origin_of(n) for n in loaded.program.graph.nodes if n.op == "call_function"]
    assert [o.key for o in before] == [o.key for o in after]


BROKEN = {
    "syntax": ("def model(:\n", "broken.py raises SyntaxError", 1),
    "import": ("import torch\nimport no_such_thing\n", "broken.py raises ModuleNotFoundError", 2),
    "no model": ("def other(): ...\n", r"no function model\(\) in broken.py", None),
    "module": ("from torch import nn\nmodel = nn.ReLU()\n", "model is a module, not a function", None),
    "model raises": ("def model():\n    return 1 / 0\n", r"model\(\) raises ZeroDivisionError", 2),
    "not a module": ("def model():\n    return 3\n", r"model\(\) returns is no model: the model is the number 3", None),
    "no inputs": (
        "from torch import nn\ndef model():\n    return nn.ReLU()\n", r"no function example_inputs\(\)", None,
    ),
    "inputs raise": (
        "from torch import nn\nmodel = lambda: nn.ReLU()\n\n\ndef example_inputs(): raise OSError('gone')\n",
        r"example_inputs\(\) raises OSError: gone", 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN.keys())
def test_broken_files(case: tuple[str, str, int | None], tmp_path: Path) -> None:
    text, message, line = case
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(ModelError, match=message) as caught:
        load_source(str(path))
    assert caught.value.where is not None
    assert caught.value.where.startswith(str(path) + (f":{line}" if line else ""))


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no file nowhere\.py"):
        load_source("nowhere.py")
    junk = tmp_path / "junk.pt2"
    junk.write_bytes(b"PK not really")
    with pytest.raises(ModelError, match=r"junk\.pt2 is not a program saved by torch\.export\.save"):
        load_source(str(junk))
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    with pytest.raises(ModelError, match="not a Python file"):
        load_source(str(text))


@pytest.mark.parametrize(("text", "name"), [("My Net-2", "my_net_2"), ("2x", "model_2x"), ("é", "model")])
def test_identifier(text: str, name: str) -> None:
    assert identifier(text) == name


LABELLED = GOOD.replace("from helper_layers import Scale\n", "").replace(", Scale()", "")


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("labels = ['a', 'b', 'c']", ["a", "b", "c"]),
        ("labels = ('a', 'b', 'c')", ("a", "b", "c")),
        ("def labels():\n    return ['a', 'b', 'c']", ["a", "b", "c"]),
    ],
)
def test_labels(line: str, labels: object, tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(f"{LABELLED}\n{line}\n")
    source = load_source(str(path))
    assert source.labels is not None
    assert source.labels() == labels
    assert read(str(path), ModelOptions()).program.labels == ("a", "b", "c")


def test_wrong_labels_and_other_data_of_that_name(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(f"{LABELLED}\nlabels = torch.zeros(7)\n")
    assert load_source(str(path)).labels is None
    path.write_text(f"{LABELLED}\nlabels = ['a', 'b']\n")
    with pytest.raises(ModelError, match=r"2 label\(s\) for the output .*, which is of 3 elements"):
        read(str(path), ModelOptions())
    path.write_text(f"{LABELLED}\ndef labels():\n    return open('gone').read()\n")
    with pytest.raises(ModelError, match=r"labels\(\) raises FileNotFoundError") as caught:
        read(str(path), ModelOptions())
    assert caught.value.where is not None
    assert caught.value.where.startswith(str(path))
