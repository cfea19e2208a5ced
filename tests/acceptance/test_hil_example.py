# SPDX-License-Identifier: Apache-2.0
"""examples/hil is a whole project of its own: copied elsewhere, its tests pass, and fail when the model is broken."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import forked

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "hil"

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.emulated,
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
        reason="arm-none-eabi-gcc or qemu-system-arm is not installed",
    ),
]


def run(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return forked.python(["-m", "pytest", "-q", "-p", "no:cacheprovider", *options], project)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    copy = tmp_path / "hil"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__", "build"))
    return copy


def test_its_tests_pass(project: Path) -> None:
    result = run(project, "-k", "not renode and not other_boards or microbit")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "10 passed" in result.stdout
    assert re.search(r"test_accuracy_and_budget +mps2_an386 +qemu +80 +[\d,]+ instructions", result.stdout)


def test_its_tests_notice(project: Path) -> None:
    """Filters of twice the length: the same answers, over the budget."""
    model = project / "model.py"
    model.write_text(model.read_text().replace("_FILTER = 48", "_FILTER = 96"))
    result = run(project, "-k", "budget")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "over the limit on mps2_an386" in result.stdout
    assert "instructions: " in result.stdout
    assert "Traceback" not in result.stdout


def test_its_pipeline_is_that_of_its_readme() -> None:
    """The commands of the CI file are those that the README tells."""
    readme = (EXAMPLE / "README.md").read_text()
    workflow = (EXAMPLE / ".github" / "workflows" / "hil.yml").read_text()
    for command in ("pip install -r requirements.txt", "pytest --tinyet-require"):
        assert command in workflow
        assert command in readme
