# SPDX-License-Identifier: Apache-2.0
"""What the commands say of a program's answers beside the float model's: first and loudly where they are not its."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests import small
from tests.cli.command import plain, refused, tinyet
from tests.cli.test_reports import _RIGHT
from tinyet.answers import Accuracy, Answers, Beginning, OutputQuality, Quality
from tinyet.program import load
from tinyet.project import Project

_BOARD = ("--board", "mps2_an386")
_GOOD = Answers("calibration", Quality((OutputQuality(38.04, 30.0),), 16), ("y",), 0, True)
_BAD = Answers(
    "evaluation",
    Quality((OutputQuality(3.1, 3.0),), 256, accuracy=Accuracy(256, 136, 205, 90, 21, 155)),
    ("y",),
    101,
    begins=(Beginning("net.py:9: return self.head((x - self.mean) / self.std)", "div", 0.6, 0.3, 39.3),),
)
_SAID = (
    "ALARM: the integers' answers are not the model's: accuracy 53.1 %, float model 80.1 %, of 256 samples, SQNR "
    "3.1 dB (18 are enough), 101 of 256 largest outputs changed against float, on evaluation data\n"
    "  begins at div, 39.3 dB in, 0.6 dB out: net.py:9: return self.head((x - self.mean) / self.std)\n"
    "  to look closer: tinyet quantize MODEL.py --report\n"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    plain(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for name, answers in (("good", _GOOD), ("bad", _BAD), ("unknown", None)):
        dataclasses.replace(small.program(), answers=answers).save(tmp_path / f"{name}.tet")
    return tmp_path


def test_generate_says_it_in_a_quiet_line() -> None:
    ended = tinyet("generate", "good.tet", *_BOARD, "-o", "p")
    said = "answers: SQNR 38.0 dB, 0 of 16 classes changed against float, on calibration data"
    assert ended.out.splitlines()[0] == said
    assert "ALARM" not in ended.err
    assert "answers" not in tinyet("generate", "unknown.tet", *_BOARD, "-o", "q").out


def test_generate_says_it_first_and_loudly() -> None:
    ended = tinyet("generate", "bad.tet", *_BOARD, "-o", "p", "--json", "p.json")
    assert ended.status == 0
    assert ended.err.startswith(_SAID)
    assert not ended.out.startswith("answers:")
    record = json.loads(Path("p.json").read_text(encoding="utf-8"))
    assert record["answers"]["healthy"] is False
    assert record["answers"]["accuracy"] == 136 / 256
    assert record["answers"]["begins"][0]["op"] == "div"
    assert record["hash"] == load("bad.tet").hash
    assert load("p/small.tet").answers == _BAD


def test_strict_refuses_a_program_whose_answers_are_bad(here: Path) -> None:
    error = refused(here, "quantization error", "generate", "bad.tet", *_BOARD, "-o", "p", "--strict")
    assert "net.py:9: return self.head" in error
    assert tinyet("generate", "good.tet", *_BOARD, "-o", "p", "--strict").status == 0


@pytest.mark.parametrize(
    ("answers", "proof"),
    [
        (_GOOD, "host reference near float yes, SQNR 38.0 dB, 0 of 16 classes changed"),
        (_BAD, "host reference near float NO, accuracy 53.1 %, float model 80.1 %"),
    ],
)
def test_validate_prints_both_proofs(monkeypatch: pytest.MonkeyPatch, answers: Answers, proof: str) -> None:
    tinyet("generate", "good.tet", *_BOARD, "-o", "p")
    result = dataclasses.replace(_RIGHT, answers=answers)
    monkeypatch.setattr(Project, "validate", lambda *_, **__: result)
    ended = tinyet("validate", "p", "--json", "v.json")
    assert ended.status == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    at = next(i for i, line in enumerate(lines) if line.startswith("device = host reference"))
    assert "yes, 40 of 40 samples" in lines[at]
    assert lines[at + 1].startswith(proof)
    assert ended.err.startswith(_SAID) == (not answers.healthy)
    record = json.loads(Path("v.json").read_text(encoding="utf-8"))
    assert record["answers"]["healthy"] == answers.healthy
    assert record["answers"]["source"] == answers.source


# ---------------------------------------------------------------- from a model on

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

_TABLE = """\
import torch
from torch import nn

SIZE = torch.tensor([40000.0, 1.0])


class Rows(nn.Module):
    def forward(self, x):
        return torch.tanh((x / SIZE) @ torch.tensor([[0.01, 0.01], [1.0, -1.0]]))


def rows(count, seed):
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(seed)) * SIZE


def model():
    return Rows().eval()


def example_inputs():
    return (rows(1, 0),)


def calibration():
    return list(rows(40, 1).split(1))
"""
_LABELS = """

def evaluation():
    x = rows(200, 2)
    return x, model()(x).argmax(1)
"""
_HEALTHY = _TABLE.replace("40000.0", "1.0")


def written(text: str) -> str:
    Path("rows.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return "rows.py"


@needs_torch
@pytest.mark.parametrize("command", ["compile", "quantize", "generate"])
def test_a_model_in_raw_units_rings(command: str) -> None:
    more: Any = _BOARD if command == "generate" else ()
    ended = tinyet(command, written(_TABLE), *more, "-o", "p" if command == "generate" else "a.tet")
    assert ended.status == 0
    first, begins, advice, *_ = ended.err.splitlines()
    assert first.startswith("ALARM: the integers' answers are not the model's: SQNR ")
    assert "rows.py:9: return torch.tanh((x / SIZE)" in begins
    assert advice == "  to look closer: tinyet quantize rows.py --report"


@needs_torch
def test_compile_of_a_healthy_one_says_so_and_json_has_it() -> None:
    ended = tinyet("compile", written(_HEALTHY), "-o", "a.tet", "--strict", "--json", "a.json")
    assert ended.status == 0
    assert ended.out.splitlines()[0].startswith("answers: SQNR ")
    assert ended.out.splitlines()[0].endswith("against float, on calibration data")
    record = json.loads(Path("a.json").read_text(encoding="utf-8"))
    answers = load("a.tet").answers
    assert answers is not None
    assert record["answers"] == answers.to_json()
    assert record["bytes"] == Path("a.tet").stat().st_size
    assert json.loads(tinyet("compile", "rows.py", "-o", "b.tet", "--json", "-").out)["path"] == "b.tet"


@needs_torch
def test_labels_say_how_much_it_costs() -> None:
    ended = tinyet("compile", written(_TABLE + _LABELS), "-o", "a.tet", "--save-evaluation", "a.npz")
    assert "accuracy " in ended.err.splitlines()[0]
    assert "float model 100.0 %, of 200 samples" in ended.err.splitlines()[0]
    refused(Path(), "quantization error", "compile", "rows.py", "-o", "b.tet", "--strict")


@needs_torch
def test_a_tet_of_which_nobody_knows_is_measured_with_evaluation_data() -> None:
    tinyet("compile", written(_TABLE + _LABELS), "-o", "a.tet", "--save-evaluation", "a.npz")
    dataclasses.replace(load("a.tet"), answers=None).save("old.tet")
    assert "ALARM" not in tinyet("generate", "old.tet", *_BOARD, "-o", "p").err
    ended = tinyet("generate", "old.tet", *_BOARD, "-o", "q", "--evaluation", "a.npz")
    assert ended.err.startswith("ALARM: the integers' answers are not the model's: accuracy ")
