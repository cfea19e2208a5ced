# SPDX-License-Identifier: Apache-2.0
"""The front door: `tinyet.open` says what lies at a path, or what is wrong with it, and what a model is called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import tinyet
from tests import small
from tests.tflite_files import Writer
from tinyet.errors import IdleOptions, ModelError, UsageError
from tinyet.files.model_name import class_name, given_or_derived
from tinyet.opening import PROJECT, kind_of
from tinyet.tflite.write import write_model

MODEL = """\
import torch

class {cls}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return torch.relu(self.linear(x))

def model():
    return {made}.eval()

def small():
    return model()

def example_inputs():
    return (torch.ones(1, 4),)

def calibration():
    return [torch.linspace(-1, 1, 32).reshape(8, 4)]

labels = ["a", "b", "c"]
"""


def write(folder: Path, file: str = "model.py", cls: str = "Net", made: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / file
    path.write_text(MODEL.format(cls=cls, made=made or f"{cls}()"))
    return path


def tflite(path: Path) -> Path:
    w = Writer()
    x, y = w.value((1, 4)), w.value((1, 4))
    w.call("RELU", (x,), (y,))
    path.write_bytes(write_model(w.model((x,), (y,))))
    return path


# ---------------------------------------------------------------- what it opens


def test_a_program(tmp_path: Path) -> None:
    program = small.program()
    program.save(tmp_path / "a.tet")
    opened = tinyet.open(tmp_path / "a.tet", strict=True, board="microbit")
    assert isinstance(opened, tinyet.Program)
    assert opened.hash == program.hash


def test_a_project(tmp_path: Path) -> None:
    tinyet.generate(small.program(), "microbit", tmp_path / "p", name="kws")
    assert kind_of(str(tmp_path / "p")) == PROJECT
    opened = tinyet.open(str(tmp_path / "p"))
    assert isinstance(opened, tinyet.Project)
    assert opened.name == "kws"
    with pytest.raises(IdleOptions, match="name, strict: a project is generated already"):
        tinyet.open(tmp_path / "p", name="other", strict=True)


def test_a_tflite_file(tmp_path: Path) -> None:
    opened = tinyet.open(tflite(tmp_path / "Doors.tflite"), runtime="litert")
    assert isinstance(opened, tinyet.Program)
    assert opened.name == "Doors"
    # Told by its folder where it is called as all are.
    folder = tmp_path / "windows"
    folder.mkdir()
    assert tinyet.from_tflite(tflite(folder / "model.tflite")).name == "windows"
    assert tinyet.from_tflite(folder / "model.tflite", name="model").name == "model"


def test_a_model_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    opened = tinyet.open(write(tmp_path, "doors.py"), equalize=False, correct_bias=True)
    assert isinstance(opened, tinyet.Program)
    assert (opened.name, opened.labels) == ("doors", ("a", "b", "c"))
    assert opened.inputs[0].type.quant is not None, "its own calibration() was used"
    other = tinyet.open(tmp_path / "doors.py", labels=["x", "y", "z"], name="gates", dump=tmp_path / "ir")
    assert isinstance(other, tinyet.Program)
    assert (other.name, other.labels) == ("gates", ("x", "y", "z"))
    assert len(list((tmp_path / "ir").glob("*.txt"))) > 5


def test_strict_refuses_what_is_in_float_unasked(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    path = write(tmp_path, "doors.py")
    tinyet.open(path, strict=True)
    floats = tmp_path / "floats.py"
    floats.write_text(path.read_text().replace("def calibration", "def data"))
    with pytest.raises(ModelError, match="compute in float"):
        tinyet.open(floats, strict=True)


# ---------------------------------------------------------------- what it does not


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("missing.tet", "there is no file"),
        ("folder", "not a tinyet project"),
        ("notes.txt", "no kind of model"),
        ("weights.npy", "an array of numpy's"),
    ],
)
def test_what_cannot_be_opened_says_what_it_is(tmp_path: Path, file: str, words: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "weights.npy").write_bytes(b"\x93NUMPY\x01\x00")
    with pytest.raises(UsageError, match=words) as caught:
        tinyet.open(tmp_path / file)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"calibration": [], "float_io": True}, "calibration, float_io"),
        ({"name": "x"}, "name"),
        ({"prune": False}, "prune"),
        ({"runtime": "litert"}, "runtime"),
        ({"hop": 2}, "hop"),
        ({"delegates": "portable"}, "delegates"),
    ],
)
def test_an_option_is_used_or_refused(tmp_path: Path, given: Mapping[str, Any], names: str) -> None:
    small.program().save(tmp_path / "a.tet")
    with pytest.raises(IdleOptions) as caught:
        tinyet.open(tmp_path / "a.tet", **given)
    assert ", ".join(caught.value.names) == names


def test_what_is_no_path() -> None:
    with pytest.raises(UsageError, match="open takes a path, not the number 3"):
        tinyet.open(3)  # type: ignore[arg-type]


# ---------------------------------------------------------------- what a model is called


@pytest.mark.parametrize(
    ("candidates", "name"),
    [
        (("doors", "KeywordNet", "folder"), "doors"),
        (("model", "keyword_net", "folder"), "keyword_net"),
        (("model", "", "kws-demo"), "kws_demo"),
        (("net", "keyword_net"), "net"),
        (("model", "", "src"), "model"),
        (("Model", "", "2x"), "model_2x"),
        (("é", "doors"), "doors"),
        (("string",), "string_model"),
        ((), "model"),
    ],
)
def test_the_first_name_that_says_something(candidates: tuple[str, ...], name: str) -> None:
    assert given_or_derived(None, *candidates) == name
    assert given_or_derived("chosen", *candidates) == "chosen"


def test_the_name_of_a_class() -> None:
    class KeywordNetV2:
        pass

    class DSCNNSmall:
        pass

    assert class_name(KeywordNetV2()) == "keyword_net_v2"
    assert class_name(DSCNNSmall()) == "dscnn_small"
    assert class_name(None) == ""  # a file has no class


@pytest.mark.parametrize(
    ("file", "cls", "made", "name"),
    [
        ("model.py", "Gesture", None, "gesture"),
        ("model.py", "Net", None, "front_door"),
        ("model.py", "Gesture", "torch.nn.Sequential(Gesture())", "front_door"),
        ("doors.py", "Gesture", None, "doors"),
        ("model.py:small", "Gesture", None, "small"),
    ],
)
def test_a_model_is_called_what_its_user_calls_it(
    tmp_path: Path, file: str, cls: str, made: str | None, name: str
) -> None:
    pytest.importorskip("torchao")
    folder = tmp_path / "front-door"
    write(folder, file.partition(":")[0], cls, made)
    opened = tinyet.open(str(folder / file))
    assert isinstance(opened, tinyet.Program)
    assert opened.name == name


def test_a_compiled_module_is_called_as_its_class() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchao")

    class KeywordNet(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.relu(x)

    assert tinyet.compile(KeywordNet(), (torch.ones(1, 4),)).name == "keyword_net"
    assert tinyet.compile(torch.nn.ReLU(), (torch.ones(1, 4),)).name == "model"
