# SPDX-License-Identifier: Apache-2.0
"""docs/add-an-operator.md, followed as it stands: its code goes into a copy of the repository, which must
then do what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "add-an-operator.md"
PARTS = ("tinyet", "firmware", "boards", "renode", "templates", "tests", "scripts", "docs")


def blocks() -> list[tuple[str, str, str]]:
    """(language, file, text) of each code block that names a file."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```(\w+) file=(\S+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def edited(text: str, diff: str) -> str:
    """The text after a diff whose hunks begin with a bare @@; what a hunk replaces must be there once."""
    for hunk in re.split(r"^@@\n", diff, flags=re.MULTILINE)[1:]:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert old, "a hunk without context"
        assert f"\n{text}".count(f"\n{old}") == 1, f"not there once:\n{old}"
        text = f"\n{text}".replace(f"\n{old}", f"\n{new}", 1)[1:]
    return text


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with the page's operator in it."""
    for name in ("torchao", "hypothesis"):
        pytest.importorskip(name, reason=f"{name} is not installed: the page's example needs it")
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    root = tmp_path_factory.mktemp("copy")
    for part in PARTS:
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for language, name, text in blocks():
        place = root / name
        if language == "diff":
            place.write_text(edited(place.read_text(encoding="utf-8"), text), encoding="utf-8")
        else:
            assert not place.exists(), f"{name} exists: the page needs another example"
            place.write_text(text, encoding="utf-8")
    return root


def run(copy: Path, *words: str) -> str:
    command = [sys.executable, *words]
    environment = os.environ | {"PYTHONPATH": str(copy), "TINYET_CHECK_CXX": "1"}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=400
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def test_its_tests_pass(copy: Path) -> None:
    output = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/ops/test_cumsum.py")
    assert re.search(r"\b4 passed", output)
    assert "skipped" not in output


def test_the_registry_accepts_it(copy: Path) -> None:
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/ops/test_registry.py", "-k")
    # Complete and tested; then names in order, plain attributes, every source used.
    assert re.search(r"\b6 passed", run(copy, *words, "cumsum or not (complete or tested)"))


def test_a_quantized_model_with_it_is_exact(copy: Path) -> None:
    run(copy, "check_cumsum.py")


def test_it_gets_its_row_in_the_table(copy: Path) -> None:
    run(copy, "scripts/operator_table.py")
    table = (copy / "docs" / "operators.md").read_text(encoding="utf-8")
    assert "[`cumsum`](../tinyet/ops/cumsum.py)" in table
    assert "| `aten.cumsum` |" in table


def test_its_code_is_in_the_house_style(copy: Path) -> None:
    pytest.importorskip("ruff", reason="ruff is not installed")
    run(copy, "-m", "ruff", "check", "--no-cache", *(name for lang, name, _ in blocks() if lang == "python"))
