# SPDX-License-Identifier: Apache-2.0
"""The workflow for users, examples/ci/tinyet.yml: its scripts are run in a repository with two commits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import small
from tests.golden.programs import separable

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or shutil.which("bash") is None, reason="git or bash is not installed"
)


def script(step: str) -> str:
    """What a step of the workflow runs."""
    text = (ROOT / "examples/ci/tinyet.yml").read_text(encoding="utf-8")
    found = re.search(rf"- name: {step}\n.*?        run: (?:\|\n(.*?)(?:\n\n|\Z)|(.*?)\n)", text, re.DOTALL)
    assert found is not None, step
    return textwrap.dedent(found[1]) if found[1] else found[2]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, words in (("tinyet", "-m tinyet"), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} {words} "$@"\n')
        (tools / name).chmod(0o755)
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    return os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", **dict.fromkeys(names, "me@example.org")}


def test_a_pull_request_gets_its_comment_and_its_verdict(tmp_path: Path, environment: dict[str, str]) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()

    def ran(words: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=repository, env=environment | more, capture_output=True, text=True, check=False
        )

    (repository / "pyproject.toml").write_text(
        "".join(
            f'[[tool.tinyet.budgets]]\nmodel = "{model}"\nboard = "microbit"\nmacs = {macs}\n'
            for model, macs in (("net.tet", 1500), ("new.tet", "50_000_000"))
        )
    )
    small.program().save(repository / "net.tet")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "before"]):
        assert ran(["git", *words]).returncode == 0
    base = ran(["git", "rev-parse", "HEAD"]).stdout.strip()
    separable().save(repository / "net.tet")
    small.program().save(repository / "new.tet")
    summary = tmp_path / "summary.md"
    done = ran(["bash", "-ec", script("what changed")], BASE=base, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 0, done.stderr
    comment = (repository / "comment.md").read_text()
    assert comment.startswith("<!-- tinyet -->")
    assert summary.read_text() == comment
    assert comment.count("\n## ") == 1, "the base has no new.tet"
    assert "## net.tet on microbit" in comment
    assert "| MACs | 4 068 | 1 968 |" in comment.replace("\u202f", " ").replace("\xa0", " ")
    budgets = ran(["bash", "-ec", script("budgets")])
    assert budgets.returncode == 1
    assert "at most 1,500" in budgets.stderr
