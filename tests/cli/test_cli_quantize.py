# SPDX-License-Identifier: Apache-2.0
"""`tinyet quantize`: what it writes, shows and refuses. Each test writes a model file as a user would."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import plain, refused, tinyet
from tests.golden_files import Golden
from tinyet.ir import DType
from tinyet.pages.page import unpacked
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
        (("--config", "int4", "--learn-rounding"), {DType.INT4, DType.INT8}, {DType.FLOAT32}),
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


# With all of its output's mean: the noise is small beside that.
_PLAIN = _MODEL.replace("net(images(40, 2)).mean(0)", "0.0")


def undecided(text: str) -> str:
    """Without digits that are torch's on this processor, and the widths of columns that follow from them."""
    return re.sub("─+", "─", re.sub(r" *[+-]?\d+\.\d+", " #", text))


def test_report_of_a_healthy_model(here: Path, golden: Golden) -> None:
    (here / "net.py").write_text(_PLAIN)
    ended = tinyet("quantize", "net.py", "--report", "--json", "report.json")
    assert ended.status == 0, ended.err
    assert ended.err == ""
    golden(undecided(ended.out), "healthy.txt")
    record = json.loads((here / "report.json").read_text())
    assert record["health"]["healthy"]
    assert record["health"]["advice"] == record["health"]["free"] == record["exceptions"] == []
    assert record["health"]["labelled"] == 40
    assert {layer["module"] for layer in record["layers"]} == {"conv", "head"}
    assert record["auto"] is None
    assert record["program"] is None
    assert record["flash_bytes"] > 0


# Channels of very different size, which the next layer makes alike again.
_UNEQUAL = """
def uneven(net):
    factors = torch.tensor([0.003, 1.0, 1.0, 300.0])
    with torch.no_grad():
        net.conv.weight *= factors.reshape(-1, 1, 1, 1)
        net.conv.bias *= factors
        net.head.weight /= factors.repeat_interleave(16)
    return net

even = model

def model():
    return uneven(even())
"""


def test_report_of_a_model_that_is_healed_at_no_cost(here: Path, golden: Golden) -> None:
    (here / "net.py").write_text(_PLAIN + _UNEQUAL)
    ended = tinyet("quantize", "net.py", "--report", "--json", "report.json")
    assert ended.status == 0, ended.err
    told, _, figures = ended.out.partition("to do: ")
    assert "suffers" in told
    command, _, tables = figures.partition("\n")
    # The order of what brings equally little is not decided either.
    golden(undecided(f"{told}to do: {command}\n\n{tables[tables.index('operator, worst') :]}"), "healed.txt")
    record = json.loads((here / "report.json").read_text())
    assert record["health"]["healed"]
    assert record["exceptions"] == []
    # What it says to do is a command that does it.
    words = command.replace("FILE.tet", "net.tet").split()
    assert words[:2] == ["tinyet", "quantize"]
    after = tinyet(*words[1:], "--report", "--json", "after.json")
    assert after.status == 0, after.err
    assert "\nhealthy: " in after.out
    assert json.loads((here / "after.json").read_text())["health"]["healthy"]


# GELU is not homogeneous: nothing to equalize.
_SPLIT = """

class Split(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net.head(F.gelu(self.net.conv(x)).flatten(1))
"""


def test_report_of_a_model_that_needs_bytes(here: Path) -> None:
    """And every field of it is in docs/json.md, section `tinyet quantize`: the whole, its parts."""
    milder = _UNEQUAL.replace("0.003, 1.0, 1.0, 300.0", "0.03, 1.0, 1.0, 30.0")
    (here / "net.py").write_text(_PLAIN + milder.replace("uneven(even())", "Split(uneven(even()))") + _SPLIT)
    asked = ("--report", "--worst", "1", "--auto", "--accuracy", "0")
    ended = tinyet("quantize", "net.py", *asked, "--json", "report.json", "--html", "report.html")
    assert ended.status == 0, ended.err
    record = json.loads((here / "report.json").read_text())
    page = (here / "report.html").read_text(encoding="utf-8")
    held = re.search(r'id="report">(.*?)</script>', page, re.DOTALL)
    assert held is not None
    assert unpacked(json.loads(held[1]))["quantization"] == record
    assert record["health"]["confusion"]["host"]
    health = record["health"]
    assert not health["healthy"]
    assert not health["healed"]
    assert {entry["operators"] for entry in record["exceptions"] if entry["operators"]} == {"conv2d..linear"}
    assert health["advice"][-2:] == ["--op", "conv2d..linear=float"]
    assert "hurts" in ended.out
    assert re.search(r"for bytes \S.* bytes of flash, \+\d+ of arena", " ".join(ended.out.split()))
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    text = page.split("## `tinyet quantize`")[1].split("\n## ")[0]
    found = [
        re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    ]
    listed = [record[name][0] for name in ("layers", "operators", "patterns", "exceptions")]
    wanted = [record, health, health["free"][0], *listed, record["auto"]]
    assert found == [list(part) for part in wanted]


@pytest.mark.parametrize(
    ("command", "calibration", "evaluation", "said"),
    [
        (
            "compile",
            "[images(2, 1) * 1000]",
            "images(40, 2), torch.zeros(40).long()",
            ["2 samples", "times narrower"],
        ),
        (
            "quantize",
            "[images(16, 1)]",
            "images(40, 2) + 0.5, torch.zeros(40).long()",
            ["% of the values lie outside"],
        ),
        (
            "quantize",
            "[images(1, 1).expand(16, -1, -1, -1)]",
            "images(1, 2).expand(40, -1, -1, -1) * 255, torch.full((40,), 3)",
            [
                "calibration: all 16 samples are the same one",
                "evaluation: all 40 samples are the same one",
                "times wider",
                "40 of 40 are no class of the model",
            ],
        ),
    ],
)
def test_doubtful_data_is_told_with_numbers(
    here: Path, command: str, calibration: str, evaluation: str, said: list[str]
) -> None:
    functions = (
        f"def calibration():\n    return {calibration}\n\n\ndef evaluation():\n    return {evaluation}\n"
    )
    (here / "net.py").write_text(f"{_MODEL}\n\n{functions}")
    ended = tinyet(command, "net.py", "-o", "net.tet")
    assert ended.status == 0, ended.err
    assert [text for text in said if text not in ended.err] == []
    data_warnings = [
        line for line in ended.err.splitlines() if line.startswith("  - ") and ".tet" not in line
    ]
    assert len(data_warnings) == len(said), "nothing else is doubted, and nothing twice"


def test_evaluation_that_is_not_numbers_is_refused(here: Path) -> None:
    (here / "net.py").write_text(
        _MODEL + "\n\ndef evaluation():\n    return images(4, 2) / 0 * 0, torch.zeros(4, dtype=torch.int64)\n"
    )
    error = refused(here, "data error", "compile", "net.py", "-o", "net.tet")
    assert "holds 288 values that are NaN or infinite, in 4 sample(s), first in sample 0" in error
    assert "evaluation() in net.py" in error


def test_auto_wants_labels_that_name_classes(here: Path) -> None:
    (here / "net.py").write_text(
        _MODEL + "\n\ndef evaluation():\n    return images(4, 2), torch.tensor([1, 2, 3, 1])\n"
    )
    error = refused(here, "data error", "quantize", "net.py", "--auto", "--accuracy", "0.5")
    assert "1 of 4 are no class of the model, which are 0 … 2" in error


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
    assert auto["accuracy"] >= 0.98
    assert auto["steps"][0]["exceptions"] == {}
    assert auto["base_accuracy"] < 0.98
    assert auto["exceptions"] == auto["steps"][-1]["exceptions"] or not auto["steps"][-1]["kept"]
    # The file holds what was evaluated.
    program = load(here / "net.tet")
    namespace: dict[str, Any] = {}
    exec(_MODEL, namespace)
    inputs, labels = namespace["evaluation"]()
    right = [int(program.run(x.numpy()).argmax()) == label for x, label in zip(inputs, labels, strict=True)]  # type: ignore[union-attr]
    assert sum(right) / len(right) == auto["accuracy"]


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
        (("--report", "--learn-rounding"), "rounded to nearest"),
        (("-o", "net.bin"), "does not end in .tet"),
        (("-o", "none/net.tet"), "there is no directory none"),
        (("-o", "net.tet", "--json", "-"), "--json: written is what"),
        (("-o", "net.tet", "--layer", "head"), "'head' is not NAME=CONFIG"),
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
