# SPDX-License-Identifier: Apache-2.0
"""dynamic_shapes() of a model's file: the command line takes it, and shows each size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tinyet
from tinyet.cli import app

pytest.importorskip("torch")

MODEL = """
import torch
from torch import nn


def model():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).eval()


def example_inputs():
    return torch.randn(1, 6, 4)


def calibration():
    return [torch.randn(1, 6, 4) for _ in range(2)]


def dynamic_shapes():
    return ({1: 2 * torch.export.Dim("pairs", min=1, max=3)},)
"""


def test_a_models_file_declares_it(tmp_path: Path) -> None:
    file = tmp_path / "steps.py"
    file.write_text(MODEL)
    program = tinyet.open(file)
    assert isinstance(program, tinyet.Program)
    assert program.size is not None
    assert (program.size.name, list(program.size.values)) == ("pairs", [2, 4, 6])
    project = tinyet.generate(program, "mps2_an385", tmp_path / "p", kind="cmake")
    report = tmp_path / "report.json"
    done = CliRunner().invoke(app, ["validate", str(project.path), "--on", "host", "--json", str(report)])
    assert done.exit_code == 0, done.output
    assert [each["size"] for each in json.loads(report.read_text())["at_sizes"]] == [2, 4, 6]
    shown = CliRunner().invoke(app, ["validate", str(project.path), "--on", "host"])
    assert "sizes 2 to 6" in shown.stdout
    assert "3 of 3 exact" in shown.stdout
