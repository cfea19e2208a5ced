# SPDX-License-Identifier: Apache-2.0
"""`tinyet quantize`: what it writes, shows and refuses. Each test writes a model file as a user would."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from tests.cli.command import plain, refused, tinyet
from tests.golden_files import Golden
from tinyet.ir import DType
from tinyet.program import load

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

ROOT = Path(__file__).resolve().parents[2]

_MODEL = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).flatten(1))


def images(count, seed=0):
    return torch.rand(count, 2, 6, 6, generator=torch.Generator().manual_seed(seed))


def model():
    torch.manual_seed(0)
    net = Net().eval()
    with torch.no_grad():
        net.head.bias -= net(images(40, 2)).mean(0)
    return net


def example_inputs():
    return (images(1),)


def calibration():
    return list(images(16, 1).split(4))


def evaluation():
    x = images(40, 2)
    return x, model()(x).argmax(-1)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    plain(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(_MODEL)
    return tmp_path


def types(path: Path) -> set[DType]:
    """The types of all values and constants of a program."""
    graph = load(path).graph
    return {t.dtype for node in graph.nodes for t in (*node.inputs, *node.outputs) if t is not None}


@pytest.mark.parametrize(
    ("options", "wanted", "absent"),
    [
        ((), {DType.INT8}, {DType.INT16, DType.INT4, DType.FLOAT32}),
        (("--observer", "mse", "--equalize", "--correct-bias"), {DType.INT8}, {DType.INT16, DType.FLOAT32}),
        (("--config", "int16"), {DType.INT16, DType.INT8}, {DType.FLOAT32}),
        (("--config", "int4"), {DType.INT4, DType.INT8}, {DType.FLOAT32}),
        (("--layer", "head=int16", "--layer", "conv=int4"), {DType.INT4, DType.INT16}, {DType.FLOAT32}),
        (("--layer", "head=float"), {DType.FLOAT32, DType.INT8}, {DType.INT16}),
        (("--config", "dynamic"), {DType.FLOAT32, DType.INT8}, {DType.INT16}),
    ],
)
def test_types_in_the_program(
    here: Path, options: tuple[str, ...], wanted: set[DType], absent: set[DType]
) -> None:
    ended = tinyet("quantize", "net.py", "-o", "net.tet", *options)
    assert ended.status == 0, ended.err
    assert "net.tet: program net" in ended.out
    found = types(here / "net.tet")
    assert wanted <= found
    assert not absent & found


def test_report(here: Path, golden: Golden) -> None:
    ended = tinyet("quantize", "net.py", "--report", "--json", "report.json")
    assert ended.status == 0, ended.err
    # The digits of decibels are torch's on this processor.
    golden(re.sub(r"\d+\.\d", lambda number: re.sub(r"\d", "#", number[0]), ended.out), "report.txt")
    record = json.loads((here / "report.json").read_text())
    assert {layer["module"] for layer in record["layers"]} == {"conv", "head"}
    assert {(e["module"], e["config"]) for e in record["exceptions"]} == {
        (path, kind) for path in ("conv", "head") for kind in ("int16", "float")
    }
    assert record["auto"] is None
    assert record["program"] is None
    assert record["flash_bytes"] > 0


def test_every_field_is_documented() -> None:
    """docs/json.md, section `tinyet quantize`: the whole, layers, exceptions, auto."""
    ended = tinyet(
        "quantize", "net.py", "--report", "--worst", "1", "--auto", "--accuracy", "0", "--json", "-"
    )
    assert ended.status == 0, ended.err
    record = json.loads(ended.out)
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    text = page.split("## `tinyet quantize`")[1].split("\n## ")[0]
    found = [
        re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    ]
    wanted = [record, record["layers"][0], record["exceptions"][0], record["auto"]]
    assert found == [list(part) for part in wanted]


def test_auto_applies_exceptions_and_writes_the_program(here: Path) -> None:
    ended = tinyet(
        "quantize",
        "net.py",
        "--config",
        "int4",
        "--auto",
        "--accuracy",
        "0.98",
        "-o",
        "net.tet",
        "--json",
        "-",
    )
    assert ended.status == 0, ended.err
    record = json.loads(ended.out)
    auto = record["auto"]
    assert auto["host_accuracy"] >= 0.98
    assert auto["steps"][0] == {"exceptions": {}, "accuracy": auto["base_accuracy"]}
    assert bool(auto["exceptions"]) == (auto["base_accuracy"] < 0.98)
    assert record["program"] == "net.tet"
    assert load(here / "net.tet").name == "net"


def test_max_drop_counts_from_the_float_model() -> None:
    ended = tinyet("quantize", "net.py", "--auto", "--max-drop", "0.2", "-o", "net.tet")
    assert ended.status == 0, ended.err
    assert "none needed" in ended.out
    assert "host reference" in ended.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "there is nothing to do"),
        (("--auto",), "--auto wants one aim"),
        (("--auto", "--accuracy", "0.9", "--max-drop", "0.1"), "--auto wants one aim"),
        (("--report", "--accuracy", "0.9"), "belong to --auto"),
        (("-o", "net.bin"), "does not end in .tet"),
        (("-o", "none/net.tet"), "there is no directory none"),
        (("-o", "net.tet", "--json", "-"), "--json writes what"),
        (("-o", "net.tet", "--layer", "head"), "'head' is not NAME=KIND"),
    ],
)
def test_wrong_command_lines(here: Path, options: tuple[str, ...], message: str) -> None:
    assert message in refused(here, "usage error", "quantize", "net.py", *options, status=2)


def test_wrong_settings(here: Path) -> None:
    for options, message in (
        (("--config", "int3"), "no configuration 'int3'"),
        (("--layer", "heed=int8"), "no module is called heed"),
        (("--observer", "entropy"), "no observer 'entropy'"),
    ):
        error = refused(here, "quantization error", "quantize", "net.py", "-o", "net.tet", *options)
        assert message in error


def test_auto_needs_labels(here: Path) -> None:
    text = _MODEL[: _MODEL.index("def evaluation")]
    (here / "net.py").write_text(text)
    error = refused(here, "data error", "quantize", "net.py", "--auto", "--accuracy", "0.9")
    assert "evaluation data with labels" in error
