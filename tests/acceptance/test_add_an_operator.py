# SPDX-License-Identifier: Apache-2.0
"""docs/add-an-operator.md shows an operator as it is in the repository, and what it says to run works."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import forked

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "add-an-operator.md"


def blocks() -> list[tuple[str, str, str]]:
    """(language, file, text) of each code block that names a file."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```(\w+) file=(\S+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def hunks(diff: str) -> list[str]:
    """What stands in a file behind each hunk of a diff; they begin with a bare @@."""
    found = re.split(r"^@@\n", diff, flags=re.MULTILINE)[1:]
    assert not re.search(r"^-", diff, flags=re.MULTILINE), "it only adds"
    return ["".join(line[1:] for line in hunk.splitlines(keepends=True)) for hunk in found]


SHOWN = [block for block in blocks() if block[1] != "check_cumsum.py"]


@pytest.mark.parametrize(("language", "name", "text"), SHOWN, ids=[name for _, name, _ in SHOWN])
def test_the_page_shows_the_repository(language: str, name: str, text: str) -> None:
    there = (ROOT / name).read_text(encoding="utf-8")
    if language != "diff":
        assert there == text
        return
    for hunk in hunks(text):
        assert f"\n{there}".count(f"\n{hunk}") == 1, f"not there once:\n{hunk}"


def test_it_shows_all_of_it() -> None:
    files = {name for _, name, _ in SHOWN}
    firmware = {str(path.relative_to(ROOT)) for path in (ROOT / "firmware").rglob("tinyet_cumsum*")}
    assert firmware | {"tinyet/ops/cumsum.py", "tests/ops/test_cumsum.py"} <= files


def test_a_quantized_model_with_it_is_exact(tmp_path: Path) -> None:
    pytest.importorskip("torchao", reason="torchao is not installed: the page's example needs it")
    (script,) = (text for _, name, text in blocks() if name == "check_cumsum.py")
    (tmp_path / "check_cumsum.py").write_text(script, encoding="utf-8")
    done = forked.python(["check_cumsum.py"], tmp_path, os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
